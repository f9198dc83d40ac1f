//go:build env

package reconcile_test

import (
	"slices"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// TestRefusedMetadata: a policy takes no object with the labels that the spec has by now. A Pod
// that is deleted is created again with labels and annotations that the API server has taken, and
// so is that of a member that comes.
func TestRefusedMetadata(t *testing.T) {
	t.Parallel()
	metadata := func(team string) *api.Metadata {
		return &api.Metadata{Labels: api.Labels{"example.com/team": team}, Annotations: map[string]string{"example.com/contact": team}}
	}
	everywhere := func(team string) func(*api.EtcdClusterSpec) {
		return func(s *api.EtcdClusterSpec) { s.AdditionalMetadata = metadata(team) }
	}
	onPods := func(team string) func(*api.EtcdClusterSpec) {
		return func(s *api.EtcdClusterSpec) { s.Pod = &api.Pod{Metadata: metadata(team)} }
	}
	pods, all := []string{"pods"}, []string{"pods", "services", "persistentvolumeclaims"}
	cases := map[string]struct {
		reason    string
		labels    func(team string) func(*api.EtcdClusterSpec)
		resources []string
		on        []admissionregistrationv1.OperationType
	}{
		"Pods":       {reason: "Pods alone", labels: everywhere, resources: pods, on: onBoth},
		"Everything": {reason: "Services and volumes too", labels: everywhere, resources: all, on: onBoth},
		"Created":    {reason: "Pods that run may have them, and were not made with them", labels: everywhere, resources: pods, on: onCreate},
		"PodsOwn":    {reason: "labels that Pods alone get", labels: onPods, resources: all, on: onBoth},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.operate()
			c := s.cluster("db", 3)
			tc.labels("storage")(&c.Spec)
			kept := s.born(c)
			s.settled(c, kept)
			s.await(c, "recorded", func() bool {
				return !slices.ContainsFunc(s.claims(c), func(claim corev1.PersistentVolumeClaim) bool { return claim.Annotations[api.AnnotationServed] == "" })
			})
			const named = "this team is not known"
			s.deny(tc.resources, tc.on, `!has(object.metadata.labels) || !("example.com/team" in object.metadata.labels) || object.metadata.labels["example.com/team"] == "storage"`, named, func() error {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "try-", Namespace: s.ns, Labels: metadata("sales").Labels}}
				pod.Spec.Containers = []corev1.Container{{Name: "etcd", Image: "etcd"}}
				return s.Create(s.Context(), pod, client.DryRunAll)
			})
			s.change(c, func() { tc.labels("sales")(&c.Spec) })
			if slices.Contains(tc.on, admissionregistrationv1.Update) {
				s.stalledWith(c, api.ReasonRefused, named)
			} else {
				s.await(c, "labelled", func() bool {
					return !slices.ContainsFunc(s.pods(c), func(pod corev1.Pod) bool { return pod.Labels["example.com/team"] != "sales" })
				})
			}
			for _, gone := range [][]string{{"db-0", "db-1"}, {"db-0", "db-1", "db-2"}} {
				pods, _ := s.lives(c)
				for _, member := range gone {
					s.deletePod(member)
				}
				for _, member := range gone {
					s.awaitRecreated(member, pods[member])
				}
				s.write(c, kept)
			}
			s.warned(c, api.ReasonRefused, named)
			s.strip("db-2")
			s.deletePod("db-2")
			votes := func(m api.MemberStatus) bool {
				return m.Name == "db-3" && (m.Role == api.RoleFollower || m.Role == api.RoleLeader)
			}
			s.await(c, "healed by a voter", func() bool { return len(c.Status.Members) == 3 && slices.ContainsFunc(c.Status.Members, votes) })
			s.write(c, kept)
			before, restarts := s.lives(c)
			s.change(c, func() { tc.labels("storage")(&c.Spec) })
			s.settled(c, kept)
			after, now := s.lives(c)
			for member := range before {
				if before[member] != after[member] || restarts[member] != now[member] {
					t.Errorf("%s: %s was disturbed when the labels were reverted", tc.reason, member)
				}
			}
		})
	}
}
