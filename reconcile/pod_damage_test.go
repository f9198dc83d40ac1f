package reconcile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestNodeGone(t *testing.T) {
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	ready := etcdStatus(corev1.ContainerStatus{Ready: true, State: isRunning})
	cases := map[string]struct {
		reason string
		mutate func(*corev1.Pod)
		want   bool
	}{
		"Silent":       {reason: "the node controller alone has taken its readiness back", mutate: func(*corev1.Pod) {}, want: true},
		"SilentLater":  {reason: "some say unknown", mutate: func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionUnknown }, want: true},
		"Ready":        {reason: "all is well", mutate: func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionTrue }},
		"NoConditions": {reason: "nothing was said yet", mutate: func(p *corev1.Pod) { p.Status.Conditions = nil }},
		"NotReady":     {reason: "its own kubelet finds it not ready", mutate: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Ready = false }},
		"NotRunning":   {reason: "its own kubelet says that it has ended", mutate: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].State = exited(1, "Error", "") }},
		"NoContainer":  {reason: "nothing was started there", mutate: func(p *corev1.Pod) { p.Status.ContainerStatuses = nil }},
		"Gate": {reason: "another controller decides about its readiness", mutate: func(p *corev1.Pod) {
			p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "x"}}
			p.Status.Conditions[0].Reason = "ReadinessGatesNotReady"
		}},
		"GateSilent": {reason: "its node can be away all the same", mutate: func(p *corev1.Pod) { p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "x"}} }, want: true},
		"Sidecar":    {reason: "its own kubelet finds another container not ready", mutate: func(p *corev1.Pod) { p.Status.Conditions[0].Reason = "ContainersNotReady" }},
		"SidecarUnnamed": {reason: "its containers are not all ready, so that another one than the node controller has found it", mutate: func(p *corev1.Pod) {
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: corev1.ContainersReady, Status: corev1.ConditionFalse})
		}},
		"Deleted":     {reason: "the kubelet has some time after its grace", mutate: func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(now.Add(-10 * time.Second))) }},
		"DeletedLong": {reason: "that is over", mutate: func(p *corev1.Pod) { p.DeletionTimestamp = new(metav1.NewTime(now.Add(-11 * time.Second))) }, want: true},
		"DeletedNowhere": {reason: "it was on no node", mutate: func(p *corev1.Pod) {
			p.DeletionTimestamp, p.Spec.NodeName = new(metav1.NewTime(now.Add(-time.Hour))), ""
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{Spec: corev1.PodSpec{NodeName: "node-1"}, Status: corev1.PodStatus{
				ContainerStatuses: append([]corev1.ContainerStatus(nil), ready...),
				Conditions:        []corev1.PodCondition{readiness(corev1.ConditionFalse, now)},
			}}
			tc.mutate(pod)
			if diff := cmp.Diff(tc.want, nodeGone(pod, now)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDamaged(t *testing.T) {
	back := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
	cases := map[string]struct {
		reason     string
		status     corev1.ContainerStatus
		conditions []corev1.PodCondition
		want       bool
	}{
		"Running":       {reason: "all is well", status: corev1.ContainerStatus{State: isRunning}},
		"Crashed":       {reason: "etcd exits where it cannot go on with what it finds", status: corev1.ContainerStatus{State: exited(1, "Error", "")}, want: true},
		"CrashLoop":     {reason: "while the kubelet waits", status: corev1.ContainerStatus{State: back, LastTerminationState: exited(1, "Error", "")}, want: true},
		"CrashedBefore": {reason: "until it is ready, it is to be feared that it ends in the same way", status: corev1.ContainerStatus{State: isRunning, LastTerminationState: exited(2, "Error", "")}, want: true},
		"Ready":         {reason: "that is past", status: corev1.ContainerStatus{Ready: true, State: isRunning, LastTerminationState: exited(2, "Error", "")}},
		"Completed":     {reason: "it was told to end", status: corev1.ContainerStatus{State: exited(0, "Completed", "")}},
		"LastDecides":   {reason: "the last time it was no crash of its own", status: corev1.ContainerStatus{State: exited(137, "OOMKilled", ""), LastTerminationState: exited(1, "Error", "")}},
		"OOMKilled":     {reason: "a new member would need the same memory", status: corev1.ContainerStatus{State: back, LastTerminationState: exited(137, "OOMKilled", "")}},
		"StartError":    {reason: "a new member would have the same image", status: corev1.ContainerStatus{State: back, LastTerminationState: exited(128, "StartError", "runc")}},
		"CannotRun":     {reason: "the same with Docker", status: corev1.ContainerStatus{State: back, LastTerminationState: exited(127, "ContainerCannotRun", "")}},
		"Architecture":  {reason: "what cannot be executed here could not be by a new member", status: corev1.ContainerStatus{State: back, LastTerminationState: exited(255, "Error", "exec /usr/local/bin/etcd: exec format error\n")}},
		"Unpulled":      {reason: "a new member would need the same image", status: corev1.ContainerStatus{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull"}}}},
		"Quota":         {reason: "a new member needs a place to run as well", conditions: []corev1.PodCondition{unschedulablePod("0/3 nodes are available: 3 Insufficient cpu.")}},
		"VolumeLost":    {reason: "its volume is where no node is", conditions: []corev1.PodCondition{unschedulablePod("0/3 nodes are available: 3 node(s) had volume node affinity conflict.")}, want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{Status: corev1.PodStatus{Conditions: tc.conditions, ContainerStatuses: etcdStatus(tc.status)}}
			if diff := cmp.Diff(tc.want, damaged(pod)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDamagedWords holds damaged to what real etcd processes have said (testdata/lastwords): a flag
// that etcd does not take would be the same for a new member, and what is wrong with the data would
// not.
func TestDamagedWords(t *testing.T) {
	for what, want := range map[string]bool{
		"unknown-flag": false, "flag-value": false, "flags-disagree": false, "fence": true, "corrupt-db": true, "corrupt-wal": true, "inconsistent": false,
	} {
		for _, version := range []string{"3.5.35", "3.6.16", "3.7.3"} {
			log, err := os.ReadFile(filepath.Join("testdata", "lastwords", version+"-"+what+".log"))
			if err != nil {
				t.Fatal(err)
			}
			pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: etcdStatus(corev1.ContainerStatus{State: exited(1, "Error", string(log))})}}
			if diff := cmp.Diff(want, damaged(pod)); diff != "" {
				t.Errorf("%s of %s: -want +got:\n%s", what, version, diff)
			}
		}
	}
}

// TestSaysOutgrown holds what counts as data of a later minor to what real etcd processes have
// said: all of testdata/lastwords.
func TestSaysOutgrown(t *testing.T) {
	want := map[string]int{"3.5.35-newer-data": 6, "3.6.16-newer-data": 7, "3.6.16-newer-log": 7}
	files, err := filepath.Glob("testdata/lastwords/*.log")
	if err != nil || len(files) < len(want) {
		t.Fatalf("%d files, error %v", len(files), err)
	}
	for _, file := range files {
		log, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".log")
		back := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}
		pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: etcdStatus(corev1.ContainerStatus{State: back, LastTerminationState: exited(1, "Error", string(log))})}}
		if diff := cmp.Diff(want[name], saysOutgrown(pod)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		pod.Status.ContainerStatuses[0].State = isRunning
		if diff := cmp.Diff(0, saysOutgrown(pod)); diff != "" {
			t.Errorf("%s, and it runs again: -want +got:\n%s", name, diff)
		}
	}
}

// TestSaysOutgrownForged: what is written on a volume for these words cannot be undone. Clients can
// put words into the log of etcd, as keys and names that it quotes, and end it, and what is wrong
// with a database may end it at the same place.
func TestSaysOutgrownForged(t *testing.T) {
	const (
		frame = "go.etcd.io/etcd/server/v3/etcdserver/api/membership.(*RaftCluster).Recover(0xc0002a8000, 0x1c3e5f8)\n" +
			"\tgo.etcd.io/etcd/server/v3/etcdserver/api/membership/cluster.go:271 +0x2f2\n" +
			"go.etcd.io/etcd/server/v3/etcdserver.NewServer({{0x7ffd2c3e0f2a, 0x4}})\n" +
			"\tgo.etcd.io/etcd/server/v3/etcdserver/server.go:320 +0x45\n"
		said = `{"level":"info","ts":"2026-05-01T10:00:00.1Z","caller":"traceutil/trace.go:171","msg":"trace[7] range","detail":"{range_begin:%; range_end:; }"}`
	)
	cases := map[string]struct {
		reason  string
		code    int32
		message string
		want    int
	}{
		"Killed":  {reason: "what ended it was no word of its own", code: 137, message: `"error":"version \"3.7.0\" is not supported"`},
		"Key":     {reason: "a client has asked for such a key", code: 2, message: strings.Replace(said, "%", `version \"3.7.0\" is not supported`, 1)},
		"KeyLike": {reason: "a client has asked for one that looks like a field", code: 1, message: strings.Replace(said, "%", `\"error\":\"version \\\"3.7.0\\\" is not supported\"`, 1)},
		"Frame":   {reason: "a client has asked for a key that looks like a stack trace", code: 2, message: strings.Replace(said, "%", `membership.(*RaftCluster).Recover(`, 1)},
		"Lines":   {reason: "with lines, as JSON has them", code: 2, message: strings.Replace(said, "%", strings.NewReplacer("\n", `\n`, "\t", `\t`).Replace("downgrade.go:49 +0x396\n"+frame), 1)},
		"Corrupt": {
			reason: "a database that cannot be read is read there as well", code: 2,
			message: "go.etcd.io/etcd/server/v3/storage/schema.(*membershipBackend).MustReadMembersFromBackend(0xc00011e3c0)\n" +
				"\tgo.etcd.io/etcd/server/v3/storage/schema/membership.go:78 +0x4c\n" + frame,
		},
		"Release":   {reason: "as it is built for a release", code: 2, message: "\tgo.etcd.io/etcd/server/v3/etcdserver/version/downgrade.go:49 +0x396\n" + frame, want: 7},
		"Cut":       {reason: "the kubelet keeps the end alone", code: 2, message: "go:49 +0x396\n" + frame, want: 7},
		"CutInside": {reason: "and less", code: 2, message: strings.TrimPrefix(frame, "go.etcd.io/etcd/server/v3/etcd"), want: 7},
		"Console": {
			reason: "with log-format console", code: 1, want: 7,
			message: "2026-05-01T10:00:00.1Z\tfatal\tetcdmain/etcd.go:183\tdiscovery failed\t" + `{"error": "version \"3.7.0\" is not supported", "stacktrace": "x"}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := &corev1.Pod{Status: corev1.PodStatus{ContainerStatuses: etcdStatus(corev1.ContainerStatus{State: exited(tc.code, "Error", tc.message)})}}
			if diff := cmp.Diff(tc.want, saysOutgrown(pod)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestVolumeOnLostNode holds what the scheduler says, today and in earlier releases.
func TestVolumeOnLostNode(t *testing.T) {
	cases := map[string]struct {
		reason  string
		message string
		want    bool
	}{
		"Gone":           {reason: "none of the nodes has it", message: "0/3 nodes are available: 3 node(s) didn't match PersistentVolume's node affinity.", want: true},
		"GoneEarlier":    {reason: "as earlier releases say it", message: "0/3 nodes are available: 3 node(s) had volume node affinity conflict.", want: true},
		"GonePreemption": {reason: "the scheduler adds that preemption would not help", message: "0/3 nodes are available: 3 node(s) didn't match PersistentVolume's node affinity. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.", want: true},
		"OneOfOne":       {reason: "a cluster of one node, which is a new one", message: "0/1 nodes are available: 1 node(s) had volume node affinity conflict.", want: true},
		"OneOfTen":       {reason: "numbers are compared whole", message: "0/12 nodes are available: 1 node(s) had volume node affinity conflict, 11 Insufficient cpu."},
		"Cordoned":       {reason: "its node is there, and may be uncordoned", message: "0/3 nodes are available: 1 node(s) were unschedulable, 2 node(s) had volume node affinity conflict."},
		"Full":           {reason: "its node is there, and may get room", message: "0/3 nodes are available: 1 Insufficient memory, 2 node(s) didn't match PersistentVolume's node affinity."},
		"NotReady":       {reason: "its node has not answered for as long as one waits", message: "0/3 nodes are available: 1 node(s) had untolerated taint {node.kubernetes.io/unreachable: }, 2 node(s) had volume node affinity conflict.", want: true},
		"ControlPlane":   {reason: "the nodes of a control plane are counted apart", message: "0/4 nodes are available: 1 node(s) had untolerated taint(s), 3 node(s) didn't match PersistentVolume's node affinity. no new claims to deallocate, preemption: 0/4 nodes are available: 4 Preemption is not helpful for scheduling.", want: true},
		"Tainted":        {reason: "no node lacks the volume", message: "0/1 nodes are available: 1 node(s) had untolerated taint(s)."},
		"VolumeDeleted":  {reason: "there is nothing behind the claim any more", message: "0/1 nodes are available: 1 node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s).", want: true},
		"VolumeGone":     {reason: "as another plugin says it", message: "persistentvolumeclaim \"db-0\" bound to non-existent persistentvolume \"pvc-1\"", want: true},
		"Affinity":       {reason: "that is about the Pod", message: "0/3 nodes are available: 3 node(s) didn't match Pod's node affinity/selector."},
		"Unbound":        {reason: "there is no volume yet", message: "0/3 nodes are available: pod has unbound immediate PersistentVolumeClaims."},
		"NoNodes":        {reason: "nothing can be said about none", message: "no nodes available to schedule pods"},
		"Nothing":        {reason: "nothing was said", message: ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, volumeOnLostNode(tc.message)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
