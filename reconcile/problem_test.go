package reconcile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"quorate.dev/render"
)

// TestLastWords holds lastWords to what real etcd processes have said: each file is the last 2 KiB
// of the log of one that was started in the way its name says, as the kubelet puts them into the
// Pod's status.
func TestLastWords(t *testing.T) {
	const (
		unknownFlag   = "flag provided but not defined: -foo"
		flagValue     = `invalid value "x" for flag -max-wals: parse error`
		flagsDisagree = "failed to verify flags: --election-timeout[100ms] should be at least as 5 times as --heartbeat-interval[100ms]"
		fence         = "discovery failed: cannot fetch cluster info from peer urls: could not retrieve cluster information from the given URLs"
		corruptDB     = "failed to open database: invalid database"
		goPanic       = `panic: unrecognized level: "foo"`
	)
	cases := map[string]struct {
		reason string
		want   string
	}{
		"3.5.35-unknown-flag":   {reason: "the usage that follows tells nothing", want: unknownFlag},
		"3.6.16-unknown-flag":   {reason: "the usage that follows tells nothing", want: unknownFlag},
		"3.7.3-unknown-flag":    {reason: "the usage that follows tells nothing", want: unknownFlag},
		"3.5.35-flag-value":     {reason: "the usage that follows tells nothing", want: flagValue},
		"3.6.16-flag-value":     {reason: "the usage that follows tells nothing", want: flagValue},
		"3.7.3-flag-value":      {reason: "the usage that follows tells nothing", want: flagValue},
		"3.5.35-flags-disagree": {reason: "a mere warning is the last line", want: flagsDisagree},
		"3.6.16-flags-disagree": {reason: "a mere warning is the last line", want: flagsDisagree},
		"3.7.3-flags-disagree":  {reason: "a mere warning is the last line", want: flagsDisagree},
		"3.5.35-fence":          {reason: "an empty disk under a member of a formed cluster", want: fence},
		"3.6.16-fence":          {reason: "an empty disk under a member of a formed cluster", want: fence},
		"3.7.3-fence":           {reason: "an empty disk under a member of a formed cluster", want: fence},
		"3.5.35-corrupt-db":     {reason: "a stack trace follows the log's own line", want: corruptDB},
		"3.6.16-corrupt-db":     {reason: "a stack trace follows the log's own line", want: corruptDB},
		"3.7.3-corrupt-db":      {reason: "a stack trace follows the log's own line", want: corruptDB},
		"3.5.35-inconsistent":   {reason: "it accuses one of two, and says not which", want: "discovery failed: e69ee1e35ed1a086 found data inconsistency with peers"},
		"3.6.16-inconsistent":   {reason: "it accuses one of two, and says not which", want: "discovery failed: 2c8d37264cb6153e found data inconsistency with peers"},
		"3.7.3-inconsistent":    {reason: "it accuses one of two, and says not which", want: "discovery failed: 53bb7928f8e2c4fb found data inconsistency with peers"},
		"3.5.35-corrupt-wal":    {reason: "fatal is the last line", want: "discovery failed: walpb: crc mismatch"},
		"3.6.16-corrupt-wal": {
			reason: "fatal is the last line",
			want:   "discovery failed: walpb: crc mismatch: expected: 9f94a4ea computed: 94e2dbb1: in file '0000000000000000-0000000000000000.wal' at position: 16",
		},
		"3.7.3-corrupt-wal": {
			reason: "fatal is the last line",
			want:   "discovery failed: walpb: crc mismatch: expected: 9f94a4ea computed: 5688f60b: in file '0000000000000000-0000000000000000.wal' at position: 16",
		},
		"3.5.35-go-panic":   {reason: "the log was not yet set up", want: goPanic},
		"3.6.16-go-panic":   {reason: "the log was not yet set up", want: goPanic},
		"3.7.3-go-panic":    {reason: "the log was not yet set up", want: goPanic},
		"3.5.35-newer-data": {reason: "data of 3.6 under a server of 3.5", want: "invalid downgrade; server version is lower than determined cluster version"},
		"3.6.16-newer-data": {reason: "data of 3.7 under a server of 3.6", want: `discovery failed: version "3.7.0" is not supported`},
		"3.6.16-newer-log":  {reason: "the log of 3.7 under a server of 3.6: a stack trace, longer than what the kubelet keeps", want: ""},
		"3.7.3-trace-only":  {reason: "a stack trace does not tell the cause", want: ""},
	}
	files, err := filepath.Glob("testdata/lastwords/*.log")
	if err != nil || len(files) != len(cases) {
		t.Fatalf("%d files for %d cases, error %v", len(files), len(cases), err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, err := os.ReadFile(filepath.Join("testdata", "lastwords", name+".log"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, lastWords(string(log))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPodProblem(t *testing.T) {
	const image = "registry.example/etcd:v3.6.16"
	ended := func(code int32, reason, message string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}
	backOff := waiting("CrashLoopBackOff", "back-off 10s restarting failed container=etcd pod=db-0_default(2f4a)")
	const (
		fatal = `{"level":"fatal","ts":"2026-05-01T10:00:00.1Z","caller":"etcdmain/etcd.go:183","msg":"discovery failed","error":"walpb: crc mismatch"}`
		later = `{"level":"fatal","ts":"2026-05-01T10:05:00.7Z","caller":"etcdmain/etcd.go:183","msg":"discovery failed","error":"walpb: crc mismatch"}`
		crash = "exited with code 1: discovery failed: walpb: crc mismatch"
		runc  = "failed to create containerd task: exec: \"/usr/local/bin/etcd\": no such file or directory"
	)
	cases := map[string]struct {
		reason     string
		limit      string // of memory
		conditions []corev1.PodCondition
		status     corev1.ContainerStatus
		want       string
	}{
		"Running":   {reason: "nothing is known against it", status: corev1.ContainerStatus{State: running}},
		"Creating":  {reason: "it takes as long as it takes", status: corev1.ContainerStatus{State: waiting("ContainerCreating", "")}},
		"Scheduled": {reason: "a condition that holds is no problem", conditions: []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}}},
		"Unschedulable": {
			reason: "the scheduler says what it lacks",
			conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
				Message: "0/3 nodes are available: 3 Insufficient cpu. preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling.",
			}},
			want: "cannot be scheduled: 0/3 nodes are available: 3 Insufficient cpu",
		},
		"Unbound": {
			reason: "the scheduler says nothing of the storage class, not even that it is missing",
			conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
				Message: "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found",
			}},
			want: "cannot be scheduled: its PersistentVolumeClaim db-0 is not bound: the storage class that it asks for must exist, and its provisioner must run",
		},
		"UnschedulableLines": {
			reason: "a condition is one line",
			conditions: []corev1.PodCondition{{
				Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "running PreBind plugin:\nbinding volumes",
			}},
			want: "cannot be scheduled: running PreBind plugin:",
		},
		"ErrImagePull":      {reason: "pulling", status: corev1.ContainerStatus{State: waiting("ErrImagePull", "rpc error: not found")}, want: "cannot pull the image " + image},
		"ImagePullBackOff":  {reason: "the same, while the kubelet waits", status: corev1.ContainerStatus{State: waiting("ImagePullBackOff", "Back-off pulling image")}, want: "cannot pull the image " + image},
		"RegistryDown":      {reason: "the same, with the registry's name for it", status: corev1.ContainerStatus{State: waiting("RegistryUnavailable", "")}, want: "cannot pull the image " + image},
		"ErrImageNeverPull": {reason: "pullPolicy Never and no image", status: corev1.ContainerStatus{State: waiting("ErrImageNeverPull", "not present")}, want: "cannot start its container etcd: not present"},
		"ConfigError":       {reason: "something it refers to is missing", status: corev1.ContainerStatus{State: waiting("CreateContainerConfigError", `secret "x" not found`)}, want: `cannot start its container etcd: secret "x" not found`},
		"ConfigErrorSilent": {reason: "the kubelet does not say why", status: corev1.ContainerStatus{State: waiting("CreateContainerError", "")}, want: "cannot start its container etcd"},
		"RunContainerError": {reason: "the runtime refuses", status: corev1.ContainerStatus{State: waiting("RunContainerError", runc)}, want: "cannot start its container etcd: " + runc},
		"StartErrorBackOff": {reason: "the same, while the kubelet waits", status: corev1.ContainerStatus{State: backOff, LastTerminationState: ended(128, "StartError", runc)}, want: "cannot start its container etcd: " + runc},
		"Crashed":           {reason: "it has just ended", status: corev1.ContainerStatus{State: ended(1, "Error", fatal)}, want: crash},
		"CrashLoopBackOff":  {reason: "the same, while the kubelet waits", status: corev1.ContainerStatus{State: backOff, LastTerminationState: ended(1, "Error", fatal)}, want: crash},
		"CrashedAgain":      {reason: "the same at a later time", status: corev1.ContainerStatus{State: ended(1, "Error", later), LastTerminationState: ended(1, "Error", fatal)}, want: crash},
		"RestartedAfter":    {reason: "until it is ready, it is to be feared that it ends in the same way", status: corev1.ContainerStatus{State: running, LastTerminationState: ended(1, "Error", fatal)}, want: crash},
		"AskedToEnd":        {reason: "it was restarted for another image, and its kubelet has yet to find it ready", status: corev1.ContainerStatus{State: running, LastTerminationState: ended(0, "Completed", "")}},
		"ReadyAfter":        {reason: "that is past", status: corev1.ContainerStatus{Ready: true, State: running, LastTerminationState: ended(1, "Error", fatal)}},
		"OOMKilled":         {reason: "the exit code alone says too little", status: corev1.ContainerStatus{State: backOff, LastTerminationState: ended(137, "OOMKilled", "")}, want: "was killed for using more memory than it may (OOMKilled): raise spec.resources.limits.memory"},
		"OOMKilledByLimit":  {reason: "the bound that is too low is told", limit: "14Mi", status: corev1.ContainerStatus{State: backOff, LastTerminationState: ended(137, "OOMKilled", "")}, want: "was killed for using more memory than its limit of 14Mi (OOMKilled): raise spec.resources.limits.memory"},
		"Killed":            {reason: "nothing was said", status: corev1.ContainerStatus{State: ended(137, "Error", "")}, want: "exited with code 137"},
		"Long":              {reason: "a condition has a bound", status: corev1.ContainerStatus{State: ended(1, "Error", strings.Repeat("ä", 600))}, want: "exited with code 1: " + strings.Repeat("ä", 500) + "..."},
		"SomebodyElses":     {reason: "a sidecar that was put beside etcd is no problem of etcd's", status: corev1.ContainerStatus{Name: "proxy", State: ended(1, "Error", "")}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.status.Name == "" {
				tc.status.Name = render.Container
			}
			tc.status.Image = image
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0"}, Status: corev1.PodStatus{Conditions: tc.conditions, ContainerStatuses: []corev1.ContainerStatus{tc.status}}}
			pod.Spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "db-0"}}}}
			if tc.limit != "" {
				pod.Spec.Containers = []corev1.Container{{Name: render.Container}}
				pod.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(tc.limit)}
			}
			if diff := cmp.Diff(tc.want, podProblem(pod)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
