package reconcile

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/podstatus"
)

// TestInPlaceHeldUp: a restore in place that waits for a person says for what, also where it is not
// itself that is wrong.
func TestInPlaceHeldUp(t *testing.T) {
	t.Parallel()
	type result struct {
		Searches bool
		Phase    api.RestorePhase
		Message  string
	}
	for name, tc := range map[string]struct {
		reason string
		args   func(*observed)
		want   result
	}{
		"Begins": {reason: "nothing is wrong", args: func(*observed) {}, want: result{Searches: true, Phase: api.RestorePending}},
		"OtherCluster": {
			reason: "a claim has the data of another etcd cluster",
			args:   func(seen *observed) { seen.Instances[0].Volume.ClusterID = 0xdd },
			want:   result{Phase: api.RestoreBlocked, Message: "the EtcdCluster is held up: "},
		},
		"Foreign": {
			reason: "a Pod of that name is another's",
			args:   func(seen *observed) { seen.Instances[0].Pod.Foreign = true },
			want: result{Phase: api.RestoreBlocked, Message: "the EtcdCluster is held up: the Pods db-0 have another owner; " +
				"delete them if nothing needs them, or create this EtcdCluster under another name"},
		},
		"Certificates": {
			reason: "no member could be started",
			args: func(seen *observed) {
				seen.credentials = &credentials{blocked: &certificatesError{api.ReasonCertificates, "Secret mine has expired"}}
			},
			want: result{Phase: api.RestoreBlocked, Message: "the EtcdCluster is held up: Secret mine has expired"},
		},
		"Long": {
			reason: "the schema bounds the message",
			args: func(seen *observed) {
				seen.credentials = &credentials{blocked: &certificatesError{api.ReasonCertificates, strings.Repeat("x", 5000)}}
			},
			want: result{Phase: api.RestoreBlocked, Message: podstatus.Within("the EtcdCluster is held up: "+strings.Repeat("x", 5000), 1024)},
		},
		"Planned": {
			reason: "it is suspended, and its plan is told",
			args: func(seen *observed) {
				seen.Instances[0].Pod.Foreign, seen.InPlace.Suspended = true, true
				seen.found, seen.Search = monday.DeepCopy(), membership.Search{Begun: true, Found: snapshotFacts(&monday)}
			},
			want: result{Phase: api.RestorePending},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			c.Status.ClusterID, c.Status.Restore = "c0", inPhase(api.RestorePending)
			c.Spec.Backup = &api.Backup{Store: &api.BackupStore{S3: &api.S3Store{Bucket: "backups"}}}
			seen.InPlace = inPlace(c, limits{})
			tc.args(&seen)
			s := newStub(t, nil, etcdRestore(), c.DeepCopy())
			s.AgentImage = agentImage
			step := membership.Plan(desired(c), seen.Observed)
			step, err := outcome(t.Context(), step, s.act(t.Context(), c, seen, step))
			if err != nil {
				t.Fatal(err)
			}
			next := status(c, seen, step)
			got := result{
				Searches: slices.ContainsFunc(s.writes, func(w write) bool { return w.Kind == "Job" }),
				Phase:    next.Restore.Phase, Message: next.Restore.Message,
			}
			if name == "OtherCluster" { // the planner's words have their own test
				tc.want.Message += step.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
