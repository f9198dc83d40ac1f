package reconcile

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestUnlabelled takes labels from the objects of a healthy cluster: what the next step is then,
// and which objects are seen.
func TestUnlabelled(t *testing.T) {
	all := []string{"db-0", "db-1", "db-2"}
	rest := []string{"db-0", "db-2"}
	healthy := membership.Step{Action: membership.None, Rule: "healthy", Reason: membership.Healthy, Message: "3 healthy members"}
	type result struct {
		Step         membership.Step
		Pods, Claims []string
	}
	cases := map[string]struct {
		reason string
		mutate func(w world)
		want   result
	}{
		"None":      {reason: "all is found by label", mutate: func(world) {}, want: result{healthy, all, all}},
		"Pod":       {reason: "a member that runs is not started again", mutate: func(w world) { w.pods["db-1"].Labels = nil }, want: result{healthy, all, all}},
		"Claim":     {reason: "a member whose data is there has not lost it", mutate: func(w world) { w.claims["db-1"].Labels = nil }, want: result{healthy, all, all}},
		"OfAnother": {reason: "a label does not make it another owner's", mutate: func(w world) { w.claims["db-1"].Labels[api.LabelCluster] = "other" }, want: result{healthy, all, all}},
		"ForeignPod": {
			reason: "a Pod that is not ours is reported where it is in the way",
			mutate: func(w world) { w.pods["db-1"].Labels, w.pods["db-1"].OwnerReferences = nil, nil },
			want: result{membership.Step{
				Action: membership.Start, Members: []string{"db-1"}, Version: membership.Version{Major: 3, Minor: 6, Patch: 16},
				Rule: "startMembers", Reason: membership.Starting, Message: "starting db-1 on the volumes that hold their data",
			}, rest, all},
		},
		"OtherData": {
			reason: "a claim that says that it holds what another member had is no volume of this one",
			mutate: func(w world) {
				w.claims["db-2"].Labels = nil
				w.claims["db-2"].Annotations[api.AnnotationMemberID] = "beef"
			},
			want: result{membership.Step{
				Action: membership.Provision, Members: []string{"db-3"}, Version: membership.Version{Major: 3, Minor: 6, Patch: 16}, Rule: "prepareVolumes", Reason: membership.Moving,
				Message: "preparing the volume of db-3, to take the place of db-2, whose volume is gone",
			}, all, []string{"db-0", "db-1"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			for n := range w.cluster.Status.Members {
				w.cluster.Status.Members[n].Volume = w.cluster.Status.Members[n].Name
			}
			for _, pod := range w.pods {
				ownedBy("cluster", pod)
			}
			w.address()
			tc.mutate(w)
			_, seen := w.look(t)
			got := result{membership.Plan(desired(w.cluster), seen.Observed), namesIn(seen.pods), namesIn(seen.claims)}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func namesIn[T client.Object](objects map[string]T) []string {
	var names []string
	for name := range objects {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// TestLabelledAgain: a claim that says that it holds our data is ours.
func TestLabelledAgain(t *testing.T) {
	w := serving(t)
	claim := w.claims["db-1"]
	claim.Labels = nil
	s := newStub(t, nil, claim.DeepCopy())
	seen := healthy()
	seen.claims = map[string]*corev1.PersistentVolumeClaim{"db-1": claim}
	seen.pods = nil
	if err := s.applyMetadata(t.Context(), w.cluster, seen, member(w.cluster, seen, "db-1")); err != nil {
		t.Error(err)
	}
	want := []write{{Verb: "apply", Kind: "PersistentVolumeClaim", Name: "db-1", UID: "claim-of-db-1", ResourceVersion: "5"}}
	if diff := cmp.Diff(want, s.writes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestClaimCacheBehind: the caches of Pods and claims are not of the same time. A member to come
// whose Pod is seen and whose claim is not yet must not go again for that, and another one with it
// for each look.
func TestClaimCacheBehind(t *testing.T) {
	cases := map[string]struct {
		reason string
		gone   bool // from the API server too
		want   membership.Step
	}{
		"Behind": {
			reason: "its claim is there",
			want:   membership.Step{Action: membership.AddLearner, Members: []string{"db-3"}, Rule: "addLearner", Reason: membership.ScalingUp, Message: "adding db-3 as a learner"},
		},
		"Gone": {
			reason: "a user has deleted its claim", gone: true,
			want: membership.Step{Action: membership.Stop, Members: []string{"db-3"}, Rule: "cleanUpRemovedMembers", Reason: membership.Retiring, Message: "stopping db-3, no members any more"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.cluster.Spec.Replicas = new(int32(4))
			w.spare("db-3")
			w.address()
			live := w.objects()
			delete(w.claims, "db-3")
			cached := w.objects()
			if tc.gone {
				live = cached
			}
			s := newStub(t, nil, cached...)
			s.Reader, s.Dial = newStub(t, nil, live...).Client, w.dial(nil)
			seen, err := s.observe(t.Context(), w.cluster, s.Client)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, membership.Plan(desired(w.cluster), seen.Observed)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMembersClaimCacheBehind: a member whose Pod is seen and whose claim is not yet, though it has
// its label, needs no successor.
func TestMembersClaimCacheBehind(t *testing.T) {
	w := serving(t)
	for n := range w.cluster.Status.Members {
		w.cluster.Status.Members[n].Volume = w.cluster.Status.Members[n].Name
	}
	w.address()
	live := w.objects()
	delete(w.claims, "db-1")
	s := newStub(t, nil, w.objects()...)
	s.Reader, s.Dial = newStub(t, nil, live...).Client, w.dial(nil)
	seen, err := s.observe(t.Context(), w.cluster, s.Client)
	if err != nil {
		t.Fatal(err)
	}
	want := membership.Step{Action: membership.None, Rule: "healthy", Reason: membership.Healthy, Message: "3 healthy members"}
	if diff := cmp.Diff(want, membership.Plan(desired(w.cluster), seen.Observed)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
