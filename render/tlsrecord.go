package render

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// Modes are those of the two ports; empty where one is not known.
type Modes struct{ Client, Peer api.TLSMode }

// tlsRecord is AnnotationTLS with the modes in force.
func tlsRecord(c *api.EtcdCluster) string {
	return "client=" + string(c.ClientTLSMode()) + ",peer=" + string(c.PeerTLSMode())
}

// RecordedModes reads AnnotationTLS of a claim. Whatever Quorate does not write is not known.
func RecordedModes(claim *corev1.PersistentVolumeClaim) Modes {
	var m Modes
	for field := range strings.SplitSeq(claim.Annotations[api.AnnotationTLS], ",") {
		port, written, _ := strings.Cut(field, "=")
		mode := api.TLSMode(written)
		if !slices.Contains([]api.TLSMode{api.TLSManaged, api.TLSSecret, api.TLSDisabled}, mode) {
			continue
		}
		switch port {
		case "client":
			m.Client = mode
		case "peer":
			m.Peer = mode
		}
	}
	return m
}

// RunningModes are those that the Pod of a member was made with, by the arguments and volumes that
// tlsArgs and secured have given it. They are not known of a Pod in which no etcd runs.
func RunningModes(c *api.EtcdCluster, pod *corev1.Pod) Modes {
	etcd := etcdOf(pod)
	if etcd == nil || pod.Annotations[api.AnnotationProvisions] != "" {
		return Modes{}
	}
	has := func(flag string) bool {
		return slices.ContainsFunc(etcd.Args, func(arg string) bool { return strings.HasPrefix(arg, flag+"=") })
	}
	m := Modes{Client: ClientPort(c, pod).Mode, Peer: api.TLSDisabled}
	switch {
	case has("--peer-client-cert-file"):
		m.Peer = api.TLSManaged
	case has("--peer-cert-file"):
		m.Peer = api.TLSSecret
	}
	return m
}
