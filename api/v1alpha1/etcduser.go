package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EtcdUser is a user in one etcd cluster: the common name of client certificates, or a name with a
// password.
//
// +kubebuilder:object:root=true
// +kubebuilder:ac:generate=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=etcdu,categories=etcd
// +kubebuilder:selectablefield:JSONPath=`.spec.clusterRef.name`
// +kubebuilder:printcolumn:name=Cluster,type=string,JSONPath=`.spec.clusterRef.name`
// +kubebuilder:printcolumn:name=Ready,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`,description="etcd has the user as the spec says"
// +kubebuilder:printcolumn:name=Reason,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name=Roles,type=string,JSONPath=`.spec.roles`,priority=1
// +kubebuilder:printcolumn:name=Status,type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name=Age,type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",fieldPath=".metadata",message="metadata.name must have at most 63 characters"
// +kubebuilder:validation:XValidation:rule="has(self.spec.name) || self.metadata.name != 'root'",fieldPath=".metadata",message="root is etcd's own user: its password is spec.auth.rootSecretRef of the EtcdCluster. Name this one otherwise"
// +kubebuilder:validation:XValidation:rule="has(self.spec.name) || self.metadata.name != 'quorate'",fieldPath=".metadata",message="quorate is Quorate's own user in etcd: name this one otherwise"
type EtcdUser struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the wanted state. clusterRef, name, certificate.secretName, and whether there is a
	// password cannot be changed.
	// +required
	Spec EtcdUserSpec `json:"spec"`

	// status is what became of it; only Quorate writes it.
	// +optional
	// +kubebuilder:default={"observedGeneration":-1}
	Status EtcdUserStatus `json:"status,omitempty"`
}

// EtcdUserList is a list of EtcdUser.
//
// +kubebuilder:object:root=true
type EtcdUserList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []EtcdUser `json:"items"`
}

// EtcdUserSpec is the wanted state of a user.
//
// +kubebuilder:validation:XValidation:rule="self.clusterRef == oldSelf.clusterRef",fieldPath=".clusterRef",message="spec.clusterRef cannot be changed: make another EtcdUser"
// +kubebuilder:validation:XValidation:rule="has(self.name) == has(oldSelf.name) && (!has(self.name) || self.name == oldSelf.name)",fieldPath=".name",message="spec.name cannot be changed: make another EtcdUser"
// +kubebuilder:validation:XValidation:rule="!has(self.name) || self.name != 'root'",fieldPath=".name",message="root is etcd's own user: its password is spec.auth.rootSecretRef of the EtcdCluster. Name this one otherwise"
// +kubebuilder:validation:XValidation:rule="!has(self.name) || self.name != 'quorate'",fieldPath=".name",message="quorate is Quorate's own user in etcd: name this one otherwise"
// +kubebuilder:validation:XValidation:rule="has(self.passwordSecretRef) == has(oldSelf.passwordSecretRef)",fieldPath=".passwordSecretRef",message="etcd cannot give a password to a user that was made without one, nor take it away: delete the EtcdUser, and apply it again. passwordSecretRef may name another Secret at any time"
// +kubebuilder:validation:XValidation:rule="!has(self.certificate) || !has(oldSelf.certificate) || self.certificate == oldSelf.certificate",fieldPath=".certificate.secretName",message="spec.certificate.secretName cannot be changed: apply the EtcdUser without spec.certificate, and then with the other name. The former Secret stays, and is not renewed any more"
// +kubebuilder:validation:XValidation:rule="!has(self.certificate) || !(self.certificate.secretName in ['-client-ca', '-client-tls', '-operator-tls', '-peer-ca', '-peer-tls', '-server-tls'].map(suffix, self.clusterRef.name + suffix))",fieldPath=".certificate.secretName",message="this is a Secret of the EtcdCluster itself: write another name in spec.certificate.secretName, for example that of the application"
type EtcdUserSpec struct {
	// clusterRef names the EtcdCluster, of the same namespace.
	// +required
	ClusterRef ClusterReference `json:"clusterRef"`

	// name of the user in etcd: the common name of the client certificate, or the name that goes
	// with the password. A user of that name that is there already is replaced. Default:
	// metadata.name.
	// +optional
	Name EtcdName `json:"name,omitempty"`

	// passwordSecretRef is the Secret, in the same namespace, with the password: the key password,
	// of 1 to 72 bytes. A change of the Secret is applied within five minutes, and a change of this
	// field at once. Default: the user has no password, and connects with a certificate alone.
	// +optional
	PasswordSecretRef *SecretReference `json:"passwordSecretRef,omitempty"`

	// certificate has Quorate issue a client certificate for the user, and renew it. It needs
	// spec.tls.client.mode Managed of the EtcdCluster. Default: the user has no certificate from
	// Quorate.
	// +optional
	Certificate *UserCertificate `json:"certificate,omitempty"`

	// roles of the user, by their names in etcd: those of EtcdRoles, or root, which may do
	// everything. A change applies at once. Default none: such a user may do nothing.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=64
	Roles []EtcdName `json:"roles,omitempty"`

	// drift is what is done where the roles of the user were changed in etcd itself, or it was
	// deleted there. Revert (default): within five minutes it is again as the spec says. Report: it
	// is left so, and the condition Stalled says how it differs. A change of the spec is always
	// applied. That a password was changed in etcd cannot be seen.
	// +optional
	// +kubebuilder:validation:Enum=Revert;Report
	Drift DriftPolicy `json:"drift,omitempty"`
}

// UserCertificate is the client certificate of a user, in a Secret of the same namespace. Its
// common name is the name of the user in etcd.
type UserCertificate struct {
	// secretName is the name of the Secret. Quorate creates it, of type kubernetes.io/tls, once
	// etcd has the user: tls.crt, tls.key, and ca.crt with which the members are verified. A
	// certificate is valid for 90 days, and renewed when 30 of them are left, with the same key. It
	// is reissued when the authority is rotated (spec.tls.client.rotationWait of the EtcdCluster is
	// how long applications have to read it again). The Secret is deleted with the EtcdUser.
	// +required
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	SecretName string `json:"secretName"`
}

// IssuedCertificate is a client certificate that Quorate has issued.
type IssuedCertificate struct {
	// authority is the SHA-256 fingerprint of the authority that issued it, in hexadecimal.
	// +required
	// +kubebuilder:validation:MaxLength=64
	Authority string `json:"authority"`

	// trusts are the fingerprints of the authorities in ca.crt.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=64
	Trusts []string `json:"trusts,omitempty"`

	// expires is when the certificate expires.
	// +required
	Expires metav1.Time `json:"expires"`
}

// EtcdUserStatus is what became of a user.
type EtcdUserStatus struct {
	// observedGeneration is the generation of the spec that this status speaks of; -1 before the
	// first look.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions are Ready, always: True while etcd has the user as the spec says, and the Secret
	// of spec.certificate has its certificate; and Reconciling and Stalled, only while True.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=16
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// applied is which spec etcd was given last, and where. What differs from it since is drift.
	// +optional
	Applied *Applied `json:"applied,omitempty"`

	// password is UID and resourceVersion of the Secret whose password etcd was given last.
	// +optional
	// +kubebuilder:validation:MaxLength=128
	Password string `json:"password,omitempty"`

	// certificate is what the Secret of spec.certificate holds.
	// +optional
	Certificate *IssuedCertificate `json:"certificate,omitempty"`
}
