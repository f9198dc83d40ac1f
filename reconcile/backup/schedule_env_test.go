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

// TestSchedule: three hours pass. One EtcdBackup is made at a time, each once, and the retention
// keeps the last good one.
func TestSchedule(t *testing.T) {
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
	hour := schedule.CreationTimestamp.Truncate(time.Hour)
	first, second, third := schedule.BackupName(hour.Add(time.Hour)), schedule.BackupName(hour.Add(2*time.Hour)), schedule.BackupName(hour.Add(3*time.Hour))
	steps := []struct {
		reason string
		at     time.Time
		ends   string // the EtcdBackup that is verified before
		want   []string
	}{
		{reason: "It is not time yet", at: schedule.CreationTimestamp.Time},
		{reason: "It is time", at: hour.Add(time.Hour), want: []string{first}},
		{reason: "Once", at: hour.Add(time.Hour + time.Minute), want: []string{first}},
		{reason: "The first still runs", at: hour.Add(2 * time.Hour), want: []string{first}},
		{reason: "When it has ended the next one is late, and made", at: hour.Add(2*time.Hour + time.Minute), ends: first, want: []string{first, second}},
		{reason: "The last good one alone is kept, and what runs", at: hour.Add(3 * time.Hour), ends: second, want: []string{second, third}},
	}
	operators := []*backup.Scheduler{s.scheduler(), s.scheduler()} // leader election is no fence
	for _, step := range steps {
		if step.ends != "" {
			s.verify(step.ends)
		}
		for _, r := range append(operators, operators...) {
			r.Now = func() time.Time { return step.at }
			if _, err := r.Reconcile(s.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(schedule)}); err != nil {
				s.Fatal(err)
			}
		}
		if diff := cmp.Diff(step.want, s.scheduled(schedule)); diff != "" {
			s.Fatalf("%s: -want +got:\n%s", step.reason, diff)
		}
	}
	if err := s.Get(s.Context(), client.ObjectKeyFromObject(schedule), schedule); err != nil {
		s.Fatal(err)
	}
	if got := schedule.Status; got.Active != third || got.LastSuccessfulTime == nil || !got.LastScheduleTime.Equal(&metav1.Time{Time: hour.Add(3 * time.Hour)}) {
		s.Errorf("status: %+v", got)
	}
	if err := s.Delete(s.Context(), schedule); err != nil {
		s.Fatal(err)
	}
	if diff := cmp.Diff([]string{second, third}, s.scheduled(schedule)); diff != "" {
		s.Errorf("its EtcdBackups stay: -want +got:\n%s", diff)
	}
	for _, name := range s.scheduled(schedule) {
		b := &api.EtcdBackup{}
		if err := s.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, b); err != nil || len(b.OwnerReferences) > 0 {
			s.Errorf("%s would be collected: %v %v", name, b.OwnerReferences, err)
		}
	}
}

func (s *stage) scheduler() *backup.Scheduler {
	return &backup.Scheduler{Client: s, Reader: s, Recorder: events.NewFakeRecorder(100)}
}

// scheduled are the EtcdBackups of a schedule, by name.
func (s *stage) scheduled(of *api.EtcdBackupSchedule) []string {
	s.Helper()
	list := &api.EtcdBackupList{}
	if err := s.List(s.Context(), list, client.InNamespace(s.ns), client.MatchingLabels{api.LabelSchedule: of.Name}); err != nil {
		s.Fatal(err)
	}
	var names []string
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// verify takes an EtcdBackup to its good end.
func (s *stage) verify(name string) {
	s.Helper()
	r := s.operator(s)
	b := &api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
	s.settle(r, b)
	s.says(s.pod(name), corev1.PodSucceeded, map[string]string{
		"save": manifestOf(s.T, b, false), "fetch": "{}", "restore": "{}", "etcd": "", "verify": manifestOf(s.T, b, true),
	})
	s.ended(name, batchv1.JobComplete)
	s.settle(r, b)
	if !is(b, api.ConditionReady, api.ReasonVerified) {
		s.Fatalf("%s: %+v", name, b.Status)
	}
}
