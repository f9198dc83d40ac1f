//go:build env

package backup_test

import (
	"strings"
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

// TestScheduleNeeded: a snapshot that an EtcdRestore names stays as long as that has yet to read
// it, whatever the retention says.
func TestScheduleNeeded(t *testing.T) {
	s := newStage(t)
	s.formed("db")
	schedule := &api.EtcdBackupSchedule{
		ObjectMeta: metav1.ObjectMeta{Name: "hourly", Namespace: s.ns},
		Spec: api.EtcdBackupScheduleSpec{
			ClusterRef: api.ClusterReference{Name: "db"}, Schedule: "0 * * * *", Retention: &api.BackupRetention{Last: 1},
			Template: api.BackupTemplate{Spec: api.BackupTemplateSpec{DeletionPolicy: api.RetentionRetain}},
		},
	}
	restore := &api.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "back", Namespace: s.ns}, Spec: api.EtcdRestoreSpec{ClusterRef: api.ClusterReference{Name: "db"}, Suspend: true}}
	for _, o := range []client.Object{schedule, restore} {
		if err := s.Create(s.Context(), o); err != nil {
			s.Fatal(err)
		}
	}
	hour := schedule.CreationTimestamp.Truncate(time.Hour)
	r := s.scheduler()
	look := func(hours int) {
		s.Helper()
		r.Now = func() time.Time { return hour.Add(time.Duration(hours) * time.Hour) }
		if _, err := r.Reconcile(s.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(schedule)}); err != nil {
			s.Fatal(err)
		}
	}
	var made []string
	for n := range 3 {
		made = append(made, schedule.BackupName(hour.Add(time.Duration(n+1)*time.Hour)))
		look(n + 1)
		s.verify(made[n])
		if n == 0 {
			s.planned(restore, made[0])
		}
	}
	look(3)
	if diff := cmp.Diff([]string{made[0], made[2]}, s.scheduled(schedule)); diff != "" {
		s.Fatalf("while the plan of an EtcdRestore names the first: -want +got:\n%s", diff)
	}
	s.planned(restore, "")
	if err := s.Delete(s.Context(), restore); err != nil {
		s.Fatal(err)
	}
	look(3)
	if diff := cmp.Diff([]string{made[2]}, s.scheduled(schedule)); diff != "" {
		s.Errorf("when that is deleted: -want +got:\n%s", diff)
	}
}

// planned has the cluster say that an EtcdRestore waits with a plan to restore the snapshot of an
// EtcdBackup; with an empty name, that it carries out none.
func (s *stage) planned(e *api.EtcdRestore, name string) {
	s.Helper()
	b, c := &api.EtcdBackup{}, &api.EtcdCluster{}
	if err := s.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: "db"}, c); err != nil {
		s.Fatal(err)
	}
	c.Status.Restore = nil
	if name != "" {
		if err := s.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, b); err != nil {
			s.Fatal(err)
		}
		c.Status.Restore = &api.ClusterRestore{Name: e.Name, UID: string(e.UID), Phase: api.RestorePending, Plan: &api.RestorePlan{
			PlannedAt: metav1.Now(), Lost: "a little", FormerVolumes: api.RetentionRetain, ClosedService: "db-client",
			From: api.RestoredSnapshot{Name: b.Status.Name, SHA256: strings.Repeat("5a", 32)},
		}}
	}
	if err := s.Status().Update(s.Context(), c); err != nil {
		s.Fatal(err)
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
