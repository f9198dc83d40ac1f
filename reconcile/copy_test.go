package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// fromMember restores from what the only member has that is left.
func fromMember(r *api.ClusterRestore) { r.Survivor = &api.Survivor{} }

// copyingTo is a cluster that goes on with the data of db-1, and what was seen of it once db-3 has
// a volume.
func copyingTo() (*api.EtcdCluster, observed) {
	c := newCluster()
	c.Status.FirstOrdinal, c.Status.NextOrdinal = 3, 4
	c.Status.Restored = &api.RestoredSnapshot{Name: "member/db-1", SHA256: "claim-of-db-1", ClusterID: "c0", EtcdVersion: "3.6.16"}
	c.Status.Restore = inPhase(api.RestoreRestoring, begun, fromMember)
	seen := observed{pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{"db-3": newClaim("db-3")}}
	seen.InPlace = inPlace(c, limits{})
	seen.Snapshot = snapshotFacts(c.Status.Restored)
	seen.Instances = []membership.Instance{{Name: "db-3", Ordinal: 3, Volume: membership.Volume{
		UID: "claim-of-db-3", First: membership.First{Token: "restore", Size: 1, Base: 3, Snapshot: "claim-of-db-1 member/db-1"},
	}}}
	return c, seen
}

// copyJobOf is the Job that copies, as an API server has it.
func copyJobOf(t *testing.T, c *api.EtcdCluster, seen observed) *batchv1.Job {
	t.Helper()
	want, err := (&Reconciler{AgentImage: agentImage}).copyJob(c, seen, membership.Step{First: seen.Instances[0].Volume.First}, "db-3")
	if err != nil {
		t.Fatal(err)
	}
	job := ownedBy("cluster", &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "db-copy", Namespace: "ns", UID: "job", ResourceVersion: "5", CreationTimestamp: metav1.Now()}})
	job.Annotations = want.Annotations
	return job
}

// copier is its Pod, of an hour ago, of which one container has ended with that code and said that.
func copier(container string, code int32, said string) corev1.Pod {
	pod := *searcher(code, said)
	pod.Name = "db-copy-x"
	pod.Status.ContainerStatuses[0].Name = container
	return pod
}

// TestCopyFacts: what a Job and its Pods tell of a copy.
func TestCopyFacts(t *testing.T) {
	t.Parallel()
	const failed = `{"error":{"message":"the volume of the first member has other data, and nothing is written over"}}`
	now := time.Now()
	overdue := now.Add(-time.Minute)
	job := func(age time.Duration, succeeded int32) *batchv1.Job {
		j := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "db-copy", Namespace: "ns", CreationTimestamp: metav1.NewTime(now.Add(-age))}}
		j.Status.Succeeded = succeeded
		return j
	}
	succeeded := copier(render.ContainerCopy, 0, "")
	succeeded.Status.Phase = corev1.PodSucceeded
	waits := copier(render.ContainerInstall, 0, "")
	waits.Status.ContainerStatuses = nil
	waits.Status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name: render.ContainerInstall, Image: agentImage, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"}},
	}}
	young := *waits.DeepCopy()
	young.CreationTimestamp = metav1.NewTime(now)
	again := copier(render.ContainerCopy, 1, failed)
	again.Status.ContainerStatuses[0].LastTerminationState = again.Status.ContainerStatuses[0].State
	again.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	type args struct {
		job  *batchv1.Job
		pods []corev1.Pod
	}
	cases := map[string]struct {
		reason string
		args   args
		want   membership.Copy
	}{
		"Young": {reason: "its Pod is about to come", args: args{job: job(time.Second, 0)}, want: membership.Copy{Begun: true}},
		"NoPod": {
			reason: "something keeps it from coming", args: args{job: job(time.Hour, 0)},
			want: membership.Copy{Begun: true, Problem: "Job db-copy has no Pod: kubectl describe job db-copy -n ns says why (a quota, a policy, a ServiceAccount that does not exist)"},
		},
		"DoneWithoutPod": {reason: "its Pod may be gone by the time that it is done", args: args{job: job(time.Hour, 1)}, want: membership.Copy{Begun: true, Done: true}},
		"Succeeded":      {reason: "the Job may not know yet", args: args{job: job(time.Hour, 0), pods: []corev1.Pod{succeeded}}, want: membership.Copy{Begun: true, Done: true}},
		"SucceededLater": {
			reason: "what an earlier Pod has said does not count any more",
			args:   args{job: job(time.Hour, 0), pods: []corev1.Pod{copier(render.ContainerCopy, 1, failed), succeeded}}, want: membership.Copy{Begun: true, Done: true},
		},
		"Failed": {
			reason: "the agent's words", args: args{job: job(time.Hour, 0), pods: []corev1.Pod{copier(render.ContainerCopy, 1, failed)}},
			want: membership.Copy{Begun: true, Problem: "the volume of the first member has other data, and nothing is written over"},
		},
		"FailedAndTriedAgain": {
			reason: "they stay until there is something else to say", args: args{job: job(time.Hour, 0), pods: []corev1.Pod{again}},
			want: membership.Copy{Begun: true, Problem: "the volume of the first member has other data, and nothing is written over"},
		},
		"NotInstalled": {
			reason: "the program could not be put where it is run", args: args{job: job(time.Hour, 0), pods: []corev1.Pod{copier(render.ContainerInstall, 1, `{"error":{"message":"no space left on device"}}`)}},
			want: membership.Copy{Begun: true, Problem: "no space left on device"},
		},
		"NoImage": {
			reason: "the Pod does not start", args: args{job: job(time.Hour, 0), pods: []corev1.Pod{waits}},
			want: membership.Copy{Begun: true, Problem: "the Pod db-copy-x cannot pull the image " + agentImage},
		},
		"NoImageYet": {reason: "it may start in a moment", args: args{job: job(time.Hour, 0), pods: []corev1.Pod{young}}, want: membership.Copy{Begun: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, copyFacts(tc.args.job, tc.args.pods, overdue)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCopyObserved: a copy is looked at while it is wanted, and only that of this very restore to
// this very volume.
func TestCopyObserved(t *testing.T) {
	t.Parallel()
	type args struct {
		seen func(*api.EtcdCluster, *observed)
		job  func(*batchv1.Job)
		none bool
	}
	type want struct {
		Copy   membership.Copy
		Copies bool
	}
	phase := func(p api.RestorePhase) func(*api.EtcdCluster, *observed) {
		return func(c *api.EtcdCluster, _ *observed) { c.Status.Restore.Phase = p }
	}
	cases := map[string]struct {
		reason string
		args   args
		want   want
	}{
		"Begun":    {reason: "it goes on", want: want{Copies: true, Copy: membership.Copy{Begun: true}}},
		"Done":     {reason: "it has ended", args: args{job: func(j *batchv1.Job) { j.Status.Succeeded = 1 }}, want: want{Copies: true, Copy: membership.Copy{Begun: true, Done: true}}},
		"NotBegun": {reason: "there is no Job", args: args{none: true}, want: want{Copies: true}},
		"Snapshot": {reason: "a stored one is restored", args: args{seen: func(c *api.EtcdCluster, _ *observed) { c.Status.Restore.Survivor = nil }}},
		"Pending":  {reason: "no member has stopped", args: args{seen: phase(api.RestorePending)}},
		"Reverted": {reason: "it was taken back", args: args{seen: phase(api.RestoreReverting)}},
		"Formed":   {reason: "the new members have formed", args: args{seen: func(_ *api.EtcdCluster, seen *observed) { seen.ClusterID = 0xc1 }}},
		"NoVolume": {reason: "there is nothing to copy to", args: args{seen: func(_ *api.EtcdCluster, seen *observed) { delete(seen.claims, "db-3") }}},
		"HasPod":   {reason: "it has what it needs, or says so itself", args: args{seen: func(_ *api.EtcdCluster, seen *observed) { seen.pods["db-3"] = newPod("db-3") }}},
		"Unknown":  {reason: "the status does not say of what", args: args{seen: func(c *api.EtcdCluster, _ *observed) { c.Status.Restored = nil }}, want: want{Copies: true}},
		"AnotherRestore": {
			reason: "the data is made with the token of the restore",
			args:   args{seen: func(c *api.EtcdCluster, _ *observed) { c.Status.Restore.UID = "another" }}, want: want{Copies: true},
		},
		"AnotherStart": {
			reason: "it is made for other members",
			args:   args{seen: func(_ *api.EtcdCluster, seen *observed) { seen.Instances[0].Volume.First.Base = 4 }}, want: want{Copies: true},
		},
		"EarlierVolume": {
			reason: "what was copied has gone with the volume",
			args:   args{seen: func(_ *api.EtcdCluster, seen *observed) { seen.Instances[0].Volume.UID = "later" }, job: func(j *batchv1.Job) { j.Status.Succeeded = 1 }}, want: want{Copies: true},
		},
		"AnotherOwner": {reason: "it is not ours", args: args{job: func(j *batchv1.Job) { ownedBy("earlier", j) }}, want: want{Copies: true}},
		"Going": {
			reason: "it may not come to its end", want: want{Copies: true},
			args: args{job: func(j *batchv1.Job) {
				j.DeletionTimestamp, j.Finalizers = new(metav1.Now()), []string{metav1.FinalizerDeleteDependents}
			}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := copyingTo()
			var objects []client.Object
			if !tc.args.none {
				job := copyJobOf(t, c, seen)
				if tc.args.job != nil {
					tc.args.job(job)
				}
				objects = append(objects, job)
			}
			if tc.args.seen != nil {
				tc.args.seen(c, &seen)
			}
			s := newStub(t, nil, objects...)
			s.AgentImage, s.StallAfter = agentImage, time.Minute
			if err := s.copied(t.Context(), c, &seen); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, want{seen.Copy, seen.copies}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestStopCopy: the Job of a copy goes when the restore is taken back, and one that has not copied
// yet before clients are let in.
func TestStopCopy(t *testing.T) {
	t.Parallel()
	type args struct {
		phase     api.RestorePhase
		change    func(*api.ClusterRestore)
		formed    bool
		bare      bool // no new volume is there
		step      membership.Step
		succeeded int32
	}
	deletion := []write{{Verb: "delete", Kind: "Job", Name: "db-copy", UID: "job"}}
	records := membership.Step{Action: membership.Record, Reason: membership.Formed}
	cases := map[string]struct {
		reason string
		args   args
		want   []write
	}{
		"Restoring":     {reason: "it copies", args: args{phase: api.RestoreRestoring}},
		"RestoringDone": {reason: "it tells that it has copied", args: args{phase: api.RestoreRestoring, succeeded: 1}},
		"Forms":         {reason: "a disk that comes back blank is not to get data of before", args: args{phase: api.RestoreRestoring, step: records}, want: deletion},
		"FormsDone":     {reason: "it does nothing more, and leaves no room for another one", args: args{phase: api.RestoreRestoring, step: records, succeeded: 1}},
		"Formed":        {reason: "so it is where the operator was interrupted then", args: args{phase: api.RestoreRestoring, formed: true}, want: deletion},
		"Reverting":     {reason: "it copies for nothing", args: args{phase: api.RestoreReverting}, want: deletion},
		"RevertingDone": {reason: "it has", args: args{phase: api.RestoreReverting, succeeded: 1}, want: deletion},
		"Earlier":       {reason: "there is no volume yet that it could copy to: it is of an earlier restore", args: args{phase: api.RestoreRestoring, bare: true}, want: deletion},
		"EarlierSnapshot": {
			reason: "so it is where a stored snapshot is restored", want: deletion,
			args: args{phase: api.RestoreRestoring, bare: true, change: func(r *api.ClusterRestore) { r.Survivor = nil }},
		},
		"Snapshot":  {reason: "a stored snapshot is restored, and no Job looked for", args: args{phase: api.RestoreReverting, change: func(r *api.ClusterRestore) { r.Survivor = nil }}},
		"Completed": {reason: "it is not looked for any more", args: args{phase: api.RestoreCompleted, formed: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := copyingTo()
			job := copyJobOf(t, c, seen)
			job.Status.Succeeded = tc.args.succeeded
			if c.Status.Restore.Phase = tc.args.phase; tc.args.change != nil {
				tc.args.change(c.Status.Restore)
			}
			if tc.args.formed {
				seen.ClusterID = 0xc1
			}
			if tc.args.bare {
				clear(seen.claims)
			}
			s := newStub(t, nil, job)
			if err := s.stopJobs(t.Context(), c, seen, tc.args.step); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.writes); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
