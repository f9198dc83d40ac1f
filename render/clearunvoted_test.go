package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	api "quorate.dev/api/v1alpha1"
)

// TestClearUnvoted: what is removed before etcd starts again is removed in Pods of first members
// alone.
func TestClearUnvoted(t *testing.T) {
	t.Parallel()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	limited := func(memory string) *api.Resources {
		return &api.Resources{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(memory)}}
	}
	type container struct{ Args, Memory string }
	const args = "agent clear-unvoted --data-dir=/var/lib/etcd/data --initial-cluster-state=$(INITIAL_CLUSTER_STATE)"
	cases := map[string]struct {
		reason    string
		member    Member
		resources *api.Resources
		want      *container
	}{
		"First":    {reason: "nothing was there before", member: Member{AgentImage: "quorate:dev", InitialClusterState: StateNew}},
		"Again":    {reason: "etcd may have ended before it had voted", member: Member{Again: true, AgentImage: "quorate:dev", InitialClusterState: StateNew}, want: &container{args, "256Mi"}},
		"Tight":    {reason: "the agent needs more than some members", member: Member{Again: true, AgentImage: "quorate:dev", InitialClusterState: StateNew}, resources: limited("20Mi"), want: &container{args, "256Mi"}},
		"Large":    {reason: "the Pod keeps its class", member: Member{Again: true, AgentImage: "quorate:dev", InitialClusterState: StateNew}, resources: limited("2Gi"), want: &container{args, "2Gi"}},
		"Resumes":  {reason: "the cluster has formed", member: Member{Again: true, AgentImage: "quorate:dev", InitialClusterState: StateExisting}},
		"Restored": {reason: "its data was made of a snapshot", member: Member{Again: true, AgentImage: "quorate:dev", InitialClusterState: StateNew, Restore: "5a member/db-7"}},
		"NoImage":  {reason: "there is nothing to run the agent of", member: Member{Again: true, InitialClusterState: StateNew}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &api.EtcdCluster{
				ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "team-a"},
				Spec:       api.EtcdClusterSpec{Version: "3.6.16", Storage: api.Storage{Size: resource.MustParse("1Gi")}, Resources: tc.resources},
			}
			tc.member.Name, tc.member.Version, tc.member.BootstrapSize = "db-0", "3.6.16", 1
			applied, err := Pod(c, tc.member)
			if err != nil {
				t.Fatal(err)
			}
			pod := &corev1.Pod{}
			typed(t, applied, pod)
			var got *container
			for _, c := range pod.Spec.InitContainers {
				if c.Name == ContainerClearUnvoted {
					got = &container{strings.Join(c.Args, " "), c.Resources.Limits.Memory().String()}
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec)); !result.Allowed {
				t.Error(result.ForbiddenDetail())
			}
		})
	}
}
