//go:build e2e

package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/e2e-framework/pkg/features"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/node"
)

// TestUnsupportedChanges: a change of a running cluster that cannot be carried out is named, nothing is restarted for it,
// and set back it is as if it had never been. The cluster serves all along.
func TestUnsupportedChanges(t *testing.T) {
	t.Parallel()
	rows := []struct {
		name    string
		change  func(*api.EtcdClusterSpec)
		message string
		final   bool // it cannot be set back
	}{
		{name: "version", change: func(s *api.EtcdClusterSpec) { s.Version = node.Etcd37 }, message: "spec.version is 3.7.3, and db-0 runs 3.6.16: changing the version of a formed cluster is not supported, set it to 3.6.16"},
		{name: "options", change: func(s *api.EtcdClusterSpec) {
			s.Options = &api.Options{Flags: map[string]string{"max-request-bytes": "3145728"}}
		}, message: kept("options")},
		{name: "resources", change: func(s *api.EtcdClusterSpec) {
			s.Resources = &api.Resources{Requests: quantities(corev1.ResourceCPU, "10m")}
		}, message: kept("resources")},
		{name: "scheduling", change: func(s *api.EtcdClusterSpec) {
			s.Scheduling = &api.Scheduling{NodeSelector: api.Labels{"kubernetes.io/os": "linux"}}
		}, message: kept("scheduling")},
		{name: "image", change: func(s *api.EtcdClusterSpec) { s.Image = &api.Image{PullPolicy: corev1.PullNever} }, message: kept("image")},
		{name: "storage size", change: func(s *api.EtcdClusterSpec) { s.Storage.Size = resource.MustParse("1Gi") }, message: "spec.storage.size is more than the volumes have: growing them is not supported, and the cluster serves on with what they have; where the storage class allows it, raise spec.resources.requests.storage of each PersistentVolumeClaim by hand", final: true},
	}
	var c *api.EtcdCluster
	var before api.EtcdClusterSpec
	var writes *history
	var pods []corev1.Pod
	story := features.New("a cluster under writes").Setup(step(func(s *stage) {
		c = s.cluster("db", 3)
		s.contract(c)
		s.create(c)
		s.ready(c)
		before, pods = *c.Spec.DeepCopy(), s.pods(c)
		writes = s.write(c)
	}))
	for _, row := range rows {
		story = story.Assess(row.name, step(func(s *stage) {
			s.change(c, func() { row.change(&c.Spec) })
			if got := s.stalled(c, api.ReasonChangeNotSupported); got != row.message {
				s.Errorf("stalled with the message\n%s\nwant\n%s", got, row.message)
			}
			if !is(c, api.ConditionAvailable, "True") {
				s.Errorf("the cluster does not serve: %s", describe(c))
			}
			if row.final {
				return
			}
			s.change(c, func() { c.Spec = *before.DeepCopy() })
			s.ready(c)
		}))
	}
	testenv.Test(t, story.
		Assess("nothing was restarted and nothing is lost", step(func(s *stage) {
			if diff := cmp.Diff(processes(pods), processes(s.pods(c))); diff != "" {
				s.Errorf("-before +after:\n%s", diff)
			}
			s.check(writes, c)
		})).
		Feature())
}

// kept is the message about a part of the spec that is applied when a Pod is created.
func kept(field string) string {
	return "spec." + field + " has changed, and running members keep what they were started with: it is applied when a Pod is created, so delete the Pods one at a time, or set it back"
}

// processes are the Pods by UID, with their restarts.
func processes(pods []corev1.Pod) map[string]int32 {
	all := map[string]int32{}
	for _, pod := range pods {
		all[pod.Name+" "+string(pod.UID)] = pod.Status.ContainerStatuses[0].RestartCount
	}
	return all
}
