package render

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// What a member serves at the clients' port is a part of its Pod's revision. The mode can be
// changed on a living cluster, so that Pods of two modes may run side by side: each is asked for
// what it serves itself, whatever the spec says by now.

// PartClientPort is the part of a revision for what a member serves at the clients' port. It is
// written as text, because the operator reads it again.
const PartClientPort = "tls.client.mode"

// clientPortText is the value of PartClientPort: empty for plain text alone, which all Pods of
// before there was such a part serve that have no TLS.
func clientPortText(c *api.EtcdCluster, port api.ClientTLS) string {
	text := string(port.Mode)
	switch {
	case !port.ServesTLS():
		return ""
	case port.Mode == api.TLSSecret:
		text += ":" + c.ServerSecretOf(port) + ":" + c.OperatorSecretOf(port)
	}
	if port.ServesPlaintext() {
		text += plaintextToo
	}
	return text
}

// plaintextToo is the end of the value for a port that serves clients without TLS as well.
const plaintextToo = "+plaintext"

// ClientPort is what a live Pod serves at the clients' port, and how the operator connects to it. A
// Pod does not mount the operator's Secret: where its own is the one that the spec names, so is the
// operator's.
func ClientPort(c *api.EtcdCluster, pod *corev1.Pod) api.ClientTLS {
	port := ClientPortAsMade(c, pod)
	if SameServerSecret(c, port) {
		port.OperatorSecretRef = c.ClientPort().OperatorSecretRef
	}
	return port
}

// SameServerSecret reports whether the spec names the Secret of others that members of such a port
// mount.
func SameServerSecret(c *api.EtcdCluster, port api.ClientTLS) bool {
	asked := c.ClientPort()
	return port.Mode == api.TLSSecret && asked.Mode == api.TLSSecret && c.ServerSecretOf(port) == c.ServerSecretOf(asked)
}

// ClientPortAsMade is the same with the operator's Secret that the spec named when the Pod was
// made. The Pod's arguments and volumes tell the rest, which never change. Only its revision has
// the name of the operator's Secret, and whether a Secret of mode Managed is meant where others
// write one of that name. A Pod without that was made before the mode could be changed.
func ClientPortAsMade(c *api.EtcdCluster, pod *corev1.Pod) api.ClientTLS {
	plain := api.ClientTLS{Mode: api.TLSDisabled}
	etcd := etcdOf(pod)
	if etcd == nil {
		return plain
	}
	n := slices.IndexFunc(etcd.Args, func(arg string) bool { return strings.HasPrefix(arg, listenClients) })
	if n < 0 || !strings.Contains(etcd.Args[n], "https://") {
		return plain
	}
	port := api.ClientTLS{Mode: api.TLSManaged}
	server := mountedSecret(pod, serverVolume)
	recorded, _ := strings.CutSuffix(revisionOf(pod).hashOf(PartClientPort), plaintextToo)
	operator, others := strings.CutPrefix(recorded, string(api.TLSSecret)+":"+server+":")
	asked := c.ClientPort()
	switch {
	case others:
		port = ownSecrets(server, operator)
	case recorded == "" && asked.Mode == api.TLSSecret && c.ServerSecretOf(asked) == server:
		port = ownSecrets(server, c.OperatorSecretOf(asked))
	case server != c.ServerSecretOf(port):
		port = ownSecrets(server, "")
	}
	if strings.Contains(etcd.Args[n], "http://") {
		port.Plaintext = api.PlaintextAllowed
	}
	return port
}

// revisionNow is the revision that a live Pod is to record (AnnotationRevision): the one that it
// was made of, with the name of the operator's Secret as it is by now.
func revisionNow(c *api.EtcdCluster, live *corev1.Pod) string {
	if !SameServerSecret(c, ClientPortAsMade(c, live)) {
		return live.Annotations[api.AnnotationRevision]
	}
	return revisionOf(live).with(parts{{PartClientPort, clientPortText(c, ClientPort(c, live))}}, PartClientPort).String()
}

// ownSecrets is the clients' port with Secrets that others write.
func ownSecrets(server, operator string) api.ClientTLS {
	return api.ClientTLS{
		Mode:              api.TLSSecret,
		SecretRef:         &api.SecretReference{Name: server},
		OperatorSecretRef: &api.SecretReference{Name: operator},
	}
}

// Mounts reports whether a Pod has the files of one of the Secrets.
func Mounts(pod *corev1.Pod, secrets ...string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Secret != nil && slices.Contains(secrets, v.Secret.SecretName)
	})
}

func mountedSecret(pod *corev1.Pod, volume string) string {
	for _, v := range pod.Spec.Volumes {
		if v.Name == volume && v.Secret != nil {
			return v.Secret.SecretName
		}
	}
	return ""
}

// WithClientPort is the EtcdCluster as it would be with another clients' port. What goes into
// certificates stays where the port is the same.
func WithClientPort(c *api.EtcdCluster, port api.ClientTLS) *api.EtcdCluster {
	c = c.DeepCopy()
	if c.Spec.TLS == nil {
		c.Spec.TLS = &api.TLS{}
	}
	if c.Spec.TLS.Client == nil || clientPortText(c, *c.Spec.TLS.Client) != clientPortText(c, port) {
		c.Spec.TLS.Client = port.DeepCopy()
	}
	return c
}

// servedPort is the part of the clients' port that is kept of a spec.
func servedPort(c *api.EtcdCluster) *api.ClientTLS {
	port := c.ClientPort()
	kept := &api.ClientTLS{Mode: port.Mode, SecretRef: port.SecretRef, OperatorSecretRef: port.OperatorSecretRef}
	if port.ServesTLS() && port.ServesPlaintext() {
		kept.Plaintext = api.PlaintextAllowed
	}
	return kept
}

// keptPort reports whether Quorate keeps such a port.
func keptPort(port api.ClientTLS) bool {
	switch port.Mode {
	case api.TLSManaged, api.TLSDisabled:
		return true
	case api.TLSSecret:
		return port.SecretRef != nil && port.OperatorSecretRef != nil
	default:
		return false
	}
}

// Connecting is the EtcdCluster as a Job connects to it, which has one certificate at most: with
// the members that are reached alike, as most of them are. That is as the spec says, but while the
// mode is changed.
func Connecting(c *api.EtcdCluster, pods []corev1.Pod) *api.EtcdCluster {
	ports := map[string]api.ClientTLS{}
	for n := range pods {
		ports[pods[n].Name] = ClientPort(c, &pods[n])
	}
	alike := func(as api.ClientTLS, m api.MemberStatus) bool {
		port, ok := ports[m.Name]
		return ok && m.ID != "" && m.Role != api.RoleLearner && reachedAlike(c, port, as)
	}
	count := func(as api.ClientTLS) (n int) {
		for _, m := range c.Status.Members {
			if alike(as, m) {
				n++
			}
		}
		return n
	}
	to := c.ClientPort()
	most := count(to)
	for _, m := range c.Status.Members {
		if port, ok := ports[m.Name]; ok && count(port) > most {
			to, most = port, count(port)
		}
	}
	if most == 0 { // there are no Pods
		return c
	}
	connecting := WithClientPort(c, to)
	for n, m := range c.Status.Members {
		if !alike(to, m) {
			connecting.Status.Members[n].ID = "" // it is not asked; its version still counts
		}
	}
	return connecting
}

// reachedAlike reports whether one certificate, or none, is enough to connect to both.
func reachedAlike(c *api.EtcdCluster, a, b api.ClientTLS) bool {
	return a.ServesTLS() == b.ServesTLS() && (!a.ServesTLS() || c.OperatorSecretOf(a) == c.OperatorSecretOf(b))
}
