//go:build env

package reconcile_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/share"
)

// heldCase is an operator that sees an older world than there is, about to destroy something.
type heldCase struct {
	reason   string
	replicas int32
	change   int32  // of the size, which the operator has seen
	at       string // the effect before which the operator died, before its successor sees what it saw
	toward   *int32 // a later change of the size that it has seen too
	move     func(s *stage, c *api.EtcdCluster)
	goes     []string // members that may be stopped
	leaves   string   // the member that may be removed, which is looked at past the cache
	end      int32
	members  []string
}

var heldCases = map[string]heldCase{
	"RemoveVoter": {
		reason:   "the spec was set back before the removal",
		replicas: 3, change: 1, at: "Remove.Member.db-2#1", move: sizedTo(3),
		end: 3, members: []string{"db-0", "db-1", "db-2"},
	},
	"RemoveLearner": {
		reason:   "the learner is wanted again",
		replicas: 1, change: 3, at: "apply.Pod.db-1#2", toward: new(int32(1)), move: sizedTo(3),
		end: 3, members: []string{"db-0", "db-1", "db-2"},
	},
	"RemoveOneTooMany": {
		reason:   "without the other one that has gone there would be no quorum",
		replicas: 3, change: 1, at: "Remove.Member.db-2#1",
		move: func(s *stage, _ *api.EtcdCluster) {
			s.deletePod("db-1")
			s.gone(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-1", Namespace: s.ns}})
		},
		end: 1, members: []string{"db-0"},
	},
	"RemoveSuspended": {
		reason:   "the cluster was suspended before the removal",
		replicas: 3, change: 1, at: "Remove.Member.db-2#1",
		move: func(s *stage, c *api.EtcdCluster) { s.change(c, func() { c.Spec.Suspend = true }) },
		end:  1, members: []string{"db-0"},
	},
	"StopHibernated": {
		reason:   "the cluster was woken before it was stopped",
		replicas: 1, change: 0, at: "delete.Pod.db-0#1", move: sizedTo(1),
		end: 1, members: []string{"db-0"},
	},
	"StopSuccessor": {
		reason:   "another Pod has the name",
		replicas: 3, toward: new(int32(0)),
		move: func(s *stage, _ *api.EtcdCluster) {
			s.again(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-1", Namespace: s.ns}})
		},
		goes: []string{"db-0", "db-2"},
	},
	"StopReincarnated": {
		reason:   "another EtcdCluster has the name",
		replicas: 3, toward: new(int32(0)),
		move: func(s *stage, c *api.EtcdCluster) {
			if err := s.Delete(s.Context(), c); err != nil {
				s.Fatal(err)
			}
			for _, pod := range s.pods(c) {
				s.gone(&pod)
			}
			*c = *s.cluster("db", 3)
			s.create(c)
			crash := s.operate()
			s.ready(c)
			crash()
		},
		end: 3, members: []string{"db-0", "db-1", "db-2"},
	},
	"DiscardRetained": {
		reason:   "the volume is to be kept, as the spec says since",
		replicas: 3, change: 1, at: "delete.PersistentVolumeClaim.db-2#1",
		move: func(s *stage, c *api.EtcdCluster) {
			s.change(c, func() { c.Spec.Storage.Retention = &api.Retention{WhenScaled: api.RetentionRetain} })
		},
		end: 1, members: []string{"db-0"},
	},
	"DiscardSuccessor": {
		reason:   "another claim has the name",
		replicas: 3, change: 1, at: "delete.PersistentVolumeClaim.db-2#1",
		move: func(s *stage, _ *api.EtcdCluster) {
			s.again(&corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "db-2", Namespace: s.ns}})
		},
		leaves: "db-1", // while it knows no leader for a moment, nothing is discarded, and it is the next to go anyway
		end:    1, members: []string{"db-0"},
	},
	"DiscardSpare": {
		reason:   "the members to come are wanted again",
		replicas: 1, change: 3, at: "AddLearner.Member.db-1#1", toward: new(int32(1)), move: sizedTo(3),
		end: 3, members: []string{"db-0", "db-1", "db-2"},
	},
}

func sizedTo(size int32) func(*stage, *api.EtcdCluster) {
	return func(s *stage, c *api.EtcdCluster) { s.change(c, func() { c.Spec.Replicas = new(size) }) }
}

// again deletes an object and creates another one like it.
func (s *stage) again(o client.Object) {
	s.Helper()
	if err := s.Get(s.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		s.Fatal(err)
	}
	other := o.DeepCopyObject().(client.Object)
	if err := s.Delete(s.Context(), o); err != nil {
		s.Fatal(err)
	}
	s.gone(o)
	other.SetUID("")
	other.SetResourceVersion("")
	if pod, ok := other.(*corev1.Pod); ok {
		pod.Spec.NodeName = ""
	}
	if claim, ok := other.(*corev1.PersistentVolumeClaim); ok {
		claim.Spec.VolumeName = ""
		delete(claim.Annotations, api.AnnotationVolumeUID) // a new claim, and no copy of the old one's record
	}
	s.create(other)
}

// TestStale: an operator whose caches are held back destroys nothing on their word that was
// changed, replaced or needed since. Once they catch up, it does what the spec says now.
func TestStale(t *testing.T) {
	t.Parallel()
	for name, tc := range share.Of(t, heldCases, 5) {
		t.Run(name+"/Successor", func(t *testing.T) { tc.run(newStage(t), before) })
		if tc.at != "" && tc.toward == nil {
			t.Run(name+"/Same", func(t *testing.T) { tc.run(newStage(t), refusals(tc.at)[0]) })
		}
	}
}

// run lets the operator see the world up to the effect at which it is interrupted, by death or by a
// refusal. The world moves before the operator hears of a refusal: what it would try again until
// then, it would not do on the word of an old cache.
func (tc heldCase) run(s *stage, interrupted mode) {
	f, view := newFault(tc.at, interrupted), &held{stage: s, looks: make(chan struct{}, 1)}
	var c *api.EtcdCluster
	var done int
	var was map[string]string
	move := func() {
		view.hold()
		done = len(f.effects())
		tc.move(s, c)
		was = s.uids(c)
	}
	moved := make(chan struct{})
	if interrupted != before {
		f.then = func() {
			move()
			close(moved)
		}
	}
	crash := s.operate(view.between, f.between)
	c = s.cluster("db", tc.replicas)
	contract.Watch(s, c)
	kept := s.born(c)
	if strings.HasPrefix(tc.at, "Remove.") {
		<-time.After(connected) // from then on nothing but the operator keeps a removal from being done
	}
	f.arm()
	if tc.at != "" {
		sizedTo(tc.change)(s, c)
		s.meets(f)
	}
	if interrupted == before {
		crash()
		if tc.toward != nil {
			sizedTo(*tc.toward)(s, c)
		}
		move()
		f, done = newFault("", ""), 0
		f.arm()
		s.operate(view.between, f.between)
	} else {
		select {
		case <-moved:
		case <-time.After(patience):
			s.Fatalf("waited %s for the world to move: %s", patience, tc.reason)
		}
	}
	view.looked(3)

	goes := func(what string) bool {
		if _, of, _ := strings.Cut(what, "."); tc.leaves != "" && strings.HasPrefix(of, tc.leaves) {
			return true
		}
		return slices.ContainsFunc(tc.goes, func(name string) bool { return strings.HasPrefix(what, "Pod."+name) })
	}
	for _, effect := range f.effects()[done:] {
		if verb, what, _ := strings.Cut(effect, "."); (verb == "Remove" || verb == "delete") && !goes(what) {
			s.Errorf("%s: %s, on the word of an old cache", tc.reason, effect)
		}
	}
	now := s.uids(c)
	for name, uid := range was {
		if now[name] != uid && !goes(name) {
			s.Errorf("%s: %s with UID %s was destroyed, on the word of an old cache", tc.reason, name, uid)
		}
	}

	view.release()
	if c.Spec.Suspend {
		s.change(c, func() { c.Spec.Suspend = false })
	}
	if tc.end == 0 {
		s.await(c, "hibernated", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) })
		return
	}
	s.settled(c, kept)
	if diff := cmp.Diff(tc.members, memberNames(c)); diff != "" {
		s.Errorf("%s: members at the end: -want +got:\n%s", tc.reason, diff)
	}
}

// connected is for how long etcd wants its members to have been so before it lets one go
// (HealthInterval in server/etcdserver/server.go), and a little more.
const connected = 6 * time.Second

// uids of what could be destroyed and is not being.
func (s *stage) uids(c *api.EtcdCluster) map[string]string {
	uids := map[string]string{}
	for _, pod := range s.pods(c) {
		if pod.DeletionTimestamp.IsZero() {
			uids["Pod."+pod.Name] = string(pod.UID)
		}
	}
	for _, claim := range s.claims(c) {
		if claim.DeletionTimestamp.IsZero() {
			uids["claim."+claim.Name] = string(claim.UID)
		}
	}
	return uids
}
