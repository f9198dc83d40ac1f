package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// recreatedWith is a world in which the Pod of a member was recreated with a changed spec, as
// update and start do it, and has that status.
func recreatedWith(t *testing.T, name string, change func(*api.EtcdCluster), status corev1.PodStatus, age time.Duration) world {
	t.Helper()
	w := serving(t)
	for _, claim := range w.claims {
		claim.Annotations[api.AnnotationServed] = render.Served(w.cluster, "")
	}
	change(w.cluster)
	w.claims[name].Annotations[api.AnnotationNext] = "3.6.16"
	w.claims[name].Annotations[api.AnnotationNextWith] = render.Served(w.cluster, "")
	pod := w.pod(name)
	pod.UID = types.UID("new-pod-of-" + name)
	pod.CreationTimestamp, pod.Spec.NodeName, pod.Status = metav1.NewTime(noon.Add(-age)), "node-1", status
	w.pods[name] = pod
	delete(w.asked.endpoints, name)
	return w
}

// TestNeverStarted: the kubelet of a Pod that was recreated with a changed spec starts no etcd, and
// has no word for it in the status: FailedCreatePodSandBox for a limit of memory of 512m,
// FailedAttachVolume or FailedMount on the nodes of another nodeSelector, an injected init
// container that fails.
func TestNeverStarted(t *testing.T) {
	t.Parallel()
	memory := func(c *api.EtcdCluster) {
		c.Spec.Resources = &api.Resources{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("512m")}}
	}
	nodes := func(c *api.EtcdCluster) {
		c.Spec.Scheduling = &api.Scheduling{NodeSelector: api.Labels{"pool": "no-csi-driver"}}
	}
	since := func(at time.Time) corev1.PodStatus {
		return corev1.PodStatus{
			Phase: corev1.PodPending,
			Conditions: []corev1.PodCondition{
				{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(at)},
				{Type: corev1.PodReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", LastTransitionTime: metav1.NewTime(at)},
				{Type: corev1.ContainersReady, Status: corev1.ConditionFalse, Reason: "ContainersNotReady", LastTransitionTime: metav1.NewTime(at)},
			},
			ContainerStatuses: etcdStatus(corev1.ContainerStatus{Started: new(false), State: waiting("ContainerCreating", "")}),
		}
	}
	type args struct {
		change func(*api.EtcdCluster)
		age    time.Duration
		behind time.Duration // the clock of its node
		alone  bool
		revert bool
	}
	cases := map[string]struct {
		reason string
		args   args
		want   membership.Action
	}{
		"Wanted":              {reason: "a person has to look", args: args{change: nodes, age: time.Hour}, want: membership.Stall},
		"WantedAttaching":     {reason: "a volume may take minutes to be attached elsewhere", args: args{change: nodes, age: 5 * time.Minute}, want: membership.Wait},
		"WantedYoung":         {reason: "an image is pulled, for example", args: args{change: nodes, age: 50 * time.Second}, want: membership.Wait},
		"WantedYoungBehind":   {reason: "the clock of its node says little", args: args{change: nodes, age: 5 * time.Second, behind: time.Hour}, want: membership.Wait},
		"RevertedYoung":       {reason: "it may come up, and would be stopped for nothing", args: args{change: nodes, age: 50 * time.Second, revert: true}, want: membership.Wait},
		"RevertedYoungBehind": {reason: "the clock of its node says little", args: args{change: nodes, age: 5 * time.Second, behind: time.Hour, revert: true}, want: membership.Wait},
		"NodesReverted":       {reason: "nothing waits for what is not asked for any more", args: args{change: nodes, age: time.Hour, revert: true}, want: membership.PutBack},
		"MemoryReverted":      {reason: "nor here", args: args{change: memory, age: time.Hour, revert: true}, want: membership.PutBack},
		"MemoryRevertedAlone": {reason: "nor in a cluster of one, which does not serve meanwhile", args: args{change: memory, age: time.Hour, revert: true, alone: true}, want: membership.PutBack},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := recreatedWith(t, "db-0", tc.args.change, since(noon.Add(-tc.args.age-tc.args.behind)), tc.args.age)
			if tc.args.alone {
				w.alone()
				w.asked = answers{}
			}
			if tc.args.revert {
				w.cluster.Spec.Resources, w.cluster.Spec.Scheduling = nil, nil
				w.cluster.Generation++
			}
			o := facts(w.cluster, w.pods, w.claims, w.asked, (&Reconciler{StallAfter: time.Minute}).limits(w.cluster, noon))
			if got := membership.Plan(desired(w.cluster), o); got.Action != tc.want {
				t.Errorf("%s: want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

// TestStartsSlowly: all nodes were off, and images are pulled again. A spec that has changed since
// does not come to all members at once.
func TestStartsSlowly(t *testing.T) {
	t.Parallel()
	for _, age := range []time.Duration{2 * time.Minute, time.Hour} {
		w := serving(t)
		w.asked = answers{}
		for name, claim := range w.claims {
			claim.Annotations[api.AnnotationServed] = render.Served(w.cluster, "")
			pod := w.pod(name)
			pod.CreationTimestamp, pod.Spec.NodeName = metav1.NewTime(noon.Add(-age)), "node-1"
			pod.Status = corev1.PodStatus{Phase: corev1.PodPending, ContainerStatuses: etcdStatus(corev1.ContainerStatus{State: waiting("ContainerCreating", "")})}
			w.pods[name] = pod
		}
		w.cluster.Spec.Scheduling = &api.Scheduling{NodeSelector: api.Labels{"pool": "no-csi-driver"}}
		w.cluster.Generation++
		o := facts(w.cluster, w.pods, w.claims, w.asked, (&Reconciler{StallAfter: time.Minute}).limits(w.cluster, noon))
		if got := membership.Plan(desired(w.cluster), o); got.Action != membership.Wait && got.Action != membership.Stall {
			t.Errorf("after %s: want nothing to be done, got %s", age, got)
		}
	}
}

// TestUnstartedSince: what comes before etcd in its Pod is not counted.
func TestUnstartedSince(t *testing.T) {
	t.Parallel()
	ended := func(ago time.Duration) corev1.ContainerStatus {
		s := corev1.ContainerStatus{Name: "restore", ContainerID: "containerd://1"}
		s.State.Terminated = &corev1.ContainerStateTerminated{FinishedAt: metav1.NewTime(noon.Add(-ago))}
		return s
	}
	type facts struct{ Told, Unstarted bool }
	cases := map[string]struct {
		reason string
		init   corev1.ContainerStatus
		seen   time.Duration // ago that its end was seen first
		want   facts
	}{
		"Lately":  {reason: "it has restored for an hour, until now", init: ended(time.Second)},
		"Minutes": {reason: "the image of etcd is pulled", init: ended(2 * time.Minute), want: facts{Told: true}},
		"Long":    {reason: "a person has to look", init: ended(7 * time.Minute), want: facts{Told: true, Unstarted: true}},
		"Behind":  {reason: "the clock of its node is behind", init: ended(time.Hour), seen: time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := newPod("db-0")
			pod.CreationTimestamp = metav1.NewTime(noon.Add(-2 * time.Hour))
			pod.Status = corev1.PodStatus{InitContainerStatuses: []corev1.ContainerStatus{tc.init}, ContainerStatuses: etcdStatus(corev1.ContainerStatus{State: waiting("PodInitializing", "")})}
			l := limits{now: noon, stallBefore: noon.Add(-time.Minute), first: map[string]time.Time{}}
			if tc.seen != 0 {
				l.first[endedKey(pod, tc.init)] = noon.Add(-tc.seen)
			}
			p := podFacts(newCluster(), pod, l)
			if diff := cmp.Diff(tc.want, facts{p.Problem != "", p.Unstarted}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNeverStartedWords: what is said of a Pod whose kubelet has long started no etcd.
func TestNeverStartedWords(t *testing.T) {
	t.Parallel()
	const asks = ": kubectl describe pod db-0 -n ns says why, such as a Secret, key, ConfigMap or volume that is missing, a volume that is attached to another node, or an image that is still being pulled"
	creating := etcdStatus(corev1.ContainerStatus{State: waiting("PodInitializing", "")})
	init := func(of corev1.ContainerStatus) corev1.PodStatus {
		of.Name = "injected"
		return corev1.PodStatus{ContainerStatuses: creating, InitContainerStatuses: []corev1.ContainerStatus{of}}
	}
	cases := map[string]struct {
		reason  string
		sidecar bool
		args    corev1.PodStatus
		want    string
	}{
		"NoStatus":    {reason: "no kubelet has said anything"},
		"Creating":    {reason: "its kubelet has no word for it", args: corev1.PodStatus{ContainerStatuses: etcdStatus(corev1.ContainerStatus{State: waiting("ContainerCreating", "")})}, want: "has not started its container etcd (ContainerCreating)" + asks},
		"InitRuns":    {reason: "what it does may take long", args: init(corev1.ContainerStatus{State: isRunning})},
		"InitFails":   {reason: "etcd does not start before it has succeeded", args: init(corev1.ContainerStatus{State: waiting("CrashLoopBackOff", ""), LastTerminationState: exited(3, "Error", "no token")}), want: "waits for its init container injected, which exited with code 3: no token"},
		"InitDone":    {reason: "it is not what keeps etcd from starting", args: init(corev1.ContainerStatus{State: exited(0, "Completed", "")}), want: "has not started its container etcd (PodInitializing)" + asks},
		"SidecarRuns": {reason: "it runs for as long as the Pod", sidecar: true, args: init(corev1.ContainerStatus{State: isRunning}), want: "has not started its container etcd (PodInitializing)" + asks},
		"Ran":         {reason: "it has run", args: corev1.PodStatus{ContainerStatuses: etcdStatus(corev1.ContainerStatus{State: waiting("ContainerCreating", ""), LastTerminationState: exited(0, "Completed", "")})}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := newPod("db-0")
			injected := corev1.Container{Name: "injected"}
			if tc.sidecar {
				injected.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
			}
			pod.Spec.InitContainers, pod.Status = []corev1.Container{injected}, tc.args
			if diff := cmp.Diff(tc.want, neverStarted(pod)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRejected: the kubelet ends a Pod that was recreated with a changed spec, and would end every
// other one like it.
func TestRejected(t *testing.T) {
	t.Parallel()
	storage := func(c *api.EtcdCluster) {
		c.Spec.Resources = &api.Resources{Limits: corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse("1Ki")}}
	}
	cpus := func(c *api.EtcdCluster) {
		of := corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("3"), corev1.ResourceMemory: resource.MustParse("1Gi")}
		c.Spec.Resources = &api.Resources{Limits: of, Requests: of}
	}
	ended := func(reason, message string) corev1.PodStatus {
		return corev1.PodStatus{Phase: corev1.PodFailed, Reason: reason, Message: message}
	}
	const pressure = "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi. "
	type args struct {
		change func(*api.EtcdCluster) // cpus, unless it is given
		status corev1.PodStatus
		age    time.Duration
		revert bool
	}
	cases := map[string]struct {
		reason string
		args   args
		want   membership.Action
	}{
		"Cores":         {reason: "three cpus are no whole cores, in the next Pod neither", args: args{status: ended("SMTAlignmentError", "Pod was rejected: SMT Alignment Error: requested 3 cpus not multiple cpus per core = 2"), age: time.Second}, want: membership.PutBack},
		"OwnStorage":    {reason: "it has more local data than it may, and will again", args: args{status: ended("Evicted", "Pod ephemeral local storage usage exceeds the total limit of containers 100Mi. "), age: time.Second}, want: membership.PutBack},
		"Container":     {reason: "the same of its container", args: args{status: ended("Evicted", `Container etcd exceeded its local ephemeral storage limit "100Mi". `), age: time.Second}, want: membership.PutBack},
		"Silently":      {reason: "etcd has ended in good order, and the reason is gone", args: args{change: storage, status: corev1.PodStatus{Phase: corev1.PodSucceeded}, age: time.Second}, want: membership.PutBack},
		"NoLimit":       {reason: "it has no such limit: something else has ended it", args: args{status: corev1.PodStatus{Phase: corev1.PodSucceeded}, age: time.Minute}, want: membership.Stop},
		"Shutdown":      {reason: "its node said that it ends it", args: args{change: storage, status: corev1.PodStatus{Phase: corev1.PodSucceeded, Conditions: []corev1.PodCondition{{Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue}}}, age: time.Minute}, want: membership.Stop},
		"Pressure":      {reason: "its node had no memory left, which says nothing of the Pod", args: args{status: ended("Evicted", pressure), age: time.Minute}, want: membership.Stop},
		"PressureYoung": {reason: "and may have none for the next one either", args: args{status: ended("Evicted", pressure), age: time.Second}, want: membership.Wait},
		"Reverted":      {reason: "what is not asked for any more is not tried again", args: args{status: ended("OutOfcpu", ""), age: time.Second, revert: true}, want: membership.PutBack},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			change := cpus
			if tc.args.change != nil {
				change = tc.args.change
			}
			w := recreatedWith(t, "db-0", change, tc.args.status, tc.args.age)
			if tc.args.revert {
				w.cluster.Spec.Resources = nil
				w.cluster.Generation++
			}
			o := facts(w.cluster, w.pods, w.claims, w.asked, (&Reconciler{StallAfter: time.Minute}).limits(w.cluster, noon))
			if got := membership.Plan(desired(w.cluster), o); got.Action != tc.want {
				t.Errorf("%s: want %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}
