package render

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "quorate.dev/api/v1alpha1"
)

// TestRestoreAfterLoss: which data is restored without a person. That of an earlier cluster of the
// same name is in the same store.
func TestRestoreAfterLoss(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		args   api.QuorumLossPolicy
		want   string
	}{
		"FromBackup":   {reason: "a snapshot of this very etcd cluster", args: api.QuorumLossFromBackup, want: `{"clusterID":"c1"}`},
		"FromSurvivor": {reason: "a member has no data of another one", args: api.QuorumLossFromSurvivor, want: `{"survivor":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, "minimal")
			c.Status.ClusterID = "c1"
			c.Status.QuorumLoss = &api.QuorumLoss{ClusterID: "c1"}
			got, err := json.Marshal(RestoreAfterLoss(c, tc.args).Spec.Source)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
