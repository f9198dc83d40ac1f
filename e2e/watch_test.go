//go:build e2e

package e2e

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/node"
	"quorate.dev/render"
)

// awaitEndpoints waits until the Service leads to that many Pods, and fails where it leads to one
// that is not ready.
func (s *stage) awaitEndpoints(service string, want int) {
	s.Helper()
	slices := &discoveryv1.EndpointSliceList{}
	labels := client.MatchingLabels{discoveryv1.LabelServiceName: service}
	if err := s.List(s.Context(), slices, client.InNamespace(s.ns), labels); err != nil {
		s.Fatal(err)
	}
	if len(slices.Items) != 1 {
		s.Fatalf("Service %s has %d EndpointSlices, want 1", service, len(slices.Items))
	}
	endpoints := &slices.Items[0]
	s.await(endpoints, "with the ready members", func() bool {
		ready := 0
		for _, e := range endpoints.Endpoints {
			if ptr.Deref(e.Conditions.Ready, true) {
				ready++
			}
		}
		return ready == want
	})
}

// etcdctl runs it in a Pod of its own beside the cluster, as a client would be, and returns what it
// prints.
func (s *stage) etcdctl(endpoint string, args ...string) string {
	s.Helper()
	pod := restrictedPod("", append([]string{"etcdctl", "--endpoints=" + endpoint}, args...)...)
	pod.GenerateName, pod.Namespace = "etcdctl-", s.ns
	s.create(pod)
	s.await(pod, "finished", func() bool { return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed })
	out := s.kubectl("logs", pod.Name)
	if pod.Status.Phase == corev1.PodFailed {
		s.Fatalf("etcdctl %s failed:\n%s", strings.Join(args, " "), out)
	}
	return out
}

// restrictedPod runs a program of the etcd image once, as Pod Security "restricted" allows it.
func restrictedPod(name string, command ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: foreign(name),
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: new(true), RunAsUser: new(int64(1000)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{{
				Name:    "etcdctl",
				Image:   render.Image(&api.EtcdCluster{}, node.Etcd36),
				Command: append([]string{"/usr/local/bin/" + command[0]}, command[1:]...),
				SecurityContext: &corev1.SecurityContext{
					AllowPrivilegeEscalation: new(false),
					Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
				},
			}},
		},
	}
}
