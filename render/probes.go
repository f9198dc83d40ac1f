package render

import (
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// The probes of start and liveness use the metrics port, which stays plain HTTP whatever the client
// port demands.
//
// startupProbe gives etcd half an hour to replay its write-ahead log, during which it listens
// nowhere, and asks every second, because nothing else is probed before it succeeds.
func startupProbe() *corev1ac.ProbeApplyConfiguration {
	return probe("/livez", "metrics").WithPeriodSeconds(1).WithTimeoutSeconds(5).WithFailureThreshold(1800)
}

// livenessProbe restarts a member that cannot answer a read from its own data for 80 seconds and
// more. The read needs no quorum: restarting members that merely lost one helps none of them.
// Periods and patience are those that kubeadm gives etcd; a defragmentation blocks reads, and must
// not end in a restart.
func livenessProbe() *corev1ac.ProbeApplyConfiguration {
	return probe("/livez", "metrics").WithPeriodSeconds(10).WithTimeoutSeconds(15).WithFailureThreshold(8)
}

// readinessProbe is a linearizable read, and fails on learners and on a CORRUPT alarm. It uses the
// port that clients use, because a voter that has just joined may take part in the log for seconds
// before it serves any (membership.Endpoint.Publishing): its metrics port would say that it is
// ready, and new connections to it would hang. Where etcd answers HTTP there only for the names of
// a list, among which the Pod's address is not, it is the metrics port all the same. So it is where
// clients need a certificate, since a kubelet has none: there Quorate keeps clients away until the
// member has answered (reconcile/clients.go).
//
// The period bounds how late a formed cluster is seen to be ready; three failures outlast an
// election with the default timeout, so that one does not take all members out of the Service.
func readinessProbe(c *api.EtcdCluster) *corev1ac.ProbeApplyConfiguration {
	port := "client"
	if o := c.Spec.Options; c.ClientTLS() || o != nil && o.Flags["host-whitelist"] != "" {
		port = "metrics"
	}
	return probe("/readyz", port).WithPeriodSeconds(1).WithTimeoutSeconds(3).WithFailureThreshold(3)
}

func probe(path, port string) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPath(path).WithPort(intstr.FromString(port)))
}
