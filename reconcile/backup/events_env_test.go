//go:build env

package backup_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/backup"
)

// told are the events of a recorder since it was asked last.
func told(t *testing.T, recorder events.EventRecorder) (all []string) {
	t.Helper()
	for {
		select {
		case event := <-recorder.(*events.FakeRecorder).Events:
			all = append(all, event)
		default:
			return all
		}
	}
}

// TestEvents: each thing that comes about is told once, as an event of the EtcdBackup.
func TestEvents(t *testing.T) {
	t.Parallel()
	passes := func(s *stage, r *backup.Reconciler, b *api.EtcdBackup) {
		pod := s.pod("nightly")
		s.says(pod, corev1.PodPending, map[string]string{"save": manifestOf(s.T, b, false)})
		s.settle(r, b)
		s.says(pod, corev1.PodSucceeded, map[string]string{"save": manifestOf(s.T, b, false), "fetch": "{}", "restore": "{}", "etcd": "", "verify": manifestOf(s.T, b, true)})
		s.ended("nightly", batchv1.JobComplete)
	}
	fails := func(reason, message string) func(*stage, *backup.Reconciler, *api.EtcdBackup) {
		return func(s *stage, _ *backup.Reconciler, _ *api.EtcdBackup) {
			s.says(s.pod("nightly"), corev1.PodFailed, map[string]string{"save": `{"error": {"reason": "` + reason + `", "message": "` + message + `"}}`})
			s.ended("nightly", batchv1.JobFailed)
		}
	}
	cases := map[string]struct {
		reason string
		policy api.RetentionPolicy
		args   func(*stage, *backup.Reconciler, *api.EtcdBackup) // the first attempt
		goes   func(*stage, *backup.Reconciler, *api.EtcdBackup) // it is deleted then
		want   func(*api.EtcdBackup) []string
	}{
		"Verified": {
			reason: "that it was begun, stored and verified",
			args:   passes,
			want: func(b *api.EtcdBackup) []string {
				return []string{
					"Normal Saving Created Job nightly",
					"Normal Saved Stored persistentvolumeclaim://backups/" + b.Status.Name + ".db.zst from member db-0 at revision 42",
					"Normal Verified Verified snapshot " + b.Status.Name,
				}
			},
		},
		"GivenUp": {
			reason: "why there is no further attempt, as a warning",
			args:   fails("AccessDenied", "the store refuses s3:PutObject"),
			want: func(*api.EtcdBackup) []string {
				return []string{
					"Normal Saving Created Job nightly",
					"Warning AccessDenied Gave up: no snapshot was taken: the store refuses s3:PutObject; when that is mended, make another EtcdBackup: this one is not tried again",
				}
			},
		},
		"Retrying": {
			reason: "what is tried again is no end: the condition tells of it",
			args:   fails("Unreachable", "no member answers"),
			want:   func(*api.EtcdBackup) []string { return []string{"Normal Saving Created Job nightly"} },
		},
		"Deleted": {
			reason: "that what it has stored is deleted with it",
			policy: api.RetentionDelete,
			args:   passes,
			goes: func(s *stage, r *backup.Reconciler, b *api.EtcdBackup) {
				s.settle(r, b)
				s.says(s.pod("nightly-delete"), corev1.PodSucceeded, map[string]string{"delete": "{}"})
				s.ended("nightly-delete", batchv1.JobComplete)
			},
			want: func(b *api.EtcdBackup) []string {
				return []string{
					"Normal Saving Created Job nightly",
					"Normal Saved Stored persistentvolumeclaim://backups/" + b.Status.Name + ".db.zst from member db-0 at revision 42",
					"Normal Verified Verified snapshot " + b.Status.Name,
					"Normal Deleting Created Job nightly-delete",
					"Normal SnapshotDeleted deleted the snapshot " + b.Status.Name + " in the store",
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			r := s.operator(s)
			s.formed("db")
			b := s.backup("nightly", "db", tc.policy)
			s.settle(r, b)
			tc.args(s, r, b)
			s.settle(r, b)
			last := b.DeepCopy()
			if tc.goes != nil {
				if err := s.Delete(s.Context(), b); err != nil {
					s.Fatal(err)
				}
				tc.goes(s, r, b)
				s.settle(r, b)
			}
			if diff := cmp.Diff(tc.want(last), told(t, r.Recorder)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			s.settle(r, b)
			if again := told(t, r.Recorder); len(again) > 0 {
				t.Errorf("%s: told again: %v", tc.reason, again)
			}
		})
	}
}

// TestScheduleEvents: a schedule tells of each EtcdBackup that it makes and deletes, once.
func TestScheduleEvents(t *testing.T) {
	s := newStage(t)
	s.formed("db")
	schedule := &api.EtcdBackupSchedule{
		ObjectMeta: metav1.ObjectMeta{Name: "hourly", Namespace: s.ns},
		Spec: api.EtcdBackupScheduleSpec{
			ClusterRef: api.ClusterReference{Name: "db"}, Schedule: "0 * * * *", Retention: &api.BackupRetention{Last: 1},
			Template: api.BackupTemplate{Spec: api.BackupTemplateSpec{DeletionPolicy: api.RetentionRetain}},
		},
	}
	if err := s.Create(s.Context(), schedule); err != nil {
		s.Fatal(err)
	}
	r := s.scheduler()
	hour := schedule.CreationTimestamp.Truncate(time.Hour)
	var made []string
	for n := range 2 {
		at := hour.Add(time.Duration(n+1) * time.Hour)
		r.Now = func() time.Time { return at }
		name := schedule.BackupName(at)
		made = append(made, name)
		for look := range 4 {
			if look == 2 {
				s.verify(name)
			}
			if _, err := r.Reconcile(s.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(schedule)}); err != nil {
				s.Fatal(err)
			}
		}
	}
	want := []string{
		"Normal Scheduled Created EtcdBackup " + made[0],
		"Normal Scheduled Created EtcdBackup " + made[1],
		"Normal Pruned Deleted EtcdBackup " + made[0] + ", which spec.retention does not keep",
	}
	if diff := cmp.Diff(want, told(t, r.Recorder)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
