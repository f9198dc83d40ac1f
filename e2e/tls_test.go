//go:build e2e

package e2e

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/pkg/features"

	api "quorate.dev/api/v1alpha1"
)

// TestTLS plays a sample whose spec says nothing of TLS, which is the default: members and clients
// find each other by name, with the files that kubelets have mounted.
func TestTLS(t *testing.T) {
	t.Parallel()
	c := &api.EtcdCluster{}
	testenv.Test(t, features.New("TLS on both ports").
		Setup(step(func(s *stage) {
			s.sample("tls.yaml")
			c.ObjectMeta = metav1.ObjectMeta{Namespace: s.ns, Name: "secure"}
		})).
		Assess("an application writes with its Secret", step(func(s *stage) {
			s.ready(c)
			if c.Status.TLS.Client.Mode != api.TLSManaged || c.Status.TLS.Peer.Mode != api.TLSManaged {
				s.Errorf("status.tls: %+v", c.Status.TLS)
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: "etcdctl-secure"}}
			s.await(pod, "done", func() bool { return pod.Status.Phase == corev1.PodSucceeded })
		})).
		Assess("it grows, and etcdctl in a new member knows its certificate", step(func(s *stage) {
			s.kubectl("scale", "etcdcluster", "secure", "--replicas=5")
			s.await(c, "of five members", func() bool { return c.Status.ReadyReplicas == 5 })
			if got := s.kubectl("exec", "secure-4", "--", "etcdctl", "get", "greeting", "--print-value-only"); got != "hello from etcd\n" {
				s.Errorf("read %q", got)
			}
		})).
		Feature())
}
