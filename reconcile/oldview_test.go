package reconcile

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
)

// TestOldView: what an operator creates that does not know yet of what is there. The cache is that
// of an API server that is behind: it has none of the objects, and the API server has them all, and
// refuses what is bound to another state of them.
func TestOldView(t *testing.T) {
	first := membership.First{Token: "cluster", Size: 1}
	provision := membership.Step{Action: membership.Provision, Reason: membership.Provisioning, Members: []string{"db-0"}, First: first}
	bootstrap := membership.Step{Action: membership.Bootstrap, Reason: membership.Bootstrapping, Members: []string{"db-0"}, First: first}
	prepare := membership.Step{Action: membership.Provision, Reason: membership.ScalingUp, Members: []string{"db-3"}, Version: membership.Version{Major: 3, Minor: 6, Patch: 16}}
	join := membership.Step{Action: membership.Join, Reason: membership.Joining, Members: []string{"db-3"}, ID: 0xa3, Version: prepare.Version}
	joining := func(seen *observed) { spare(seen, 3); delete(seen.pods, "db-3") }
	nothing := func(seen *observed) { *seen = observed{} }
	claimOnly := func(seen *observed) {
		*seen = observed{claims: map[string]*corev1.PersistentVolumeClaim{"db-0": newClaim("db-0")}}
		seen.Instances = []membership.Instance{{Name: "db-0", Volume: membership.Volume{UID: "claim-of-db-0", First: first}}}
	}
	earlier := func(seen *observed) {
		claimOnly(seen)
		seen.Instances[0].Volume.First = membership.First{Token: "earlier", Size: 3}
	}
	unlabelled := func(o client.Object) client.Object {
		delete(o.GetLabels(), api.LabelCluster)
		return o
	}
	told := func(name string) client.Object {
		pod := ownedBy("cluster", newPod(name))
		pod.Annotations = fenced(newCluster(), name)
		return pod
	}
	recordedAs := func(claim *corev1.PersistentVolumeClaim, id string) client.Object {
		claim.Annotations[api.AnnotationClusterID], claim.Annotations[api.AnnotationMemberID] = "c0", id
		return claim
	}
	another := func(claim *corev1.PersistentVolumeClaim) client.Object {
		claim.UID = "another"
		return claim
	}
	foreign := &foreignError{"PersistentVolumeClaim", "db-0", "another application (it has no label " + api.LabelCluster + " and no owner)"}
	absent := func(kind, name string) write { return write{"apply", kind, name, "", apply.OnlyIfAbsent} }

	cases := map[string]struct {
		reason string
		seen   func(*observed)
		live   []client.Object
		step   membership.Step
		want   []write // that the API server takes
		err    error
	}{
		"ProvisionerOverVoter": {
			reason: "the Pod of a voter would be told again that it is being prepared",
			seen:   joining, live: []client.Object{newClaim("db-3"), told("db-3")}, step: prepare,
			err: apply.ErrChanged,
		},
		"ProvisionerOnVotersVolume": {
			reason: "a voter whose Pod is away for a moment would get one that waits for ever",
			seen:   joining, live: []client.Object{recordedAs(newClaim("db-3"), "a3")}, step: prepare,
			err: apply.ErrChanged,
		},
		"LearnerOnVotersVolume": {
			reason: "or one that starts empty on an empty disk",
			seen: func(seen *observed) {
				joining(seen)
				learner(seen, "db-3")
				seen.claims["db-3"].Annotations[api.AnnotationJoin] = "a3"
			},
			live: []client.Object{recordedAs(newClaim("db-3"), "a3")}, step: join,
			err: apply.ErrChanged,
		},
		"StartOnWhatCameInstead": {
			reason: "the claim that was seen is gone, and a restored one has its name",
			seen: func(seen *observed) {
				seen.Instances[1].Pod, seen.Instances[1].Endpoint = membership.Pod{}, membership.Endpoint{}
				delete(seen.pods, "db-1")
			},
			live: []client.Object{another(newClaim("db-1"))}, step: membership.Step{Action: membership.Start, Reason: membership.Starting, Members: []string{"db-1"}},
			err: apply.ErrChanged,
		},
		"FirstPodOverOneThatServes": {
			reason: "it would be told again to start empty on an empty disk",
			seen:   claimOnly, live: []client.Object{told("db-0"), newClaim("db-0")}, step: bootstrap,
			err: apply.ErrChanged,
		},
		"FirstClaimOverRetained": {
			reason: "what it says of its data would be gone",
			seen:   nothing, live: []client.Object{recordedAs(newClaim("db-0"), "a0")}, step: provision,
			err: apply.ErrChanged,
		},
		"FirstClaimOfEarlierStart": {
			reason: "one of an earlier first start is made one of this, as it was seen",
			seen:   earlier, live: []client.Object{newClaim("db-0")}, step: provision,
			want: []write{{"apply", "PersistentVolumeClaim", "db-0", "claim-of-db-0", "5"}},
		},
		"FirstClaimNotThere": {
			reason: "one that is not there is created",
			seen:   nothing, step: provision,
			want: []write{absent("PersistentVolumeClaim", "db-0")},
		},
		"FirstClaimOfOthers": {
			reason: "one that the cache never shows is reported, and not tried for ever",
			seen:   nothing, live: []client.Object{unlabelled(newClaim("db-0"))}, step: provision,
			err: foreign,
		},
		"FirstClaimWithoutLabel": {
			reason: "one of ours that the cache never shows, since its label was taken away, gets that back",
			seen:   nothing, live: []client.Object{unlabelled(ownedBy("cluster", newClaim("db-0")))}, step: provision,
			want: []write{{"patch", "PersistentVolumeClaim", "db-0", "claim-of-db-0", ""}},
			err:  apply.ErrChanged,
		},
		"ProvisionerWithoutLabel": {
			reason: "so does a Pod, and nothing else of it is touched",
			seen:   joining, live: []client.Object{newClaim("db-3"), unlabelled(told("db-3"))}, step: prepare,
			want: []write{{"patch", "Pod", "db-3", "pod-of-db-3", ""}},
			err:  apply.ErrChanged,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			tc.seen(&seen)
			live := newStub(t, nil, append(tc.live, c.DeepCopy())...).Client
			s := newStub(t, unlessChanged(t, live))
			s.Reader = live
			err := s.take(t.Context(), c, seen, tc.step)
			if apierrors.IsConflict(err) {
				err = apply.ErrChanged // the pass makes the same of it
			}
			if _, ok := errors.AsType[*foreignError](tc.err); ok {
				if diff := cmp.Diff(tc.err.Error(), err.Error()); diff != "" {
					t.Errorf("%s: error -want +got:\n%s", tc.reason, diff)
				}
			} else if !errors.Is(err, tc.err) {
				t.Errorf("%s: error is %v, want %v", tc.reason, err, tc.err)
			}
			taken := slices.DeleteFunc(s.writes, func(w write) bool { return w.Kind == "status" })
			if diff := cmp.Diff(tc.want, taken, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: written -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// unlessChanged refuses what an API server with these objects refuses: what is bound to another
// object, or to another state of it.
func unlessChanged(t *testing.T, live client.Reader) func(write) error {
	return func(w write) error {
		var o client.Object
		switch w.Kind {
		case "Pod":
			o = &corev1.Pod{}
		case "PersistentVolumeClaim":
			o = &corev1.PersistentVolumeClaim{}
		default:
			return nil
		}
		err := live.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: w.Name}, o)
		if client.IgnoreNotFound(err) != nil {
			return err
		}
		there := err == nil
		if there && w.ResourceVersion != "" && w.ResourceVersion != o.GetResourceVersion() || w.UID != "" && w.UID != string(o.GetUID()) {
			return apierrors.NewConflict(schema.GroupResource{Resource: w.Kind}, w.Name, errors.New("changed"))
		}
		return nil
	}
}
