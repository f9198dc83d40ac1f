package reconcile

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
)

// revisionless leaves away the annotation that is a hash, and of the one that ends with a hash
// that.
var revisionless = cmp.Options{
	cmp.FilterPath(at(api.AnnotationRevision), cmp.Ignore()),
	cmp.FilterPath(at(api.AnnotationApplied), cmp.Comparer(func(a, b string) bool {
		a, _, _ = strings.Cut(a, " ")
		b, _, _ = strings.Cut(b, " ")
		return a == b
	})),
}

func at(annotation string) func(cmp.Path) bool {
	return func(p cmp.Path) bool {
		key, ok := p.Last().(cmp.MapIndex)
		return ok && key.Key().String() == annotation
	}
}

// What 3.6 is told of the checks of its data: with a quorum that it can compare it with, and
// without.
const (
	checkedAtStart   = "--feature-gates=InitialCorruptCheck=true,CompactHashCheck=true"
	uncheckedAtStart = "--feature-gates=InitialCorruptCheck=false,CompactHashCheck=true"
	checkedCompacted = "--compact-hash-check-time=1m"
)

// marks are annotations by kind and name of an object.
type marks map[string]map[string]string

// TestPrepare holds which volumes and Pods are made for members to come, in which order, and what
// is written on them.
func TestPrepare(t *testing.T) {
	quota := apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "db-3", errors.New("exceeded quota"))
	claim := func(name string) write { return write{"apply", "PersistentVolumeClaim", name, "", apply.OnlyIfAbsent} }
	pod := func(name string) write { return write{"apply", "Pod", name, "", apply.OnlyIfAbsent} }
	onClaim := map[string]string{api.AnnotationJoin: "pending", api.AnnotationStorage: "1Gi", api.AnnotationTLS: "client=Disabled,peer=Disabled", api.AnnotationVersion: "3.6.16"}
	onPod := map[string]string{
		api.AnnotationProvisions: "true", api.AnnotationRevision: "", api.AnnotationApplied: image36,
		api.AnnotationCheckAtStart: checkedAtStart, api.AnnotationCheckCompacted: checkedCompacted,
	}
	both := membership.Step{
		Action: membership.Provision, Reason: membership.ScalingUp, Members: []string{"db-3", "db-4"},
		Version: membership.Version{Major: 3, Minor: 6, Patch: 16},
	}

	type result struct {
		Writes []write
		Marks  marks
		Events []string
	}
	cases := map[string]struct {
		reason  string
		cluster func(*api.EtcdCluster)
		seen    func(*observed)
		refuse  func(write) error
		moves   bool // another cluster has the only turn
		want    result
		err     error
	}{
		"Both": {
			reason: "the Pods come after the volumes that they wait for",
			want: result{
				Writes: []write{claim("db-3"), claim("db-4"), pod("db-3"), pod("db-4")},
				Marks: marks{
					"PersistentVolumeClaim db-3": onClaim, "PersistentVolumeClaim db-4": onClaim, "Pod db-3": onPod, "Pod db-4": onPod,
				},
				Events: []string{"Normal ScalingUp Created PersistentVolumeClaim db-3, PersistentVolumeClaim db-4"},
			},
		},
		"ClaimThere": {
			reason: "a volume that is there is not touched, and gets its Pod",
			seen: func(seen *observed) {
				spare(seen, 3)
				delete(seen.pods, "db-3")
			},
			want: result{
				Writes: []write{claim("db-4"), pod("db-3"), pod("db-4")},
				Marks:  marks{"PersistentVolumeClaim db-4": onClaim, "Pod db-3": onPod, "Pod db-4": onPod},
				Events: []string{"Normal ScalingUp Created PersistentVolumeClaim db-4"},
			},
		},
		"SpecAhead": {
			reason: "they run what the members run, and not yet what the spec says", cluster: func(c *api.EtcdCluster) { c.Spec.Version = "3.7.3" },
			want: result{
				Writes: []write{claim("db-3"), claim("db-4"), pod("db-3"), pod("db-4")},
				Marks: marks{
					"PersistentVolumeClaim db-3": onClaim, "PersistentVolumeClaim db-4": onClaim, "Pod db-3": onPod, "Pod db-4": onPod,
				},
				Events: []string{"Normal ScalingUp Created PersistentVolumeClaim db-3, PersistentVolumeClaim db-4"},
			},
		},
		"Refused": {
			reason: "without its volume no Pod comes, and what could be made is told of",
			refuse: func(w write) error {
				if w == claim("db-4") {
					return quota
				}
				return nil
			},
			want: result{
				Writes: []write{claim("db-3")}, Marks: marks{"PersistentVolumeClaim db-3": onClaim},
				Events: []string{"Normal ScalingUp Created PersistentVolumeClaim db-3"},
			},
			err: quota,
		},
		"MovesInTurn": {
			reason: "of those that move to other volumes only so many do at a time", moves: true,
			err: queuedError{limit: 1},
		},
		"RescueComesAtOnce": {
			reason: "data that goes with a Pod waits for no turn; the cluster is looked at again, and its Pods are gone", moves: true,
			seen: func(o *observed) { o.Instances[1].Volume.Terminating = true },
			err:  apply.ErrChanged,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen, step := newCluster(), healthy(), both
			if tc.cluster != nil {
				tc.cluster(c)
			}
			if tc.seen != nil {
				tc.seen(&seen)
			}
			objects := []client.Object{c.DeepCopy()}
			for _, claim := range seen.claims {
				objects = append(objects, claim)
			}
			s := newStub(t, tc.refuse, objects...)
			if tc.moves {
				step.Reason, s.MaxChanging = membership.Moving, 1
				if err := s.changing.enter(&api.EtcdCluster{}, 1); err != nil {
					t.Fatal(err)
				}
			}
			if tc.want.Marks == nil {
				tc.want.Marks = marks{}
			}
			if err := s.prepare(t.Context(), c, seen, step); !errors.Is(err, tc.err) {
				t.Errorf("%s: error is %v, want %v", tc.reason, err, tc.err)
			}
			got := result{s.inOrder(), s.marks, s.told()}
			if diff := cmp.Diff(tc.want, got, revisionless); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestJoin holds the passes in which a learner gets its Pod, one after the other.
func TestJoin(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "persistentvolumeclaims"}, "db-3", errors.New("changed"))
	given := write{"apply", "PersistentVolumeClaim", "db-3", "claim-of-db-3", "5"}
	released := write{"apply", "Pod", "db-3", "pod-of-db-3", "5"}
	deleted := write{"delete", "Pod", "db-3", "pod-of-db-3", ""}
	created := write{"apply", "Pod", "db-3", "", "1"} // which no Pod has: one that is there is left alone
	onClaim := map[string]string{api.AnnotationJoin: "a3", api.AnnotationVersion: "3.6.16"}
	const voters = "db-0=http://db-0.db.ns.svc:2380,db-1=http://db-1.db.ns.svc:2380,db-2=http://db-2.db.ns.svc:2380"
	onPod := func(initialCluster string) map[string]string {
		return map[string]string{
			api.AnnotationInitialCluster: initialCluster, api.AnnotationInitialClusterState: "existing",
			api.AnnotationCheckAtStart: uncheckedAtStart, api.AnnotationCheckCompacted: checkedCompacted, api.AnnotationRevision: "",
		}
	}
	onNewPod := func(initialCluster string) map[string]string {
		all := onPod(initialCluster)
		all[api.AnnotationApplied] = image36
		return all
	}
	joining := func(seen *observed) { spare(seen, 3); learner(seen, "db-3") }
	given3 := func(seen *observed) {
		joining(seen)
		seen.claims["db-3"].Annotations[api.AnnotationJoin] = "a3"
		delete(seen.pods, "db-3")
	}

	type result struct {
		Writes []write
		Marks  marks
		Events []string
	}
	cases := map[string]struct {
		reason string
		seen   func(*observed)
		medium api.Medium
		refuse func(write) error
		want   result
		err    error
	}{
		"Spare": {
			reason: "the volume is given to it, and its Pod, this very one as it was seen, may start",
			seen:   joining,
			want: result{
				[]write{given, released},
				marks{"PersistentVolumeClaim db-3": onClaim, "Pod db-3": onPod(voters + ",db-3=http://db-3.db.ns.svc:2380")},
				[]string{"Normal Joining Started etcd in Pod db-3"},
			},
		},
		"Rewritten": {
			reason: "a policy has made another image of the one that was asked for, and the Pod is the right one",
			seen: func(seen *observed) {
				joining(seen)
				pod := seen.pods["db-3"]
				pod.Annotations[api.AnnotationApplied], pod.Spec.Containers[0].Image = image36+" hash", "mirror.example.com/etcd:v3.6.16"
				manage(t, pod)
			},
			want: result{
				[]write{given, released},
				marks{"PersistentVolumeClaim db-3": onClaim, "Pod db-3": onNewPod(voters + ",db-3=http://db-3.db.ns.svc:2380")},
				[]string{"Normal Joining Started etcd in Pod db-3"},
			},
		},
		"OtherVersion": {
			reason: "the members run another version than when the Pod was made; nothing comes in the same pass",
			seen:   func(seen *observed) { joining(seen); seen.pods["db-3"].Spec.Containers[0].Image += "0" },
			want:   result{[]write{given, deleted}, marks{"PersistentVolumeClaim db-3": onClaim}, []string{"Normal Joining Deleted Pod db-3"}},
		},
		"OtherSpec": {
			reason: "the Pod was made of an earlier spec",
			seen:   func(seen *observed) { joining(seen); delete(seen.pods["db-3"].Annotations, api.AnnotationRevision) },
			want:   result{[]write{given, deleted}, marks{"PersistentVolumeClaim db-3": onClaim}, []string{"Normal Joining Deleted Pod db-3"}},
		},
		"Taken": {
			reason: "a volume that has changed since may be another member's by now, and the Pod stays",
			seen:   joining, refuse: func(write) error { return conflict },
			want: result{Marks: marks{}}, err: conflict,
		},
		"Given": {
			reason: "the volume is given to it already, and the Pod has gone", seen: given3,
			want: result{[]write{created}, marks{"Pod db-3": onNewPod(voters + ",db-3=http://db-3.db.ns.svc:2380")}, []string{"Normal Joining Created Pod db-3"}},
		},
		"PodGone": {
			reason: "another operator has deleted the Pod: the volume is given to it before anything runs on it",
			seen:   func(seen *observed) { joining(seen); delete(seen.pods, "db-3") },
			want: result{
				[]write{given, created},
				marks{"PersistentVolumeClaim db-3": onClaim, "Pod db-3": onNewPod(voters + ",db-3=http://db-3.db.ns.svc:2380")},
				[]string{"Normal Joining Created Pod db-3"},
			},
		},
		"PeerURLsByHand": {
			reason: "etcd compares what it is told with its list by peer URL, however many there are and whatever changed them",
			seen: func(seen *observed) {
				given3(seen)
				seen.Members[0].PeerURLs = []string{"http://10.0.0.9:2380", "http://10.0.0.10:2380"}
				seen.Members[1].Name = "renamed"
			},
			want: result{
				[]write{created},
				marks{"Pod db-3": onNewPod("db-0=http://10.0.0.10:2380,db-0=http://10.0.0.9:2380,db-1=http://db-1.db.ns.svc:2380,db-2=http://db-2.db.ns.svc:2380,db-3=http://db-3.db.ns.svc:2380")},
				[]string{"Normal Joining Created Pod db-3"},
			},
		},
		"Memory": {
			reason: "the Pod is the volume, and says itself whose it is", medium: api.MediumMemory,
			seen: func(seen *observed) {
				learner(seen, "db-3")
				seen.Instances = append(seen.Instances, membership.Instance{Name: "db-3", Ordinal: 3, ID: 0xa3})
			},
			want: result{
				[]write{created},
				marks{"Pod db-3": func() map[string]string {
					all := onNewPod(voters + ",db-3=http://db-3.db.ns.svc:2380")
					all[api.AnnotationJoin], all[api.AnnotationVersion] = "a3", "3.6.16"
					return all
				}()},
				[]string{"Normal Joining Created Pod db-3"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			c.Spec.Storage.Medium = tc.medium
			tc.seen(&seen)
			var objects []client.Object
			for _, claim := range seen.claims {
				objects = append(objects, claim)
			}
			s := newStub(t, tc.refuse, objects...)
			err := s.join(t.Context(), c, seen, membership.Step{
				Action: membership.Join, Reason: membership.Joining, Members: []string{"db-3"}, ID: 0xa3,
				Version: membership.Version{Major: 3, Minor: 6, Patch: 16},
			})
			if !errors.Is(err, tc.err) {
				t.Errorf("%s: error is %v, want %v", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(tc.want, result{s.inOrder(), s.marks, s.told()}, revisionless); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
