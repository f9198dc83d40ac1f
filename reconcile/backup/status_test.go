package backup

import (
	"testing"
	"time"

	kstatus "github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/podstatus"
)

// conditions are what the status of a backup has after a step.
func conditions(step Step, more ...string) []metav1.Condition {
	var all []metav1.Condition
	for _, kind := range append([]string{api.ConditionReady}, more...) {
		value := metav1.ConditionTrue
		if kind == api.ConditionReady && step.Reason != api.ReasonVerified {
			value = metav1.ConditionFalse
		}
		all = append(all, metav1.Condition{Type: kind, Status: value, Reason: step.Reason, Message: step.Message, ObservedGeneration: 1})
	}
	return all
}

func encryption() *api.BackupEncryption {
	return &api.BackupEncryption{Recipients: []api.AgeRecipient{"age1"}}
}

func TestStatus(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		args    func(*Observed)
		want    func(*api.EtcdBackupStatus) // besides the conditions
		more    []string
		current kstatus.Status
	}{
		"Begin": {
			reason: "What a Job is made of is written down before there is one",
			args:   func(*Observed) {},
			want: func(s *api.EtcdBackupStatus) {
				s.Attempt, s.Name, s.Store, s.ClusterID = 1, "team-a-nightly-20261125t075000z-1a2b3c4d", bucket(), "cdf818194e3a8c32"
			},
			more:    []string{api.ConditionReconciling},
			current: kstatus.InProgressStatus,
		},
		"BeginEncrypted": {
			reason: "To whom it is encrypted does not change with the cluster while its Job runs",
			args:   func(o *Observed) { o.Cluster.Spec.Backup.Encryption = encryption() },
			want: func(s *api.EtcdBackupStatus) {
				s.Attempt, s.Name, s.Store, s.ClusterID = 1, "team-a-nightly-20261125t075000z-1a2b3c4d", bucket(), "cdf818194e3a8c32"
				s.Encryption = encryption()
			},
			more:    []string{api.ConditionReconciling},
			current: kstatus.InProgressStatus,
		},
		"BeginAgainEncrypted": {
			reason: "The cluster asks for it by now, and nothing is stored yet",
			args: all(failed("Unreachable", "no member answers"), func(o *Observed) {
				o.Take.Ended, o.Cluster.Spec.Backup.Encryption = born, encryption()
			}),
			want: func(s *api.EtcdBackupStatus) {
				s.Attempt, s.Name, s.Encryption = 2, "team-a-nightly-20261125t075000z-1a2b3c4d-2", encryption()
			},
			more:    []string{api.ConditionReconciling},
			current: kstatus.InProgressStatus,
		},
		"VerifyPlain": {
			reason: "What is stored is what it is, whatever the cluster asks for by now",
			args: all(failed("TimedOut", "etcd does not serve"), func(o *Observed) {
				o.Take.Ended, o.Backup.Status.SHA256, o.Cluster.Spec.Backup.Encryption = born, "6b86", encryption()
			}),
			want:    func(s *api.EtcdBackupStatus) { s.Attempt = 2 },
			more:    []string{api.ConditionReconciling},
			current: kstatus.InProgressStatus,
		},
		"TakeAgainEncrypted": {
			reason: "What is stored cannot be verified any more: another one is taken under another name, as the cluster asks for by now",
			args: all(failed("Evicted", "the node was drained"), func(o *Observed) {
				s := &o.Backup.Status
				s.Location, s.Member, s.EtcdVersion, s.Revision, s.Size, s.StoredSize, s.SHA256 = "gs://etcd-backups/a", "db-1", "3.6.16", 42, 24608, 1024, "6b86"
				s.StartedAt, s.TakenAt, s.Encryption = instant(born), instant(born), &api.BackupEncryption{Recipients: []api.AgeRecipient{"former"}}
				o.Take.Ended, o.Cluster.Spec.Backup.Encryption = born, encryption()
			}),
			want: func(s *api.EtcdBackupStatus) {
				*s = api.EtcdBackupStatus{
					ObservedGeneration: 1, Conditions: s.Conditions, Store: s.Store, ClusterID: s.ClusterID, Encryption: encryption(),
					Attempt: 2, Name: "team-a-nightly-20261125t075000z-1a2b3c4d-2",
				}
			},
			more:    []string{api.ConditionReconciling},
			current: kstatus.InProgressStatus,
		},
		"BeginAgain": {
			reason: "Another attempt takes another name, and the same store, whatever the cluster says by now",
			args: all(failed("Unreachable", "no member answers"), func(o *Observed) {
				o.Take.Ended, o.Cluster.Spec.Backup = born, nil
			}),
			want: func(s *api.EtcdBackupStatus) {
				s.Attempt, s.Name = 2, "team-a-nightly-20261125t075000z-1a2b3c4d-2"
			},
			more:    []string{api.ConditionReconciling},
			current: kstatus.InProgressStatus,
		},
		"VerifyAgain": {
			reason: "What is stored keeps its name",
			args: all(failed("TimedOut", "etcd does not serve"), func(o *Observed) {
				o.Take.Ended, o.Backup.Status.SHA256 = born, "6b86"
			}),
			want:    func(s *api.EtcdBackupStatus) { s.Attempt = 2 },
			more:    []string{api.ConditionReconciling},
			current: kstatus.InProgressStatus,
		},
		"Stalled": {
			reason:  "A person must act",
			args:    func(o *Observed) { o.Cluster = nil },
			want:    func(*api.EtcdBackupStatus) {},
			more:    []string{api.ConditionStalled},
			current: kstatus.FailedStatus,
		},
		"GivenUp": {
			reason: "Why is written down for good",
			args:   failed("AccessDenied", "the store refuses s3:PutObject"),
			want: func(s *api.EtcdBackupStatus) {
				s.Failure = &api.BackupFailure{Reason: "AccessDenied", Message: "no snapshot was taken: the store refuses s3:PutObject; when that is mended, make another EtcdBackup: this one is not tried again"}
			},
			more:    []string{api.ConditionStalled},
			current: kstatus.FailedStatus,
		},
		"Verified": {
			reason:  "Ready is said of what is verified alone",
			args:    verified,
			want:    func(*api.EtcdBackupStatus) {},
			current: kstatus.CurrentStatus,
		},
		"Saved": {
			reason:  "What is stored and not verified is not Ready",
			args:    saved,
			want:    func(*api.EtcdBackupStatus) {},
			more:    []string{api.ConditionReconciling},
			current: kstatus.InProgressStatus,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := fresh()
			tc.args(&o)
			step := Plan(o)
			want := *o.Backup.Status.DeepCopy()
			want.ObservedGeneration = 1
			want.Conditions = conditions(step, tc.more...)
			tc.want(&want)
			got := status(o, step)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			o.Backup.Status = got
			if again := status(o, step); step.Action != Begin && !cmp.Equal(got, again) {
				t.Errorf("%s: a second look at the same differs: -first +second:\n%s", tc.reason, cmp.Diff(got, again))
			}
			raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.Backup)
			if err != nil {
				t.Fatal(err)
			}
			judged, err := kstatus.Compute(&unstructured.Unstructured{Object: raw})
			if err != nil {
				t.Fatal(err)
			}
			if judged.Status != tc.current {
				t.Errorf("%s: kstatus: want %s, got %s: %s", tc.reason, tc.current, judged.Status, judged.Message)
			}
		})
	}
}

func TestRecord(t *testing.T) {
	t.Parallel()
	stored := &podstatus.Manifest{
		Name: "team-a-nightly-20261125t075000z-1a2b3c4d", ClusterID: "cdf818194e3a8c32", Member: "db-1", EtcdVersion: "3.6.16", Revision: 42,
		Object: "team-a-nightly-20261125t075000z-1a2b3c4d.db.zst", Size: 24608, SHA256: "6b86", StoredSize: 1024,
		StartedAt: born.Add(500 * time.Millisecond), TakenAt: born.Add(2 * time.Second),
	}
	recorded := func(s *api.EtcdBackupStatus) {
		s.Location = "gs://etcd-backups/team-a-nightly-20261125t075000z-1a2b3c4d.db.zst"
		s.Member, s.EtcdVersion, s.Revision, s.Size, s.StoredSize, s.SHA256 = "db-1", "3.6.16", 42, 24608, 1024, "6b86"
		s.StartedAt, s.TakenAt = instant(born), instant(born.Add(2*time.Second))
	}
	other := *stored
	other.Name += "-2"
	cases := map[string]struct {
		reason string
		args   Result
		want   func(*api.EtcdBackupStatus)
	}{
		"Nothing": {
			reason: "Nothing has ended",
			want:   func(*api.EtcdBackupStatus) {},
		},
		"Saved": {
			reason: "What the manifest says",
			args:   Result{Manifest: stored},
			want:   recorded,
		},
		"Verified": {
			reason: "And when it was found to be good",
			args:   Result{Manifest: stored, Verified: born.Add(time.Minute)},
			want: func(s *api.EtcdBackupStatus) {
				recorded(s)
				s.VerifiedAt = instant(born.Add(time.Minute))
			},
		},
		"OtherName": {
			reason: "A manifest of another snapshot is not this one's",
			args:   Result{Manifest: &other, Verified: born},
			want:   func(*api.EtcdBackupStatus) {},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := fresh()
			begun(&o)
			got, want := o.Backup.Status, *o.Backup.Status.DeepCopy()
			record(&got, tc.args)
			tc.want(&want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
