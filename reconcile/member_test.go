package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// TestMember holds what render is told of a learner from its first start on.
func TestMember(t *testing.T) {
	const list = "db-0=http://db-0.db.ns.svc:2380,db-3=http://db-3.db.ns.svc:2380"
	started := func(seen *observed) {
		spare(seen, 3)
		learner(seen, "db-3")
		seen.pods["db-3"].Annotations = map[string]string{
			api.AnnotationInitialCluster: list, api.AnnotationInitialClusterState: render.StateExisting,
		}
	}
	recorded := func(seen *observed) {
		started(seen)
		v := &seen.Instances[3].Volume
		v.ClusterID, v.MemberID, v.Version = 0xc0, 0xa3, membership.Version{Major: 3, Minor: 6, Patch: 9}
	}
	cases := map[string]struct {
		reason string
		seen   func(*observed)
		want   render.Member
	}{
		"Spare": {
			reason: "nothing has run on it yet", seen: func(seen *observed) { spare(seen, 3) },
			want: render.Member{Version: "3.6.16", Join: "pending", InitialCorruptCheck: true},
		},
		"MadeOf": {
			reason: "what a volume was made of stays on it", seen: func(seen *observed) {
				spare(seen, 3)
				seen.claims["db-3"].Annotations[api.AnnotationStorage] = "1Gi fast"
			},
			want: render.Member{Version: "3.6.16", Join: "pending", Storage: "1Gi fast", InitialCorruptCheck: true},
		},
		"Started": {
			reason: "it may find its directory empty until it has answered from it", seen: started,
			want: render.Member{Version: "3.6.16", Join: "a3", InitialCluster: list},
		},
		"Recorded": {
			reason: "from there on it must find its data", seen: recorded,
			want: render.Member{Version: "3.6.9", Ran: "3.6.9", Join: "a3", ClusterID: "c0", MemberID: "a3", VolumeUID: "claim-of-db-3", InitialCorruptCheck: true},
		},
		"PodGone": {
			reason: "and when its Pod is recreated", seen: func(seen *observed) { recorded(seen); delete(seen.pods, "db-3") },
			want: render.Member{Version: "3.6.9", Ran: "3.6.9", Join: "a3", ClusterID: "c0", MemberID: "a3", VolumeUID: "claim-of-db-3", InitialCorruptCheck: true},
		},
		"Retired": {
			reason: "what is kept for a person stays marked", seen: func(seen *observed) { recorded(seen); seen.Instances[3].Volume.Retired = true },
			want: render.Member{Version: "3.6.9", Ran: "3.6.9", Join: "a3", ClusterID: "c0", MemberID: "a3", VolumeUID: "claim-of-db-3", Retired: true, InitialCorruptCheck: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			tc.seen(&seen)
			want := tc.want
			want.Name, want.InitialClusterState = "db-3", render.StateExisting
			want.VolumeSize = seen.claims["db-3"].Spec.Resources.Requests.Storage()
			want.Capacity = want.VolumeSize
			if want.InitialCluster == "" {
				want.InitialCluster = render.Resume(c, "db-3")
			}
			if diff := cmp.Diff(want, member(c, seen, "db-3")); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
