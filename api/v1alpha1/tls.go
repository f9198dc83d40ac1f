package v1alpha1

import "cmp"

// TLSMode is where the certificates of a port come from.
type TLSMode string

// The modes.
const (
	// TLSManaged: Quorate makes a certificate authority for this cluster and port alone, and issues
	// and renews all certificates.
	TLSManaged TLSMode = "Managed"
	// TLSSecret: the certificates are in Secrets that others write, such as cert-manager.
	TLSSecret TLSMode = "Secret"
	// TLSDisabled: plain text, without authentication.
	TLSDisabled TLSMode = "Disabled"
)

// Plaintext is whether members with TLS also serve clients without it.
type Plaintext string

// The values.
const (
	// PlaintextAllowed: clients may connect without TLS, and then need no certificate.
	PlaintextAllowed Plaintext = "Allowed"
	// PlaintextRefused: every client needs TLS.
	PlaintextRefused Plaintext = "Refused"
)

// TLS says how the connections to the members, and among them, are encrypted and authenticated.
// Each of the two ports has a mode of its own. The third port, 2381 for metrics and probes, serves
// no data, and is always plain text.
type TLS struct {
	// client is for the port that clients use (2379). Left out, a new cluster has mode Managed, and
	// one that exists keeps the mode in status.tls.client: to remove client from the spec does not
	// turn TLS off.
	// +optional
	Client *ClientTLS `json:"client,omitempty"`

	// peer is for the port that members use among themselves (2380). Left out, a new cluster has
	// mode Managed, and one that exists keeps the mode in status.tls.peer.
	// +optional
	Peer *PeerTLS `json:"peer,omitempty"`
}

// ClientTLS is TLS of the port that clients use.
//
// +kubebuilder:validation:XValidation:rule="self.mode == 'Secret' ? has(self.secretRef) && has(self.operatorSecretRef) : !has(self.secretRef) && !has(self.operatorSecretRef)",message="spec.tls.client.secretRef and spec.tls.client.operatorSecretRef are for mode Secret, which needs both: the members' certificate, and the client certificate with which Quorate and its backups connect"
// +kubebuilder:validation:XValidation:rule="self.mode == 'Managed' || !has(self.altNames)",fieldPath=".altNames",message="spec.tls.client.altNames go into certificates that Quorate issues (mode Managed): with mode Secret put them into your own certificate"
// +kubebuilder:validation:XValidation:rule="self.mode == 'Managed' || !has(self.rotateAuthority) && !has(self.rotationWait)",message="spec.tls.client.rotateAuthority and spec.tls.client.rotationWait are for mode Managed: with mode Secret you rotate the authority yourself (docs/tls.md#your-own-certificates-and-cert-manager)"
// +kubebuilder:validation:XValidation:rule="self.mode != 'Disabled' || !has(self.plaintext)",fieldPath=".plaintext",message="spec.tls.client.plaintext is for modes Managed and Secret: mode Disabled serves plain text alone, so leave it out"
type ClientTLS struct {
	// mode is Managed (Quorate issues and renews all certificates, with a certificate authority for
	// this cluster alone), Secret (you or cert-manager write them into Secrets) or Disabled (plain
	// text: whatever reaches the port can read and write the data). With Managed and Secret every
	// client connects to https, and needs a certificate. With Managed an application finds its
	// certificate in the Secret <cluster>-client-tls (ca.crt, tls.crt, tls.key), and the operator
	// needs rights on Secrets. With Secret a client needs a certificate of an authority in ca.crt
	// of secretRef. A change of the mode recreates the Pods, one after the other. To do it without
	// a pause for clients, use plaintext. Required where client is written.
	// +required
	// +kubebuilder:validation:Enum=Managed;Secret;Disabled
	Mode TLSMode `json:"mode"`

	// plaintext is Allowed (members also serve clients without TLS, at the same port) or Refused. A
	// client without TLS needs no certificate: while plaintext is Allowed, whatever reaches the
	// port can read and write the data. It is for the time of a change of the mode: Allowed first,
	// then the clients change, then Refused. Each change recreates the Pods, one after the other.
	// Only with modes Managed and Secret. Default Refused.
	// +optional
	// +kubebuilder:validation:Enum=Allowed;Refused
	Plaintext Plaintext `json:"plaintext,omitempty"`

	// altNames are further DNS names and IP addresses by which clients reach the members, such as
	// those of a load balancer: clients verify that the name they connect to is in the members'
	// certificate. They can be changed at any time: the certificate is reissued, members present it
	// within a minute or two, and nothing restarts. The names of the Services and of the members,
	// localhost, 127.0.0.1 and ::1 are always in it. Only with mode Managed. Default none.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=32
	AltNames []AltName `json:"altNames,omitempty"`

	// rotateAuthority starts a rotation to a new certificate authority: any value other than that
	// of status.tls.client.rotateAuthority starts one, such as today's date, and an empty one
	// starts none. Quorate reissues all certificates, and recreates each Pod twice, one Pod at a
	// time. Applications have to read <cluster>-client-tls again, twice (rotationWait). A rotation
	// that has begun is completed, even if the value changes or is removed. An authority is also
	// rotated by itself when two thirds of its validity of ten years have passed. Only with mode
	// Managed. Default empty.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	RotateAuthority string `json:"rotateAuthority,omitempty"`

	// rotationWait is how long a rotation waits for applications to reload <cluster>-client-tls,
	// from 0s to 8760h. It waits twice. First ca.crt has both authorities, and the members present
	// no certificate of the new one before the wait is over. Then tls.crt is of the new one, and
	// the members refuse no certificate of the old one before the wait is over. 0s does not wait. A
	// change applies to a rotation that is under way as well. Only with mode Managed. Default 168h.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,6}([.][0-9]{1,3})?(s|m|h)|[0-9]{1,6}ms)+$') && duration(self) <= duration('8760h')",message="spec.tls.client.rotationWait must be a duration from 0s to 8760h, for example 168h or 1h30m"
	RotationWait *Duration `json:"rotationWait,omitempty"`

	// secretRef is the Secret, in the namespace of the EtcdCluster, with the certificate of all
	// members: tls.crt, tls.key, and ca.crt with the authorities that client certificates are
	// checked against. tls.crt must be valid for *.<cluster>.<namespace>.svc and
	// <cluster>-client.<namespace>.svc, for server and client authentication. What the Secret holds
	// can be changed at any time: members use another tls.crt and tls.key without a restart, and
	// another ca.crt from their next start on. Another name recreates the Pods, one after the
	// other. Required with mode Secret, and only allowed there.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`

	// operatorSecretRef is the Secret, in the same namespace, with the client certificate of
	// Quorate and of the Jobs of its backups: tls.crt, tls.key, and ca.crt with the authorities
	// that members are checked against. tls.crt must be valid for client authentication, and issued
	// by an authority in ca.crt of secretRef. No Pod of a member mounts it: neither another name
	// nor another certificate restarts one. Required with mode Secret, and only allowed there.
	// +optional
	OperatorSecretRef *SecretReference `json:"operatorSecretRef,omitempty"`
}

// AltName is a DNS name, which may begin with "*.", or an IP address.
//
// +kubebuilder:validation:MaxLength=253
// +kubebuilder:validation:XValidation:rule="self.matches('^([*][.])?[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$') || isIP(self)",message="spec.tls.client.altNames: each is a DNS name in lower case, such as etcd.example.com or *.etcd.example.com, or an IP address, without port and scheme"
type AltName string

// PeerTLS is TLS of the port that members use among themselves.
//
// +kubebuilder:validation:XValidation:rule="self.mode == 'Managed' || !has(self.rotateAuthority)",fieldPath=".rotateAuthority",message="spec.tls.peer.rotateAuthority is for mode Managed: with mode Secret you rotate the authority yourself (docs/tls.md#your-own-certificates-and-cert-manager)"
// +kubebuilder:validation:XValidation:rule="self.mode == 'Secret' ? has(self.secretRef) : !has(self.secretRef)",fieldPath=".secretRef",message="spec.tls.peer.secretRef is for mode Secret, which needs it: the certificate with which members know each other"
// +kubebuilder:validation:XValidation:rule="self.mode != oldSelf.mode || !has(self.secretRef) || !has(oldSelf.secretRef) || self.secretRef.name == oldSelf.secretRef.name",fieldPath=".secretRef",message="the name of the Secret cannot be changed, because the Pods mount it: revert it, and replace what the Secret holds"
type PeerTLS struct {
	// mode is Managed (Quorate issues and renews all certificates, with a certificate authority for
	// the members of this cluster alone), Secret (you or cert-manager write them into a Secret) or
	// Disabled (plain text: whatever reaches the port can act as a member). With Managed and Secret
	// members accept no peer without a certificate of an authority that they trust. With Managed
	// the operator needs rights on Secrets. Once members have started, the mode cannot be changed:
	// the one in force is in status.tls.peer. Required where peer is written.
	// +required
	// +kubebuilder:validation:Enum=Managed;Secret;Disabled
	Mode TLSMode `json:"mode"`

	// rotateAuthority starts a rotation to a new certificate authority: any value other than that
	// of status.tls.peer.rotateAuthority starts one, such as today's date, and an empty one starts
	// none. Each Pod is recreated twice, one Pod at a time. No application notices it, so it waits
	// for none. An authority is also rotated by itself when two thirds of its validity of ten years
	// have passed. Only with mode Managed. Default empty.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	RotateAuthority string `json:"rotateAuthority,omitempty"`

	// secretRef is the Secret, in the namespace of the EtcdCluster, with the certificate of all
	// members: tls.crt, tls.key, and ca.crt with the authorities that peers are checked against.
	// tls.crt must be valid for *.<cluster>.<namespace>.svc and <cluster>.<namespace>.svc, for
	// server and client authentication. What the Secret holds can be changed at any time: members
	// use another tls.crt and tls.key without a restart, and another ca.crt from their next start
	// on. The name cannot be changed. Required with mode Secret, and only allowed there.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`
}

// TLSStatus is the TLS that is in force. It is written before the first member starts, so that
// another default of a later release changes no cluster.
type TLSStatus struct {
	// client is for the port that clients use.
	// +required
	Client TLSPlaneStatus `json:"client"`

	// peer is for the port that members use among themselves.
	// +required
	Peer TLSPlaneStatus `json:"peer"`
}

// TLSPlaneStatus is the TLS of one port.
type TLSPlaneStatus struct {
	// mode is Managed, Secret or Disabled: how Pods are created now. While it is changed there are
	// Pods of the former mode.
	// +required
	// +kubebuilder:validation:Enum=Managed;Secret;Disabled
	Mode TLSMode `json:"mode"`

	// authority is the SHA-256 of the certificate of the authority that issues certificates, in
	// hexadecimal. Only with mode Managed, and after it: the authority issues again if the mode
	// comes back.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Authority string `json:"authority,omitempty"`

	// trusts are the SHA-256 of all authorities that a Pod trusts when it is created now: two
	// during a rotation, and one more for each that was lost in its second step; one after it.
	// Before the first rotation trusts is empty, and members trust the one in authority.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MaxLength=64
	Trusts []string `json:"trusts,omitempty"`

	// rotateAuthority is the value that rotateAuthority had in the spec when the last rotation
	// began, or when the authority was created.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	RotateAuthority string `json:"rotateAuthority,omitempty"`

	// rotation is the rotation that is under way.
	// +optional
	Rotation *RotationStatus `json:"rotation,omitempty"`
}

// RotationStep is one of the three steps in which an authority is rotated.
type RotationStep string

// The steps, in their order.
const (
	// RotationTrustBoth: the old authority issues certificates. Pods are recreated to trust the new
	// one too.
	RotationTrustBoth RotationStep = "TrustBoth"
	// RotationReissue: the new authority has issued all certificates. Members reload them without a
	// restart.
	RotationReissue RotationStep = "Reissue"
	// RotationTrustNew: Pods are recreated to trust the new authority alone.
	RotationTrustNew RotationStep = "TrustNew"
)

// RotationStatus is how far a rotation has come.
type RotationStatus struct {
	// step is TrustBoth (Pods are recreated, and applications reload ca.crt, to trust both
	// authorities), Reissue (the new authority issues all certificates) or TrustNew (Pods are
	// recreated to trust the new authority alone).
	// +required
	// +kubebuilder:validation:Enum=TrustBoth;Reissue;TrustNew
	Step RotationStep `json:"step"`

	// message is what the step waits for.
	// +optional
	// +kubebuilder:validation:MaxLength=1024
	Message string `json:"message,omitempty"`
}

// ClientTLSMode is the mode in force on the port that clients use: the one that the spec says, or
// where it says none, the one that is in the status.
func (c *EtcdCluster) ClientTLSMode() TLSMode {
	var stands TLSMode
	if c.Status.TLS != nil {
		stands = c.Status.TLS.Client.Mode
	}
	return cmp.Or(c.AskedClientTLSMode(), stands, c.unsaid())
}

// PeerTLSMode is the mode in force on the port that members use among themselves. Once a member may
// have started, the one in the status stands.
func (c *EtcdCluster) PeerTLSMode() TLSMode {
	var stands TLSMode
	if c.Status.TLS != nil {
		stands = c.Status.TLS.Peer.Mode
	}
	if c.Begun() && stands != "" {
		return stands
	}
	return cmp.Or(c.AskedPeerTLSMode(), stands, c.unsaid())
}

// unsaid is the mode of a port of which neither the spec nor the status says anything: the cluster
// is new, or was formed before there was status.tls. Where it is not known whether it is new, since
// its status was lost, the operator writes status.tls before anything goes by this.
func (c *EtcdCluster) unsaid() TLSMode {
	if c.Status.ClusterID != "" {
		return TLSDisabled
	}
	return TLSManaged
}

// Begun reports whether a first member may have started.
func (c *EtcdCluster) Begun() bool { return c.Status.ClusterID != "" || c.Status.NextOrdinal > 0 }

// AskedClientTLSMode is the mode that the spec says for the port that clients use; empty where it
// says none.
func (c *EtcdCluster) AskedClientTLSMode() TLSMode { return c.ownClient().Mode }

// AskedPeerTLSMode is the mode that the spec says for the port that members use among themselves;
// empty where it says none.
func (c *EtcdCluster) AskedPeerTLSMode() TLSMode { return c.ownPeer().Mode }

// ClientTLS reports whether clients need TLS, and PeerTLS whether members do.
func (c *EtcdCluster) ClientTLS() bool { return c.ClientTLSMode() != TLSDisabled }

// PeerTLS reports whether members use TLS among themselves.
func (c *EtcdCluster) PeerTLS() bool { return c.PeerTLSMode() != TLSDisabled }

// The keys of the Secrets, and so the names of the files that are made of them. SecretPeerCert and
// SecretPeerKey are a member's client certificate among members, where it has one of its own.
const (
	SecretCA       = "ca.crt"
	SecretCert     = "tls.crt"
	SecretKey      = "tls.key"
	SecretPeerCert = "client.crt"
	SecretPeerKey  = "client.key"
)

// The further keys of the Secret of an authority that was rotated, or is being (RotationStep).
// Empty is the same as missing. SecretNextCert and SecretNextKey are the authority to come,
// SecretPreviousCert is the certificate of the former one, while it is still trusted.
// SecretRotation is what the spec said when a rotation began last, and SecretSince since when all
// certificates and ca.crt are as the step wants, in RFC 3339.
const (
	SecretNextCert     = "next.crt"
	SecretNextKey      = "next.key"
	SecretPreviousCert = "previous.crt"
	SecretRotation     = "rotation"
	SecretSince        = "since"
)

// ClientAuthoritySecret is the Secret with the authority of the clients' port (Managed).
func (c *EtcdCluster) ClientAuthoritySecret() string { return c.Name + "-client-ca" }

// PeerAuthoritySecret is the Secret with the authority of the members' port (Managed).
func (c *EtcdCluster) PeerAuthoritySecret() string { return c.Name + "-peer-ca" }

// ApplicationSecret is the Secret with what an application needs to connect (Managed).
func (c *EtcdCluster) ApplicationSecret() string { return c.Name + "-client-tls" }

// ClientPort is what members that are created now serve at the clients' port: the mode that is in
// force, with what the spec says beside it.
func (c *EtcdCluster) ClientPort() ClientTLS {
	port := c.ownClient()
	port.Mode = c.ClientTLSMode()
	return port
}

// ServesTLS reports whether the port serves clients with TLS.
func (p ClientTLS) ServesTLS() bool { return p.Mode != TLSDisabled }

// ServesPlaintext reports whether the port serves clients without TLS.
func (p ClientTLS) ServesPlaintext() bool {
	return p.Mode == TLSDisabled || p.Plaintext == PlaintextAllowed
}

// ServerSecret is the Secret with the certificate that members show to clients.
func (c *EtcdCluster) ServerSecret() string { return c.ServerSecretOf(c.ClientPort()) }

// ServerSecretOf is that of members that serve the port so.
func (c *EtcdCluster) ServerSecretOf(port ClientTLS) string {
	if port.Mode == TLSSecret {
		return secretName(port.SecretRef)
	}
	return c.Name + "-server-tls"
}

// OperatorSecret is the Secret with the client certificate of Quorate and its Jobs.
func (c *EtcdCluster) OperatorSecret() string { return c.OperatorSecretOf(c.ClientPort()) }

// OperatorSecretOf is that for members that serve the port so.
func (c *EtcdCluster) OperatorSecretOf(port ClientTLS) string {
	if port.Mode == TLSSecret {
		return secretName(port.OperatorSecretRef)
	}
	return c.Name + "-operator-tls"
}

// PeerSecret is the Secret with the certificates that members show to each other.
func (c *EtcdCluster) PeerSecret() string {
	if c.PeerTLSMode() == TLSSecret {
		return secretName(c.ownPeer().SecretRef)
	}
	return c.Name + "-peer-tls"
}

// ownClient and ownPeer are what the spec says; the zero value where it says nothing.
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
