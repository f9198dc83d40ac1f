package reconcile

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// TestCameBackEmpty holds what counts as a volume that came back empty to what real etcd processes
// have said (testdata/lastwords), and to what the Pod was told.
func TestCameBackEmpty(t *testing.T) {
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	words := func(name string) string {
		log, err := os.ReadFile(filepath.Join("testdata", "lastwords", name+".log"))
		if err != nil {
			t.Fatal(err)
		}
		return string(log)
	}
	status := func(said string, mutate func(*corev1.Pod)) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses = etcdStatus(corev1.ContainerStatus{
				RestartCount: 3, State: waiting("CrashLoopBackOff", "back-off"), LastTerminationState: exited(1, "Error", words(said)),
			})
			if mutate != nil {
				mutate(p)
			}
		}
	}
	since := func(d time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.Conditions = []corev1.PodCondition{readiness(corev1.ConditionFalse, now.Add(-d))}
			p.Status.Conditions[0].Reason = "ContainersNotReady" // as its kubelet says it
		}
	}
	runs := func(d time.Duration) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Status.ContainerStatuses[0].State = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-d))}}
		}
	}
	type known struct{ Empty, EmptyLong bool }
	cases := map[string]struct {
		reason string
		after  *api.Duration
		found  time.Duration // since when the status says that it is empty; 0: it does not
		mutate func(*corev1.Pod)
		want   known
	}{
		"3.5":           {reason: "as etcd 3.5 says it", mutate: status("3.5.35-fence", nil), want: known{Empty: true}},
		"3.6":           {reason: "as etcd 3.6 says it", mutate: status("3.6.16-fence", nil), want: known{Empty: true}},
		"3.7":           {reason: "as etcd 3.7 says it", mutate: status("3.7.3-fence", nil), want: known{Empty: true}},
		"Long":          {reason: "for longer than half a minute", found: 31 * time.Second, mutate: status("3.6.16-fence", since(31*time.Second)), want: known{true, true}},
		"LongPatient":   {reason: "the spec waits longer", after: new(api.Duration("1m")), found: 31 * time.Second, mutate: status("3.6.16-fence", since(31*time.Second)), want: known{Empty: true}},
		"LongImpatient": {reason: "the spec waits less", after: new(api.Duration("10s")), found: 11 * time.Second, mutate: status("3.6.16-fence", since(11*time.Second)), want: known{true, true}},
		"DownBefore":    {reason: "its node was away for minutes, and its volume is found empty for the first time", mutate: status("3.6.16-fence", since(4*time.Minute)), want: known{Empty: true}},
		"FoundLately":   {reason: "it was found so a moment ago", found: 29 * time.Second, mutate: status("3.6.16-fence", since(4*time.Minute)), want: known{Empty: true}},
		"FoundEarlier":  {reason: "it has been up since it was found so", found: time.Hour, mutate: status("3.6.16-fence", since(2*time.Second)), want: known{Empty: true}},
		"TriedAgain":    {reason: "it ends within a second, as often as it starts", mutate: status("3.6.16-fence", runs(time.Second)), want: known{Empty: true}},
		"RunsOn":        {reason: "it has found its data", mutate: status("3.6.16-fence", runs(11*time.Second))},
		"Ready":         {reason: "it serves", mutate: status("3.6.16-fence", func(p *corev1.Pod) { runs(time.Second)(p); p.Status.ContainerStatuses[0].Ready = true })},
		"Joins": {
			reason: "a learner says the same when it reaches none of the others",
			mutate: status("3.6.16-fence", func(p *corev1.Pod) { p.Annotations[api.AnnotationInitialCluster] += ",db-1=http://db-1.db.ns.svc:2380" }),
		},
		"FirstStart": {
			reason: "it may start with nothing",
			mutate: status("3.6.16-fence", func(p *corev1.Pod) { p.Annotations[api.AnnotationInitialClusterState] = render.StateNew }),
		},
		"Provisions":    {reason: "no etcd is to run in it", mutate: status("3.6.16-fence", func(p *corev1.Pod) { p.Annotations[api.AnnotationProvisions] = "true" })},
		"CorruptLog":    {reason: "there is data, and it is damaged", mutate: status("3.6.16-corrupt-wal", since(time.Minute))},
		"CorruptData":   {reason: "there is data, and it is damaged", mutate: status("3.6.16-corrupt-db", since(time.Minute))},
		"NewerData":     {reason: "there is data, which another version reads", mutate: status("3.6.16-newer-data", since(time.Minute))},
		"FlagsDisagree": {reason: "it has not looked for data", mutate: status("3.6.16-flags-disagree", since(time.Minute))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			if tc.after != nil {
				c.Spec.Recovery = &api.Recovery{ReplaceEmptyAfter: tc.after}
			}
			if tc.found > 0 {
				c.Status.Members = []api.MemberStatus{{Name: "db-0", ID: "a0", EmptySince: new(metav1.NewTime(now.Add(-tc.found)))}}
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0", UID: "pod", CreationTimestamp: metav1.NewTime(now), Annotations: fenced(c, "db-0")}}
			tc.mutate(pod)
			got := podFacts(c, pod, (&Reconciler{StallAfter: time.Minute}).limits(c, now))
			if diff := cmp.Diff(tc.want, known{got.Empty, got.EmptyLong}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if tells := got.Problem == "has a volume that came back empty: etcd was told to find its data there, and found none"; tells != tc.want.Empty {
				t.Errorf("%s: the problem is %q", tc.reason, got.Problem)
			}
		})
	}
}

func TestBackOff(t *testing.T) {
	back := waiting("CrashLoopBackOff", "back-off 10s restarting failed container=etcd pod=db-0_default(2f4a)")
	const fatal = `{"level":"fatal","msg":"discovery failed","error":"walpb: crc mismatch"}`
	cases := map[string]struct {
		reason string
		status corev1.ContainerStatus
		phase  corev1.PodPhase
		want   bool
	}{
		"Killed":        {reason: "SIGKILL leaves its data as it was", status: corev1.ContainerStatus{State: back, LastTerminationState: exited(137, "Error", `{"level":"info","msg":"x"}`)}, want: true},
		"OOMKilled":     {reason: "so does the kernel, that lacks memory", status: corev1.ContainerStatus{State: back, LastTerminationState: exited(137, "OOMKilled", "")}, want: true},
		"OOMKilledOdd":  {reason: "whatever code it ended with", status: corev1.ContainerStatus{State: back, LastTerminationState: exited(1, "OOMKilled", "")}, want: true},
		"Terminated":    {reason: "it was told to end, as a failed probe does it", status: corev1.ContainerStatus{State: back, LastTerminationState: exited(0, "Completed", "")}, want: true},
		"TerminatedPID": {reason: "the same where it is not the first process", status: corev1.ContainerStatus{State: back, LastTerminationState: exited(143, "Error", "")}, want: true},
		"NodeRestarted": {reason: "its node went down under it", status: corev1.ContainerStatus{State: back, LastTerminationState: exited(255, "Unknown", "")}, want: true},
		"StatusUnknown": {reason: "the kubelet lost sight of it", status: corev1.ContainerStatus{State: back, LastTerminationState: exited(137, "ContainerStatusUnknown", "")}, want: true},
		"Running":       {reason: "it does not wait", status: corev1.ContainerStatus{State: isRunning, LastTerminationState: exited(137, "Error", "")}},
		"JustKilled":    {reason: "its kubelet starts it at once", status: corev1.ContainerStatus{State: exited(137, "Error", "")}},
		"Unpulled":      {reason: "a new Pod would wait for the same image", status: corev1.ContainerStatus{State: waiting("ImagePullBackOff", ""), LastTerminationState: exited(137, "Error", "")}},
		"Fatal":         {reason: "it does not start on its data", status: corev1.ContainerStatus{State: back, LastTerminationState: exited(1, "Error", fatal)}},
		"FatalKilled":   {reason: "it said so before it was killed", status: corev1.ContainerStatus{State: back, LastTerminationState: exited(137, "Error", fatal)}},
		"Panic":         {reason: "Go ends with 2", status: corev1.ContainerStatus{State: back, LastTerminationState: exited(2, "Error", "")}},
		"LogPanic":      {reason: "and etcd's log tells it", status: corev1.ContainerStatus{State: back, LastTerminationState: exited(137, "Error", `{"level":"panic","msg":"tocommit is out of range"}`)}},
		"Flag":          {reason: "a new Pod would have the same flags", status: corev1.ContainerStatus{State: back, LastTerminationState: exited(1, "Error", "flag provided but not defined: -foo")}},
		"Architecture":  {reason: "a new Pod would have the same image", status: corev1.ContainerStatus{State: back, LastTerminationState: exited(255, "Error", "exec /usr/local/bin/etcd: exec format error\n")}},
		"StartError":    {reason: "it has not even started", status: corev1.ContainerStatus{State: back, LastTerminationState: exited(128, "StartError", "runc")}},
		"Evicted":       {reason: "it never starts again, and goes for that reason", phase: corev1.PodFailed, status: corev1.ContainerStatus{State: back, LastTerminationState: exited(137, "Error", "")}},
		"NeverRan":      {reason: "it is not known how it would end", status: corev1.ContainerStatus{State: back}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := newPod("db-0")
			pod.Status.Phase, pod.Status.ContainerStatuses = tc.phase, etcdStatus(tc.status)
			if diff := cmp.Diff(tc.want, backOff(pod)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestYoung: a Pod that was recreated is left to its kubelet for three seconds, and the longer the
// longer there is no quorum.
func TestYoung(t *testing.T) {
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		age    time.Duration
		lost   time.Duration // since when the cluster is not available; 0: it is
		want   bool
	}{
		"Old":       {reason: "it has had its time", age: 4 * time.Second},
		"New":       {reason: "its kubelet has the first word", age: 2 * time.Second, want: true},
		"OldLost":   {reason: "the quorum went a moment ago", age: 4 * time.Second, lost: 12 * time.Second},
		"Again":     {reason: "after two minutes it is half a minute", age: 29 * time.Second, lost: 2 * time.Minute, want: true},
		"AgainOld":  {reason: "and that is over", age: 31 * time.Second, lost: 2 * time.Minute},
		"AfterHour": {reason: "after an hour it is five minutes, as long as its kubelet waits at most", age: 5*time.Minute - time.Second, lost: time.Hour, want: true},
		"HourOld":   {reason: "and that is over", age: 5*time.Minute + time.Second, lost: time.Hour},
		"Woken":     {reason: "it was hibernated for a month, which was no outage", age: 5*time.Minute + time.Second, lost: 30 * 24 * time.Hour},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.Status.ClusterID = "c0"
			c.Status.Conditions = []metav1.Condition{{Type: api.ConditionAvailable, Status: metav1.ConditionTrue, LastTransitionTime: metav1.NewTime(now.Add(-time.Hour))}}
			if tc.lost > 0 {
				c.Status.Conditions[0].Status, c.Status.Conditions[0].LastTransitionTime = metav1.ConditionFalse, metav1.NewTime(now.Add(-tc.lost))
			}
			pod := newPod("db-0")
			pod.CreationTimestamp = metav1.NewTime(now.Add(-tc.age))
			pod.Status.ContainerStatuses = etcdStatus(corev1.ContainerStatus{
				RestartCount: 1, State: waiting("CrashLoopBackOff", ""), LastTerminationState: exited(137, "Error", ""),
			})
			type known struct{ BackOff, Young bool }
			got := podFacts(c, pod, (&Reconciler{StallAfter: time.Minute}).limits(c, now))
			if diff := cmp.Diff(known{true, tc.want}, known{got.BackOff, got.Young}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRecreated: a Pod that waits in its kubelet's back-off is deleted as it was seen, without the
// time that etcd would need to end.
func TestRecreated(t *testing.T) {
	c, seen := newCluster(), healthy()
	s := newStub(t, nil, c, seen.pods["db-1"])
	step := membership.Step{Action: membership.Stop, Members: []string{"db-1"}, Reason: membership.BackOff}
	if err := s.deletePod(t.Context(), c, seen.pods["db-1"], step); err != nil {
		t.Fatal(err)
	}
	want := []write{{"delete", "Pod", "db-1", "pod-of-db-1", "5"}}
	if diff := cmp.Diff(want, s.writes); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if grace := s.graces["db-1"]; grace == nil || *grace != aloneGrace {
		t.Errorf("the grace is %v, want %d s", grace, aloneGrace)
	}
}
