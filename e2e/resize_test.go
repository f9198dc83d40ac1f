//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/features"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/history"
	"quorate.dev/e2e/share"
)

// sizes are those that a cluster has one after the other.
type sizes []int32

func (s sizes) String() string {
	return strings.Trim(strings.ReplaceAll(fmt.Sprint([]int32(s)), " ", "-"), "[]")
}

// pathOf is all the sizes of the longest path, or one part of it in which a cluster grows and
// shrinks.
func pathOf(t *testing.T) sizes {
	t.Helper()
	if share.Long() {
		return sizes{1, 3, 5, 7, 4, 1}
	}
	return share.List(t, []sizes{{1, 3, 1}, {3, 5, 3}, {5, 7, 4}}, 1, sizes.String)[0]
}

// TestResize: a cluster under writes becomes as large as it is told to, by whichever tool, and
// nothing is left over.
func TestResize(t *testing.T) {
	t.Parallel()
	path := pathOf(t)
	var c *api.EtcdCluster
	var clients *history.Load
	story := features.New("a cluster under writes").Setup(step(func(s *stage) {
		c = s.cluster("db", path[0])
		contract.Watch(s, c)
		s.create(c)
		s.ready(c)
		clients = s.load(c, resizeFloor)
	}))
	for n, size := range path[1:] {
		story = story.Assess(fmt.Sprintf("%d: to %d", n+1, size), step(func(s *stage) {
			s.kubectl("scale", "etcdcluster", "db", fmt.Sprintf("--replicas=%d", size))
			s.resized(c, size)
		}))
	}
	testenv.Test(t, story.
		Assess("all that clients were told is as one store would have told it", step(func(s *stage) { s.checkLoad(clients, resizePause) })).
		Feature())
}

// TestUnreachableSize: a size that cannot be had is told of, the cluster serves on as it is, and
// set back nothing is left.
func TestUnreachableSize(t *testing.T) {
	t.Parallel()
	quota := func(hard corev1.ResourceList) *corev1.ResourceQuota {
		return &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "quota"}, Spec: corev1.ResourceQuotaSpec{Hard: hard}}
	}
	rows := map[string]struct {
		object  client.Object // that is there by then
		spoil   func(*stage, *api.EtcdClusterSpec)
		reason  string
		members int // that it serves on with
	}{
		"no-quota": {object: quota(quantities("pods", "3")), reason: api.ReasonRefused, members: 3},
		"no-node":  {spoil: func(s *stage, _ *api.EtcdClusterSpec) { s.unlabelNode() }, reason: api.ReasonPodPending, members: 3},
		// A new member is made of what the others serve with; what is asked for beside the size
		// comes after it, and is put back.
		"no-image": {spoil: func(_ *stage, spec *api.EtcdClusterSpec) {
			spec.Image = &api.Image{Repository: "registry.invalid/etcd"}
		}, reason: api.ReasonChangeFailed, members: 5},
		"no-such-node": {spoil: func(_ *stage, spec *api.EtcdClusterSpec) {
			spec.Scheduling = &api.Scheduling{NodeSelector: api.Labels{"no": "node"}}
		}, reason: api.ReasonChangeFailed, members: 5},
	}
	for name, row := range share.Of(t, rows, 1) {
		testenv.TestInParallel(t, features.New(name).Assess("is told of, and set back", step(func(s *stage) {
			c := s.cluster("db", 3)
			c.Spec.Scheduling = &api.Scheduling{NodeSelector: s.labelNode()}
			contract.Watch(s, c)
			s.create(c)
			s.ready(c)
			before := *c.Spec.DeepCopy()
			if row.object != nil {
				row.object.SetNamespace(s.ns)
				s.create(row.object)
			}
			s.change(c, func() {
				c.Spec.Replicas = new(int32(5))
				if row.spoil != nil {
					row.spoil(s, &c.Spec)
				}
			})
			if message := s.stalled(c, row.reason); !is(c, api.ConditionAvailable, metav1.ConditionTrue) || len(c.Status.Members) != row.members {
				s.Errorf("stalled with %q, and: %s", message, contract.Describe(c))
			}
			s.put(s.etcd(c), "key", "value")
			s.labelNode()
			s.change(c, func() { c.Spec = *before.DeepCopy() })
			s.resized(c, 3)
			s.want(s.etcd(c), "key", "value")
			s.unlabelNode()
		})).Feature())
	}
}

// labelNode gives the node a label of this stage, which selects it.
func (s *stage) labelNode() api.Labels {
	s.Helper()
	s.kubectl("label", "--overwrite", "node", clusterName+"-control-plane", s.nodeLabel()+"=yes")
	return api.Labels{s.nodeLabel(): "yes"}
}

func (s *stage) unlabelNode() {
	s.Helper()
	s.kubectl("label", "node", clusterName+"-control-plane", s.nodeLabel()+"-")
}

func (s *stage) nodeLabel() string { return "e2e.quorate.dev/" + s.ns }

// resized waits for the cluster to be Ready with so many members, and for as many Pods and claims,
// and a disruption budget that goes with them.
func (s *stage) resized(c *api.EtcdCluster, size int32) {
	s.Helper()
	s.await(c, fmt.Sprintf("ready with %d members", size), func() bool {
		return is(c, api.ConditionReady, metav1.ConditionTrue) && *c.Spec.Replicas == size && len(c.Status.Members) == int(size) && c.Status.ReadyReplicas == size
	})
	members := map[string]bool{}
	for _, m := range c.Status.Members {
		members[m.Name] = true
	}
	for _, claim := range s.claims(c) {
		if !members[claim.Name] {
			s.gone(&claim)
		}
	}
	for _, pod := range s.pods(c) {
		if !members[pod.Name] {
			s.gone(&pod)
		}
	}
	if claims := s.claims(c); len(claims) != int(size) {
		s.Errorf("%d claims for %d members", len(claims), size)
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: c.Name}}
	s.await(budget, fmt.Sprintf("for %d members", size), func() bool {
		return budget.UID != "" && budget.Spec.MinAvailable.IntVal == size/2+1
	})
}
