package reconcile

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
)

// former puts the volume of a member that was removed into the world.
func (w world) former(name, id string) {
	w.claims[name] = newClaim(name)
	w.claims[name].Annotations = map[string]string{
		api.AnnotationClusterID: "c0", api.AnnotationMemberID: id, api.AnnotationVersion: "3.6.16", api.AnnotationJoin: id,
	}
	w.claims[name].Spec = w.claims["db-0"].Spec
}

// TestDiscard goes from a world to what becomes of the volumes of those that are no members.
func TestDiscard(t *testing.T) {
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	conflict := apierrors.NewConflict(claims, "db-3", errors.New("changed"))
	status := write{Verb: "apply", Kind: "status"}
	deleted := func(name string) write {
		return write{"delete", "PersistentVolumeClaim", name, "claim-of-" + name, "5"}
	}
	marked := func(name string) write { return write{"apply", "PersistentVolumeClaim", name, "claim-of-" + name, "5"} }
	retain := func(w *world) { w.cluster.Spec.Storage.Retention = &api.Retention{WhenScaled: api.RetentionRetain} }
	unused := func(w *world) {
		w.spare("db-4")
		delete(w.pods, "db-4")
	}
	refuse := func(err error) func(write) error {
		return func(w write) error {
			if w.Kind == "PersistentVolumeClaim" {
				return err
			}
			return nil
		}
	}

	type result struct {
		Members []string
		Writes  []write
		Marks   marks
		Events  []string
	}
	cases := map[string]struct {
		reason string
		given  func(*world)
		since  func(*world)
		refuse func(write) error
		want   result
		err    error
	}{
		"Delete": {
			reason: "by default it goes, and this very one as it was seen", given: func(w *world) { w.former("db-3", "a3") },
			want: result{[]string{"db-3"}, []write{status, deleted("db-3")}, marks{}, []string{"Normal Retiring deleting the volumes of db-3, no members any more"}},
		},
		"Retain": {
			reason: "it is marked, and keeps all that it says of its data", given: func(w *world) { w.former("db-3", "a3"); retain(w) },
			want: result{[]string{"db-3"}, []write{status, marked("db-3")}, marks{"PersistentVolumeClaim db-3": {
				api.AnnotationClusterID: "c0", api.AnnotationMemberID: "a3", api.AnnotationVersion: "3.6.16", api.AnnotationJoin: "a3",
				api.AnnotationVolumeUID: "claim-of-db-3", api.AnnotationRetired: "true",
			}}, []string{"Normal Retiring retiring the volumes of db-3, no members any more; they are kept"}},
		},
		"Spare": {
			reason: "nothing has ever run on it", given: unused,
			want: result{[]string{"db-4"}, []write{status, deleted("db-4")}, marks{}, []string{"Normal Retiring deleting the volumes of db-4, no members any more"}},
		},
		"SpareWithRetain": {
			reason: "of nothing there is nothing to keep", given: func(w *world) { w.former("db-3", "a3"); unused(w); retain(w) },
			want: result{[]string{"db-3", "db-4"}, []write{status, marked("db-3"), deleted("db-4")}, marks{"PersistentVolumeClaim db-3": {
				api.AnnotationClusterID: "c0", api.AnnotationMemberID: "a3", api.AnnotationVersion: "3.6.16", api.AnnotationJoin: "a3",
				api.AnnotationVolumeUID: "claim-of-db-3", api.AnnotationRetired: "true",
			}}, []string{"Normal Retiring retiring the volumes of db-3, db-4, no members any more; they are kept"}},
		},
		"MemberAgain": {
			reason: "the cache was behind: etcd lists it", given: func(w *world) { w.former("db-3", "a3") },
			since: func(w *world) { w.learner() },
			want:  result{Members: []string{"db-3"}, Writes: []write{status}, Marks: marks{}}, err: apply.ErrChanged,
		},
		"AnotherDown": {
			reason: "one may still be of use", given: func(w *world) { w.former("db-3", "a3") },
			since: func(w *world) { delete(w.asked.endpoints, "db-0") },
			want:  result{Members: []string{"db-3"}, Writes: []write{status}, Marks: marks{}}, err: apply.ErrChanged,
		},
		"Wanted": {
			reason: "the spec has changed, and asks for it", given: unused,
			since: func(w *world) { w.cluster.ResourceVersion, w.cluster.Spec.Replicas = "2", new(int32(4)) },
			want:  result{Members: []string{"db-4"}, Writes: []write{status}, Marks: marks{}}, err: apply.ErrChanged,
		},
		"Conflict": {
			reason: "it was changed after all looks", given: func(w *world) { w.former("db-3", "a3") }, refuse: refuse(conflict),
			want: result{Members: []string{"db-3"}, Writes: []write{status}, Marks: marks{}}, err: conflict,
		},
		"Gone": {
			reason: "another operator was faster", given: func(w *world) { w.former("db-3", "a3") }, refuse: refuse(apierrors.NewNotFound(claims, "db-3")),
			want: result{[]string{"db-3"}, []write{status}, marks{}, []string{"Normal Retiring deleting the volumes of db-3, no members any more"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			tc.given(&w)
			w.address()
			none := func(request string) error { t.Errorf("etcd is asked to %s", request); return nil }
			s := newStub(t, tc.refuse, w.objects()...)
			s.Dial = w.dial(none)
			seen, err := s.observe(t.Context(), w.cluster, s.Client)
			if err != nil {
				t.Fatal(err)
			}
			step := membership.Plan(desired(w.cluster), seen.Observed)
			if step.Action != membership.Discard {
				t.Fatalf("the step is %s", step)
			}
			c := w.cluster.DeepCopy()
			if tc.since != nil {
				tc.since(&w)
				s.Reader, s.Dial = newStub(t, nil, w.objects()...).Client, w.dial(none)
			}
			if err := s.discard(t.Context(), c, seen, step); !errors.Is(err, tc.err) {
				t.Errorf("%s: error is %v, want %v", tc.reason, err, tc.err)
			}
			slices.SortFunc(s.writes[1:], compareWrites) // the intent comes first, and then all at once
			got := result{step.Members, s.writes, s.marks, s.told()}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAtLeader holds which member a change is asked of.
func TestAtLeader(t *testing.T) {
	type result struct {
		Asked string
		Later bool
	}
	cases := map[string]struct {
		reason string
		seen   func(*observed)
		want   result
	}{
		"Leader":  {reason: "it alone can hand over its leadership, and knows how far learners are", seen: func(*observed) {}, want: result{Asked: "db-1"}},
		"Silent":  {reason: "the first that serves passes it on", seen: func(seen *observed) { down(seen, 1) }, want: result{Asked: "db-0"}},
		"PodGone": {reason: "an answer without a Pod has no address", seen: func(seen *observed) { delete(seen.pods, "db-1") }, want: result{Asked: "db-0"}},
		"Corrupt": {
			reason: "the accused member leads all the same, and is asked",
			seen: func(seen *observed) {
				for n := range seen.Instances {
					seen.Instances[n].Endpoint.Alarms = []membership.Alarm{{Kind: membership.AlarmCorrupt, Member: 0xa1}}
				}
			},
			want: result{Asked: "db-1"},
		},
		"NoLeader": {
			reason: "no member can change anything now",
			seen: func(seen *observed) {
				for n := range seen.Instances {
					seen.Instances[n].Endpoint.Leader = 0
				}
			},
			want: result{Later: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := healthy()
			for name, pod := range seen.pods {
				pod.Status.PodIP = name
			}
			tc.seen(&seen)
			var got result
			r := &Reconciler{Dial: func(host string, _ int) (membership.Client, error) {
				got.Asked = host
				return asked{}, nil
			}}
			err := r.atLeader(newCluster(), seen, func(membership.Client) error { return nil })
			if got.Later = errors.Is(err, membership.ErrLater); err != nil && !got.Later {
				t.Error(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
