package render

import (
	"path"
	"slices"

	corev1 "k8s.io/api/core/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// Where the containers find certificates. The kubelet writes the files again when their Secret
// changes, and etcd reads them again at each handshake; what it trusts it reads at its start alone.
const (
	serverVolume = "server-tls"
	serverMount  = "/etc/quorate/tls/server"
	peerVolume   = "peer-tls"
	peerMount    = "/etc/quorate/tls/peer"
	clientVolume = "client-tls"
	clientMount  = "/etc/quorate/tls/client"
)

// secretMode lets only the group of the files, which is that of the Pod, read them.
const secretMode = 0o440

// tlsArgs are etcd's arguments for TLS. A peer that connects is known by its certificate, which is
// of the cluster's own authority. With Managed that certificate names no host: else etcd would look
// up its names in DNS at each connection, and for a wildcard the peer's address (checkCertSAN in
// client/pkg/transport/listener_tls.go). A new member is not found there until the resolver's cache
// expires. The certificate of the member that is connected to has names, and these are verified.
func tlsArgs(c *api.EtcdCluster) []string {
	var args []string
	if c.ClientTLS() {
		args = append(args,
			"--cert-file="+path.Join(serverMount, api.SecretCert),
			"--key-file="+path.Join(serverMount, api.SecretKey),
			"--trusted-ca-file="+path.Join(serverMount, api.SecretCA),
			"--client-cert-auth=true")
	}
	if c.PeerTLS() {
		args = append(args,
			"--peer-cert-file="+path.Join(peerMount, api.SecretCert),
			"--peer-key-file="+path.Join(peerMount, api.SecretKey),
			"--peer-trusted-ca-file="+path.Join(peerMount, api.SecretCA),
			"--peer-client-cert-auth=true")
	}
	if c.PeerTLSMode() == api.TLSManaged {
		args = append(args,
			"--peer-client-cert-file="+path.Join(peerMount, api.SecretPeerCert),
			"--peer-client-key-file="+path.Join(peerMount, api.SecretPeerKey))
	}
	return args
}

// secured gives the container of a member its certificates, and the environment with which etcdctl
// connects: people use it through kubectl exec, as messages of the status tell them to.
func secured(spec *corev1ac.PodSpecApplyConfiguration, etcd *corev1ac.ContainerApplyConfiguration, c *api.EtcdCluster, m Member) {
	if c.ClientTLS() {
		spec.WithVolumes(secretFiles(serverVolume, c.ServerSecret(), api.SecretCert, api.SecretKey, api.SecretCA))
		etcd.WithVolumeMounts(readOnly(serverVolume, serverMount)).WithEnv(
			variable("ETCDCTL_ENDPOINTS", c.ClientURL(m.Name)),
			variable("ETCDCTL_CACERT", path.Join(serverMount, api.SecretCA)),
			variable("ETCDCTL_CERT", path.Join(serverMount, api.SecretCert)),
			variable("ETCDCTL_KEY", path.Join(serverMount, api.SecretKey)))
	}
	if c.PeerTLS() {
		files := []string{api.SecretCert, api.SecretKey, api.SecretCA}
		if c.PeerTLSMode() == api.TLSManaged {
			files = append(files, api.SecretPeerCert, api.SecretPeerKey)
		}
		spec.WithVolumes(secretFiles(peerVolume, c.PeerSecret(), files...))
		etcd.WithVolumeMounts(readOnly(peerVolume, peerMount))
	}
}

// connects gives the container of an agent what it needs to connect to the members: flags of
// etcdctl, and their files.
func connects(spec *corev1ac.PodSpecApplyConfiguration, container *corev1ac.ContainerApplyConfiguration, c *api.EtcdCluster) {
	if !c.ClientTLS() {
		return
	}
	spec.WithVolumes(secretFiles(clientVolume, c.OperatorSecret(), api.SecretCert, api.SecretKey, api.SecretCA))
	container.
		WithArgs(
			"--cacert="+path.Join(clientMount, api.SecretCA),
			"--cert="+path.Join(clientMount, api.SecretCert),
			"--key="+path.Join(clientMount, api.SecretKey)).
		WithVolumeMounts(readOnly(clientVolume, clientMount))
}

func variable(name, value string) *corev1ac.EnvVarApplyConfiguration {
	return corev1ac.EnvVar().WithName(name).WithValue(value)
}

func secretFiles(volume, secret string, keys ...string) *corev1ac.VolumeApplyConfiguration {
	source := corev1ac.SecretVolumeSource().WithSecretName(secret).WithDefaultMode(secretMode)
	for _, key := range keys {
		source.WithItems(corev1ac.KeyToPath().WithKey(key).WithPath(key))
	}
	return corev1ac.Volume().WithName(volume).WithSecret(source)
}

// ServerHosts are the names and addresses that the members' certificate is to be valid for: those
// by which clients, and agents, reach them.
func ServerHosts(c *api.EtcdCluster) []string {
	hosts := slices.Concat(
		RequiredServerHosts(c),
		[]string{
			c.ClientServiceName(), c.ClientServiceName() + "." + c.Namespace,
			c.ClientServiceName() + "." + c.Namespace + ".svc." + clusterDomain,
			c.Name + "." + c.Namespace + ".svc", c.Name + "." + c.Namespace + ".svc." + clusterDomain,
			"*." + c.Name + "." + c.Namespace, "*." + c.Name + "." + c.Namespace + ".svc." + clusterDomain,
		},
		[]string{"localhost", "127.0.0.1", "::1"},
	)
	if c.Spec.TLS != nil && c.Spec.TLS.Client != nil {
		for _, name := range c.Spec.TLS.Client.AltNames {
			hosts = append(hosts, string(name))
		}
	}
	return hosts
}

// clusterDomain is the usual one. Where the domain is another one, spec.tls.client.altNames has the
// names with it.
const clusterDomain = "cluster.local"

// RequiredServerHosts are those of ServerHosts that Quorate itself, its Jobs and the samples use.
func RequiredServerHosts(c *api.EtcdCluster) []string {
	return []string{"*." + c.Name + "." + c.Namespace + ".svc", c.ClientServiceName() + "." + c.Namespace + ".svc"}
}

// PeerHosts are the names by which members reach each other.
func PeerHosts(c *api.EtcdCluster) []string {
	return []string{"*." + c.Name + "." + c.Namespace + ".svc", c.Name + "." + c.Namespace + ".svc"}
}

// Secret is a Secret with certificates that Quorate has issued.
func Secret(c *api.EtcdCluster, name string, data map[string][]byte) *corev1ac.SecretApplyConfiguration {
	return secret(c, name, data).WithOwnerReferences(owner(c)...)
}

// UserSecret is the Secret with the certificate of a user, which is deleted with its EtcdUser.
func UserSecret(c *api.EtcdCluster, u *api.EtcdUser, data map[string][]byte) *corev1ac.SecretApplyConfiguration {
	return secret(c, u.Spec.Certificate.SecretName, data).WithOwnerReferences(ownedBy("EtcdUser", u, false)...)
}

func secret(c *api.EtcdCluster, name string, data map[string][]byte) *corev1ac.SecretApplyConfiguration {
	return corev1ac.Secret(name, c.Namespace).
		WithLabels(Labels(c, "")).
		WithAnnotations(annotations(c, nil)).
		WithType(corev1.SecretTypeTLS).
		WithData(data)
}
