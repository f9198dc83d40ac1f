package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// publishing is a member that follows the leader, and serves no clients yet.
func publishing(seen *observed, n int) {
	e := &seen.Instances[n].Endpoint
	*e = membership.Endpoint{Publishing: e.MemberID, ClusterID: e.ClusterID, Version: e.Version, Applied: 9}
}

// TestRecordPublishing: on the volume of a learner that serves no clients yet is written whose data
// it holds, and then its Pod is told that it must find that when it starts. It is not known with
// what it has served.
func TestRecordPublishing(t *testing.T) {
	t.Parallel()
	c, seen := newCluster(), healthy()
	caughtUp(&seen)
	publishing(&seen, 3)
	s := newStub(t, nil)
	step := membership.Plan(desired(c), seen.Observed)
	if step.Action != membership.Record {
		t.Fatalf("the step is %s", step)
	}
	if err := s.record(t.Context(), c, seen, step); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{api.AnnotationClusterID: "c0", api.AnnotationMemberID: "a3", api.AnnotationVolumeUID: "claim-of-db-3", api.AnnotationJoin: "a3", api.AnnotationVersion: "3.6.16"}
	if diff := cmp.Diff(want, s.marks["PersistentVolumeClaim db-3"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	fence := fenced(c, "db-3")
	fence[api.AnnotationCheckAtStart], fence[api.AnnotationCheckCompacted], fence[api.AnnotationRevision] = checkedAtStart, checkedCompacted, ""
	if diff := cmp.Diff(fence, s.marks["Pod db-3"], revisionless); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	order := []write{
		{"apply", "PersistentVolumeClaim", "db-3", "claim-of-db-3", "5"}, {"apply", "Pod", "db-3", "pod-of-db-3", "5"},
	}
	if diff := cmp.Diff(order, s.inOrder()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPublishing: what is told of a member that serves no clients yet is believed of that member,
// and counts as no answer.
func TestPublishing(t *testing.T) {
	told := membership.Endpoint{Publishing: 0xa2, ClusterID: 0xc0, Version: membership.Version{Major: 3, Minor: 6, Patch: 16}, Applied: 9}
	cases := map[string]struct {
		reason string
		told   membership.Endpoint
		want   membership.Endpoint
	}{
		"Itself": {reason: "it is the member that it is taken for", told: told, want: told},
		"Another": {
			reason: "another one has got the address",
			told:   membership.Endpoint{Publishing: 0xa1, ClusterID: 0xc0},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := healthy()
			down(&seen, 2)
			asked := answers{members: seen.Members, endpoints: map[string]membership.Endpoint{"db-2": tc.told}}
			if reach := answered(seen.Instances[2:], seen.pods, asked); reach != membership.ReachQuorum {
				t.Errorf("%s: the reach is %v", tc.reason, reach)
			}
			if diff := cmp.Diff(tc.want, seen.Instances[2].Endpoint); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			asked.members = nil
			if reach := answered(seen.Instances[2:], seen.pods, asked); reach != membership.ReachNone {
				t.Errorf("%s: without a list the reach is %v", tc.reason, reach)
			}
		})
	}
}
