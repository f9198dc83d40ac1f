package v1alpha1

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestSnapshotName: no EtcdBackup stores, or deletes, under the name of another one.
func TestSnapshotName(t *testing.T) {
	t.Parallel()
	type args struct {
		namespace, name string
		uid             types.UID
		attempt         int32
	}
	cases := map[string]struct {
		reason string
		args   args
		want   string
	}{
		"First": {
			reason: "namespace, name, time of creation, UID",
			args:   args{"team-a", "nightly", "1a2b3c4d-0000-4000-8000-000000000002", 1},
			want:   "team-a-nightly-20261125t075000z-1a2b3c4d",
		},
		"Second": {
			reason: "an attempt has a name of its own",
			args:   args{"team-a", "nightly", "1a2b3c4d-0000-4000-8000-000000000002", 2},
			want:   "team-a-nightly-20261125t075000z-1a2b3c4d-2",
		},
		"OtherUID": {
			reason: "one of the same name in another Kubernetes cluster, made in the same second",
			args:   args{"team-a", "nightly", "5f9a8c1e-0000-4000-8000-000000000002", 1},
			want:   "team-a-nightly-20261125t075000z-5f9a8c1e",
		},
		"OtherNamespace": {
			reason: "team and a-nightly read like team-a and nightly: the UIDs differ",
			args:   args{"team", "a-nightly", "77777777-0000-4000-8000-000000000002", 1},
			want:   "team-a-nightly-20261125t075000z-77777777",
		},
		"Longest": {
			reason: "the longest names are within the 220 characters of a snapshot",
			args:   args{strings.Repeat("n", 63), strings.Repeat("b", 56), "1a2b3c4d-0000-4000-8000-000000000002", 3},
			want:   strings.Repeat("n", 63) + "-" + strings.Repeat("b", 56) + "-20261125t075000z-1a2b3c4d-3",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := &EtcdBackup{ObjectMeta: metav1.ObjectMeta{
				Namespace: tc.args.namespace, Name: tc.args.name, UID: tc.args.uid,
				CreationTimestamp: metav1.NewTime(time.Date(2026, 11, 25, 7, 50, 0, 0, time.UTC)),
			}}
			if got := b.SnapshotName(tc.args.attempt); got != tc.want || len(got) > 220 {
				t.Errorf("%s: want %s, got %s with %d characters", tc.reason, tc.want, got, len(got))
			}
		})
	}
}
