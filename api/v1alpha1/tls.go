package v1alpha1

import "cmp"

// TLSMode is where the certificates of a plane come from.
type TLSMode string

// The modes.
const (
	// TLSManaged: Quorate has a certificate authority for this cluster alone, and issues and renews
	// all certificates.
	TLSManaged TLSMode = "Managed"
	// TLSSecret: the certificates are in Secrets that others write, such as cert-manager.
	TLSSecret TLSMode = "Secret"
	// TLSDisabled: plain text, without authentication.
	TLSDisabled TLSMode = "Disabled"
)

// TLS says how the connections to the members, and among them, are encrypted and authenticated.
// Each plane is by itself.
type TLS struct {
	// client is for the port that clients use (2379). Default: plain text.
	// +optional
	Client *ClientTLS `json:"client,omitempty"`

	// peer is for the port that members use among themselves (2380). Default: plain text.
	// +optional
	Peer *PeerTLS `json:"peer,omitempty"`
}

// ClientTLS is TLS of the port that clients use.
//
// +kubebuilder:validation:XValidation:rule="self.mode == 'Secret' ? has(self.secretRef) && has(self.operatorSecretRef) : !has(self.secretRef) && !has(self.operatorSecretRef)",message="tls.client.secretRef and tls.client.operatorSecretRef are for mode Secret, which needs both: the members' certificate, and the client certificate with which Quorate and its backups connect"
// +kubebuilder:validation:XValidation:rule="self.mode == 'Managed' || !has(self.altNames)",fieldPath=".altNames",message="tls.client.altNames go into certificates that Quorate issues (mode Managed): with mode Secret put them into your own certificate"
// +kubebuilder:validation:XValidation:rule="self.mode != oldSelf.mode || (!has(self.secretRef) || !has(oldSelf.secretRef) || self.secretRef.name == oldSelf.secretRef.name) && (!has(self.operatorSecretRef) || !has(oldSelf.operatorSecretRef) || self.operatorSecretRef.name == oldSelf.operatorSecretRef.name)",message="the names of the Secrets cannot be changed, because the Pods mount them: set them back, and replace what the Secrets hold"
type ClientTLS struct {
	// mode is Managed (Quorate issues all certificates, with a certificate authority for this
	// cluster alone), Secret (they are in Secrets that you write, or cert-manager) or Disabled
	// (plain text). With Managed and Secret every client needs a certificate of the same authority.
	// It cannot be changed.
	// +required
	// +kubebuilder:validation:Enum=Managed;Secret;Disabled
	Mode TLSMode `json:"mode"`

	// altNames are further DNS names and IP addresses by which clients reach the members, such as
	// that of a load balancer. A change reissues the members' certificate and restarts nothing. The
	// names of the Services and of the members, localhost, 127.0.0.1 and ::1 are always there. Only
	// with Managed. Default none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	AltNames []AltName `json:"altNames,omitempty"`

	// secretRef is the Secret with the certificate of all members: tls.crt, tls.key and ca.crt,
	// which is the authority that client certificates are checked against. It must be valid for
	// *.<cluster>.<namespace>.svc and <cluster>-client.<namespace>.svc, for server and client
	// authentication. Only with Secret.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`

	// operatorSecretRef is the Secret with the client certificate of Quorate and of the Jobs of its
	// backups: tls.crt, tls.key and ca.crt, which is the authority that members are checked
	// against. Only with Secret.
	// +optional
	OperatorSecretRef *SecretReference `json:"operatorSecretRef,omitempty"`
}

// AltName is a DNS name, which may begin with "*.", or an IP address.
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$') || isIP(self)",message="tls.client.altNames: each is a DNS name in lower case, such as etcd.example.com or *.etcd.example.com, or an IP address, without port and scheme"
type AltName string

// PeerTLS is TLS of the port that members use among themselves.
//
// +kubebuilder:validation:XValidation:rule="self.mode == 'Secret' ? has(self.secretRef) : !has(self.secretRef)",fieldPath=".secretRef",message="tls.peer.secretRef is for mode Secret, which needs it: the certificate with which members know each other"
// +kubebuilder:validation:XValidation:rule="self.mode != oldSelf.mode || !has(self.secretRef) || !has(oldSelf.secretRef) || self.secretRef.name == oldSelf.secretRef.name",fieldPath=".secretRef",message="the name of the Secret cannot be changed, because the Pods mount it: set it back, and replace what the Secret holds"
type PeerTLS struct {
	// mode is Managed (Quorate issues all certificates, with a certificate authority for the
	// members of this cluster alone), Secret (they are in a Secret that you write, or cert-manager)
	// or Disabled (plain text). With Managed and Secret members accept no peer without a
	// certificate of the same authority. It cannot be changed.
	// +required
	// +kubebuilder:validation:Enum=Managed;Secret;Disabled
	Mode TLSMode `json:"mode"`

	// secretRef is the Secret with the certificate of all members: tls.crt, tls.key and ca.crt. It
	// must be valid for *.<cluster>.<namespace>.svc and <cluster>.<namespace>.svc, for server and
	// client authentication. Only with Secret.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// TLSStatus is what is in force.
type TLSStatus struct {
	// client is for the port that clients use.
	// +required
	Client TLSPlaneStatus `json:"client"`

	// peer is for the port that members use among themselves.
	// +required
	Peer TLSPlaneStatus `json:"peer"`
}

// TLSPlaneStatus is what is in force for one port.
type TLSPlaneStatus struct {
	// mode is Managed, Secret or Disabled.
	// +required
	// +kubebuilder:validation:Enum=Managed;Secret;Disabled
	Mode TLSMode `json:"mode"`

	// authority is the SHA-256 of the certificate of the authority that the members trust, in
	// hexadecimal, with Managed.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Authority string `json:"authority,omitempty"`
}

// ClientTLSMode is the mode of the port that clients use: what the spec says, or what has been in
// force so far.
func (c *EtcdCluster) ClientTLSMode() TLSMode {
	if c.Spec.TLS != nil && c.Spec.TLS.Client != nil {
		return c.Spec.TLS.Client.Mode
	}
	if c.Status.TLS != nil {
		return cmp.Or(c.Status.TLS.Client.Mode, TLSDisabled)
	}
	return TLSDisabled
}

// PeerTLSMode is the mode of the port that members use among themselves, in the same manner.
func (c *EtcdCluster) PeerTLSMode() TLSMode {
	if c.Spec.TLS != nil && c.Spec.TLS.Peer != nil {
		return c.Spec.TLS.Peer.Mode
	}
	if c.Status.TLS != nil {
		return cmp.Or(c.Status.TLS.Peer.Mode, TLSDisabled)
	}
	return TLSDisabled
}

// ClientTLS reports whether clients need TLS, and PeerTLS whether members do.
func (c *EtcdCluster) ClientTLS() bool { return c.ClientTLSMode() != TLSDisabled }

// PeerTLS reports whether members use TLS among themselves.
func (c *EtcdCluster) PeerTLS() bool { return c.PeerTLSMode() != TLSDisabled }

// The keys of the Secrets, and so the names of the files that are made of them. SecretPeerCert and
// SecretPeerKey are what a member shows to another one when it connects, where that differs from
// what it is connected to with.
const (
	SecretCA       = "ca.crt"
	SecretCert     = "tls.crt"
	SecretKey      = "tls.key"
	SecretPeerCert = "client.crt"
	SecretPeerKey  = "client.key"
)

// ClientAuthoritySecret is the Secret with the key of the authority of clients and of what they
// connect to (Managed).
func (c *EtcdCluster) ClientAuthoritySecret() string { return c.Name + "-client-ca" }

// PeerAuthoritySecret is the Secret with the key of the authority of members (Managed).
func (c *EtcdCluster) PeerAuthoritySecret() string { return c.Name + "-peer-ca" }

// ApplicationSecret is the Secret with what an application needs to connect (Managed).
func (c *EtcdCluster) ApplicationSecret() string { return c.Name + "-client-tls" }

// ServerSecret is the Secret with what members show to clients.
func (c *EtcdCluster) ServerSecret() string {
	if c.ClientTLSMode() == TLSSecret {
		return secretName(c.ownClient().SecretRef)
	}
	return c.Name + "-server-tls"
}

// OperatorSecret is the Secret with which Quorate and its Jobs connect.
func (c *EtcdCluster) OperatorSecret() string {
	if c.ClientTLSMode() == TLSSecret {
		return secretName(c.ownClient().OperatorSecretRef)
	}
	return c.Name + "-operator-tls"
}

// PeerSecret is the Secret with what members show to each other.
func (c *EtcdCluster) PeerSecret() string {
	if c.PeerTLSMode() == TLSSecret {
		return secretName(c.ownPeer().SecretRef)
	}
	return c.Name + "-peer-tls"
}

// ownClient and ownPeer are what the spec says; nothing where it does not, though the status does.
func (c *EtcdCluster) ownClient() ClientTLS {
	if c.Spec.TLS == nil || c.Spec.TLS.Client == nil {
		return ClientTLS{}
	}
	return *c.Spec.TLS.Client
}

func (c *EtcdCluster) ownPeer() PeerTLS {
	if c.Spec.TLS == nil || c.Spec.TLS.Peer == nil {
		return PeerTLS{}
	}
	return *c.Spec.TLS.Peer
}

func secretName(ref *SecretReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}

// MemberHost is the DNS name of a member inside the Kubernetes cluster.
func (c *EtcdCluster) MemberHost(member string) string {
	return member + "." + c.Name + "." + c.Namespace + ".svc"
}

func scheme(encrypted bool) string {
	if encrypted {
		return "https://"
	}
	return "http://"
}
