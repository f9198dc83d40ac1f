package restore

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
)

var born = time.Date(2026, 11, 25, 7, 50, 0, 0, time.UTC)

func instant(t time.Time) *metav1.Time { return new(metav1.NewTime(t)) }

// fresh is an EtcdRestore a moment after it was made, of a cluster that has formed.
func fresh() Observed {
	e := &api.EtcdRestore{ObjectMeta: metav1.ObjectMeta{Name: "back", Namespace: "team-a", UID: "restore", Generation: 1, CreationTimestamp: metav1.NewTime(born)}}
	e.Spec.ClusterRef.Name = "db"
	e.Status.ObservedGeneration = -1
	c := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "team-a", UID: "cluster"}}
	c.Status.ClusterID = "cdf818194e3a8c32"
	return Observed{Restore: e, Cluster: c, Patience: time.Minute, Now: born.Add(time.Second)}
}

// monday is the snapshot.
func monday() *api.RestoredSnapshot {
	return &api.RestoredSnapshot{Name: "db-monday", SHA256: "5a", Revision: 42}
}

// carried has the cluster carry it out, in that phase.
func carried(phase api.RestorePhase, message string) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Status.Restore = &api.ClusterRestore{Name: "back", UID: "restore", Phase: phase, Message: message}
	}
}

// plan is what the cluster would do.
func plan() *api.RestorePlan {
	return &api.RestorePlan{
		PlannedAt: *instant(born), From: *monday(), Lost: "writes after revision 42", SetAside: []string{"db-0", "db-1"},
		FormerVolumes: api.RetentionRetain, NewMembers: []string{"db-3", "db-4", "db-5"}, ClosedService: "db-client",
	}
}

// told has the plan, and whether the EtcdRestore is suspended.
func told(suspend bool, change ...func(*api.RestorePlan)) func(*Observed) {
	return func(o *Observed) {
		o.Restore.Spec.Suspend = suspend
		o.Cluster.Status.Restore.Plan = plan()
		for _, c := range change {
			c(o.Cluster.Status.Restore.Plan)
		}
	}
}

// restoring has stopped the members of before.
func restoring(conditions ...metav1.Condition) func(*Observed) {
	return func(o *Observed) {
		carried(api.RestoreRestoring, "")(o)
		s := &o.Cluster.Status
		s.Restore.FormerClusterID, s.Restore.StartedAt = "cdf818194e3a8c32", instant(born)
		s.ClusterID, s.Restored, s.Conditions = "", monday(), conditions
	}
}

// completed is carried out, as the cluster has it.
func done(o *Observed) {
	restoring()(o)
	s := &o.Cluster.Status
	s.Restore.Phase, s.Restore.CompletedAt, s.ClusterID = api.RestoreCompleted, instant(born.Add(time.Minute)), "e2f4"
	s.CarriedOut = []string{"back"}
}

// formed is carried out, and clients cannot come yet.
func formed(conditions ...metav1.Condition) func(*Observed) {
	return func(o *Observed) {
		done(o)
		o.Cluster.Status.Restore.CompletedAt, o.Cluster.Status.Conditions = nil, conditions
	}
}

// another restore of the same cluster has that phase.
func another(phase api.RestorePhase) func(*Observed) {
	return func(o *Observed) {
		o.Cluster.Status.Restore = &api.ClusterRestore{Name: "other", UID: "other", Phase: phase}
	}
}

// backup is referred to; nil: there is none.
func backup(change func(*api.EtcdBackup)) func(*Observed) {
	return func(o *Observed) {
		o.Restore.Spec.Source.BackupRef = &api.BackupReference{Name: "monday"}
		if change != nil {
			o.Backup = &api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "monday", Namespace: "team-a"}}
			change(o.Backup)
		}
	}
}

func late(o *Observed) { o.Now = born.Add(time.Hour) }

func all(each ...func(*Observed)) func(*Observed) {
	return func(o *Observed) {
		for _, change := range each {
			change(o)
		}
	}
}

// TestStatus holds every word that is said of a restore, and what kstatus makes of it.
func TestStatus(t *testing.T) {
	t.Parallel()
	const (
		noCluster  = "there is no EtcdCluster db in this namespace: create it, or create another EtcdRestore with the right spec.clusterRef.name"
		noBackup   = "there is no EtcdBackup monday in this namespace: create another EtcdRestore with the right spec.source.backupRef.name, or with spec.source.snapshot"
		unverified = "EtcdBackup monday is not verified: its conditions say what it waits for"
		begins     = "waiting for EtcdCluster db to begin with it"
		behind     = "waiting for EtcdRestore other of the same cluster to end, or to be deleted"
		looking    = "looking for the snapshot; the cluster goes on meanwhile"
		carriedOut = "an EtcdRestore of this name was carried out or refused before, and none is carried out twice: give it another name"
		twice      = "it had begun when the EtcdCluster was deleted, or its status was lost, and none is begun twice: delete it, and apply another one with another name, if the cluster is still to be restored. What to do with volumes that it had set aside: docs/restore.md#when-the-etcdcluster-is-deleted-midway"
		restored   = "the cluster was restored from snapshot db-monday; the volumes of its former members are kept: delete the PersistentVolumeClaims that have the annotation etcd.quorate.dev/set-aside once nothing on them is wanted"
	)
	started := func(s *api.EtcdRestoreStatus) {
		s.StartedAt, s.FormerClusterID, s.Restored = instant(born), "cdf818194e3a8c32", monday()
	}
	ended := func(s *api.EtcdRestoreStatus) {
		started(s)
		s.CompletedAt, s.ClusterID = instant(born.Add(time.Minute)), "e2f4"
	}
	unreached := func(s *api.EtcdRestoreStatus) { started(s); s.ClusterID = "e2f4" }
	type want struct {
		kind    string // of the condition beside Ready; empty: none, since it is ready, or rests
		reason  string
		message string
		after   time.Duration
		kstatus kstatus.Status
	}
	reconciling := func(message string) want {
		return want{api.ConditionReconciling, api.ReasonRestoring, message, 0, kstatus.InProgressStatus}
	}
	stalled := func(reason, message string) want {
		return want{api.ConditionStalled, reason, message, 0, kstatus.FailedStatus}
	}
	patient := func(reason, message string) want {
		return want{api.ConditionReconciling, reason, message, 59 * time.Second, kstatus.InProgressStatus}
	}
	suspended := func(what, aside string) want {
		return want{"", api.ReasonSuspended, "suspended: nothing is changed yet. Without spec.suspend, " + what + " is restored into new members db-3, db-4, db-5, and " + aside +
			`. Lost at most: writes after revision 42. The whole plan is in status.plan. To carry it out: kubectl -n team-a patch etcdrestore back --type=merge --patch='{"spec":{"suspend":false}}'`, 0, kstatus.InProgressStatus}
	}
	planned := func(s *api.EtcdRestoreStatus) { s.Plan = plan() }
	ready := func(message string) want { return want{"", api.ReasonRestored, message, 0, kstatus.CurrentStatus} }
	wasRefused := func(o *Observed) {
		o.Restore.Status.Conditions = []metav1.Condition{{Type: api.ConditionReady, Status: metav1.ConditionFalse, Reason: api.ReasonRestoreRefused, Message: "the cluster serves"}}
	}
	wasBegun := func(o *Observed) { started(&o.Restore.Status) }
	wasFormed := func(o *Observed) { unreached(&o.Restore.Status) }
	wasCompleted := func(o *Observed) { ended(&o.Restore.Status) }
	cases := map[string]struct {
		reason string
		args   func(*Observed)
		want   want
		record func(*api.EtcdRestoreStatus)
	}{
		"Fresh":            {reason: "the cluster has yet to see it", args: func(*Observed) {}, want: reconciling(begins)},
		"NoCluster":        {reason: "it may come in the same commit", args: func(o *Observed) { o.Cluster = nil }, want: patient(api.ReasonClusterNotFound, noCluster)},
		"NoClusterForLong": {reason: "a person must act", args: all(func(o *Observed) { o.Cluster = nil }, late), want: stalled(api.ReasonClusterNotFound, noCluster)},
		"ClusterGoing":     {reason: "it is as good as gone", args: func(o *Observed) { o.Cluster.DeletionTimestamp = instant(born) }, want: patient(api.ReasonClusterNotFound, noCluster)},
		"NoBackup":         {reason: "it may come in the same commit", args: backup(nil), want: patient(api.ReasonRestoreFailed, noBackup)},
		"NoBackupForLong":  {reason: "a person must act", args: all(backup(nil), late), want: stalled(api.ReasonRestoreFailed, noBackup)},
		"BackupUnverified": {reason: "it takes its time, and is watched", args: all(backup(func(*api.EtcdBackup) {}), late), want: reconciling(unverified)},
		"BackupFailed":     {reason: "it never will be", args: all(backup(func(b *api.EtcdBackup) { b.Status.Failure = &api.BackupFailure{Reason: "AccessDenied"} }), late), want: stalled(api.ReasonRestoreFailed, unverified)},
		"BackupVerified":   {reason: "then it is the turn of the cluster", args: backup(func(b *api.EtcdBackup) { b.Status.VerifiedAt = instant(born) }), want: reconciling(begins)},
		"Behind":           {reason: "one at a time", args: another(api.RestorePending), want: reconciling(behind)},
		"BehindBlocked":    {reason: "one that cannot be begun is to be deleted", args: another(api.RestoreBlocked), want: reconciling(behind)},
		"BehindRestoring":  {reason: "one at a time", args: another(api.RestoreRestoring), want: reconciling(behind)},
		"BehindReverting":  {reason: "one at a time", args: another(api.RestoreReverting), want: reconciling(behind)},
		"AfterAnother":     {reason: "what has ended holds up nothing", args: another(api.RestoreCompleted), want: reconciling(begins)},
		"AfterRefused":     {reason: "what was refused holds up nothing", args: another(api.RestoreRefused), want: reconciling(begins)},
		"CarriedOut":       {reason: "its name is used up", args: func(o *Observed) { o.Cluster.Status.CarriedOut = []string{"back"} }, want: stalled(api.ReasonCarriedOut, carriedOut)},
		"Pending":          {reason: "nothing is against it", args: carried(api.RestorePending, ""), want: reconciling(looking)},
		"PendingLately":    {reason: "something is that passes", args: carried(api.RestorePending, "the cluster served a moment ago"), want: reconciling("the cluster served a moment ago")},
		"SuspendedEarly":   {reason: "its snapshot is looked for", args: all(carried(api.RestorePending, ""), func(o *Observed) { o.Restore.Spec.Suspend = true }), want: reconciling(looking)},
		"Suspended":        {reason: "a person looks at the plan, and goes on when it is right", args: all(carried(api.RestorePending, ""), told(true)), want: suspended("snapshot db-monday", "the volumes of db-0, db-1 are set aside"), record: planned},
		"SuspendedSurvivor": {
			reason: "what a member has is restored, and every other volume is gone", args: all(carried(api.RestorePending, ""), told(true, func(p *api.RestorePlan) { p.From.Name, p.SetAside = "member/db-1", nil })),
			want: suspended("the data of db-1", "there are no volumes to set aside"), record: func(s *api.EtcdRestoreStatus) { planned(s); s.Plan.From.Name, s.Plan.SetAside = "member/db-1", nil },
		},
		"SuspendedWaits":     {reason: "nor would it begin without that", args: all(carried(api.RestorePending, "the cluster served a moment ago"), told(true)), want: reconciling("the cluster served a moment ago"), record: planned},
		"SuspendedBlocked":   {reason: "first a person must put something right", args: all(carried(api.RestoreBlocked, "no room"), told(true)), want: stalled(api.ReasonRestoreFailed, "no room"), record: planned},
		"Resumed":            {reason: "the plan stays in sight", args: all(carried(api.RestorePending, ""), told(false)), want: reconciling(looking), record: planned},
		"SuspendedTooLate":   {reason: "what has begun goes on", args: all(restoring(), told(true)), want: reconciling("the former members are being stopped"), record: func(s *api.EtcdRestoreStatus) { started(s); planned(s) }},
		"CompletedAsPlanned": {reason: "the plan is part of the record", args: all(done, told(false)), want: ready(restored), record: func(s *api.EtcdRestoreStatus) { ended(s); planned(s) }},
		"Blocked":            {reason: "a person must act", args: carried(api.RestoreBlocked, "spec.suspend is true"), want: stalled(api.ReasonRestoreFailed, "spec.suspend is true")},
		"Refused":            {reason: "for good", args: all(carried(api.RestoreRefused, "the cluster serves"), func(o *Observed) { o.Cluster.Status.CarriedOut = []string{"back"} }), want: stalled(api.ReasonRestoreRefused, "the cluster serves")},
		"RefusedBefore":      {reason: "so it stays when another one is carried out", args: all(wasRefused, another(api.RestorePending), func(o *Observed) { o.Cluster.Status.CarriedOut = []string{"back"} }), want: stalled(api.ReasonRestoreRefused, "the cluster serves")},
		"RefusedAndGone":     {reason: "and when the cluster is gone", args: all(wasRefused, func(o *Observed) { o.Cluster = nil }), want: stalled(api.ReasonRestoreRefused, "the cluster serves")},
		"Restoring":          {reason: "the cluster has not said more yet", args: restoring(), want: reconciling("the former members are being stopped"), record: started},
		"RestoringSaid":      {reason: "what the cluster waits for", args: restoring(metav1.Condition{Type: api.ConditionReady, Reason: "Bootstrapping", Message: "starting the first members"}), want: reconciling("starting the first members"), record: started},
		"RestoringStalled":   {reason: "what a person must do", args: restoring(metav1.Condition{Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: api.ReasonPodPending, Message: "the snapshot is damaged"}), want: stalled(api.ReasonPodPending, "the snapshot is damaged"), record: started},
		"RestoringAndGoing":  {reason: "nothing more is said by a cluster that goes", args: all(restoring(), func(o *Observed) { o.Cluster.DeletionTimestamp = instant(born) }), want: reconciling("the former members are being stopped"), record: started},
		"Completed":          {reason: "clients can come", args: done, want: ready(restored), record: ended},
		"Formed":             {reason: "the cluster has formed, and the Service leads to no member yet", args: formed(metav1.Condition{Type: api.ConditionReady, Reason: "Starting", Message: "the members serve"}), want: reconciling("the members serve"), record: unreached},
		"FormedStalled":      {reason: "a person must act before clients can come", args: formed(metav1.Condition{Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: api.ReasonPodsNotReady, Message: "a container beside etcd"}), want: stalled(api.ReasonPodsNotReady, "a container beside etcd"), record: unreached},
		"FormedAndAnother":   {reason: "another one was begun before clients could come: this one was carried out", args: all(wasFormed, another(api.RestorePending), func(o *Observed) { o.Cluster.Status.CarriedOut = []string{"back"} }), want: ready(restored), record: unreached},
		"FormedAndGone":      {reason: "so it was when the cluster is gone", args: all(wasFormed, func(o *Observed) { o.Cluster = nil }), want: ready(restored), record: unreached},
		"BegunAndGone":       {reason: "the EtcdCluster was deleted midway", args: all(wasBegun, func(o *Observed) { o.Cluster = nil }), want: stalled(api.ReasonCarriedOut, twice), record: started},
		"BegunAndNew":        {reason: "and applied again: it is not begun twice", args: wasBegun, want: stalled(api.ReasonCarriedOut, twice), record: started},
		"CarriedOutBefore": {
			reason: "the EtcdCluster that knew its name was deleted, and applied again", args: func(o *Observed) {
				o.Restore.Status.Conditions = []metav1.Condition{{Type: api.ConditionReady, Status: metav1.ConditionFalse, Reason: api.ReasonCarriedOut, Message: carriedOut}}
			}, want: stalled(api.ReasonCarriedOut, carriedOut),
		},
		"OnLoss": {
			reason: "of this EtcdCluster", args: func(o *Observed) { o.Restore.Labels = map[string]string{api.LabelQuorumLoss: "cluster"} }, want: reconciling(begins),
		},
		"OnLossOfAnother": {
			reason: "what an earlier EtcdCluster of this name had lost says nothing about this one", args: func(o *Observed) { o.Restore.Labels = map[string]string{api.LabelQuorumLoss: "earlier"} },
			want: stalled(api.ReasonClusterNotFound, "Quorate created it for an EtcdCluster of this name that was deleted since, and it is never begun: delete it"),
		},
		"CompletedBefore":  {reason: "a record stays as it is", args: all(wasCompleted, another(api.RestoreRestoring)), want: ready(restored), record: ended},
		"CompletedAndGone": {reason: "whatever becomes of the cluster", args: all(wasCompleted, func(o *Observed) { o.Cluster = nil }), want: ready(restored), record: ended},
		"CompletedFirst":   {reason: "there was no cluster ID of before, nor a snapshot that is known", args: all(done, func(o *Observed) { o.Cluster.Status.Restored, o.Cluster.Status.Restore.FormerClusterID = nil, "" }), want: ready("the cluster was restored; the volumes of its former members are kept: delete the PersistentVolumeClaims that have the annotation etcd.quorate.dev/set-aside once nothing on them is wanted"), record: func(s *api.EtcdRestoreStatus) { ended(s); s.Restored, s.FormerClusterID = nil, "" }},
		"CompletedDelete": {
			reason: "what becomes of the volumes, also where another one comes before that",
			args:   all(wasCompleted, func(o *Observed) { o.Restore.Spec.FormerVolumes = api.RetentionDelete }),
			want: ready("the cluster was restored from snapshot db-monday; the volumes of its former members are deleted once all members are healthy. " +
				"Those that are left when another EtcdRestore is applied are kept: docs/restore.md#what-is-left-over"),
			record: ended,
		},
		"AnotherOfItsName":   {reason: "the cluster carries out one that was deleted, and had its name", args: all(restoring(), func(o *Observed) { o.Cluster.Status.Restore.UID = "earlier" }), want: reconciling("waiting for EtcdRestore back of the same cluster to end, or to be deleted")},
		"SourceOfAnyCluster": {reason: "a snapshot of another cluster is a source as well", args: func(o *Observed) { o.Restore.Spec.Source.Cluster = "prod/db" }, want: reconciling(begins)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := fresh()
			tc.args(&o)
			want := *o.Restore.Status.DeepCopy()
			want.ObservedGeneration = 1
			if tc.record != nil {
				tc.record(&want)
			}
			value := metav1.ConditionFalse
			if tc.want.kstatus == kstatus.CurrentStatus {
				value = metav1.ConditionTrue
			}
			condition := func(kind string, value metav1.ConditionStatus) metav1.Condition {
				return metav1.Condition{Type: kind, Status: value, Reason: tc.want.reason, Message: tc.want.message, ObservedGeneration: 1}
			}
			want.Conditions = []metav1.Condition{condition(api.ConditionReady, value)}
			if tc.want.kind != "" {
				want.Conditions = append(want.Conditions, condition(tc.want.kind, metav1.ConditionTrue))
			}
			got, after := status(o)
			if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if after != tc.want.after {
				t.Errorf("%s: want another look after %s, got %s", tc.reason, tc.want.after, after)
			}
			o.Restore.Status = got
			if again, _ := status(o); !cmp.Equal(got, again) {
				t.Errorf("%s: a second look at the same differs: -first +second:\n%s", tc.reason, cmp.Diff(got, again))
			}
			raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o.Restore)
			if err != nil {
				t.Fatal(err)
			}
			judged, err := kstatus.Compute(&unstructured.Unstructured{Object: raw})
			if err != nil {
				t.Fatal(err)
			}
			if judged.Status != tc.want.kstatus {
				t.Errorf("%s: kstatus: want %s, got %s: %s", tc.reason, tc.want.kstatus, judged.Status, judged.Message)
			}
		})
	}
}

// TestUnseen: before the first look nothing takes it for done.
func TestUnseen(t *testing.T) {
	t.Parallel()
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(fresh().Restore)
	if err != nil {
		t.Fatal(err)
	}
	judged, err := kstatus.Compute(&unstructured.Unstructured{Object: raw})
	if err != nil {
		t.Fatal(err)
	}
	if judged.Status != kstatus.InProgressStatus {
		t.Errorf("want %s, got %s: %s", kstatus.InProgressStatus, judged.Status, judged.Message)
	}
}
