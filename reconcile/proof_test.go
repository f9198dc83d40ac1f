package reconcile

import (
	order "cmp"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// TestProves holds how long a member has to be ready before its answers are proof that it runs
// well.
func TestProves(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 9, 0, 30, 0, time.UTC)
	ago := func(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }
	type pod struct {
		untried  []string
		restarts int32
		exit     *corev1.ContainerStateTerminated
		unready  bool
		silent   bool          // etcd does not answer
		started  time.Duration // ago
		ready    time.Duration // ago
		applied  time.Duration // ago
		seen     time.Duration // ago that this process has seen it do well first; 0: now
		limit    string        // of memory
		served   string        // limit of memory with which it has served
		cpu      string        // limit
		storage  string        // limit of local storage
		ran      string        // limit of cpu with which it has served
	}
	type facts struct {
		Unproved, Crashed bool
		Next              time.Duration
	}
	asked := &corev1.ContainerStateTerminated{ExitCode: 143}
	killed := &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
	cases := map[string]struct {
		reason string
		pod    pod
		want   facts
	}{
		"Old":      {reason: "it has been ready for days", pod: pod{started: time.Hour, ready: time.Hour}},
		"NotReady": {reason: "when it will be is not known, and a watch tells", pod: pod{unready: true, started: time.Hour}, want: facts{Unproved: true}},
		"InPlace":  {reason: "its container was started again where it is: the API's second is over, and half of one", pod: pod{restarts: 1, exit: asked, started: 9 * time.Second, ready: 2 * time.Second}},
		"InPlaceLate": {
			reason: "the API keeps whole seconds, so that it may have been ready for less than it says",
			pod:    pod{restarts: 1, exit: asked, started: 9 * time.Second, ready: time.Second}, want: facts{Unproved: true, Next: 500 * time.Millisecond},
		},
		"InPlaceLateSeen": {reason: "this process knows better", pod: pod{restarts: 1, exit: asked, started: 9 * time.Second, ready: time.Second, seen: 600 * time.Millisecond}},
		"InPlaceNow": {
			reason: "that the kubelet finds it ready is of the container before, and says nothing",
			pod:    pod{restarts: 1, exit: asked, started: 4 * time.Second, ready: time.Hour}, want: facts{Unproved: true, Next: 500 * time.Millisecond},
		},
		"InPlaceSilent":   {reason: "nor does it where etcd does not answer", pod: pod{restarts: 1, exit: asked, silent: true, started: 4 * time.Second, ready: time.Hour, seen: time.Second}, want: facts{Unproved: true}},
		"InPlaceSeen":     {reason: "etcd has answered for half a second", pod: pod{restarts: 1, exit: asked, started: 4 * time.Second, ready: time.Hour, seen: 600 * time.Millisecond}},
		"InPlaceUnprobed": {reason: "and its kubelet has not probed it yet", pod: pod{restarts: 1, exit: asked, unready: true, started: 4 * time.Second, seen: 600 * time.Millisecond}},
		"InPlaceUnready":  {reason: "its kubelet has had its time", pod: pod{restarts: 1, exit: asked, unready: true, started: 6 * time.Second, seen: 3 * time.Second}, want: facts{Unproved: true}},
		"Recreated":       {reason: "a new Pod takes longer", pod: pod{started: 5 * time.Second, ready: 2 * time.Second}, want: facts{Unproved: true, Next: 2 * time.Second}},
		"AnewProved":      {reason: "three seconds, and the API's second", pod: pod{started: 6 * time.Second, ready: 4 * time.Second}},
		"Crashed":         {reason: "it has been started again, and that was not asked for", pod: pod{restarts: 1, exit: killed, started: 10 * time.Second, ready: 9 * time.Second}, want: facts{Unproved: true, Crashed: true, Next: 22 * time.Second}},
		"CrashedOnce":     {reason: "that was long ago", pod: pod{restarts: 1, exit: killed, started: time.Hour, ready: 32 * time.Second}, want: facts{Crashed: true}},
		"LessMemory": {
			reason: "it may use less than it has served with, which shows when clients come",
			pod:    pod{untried: []string{"resources"}, limit: "14Mi", served: "1Gi", started: 8 * time.Second, ready: 6 * time.Second}, want: facts{Unproved: true, Next: 25 * time.Second},
		},
		"MemoryBound": {
			reason: "nothing bounded it before",
			pod:    pod{untried: []string{"resources"}, limit: "1Gi", started: 8 * time.Second, ready: 6 * time.Second}, want: facts{Unproved: true, Next: 25 * time.Second},
		},
		"LessCPU": {
			reason: "etcd may answer now and then",
			pod:    pod{untried: []string{"resources"}, cpu: "1m", ran: "1", started: 8 * time.Second, ready: 6 * time.Second}, want: facts{Unproved: true, Next: 25 * time.Second},
		},
		"LessCPUInPlace": {
			reason: "a container that runs was given less, and what it did before says nothing",
			pod:    pod{untried: []string{"resources"}, cpu: "1m", ran: "1", started: time.Hour, ready: time.Hour, seen: time.Hour, applied: 2 * time.Second}, want: facts{Unproved: true, Next: 29 * time.Second},
		},
		"LessStorage": {
			reason: "its kubelet looks every ten seconds how much it has, and evicts it",
			pod:    pod{untried: []string{"resources"}, storage: "100Mi", started: 8 * time.Second, ready: 6 * time.Second}, want: facts{Unproved: true, Next: 25 * time.Second},
		},
		"MoreCPU": {reason: "more does no harm", pod: pod{untried: []string{"resources"}, cpu: "2", ran: "1000m", started: 8 * time.Second, ready: 6 * time.Second}},
		"NoLimit": {reason: "nor does none", pod: pod{untried: []string{"resources"}, ran: "1", started: 8 * time.Second, ready: 6 * time.Second}},
		"TriedSilent": {
			reason: "its kubelet finds it ready, and it does not answer the operator",
			pod:    pod{untried: []string{"resources"}, silent: true, started: time.Hour, ready: time.Hour, seen: time.Minute}, want: facts{Unproved: true},
		},
		"OldSilent":  {reason: "it has proved itself with what it has", pod: pod{silent: true, started: time.Hour, ready: time.Hour}},
		"MoreMemory": {reason: "more does no harm", pod: pod{untried: []string{"resources"}, limit: "2Gi", served: "1Gi", started: 8 * time.Second, ready: 6 * time.Second}},
		"MemoryOfPolicy": {
			reason: "a limit that was not changed is on no trial",
			pod:    pod{untried: []string{"options"}, limit: "1Gi", started: 8 * time.Second, ready: 6 * time.Second},
		},
		"Resized": {
			reason: "nothing was started again: the time runs from when it was asked for",
			pod:    pod{untried: []string{"resources"}, started: time.Hour, ready: time.Hour, applied: time.Second}, want: facts{Unproved: true, Next: 500 * time.Millisecond},
		},
		"ResizedByAnotherClock": {
			reason: "the API server's clock is ahead of the operator's: it does not wait for an hour",
			pod:    pod{untried: []string{"resources"}, started: time.Hour, ready: time.Hour, applied: -time.Hour},
		},
		"ResizedBefore": {reason: "and that was long ago", pod: pod{untried: []string{"resources"}, started: time.Hour, ready: time.Hour, applied: time.Minute}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, live, claim := newCluster(), newPod("db-0"), newClaim("db-0")
			claim.Annotations[api.AnnotationServed] = `{"version":"3.6.16"}`
			if tc.pod.served != "" {
				claim.Annotations[api.AnnotationServed] = `{"version":"3.6.16","resources":{"limits":{"memory":"` + tc.pod.served + `"}}}`
			}
			live.Spec.Containers = []corev1.Container{{Name: render.Container}}
			if tc.pod.limit != "" {
				live.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse(tc.pod.limit)}
			}
			if tc.pod.cpu != "" {
				live.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(tc.pod.cpu)}
			}
			if tc.pod.storage != "" {
				live.Spec.Containers[0].Resources.Limits = corev1.ResourceList{corev1.ResourceEphemeralStorage: resource.MustParse(tc.pod.storage)}
			}
			if tc.pod.ran != "" {
				claim.Annotations[api.AnnotationServed] = `{"version":"3.6.16","resources":{"limits":{"cpu":"` + tc.pod.ran + `"}}}`
			}
			if tc.pod.applied != 0 {
				live.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: api.Manager, Time: new(ago(tc.pod.applied))}}
			}
			status := corev1.ContainerStatus{
				Name: render.Container, ContainerID: "containerd://1", RestartCount: tc.pod.restarts, Ready: !tc.pod.unready,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: ago(tc.pod.started)}},
			}
			status.LastTerminationState.Terminated = tc.pod.exit
			live.Status.ContainerStatuses = []corev1.ContainerStatus{status}
			live.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: ago(tc.pod.ready)}}
			seen := observed{pods: map[string]*corev1.Pod{"db-0": live}, claims: map[string]*corev1.PersistentVolumeClaim{"db-0": claim}}
			seen.Instances = []membership.Instance{{Name: "db-0", Pod: membership.Pod{Ready: !tc.pod.unready, Untried: tc.pod.untried}}}
			if !tc.pod.silent {
				seen.Instances[0].Endpoint = membership.Endpoint{MemberID: 1, ClusterID: 1, Leader: 1}
			}
			r := &Reconciler{}
			r.proving.look(client.ObjectKeyFromObject(c), nil, now.Add(-2*time.Hour)) // the operator is not new
			r.proving.look(client.ObjectKeyFromObject(c), []string{"db-0/containerd://1"}, now.Add(-tc.pod.seen))
			next := r.prove(c, &seen, r.firstSeen(c, seen.pods, now), now)
			got := facts{seen.Instances[0].Pod.Unproved, seen.Instances[0].Pod.Crashed, next}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestProvesOnSlowNode: the clock of a node may be behind. A container that did not do well in the
// last look has not done so for longer than since then, whatever its kubelet says.
func TestProvesOnSlowNode(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 9, 0, 30, 0, time.UTC)
	const behind = time.Minute
	killed := &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}
	asked := &corev1.ContainerStateTerminated{ExitCode: 143}
	cases := map[string]struct {
		reason string
		before *corev1.ContainerStatus // in the look before, a second ago; nil where there was none
		exit   *corev1.ContainerStateTerminated
		silent bool          // etcd does not answer, while its kubelet finds it ready
		trial  bool          // its member has not served with what it has
		want   time.Duration // until it is proved; 0: it is, or that is not known
		well   bool
	}{
		"InPlaceSilent": {reason: "that the kubelet finds it ready is of the container before", before: &corev1.ContainerStatus{ContainerID: "containerd://0", Ready: true, State: isRunning}, exit: asked, silent: true},
		"InPlace":       {reason: "etcd answers since just now", before: &corev1.ContainerStatus{ContainerID: "containerd://0", Ready: true, State: isRunning}, exit: asked, want: 500 * time.Millisecond},
		"InPlaceKnown":  {reason: "it is the container of the look before, and its kubelet has had its time", before: &corev1.ContainerStatus{ContainerID: "containerd://1", RestartCount: 1, Ready: true, State: isRunning}, exit: asked, silent: true, well: true},
		"First":         {reason: "there was no container", before: &corev1.ContainerStatus{}, want: 2 * time.Second},
		"Crashed":       {reason: "it was another container", before: &corev1.ContainerStatus{ContainerID: "containerd://0", Ready: true, State: isRunning}, exit: killed, want: 29 * time.Second},
		"Unready":       {reason: "it was not ready", before: &corev1.ContainerStatus{ContainerID: "containerd://1", State: isRunning}, want: 2 * time.Second},
		"Started":       {reason: "this process was started a moment ago, and has only the word of the kubelet", well: true},
		"StartedTrial": {
			reason: "of one that has something new one answer is no proof, and what it answered before is not known",
			trial:  true, want: 3 * time.Second,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, r := newCluster(), &Reconciler{}
			look := func(s corev1.ContainerStatus, now time.Time, silent bool) (bool, time.Duration) {
				s.Name = render.Container
				pod := newPod("db-0")
				pod.Status.ContainerStatuses = []corev1.ContainerStatus{s}
				seen := observed{pods: map[string]*corev1.Pod{"db-0": pod}, claims: map[string]*corev1.PersistentVolumeClaim{"db-0": newClaim("db-0")}}
				seen.Instances = []membership.Instance{{Name: "db-0", Pod: membership.Pod{Ready: s.Ready}, Endpoint: membership.Endpoint{MemberID: 1, ClusterID: 1, Leader: 1}}}
				if tc.trial {
					seen.Instances[0].Pod.Untried = []string{"options"}
				}
				if silent {
					seen.Instances[0].Endpoint = membership.Endpoint{}
				}
				next := r.prove(c, &seen, r.firstSeen(c, seen.pods, now), now)
				return seen.Instances[0].Pod.Unproved, next
			}
			if tc.before != nil {
				look(*tc.before, now.Add(-time.Second), false)
			}
			status := corev1.ContainerStatus{
				ContainerID: "containerd://1", Ready: true,
				State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-behind))}},
			}
			if status.LastTerminationState.Terminated = tc.exit; tc.exit == asked {
				status.RestartCount = 1
			}
			unproved, next := look(status, now, tc.silent)
			if diff := cmp.Diff(tc.want, next); diff != "" || unproved == tc.well {
				t.Errorf("%s: unproved: %t, -want +got:\n%s", tc.reason, unproved, diff)
			}
		})
	}
}

// TestProofs: what was seen of a container counts for no other one, and not after it was not ready.
func TestProofs(t *testing.T) {
	t.Parallel()
	key := client.ObjectKey{Namespace: "ns", Name: "db"}
	now := time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)
	at := func(seconds time.Duration) time.Time { return now.Add(seconds * time.Second) }
	looks := []struct {
		reason string
		ready  []string
		want   map[string]seenWell
	}{
		{reason: "it is seen first", ready: []string{"a"}, want: map[string]seenWell{"a": {since: at(0)}}},
		{reason: "it goes on, and another one comes", ready: []string{"a", "b"}, want: map[string]seenWell{"a": {since: at(0)}, "b": {at(1), at(0)}}},
		{reason: "it is not ready for a moment", ready: []string{"b"}, want: map[string]seenWell{"b": {at(1), at(0)}}},
		{reason: "its time begins again", ready: []string{"a", "b"}, want: map[string]seenWell{"a": {at(3), at(2)}, "b": {at(1), at(0)}}},
	}
	var p proofs
	for n, look := range looks {
		if diff := cmp.Diff(look.want, p.look(key, look.ready, at(time.Duration(n))), cmp.AllowUnexported(seenWell{})); diff != "" {
			t.Errorf("%s: -want +got:\n%s", look.reason, diff)
		}
	}
	if p.forget(key); len(p.looks) > 0 {
		t.Errorf("a cluster that is gone is remembered: %v", p.looks)
	}
}

// TestAgain: a pass that waits for a proof looks again when it is there, and not before.
func TestAgain(t *testing.T) {
	t.Parallel()
	proving := membership.Step{Action: membership.Wait, Reason: membership.Changing}
	forming := membership.Step{Action: membership.Wait, Reason: membership.Bootstrapping}
	cases := map[string]struct {
		reason string
		step   membership.Step
		proves time.Duration
		given  func(*observed)
		want   time.Duration
	}{
		"Nothing":  {reason: "no member is about to prove itself", step: proving, want: whileForming},
		"Proving":  {reason: "time alone is waited for", step: proving, proves: 3500 * time.Millisecond, want: 3500 * time.Millisecond},
		"Trying":   {reason: "it has to answer each time", step: proving, proves: 25 * time.Second, want: 4 * time.Second},
		"Healthy":  {reason: "what it has served with is written down then", step: membership.Step{Action: membership.None, Reason: membership.Healthy}, proves: 3 * time.Second, want: 3 * time.Second},
		"Changing": {reason: "no watch tells that another one answers", step: proving, proves: 25 * time.Second, given: func(seen *observed) { seen.Instances[1].Pod.Changing = true }, want: whileForming},
		"Starting": {reason: "the watch of Pods tells when there is a member to ask", step: forming, want: whileWaiting},
		"Forming": {
			reason: "no watch tells that etcd has elected a leader", step: forming, want: whileForming,
			given: func(seen *observed) {
				seen.pods["db-0"].Status = corev1.PodStatus{PodIP: "10.0.0.1", ContainerStatuses: etcdStatus(corev1.ContainerStatus{State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}})}
			},
		},
		"Down": {reason: "nor this", step: proving, proves: 25 * time.Second, given: func(seen *observed) { seen.Instances[1].Endpoint = membership.Endpoint{} }, want: whileForming},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := healthy()
			seen.proves = tc.proves
			if tc.given != nil {
				tc.given(&seen)
			}
			if diff := cmp.Diff(tc.want, again(seen, tc.step, false)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestStarved: only a death since the Pod was applied last tells of what it was changed to.
func TestStarved(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)
	exit := func(reason string, after time.Duration) []corev1.ContainerStatus {
		return etcdStatus(corev1.ContainerStatus{LastTerminationState: corev1.ContainerState{
			Terminated: &corev1.ContainerStateTerminated{Reason: reason, FinishedAt: metav1.NewTime(at.Add(after))},
		}})
	}
	cases := map[string]struct {
		reason string
		status []corev1.ContainerStatus
		want   bool
	}{
		"Since":    {reason: "it was killed with what it has now", status: exit("OOMKilled", time.Second), want: true},
		"Before":   {reason: "it was killed with what it had before", status: exit("OOMKilled", -time.Second)},
		"Error":    {reason: "it has ended otherwise", status: exit("Error", time.Second)},
		"Never":    {reason: "it has never ended", status: etcdStatus(corev1.ContainerStatus{State: isRunning})},
		"NoStatus": {reason: "the kubelet says nothing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := newPod("db-0")
			pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: api.Manager, Time: new(metav1.NewTime(at))}}
			pod.Status.ContainerStatuses = tc.status
			if got := podFacts(newCluster(), pod, limits{}).Starved; got != tc.want {
				t.Errorf("%s: %t", tc.reason, got)
			}
		})
	}
}

// TestIdle holds when etcd counts as running without serving.
func TestIdle(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 25, 9, 0, 0, 0, time.UTC)
	runs := func(since time.Duration) corev1.ContainerStatus {
		return corev1.ContainerStatus{Started: new(true), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now.Add(-since))}}}
	}
	with := func(s corev1.ContainerStatus, change func(*corev1.ContainerStatus)) corev1.ContainerStatus {
		change(&s)
		return s
	}
	unstarted := func(s *corev1.ContainerStatus) { s.Started = new(false) }
	type facts struct{ Idle, IdleLong bool }
	cases := map[string]struct {
		reason  string
		status  corev1.ContainerStatus
		unready time.Duration
		patient time.Duration // a minute, unless it is given
		size    string        // of the largest database
		seen    time.Duration // ago that this process has seen the container first; 0: in its first look
		want    facts
	}{
		"Started":    {reason: "etcd takes its time", status: runs(5 * time.Second), unready: time.Hour},
		"Idle":       {reason: "it has tried twice to propose its name", status: runs(11 * time.Second), unready: time.Hour, want: facts{Idle: true}},
		"IdleLong":   {reason: "nothing helps", status: runs(61 * time.Second), unready: time.Hour, want: facts{Idle: true, IdleLong: true}},
		"Impatient":  {reason: "whatever --stall-after says, etcd has its time to try again", status: runs(5 * time.Second), unready: time.Hour, patient: time.Second},
		"Lately":     {reason: "it has been ready until a moment ago", status: runs(time.Hour), unready: time.Second},
		"Ready":      {reason: "it serves", status: with(runs(time.Hour), func(s *corev1.ContainerStatus) { s.Ready = true }), unready: time.Hour},
		"NoPort":     {reason: "it may read its data still, unless the spec is reverted", status: with(runs(11*time.Second), unstarted), unready: time.Hour, want: facts{Idle: true}},
		"NoPortYet":  {reason: "it has 15 s for the least data", status: with(runs(74*time.Second), unstarted), unready: time.Hour, want: facts{Idle: true}},
		"NoPortLong": {reason: "it has hardly any data to read, and had 15 s more for that", status: with(runs(76*time.Second), unstarted), unready: time.Hour, want: facts{Idle: true, IdleLong: true}},
		"Reads":      {reason: "a disk may take 15 s for each 100 MB", status: with(runs(209*time.Second), unstarted), unready: time.Hour, size: "1000M", want: facts{Idle: true}},
		"HasRead":    {reason: "it has had a minute more than that", status: with(runs(211*time.Second), unstarted), unready: time.Hour, size: "1000M", want: facts{Idle: true, IdleLong: true}},
		"HasOpened":  {reason: "it has read all", status: runs(61 * time.Second), unready: time.Hour, size: "1000M", want: facts{Idle: true, IdleLong: true}},
		"Behind":     {reason: "the clock of its node is an hour behind", status: runs(time.Hour), unready: time.Hour, seen: 9 * time.Second},
		"BehindIdle": {reason: "and it has tried twice to propose its name", status: runs(time.Hour), unready: time.Hour, seen: 11 * time.Second, want: facts{Idle: true}},
		"BehindLong": {reason: "and nothing helps", status: runs(time.Hour), unready: time.Hour, seen: 61 * time.Second, want: facts{Idle: true, IdleLong: true}},
		"NotAtAll":   {reason: "it does not run", status: corev1.ContainerStatus{State: waiting("CrashLoopBackOff", "")}, unready: time.Hour},
		"NoStarted":  {reason: "the kubelet does not say whether it has opened a port", status: with(runs(100*time.Second), func(s *corev1.ContainerStatus) { s.Started = nil }), unready: time.Hour, size: "1000M", want: facts{Idle: true}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := newPod("db-0")
			pod.Status.ContainerStatuses = etcdStatus(tc.status)
			unready := readiness(corev1.ConditionFalse, now.Add(-tc.unready))
			unready.Reason = "ContainersNotReady"
			pod.Status.Conditions = []corev1.PodCondition{unready}
			size := resource.MustParse(order.Or(tc.size, "20M"))
			l := limits{now: now, stallBefore: now.Add(-order.Or(tc.patient, time.Minute)), readingTime: readingTime(size.Value()), unavailable: now}
			if tc.seen != 0 {
				l.first = map[string]time.Time{containerKey(pod): now.Add(-tc.seen)}
			}
			p := podFacts(newCluster(), pod, l)
			if diff := cmp.Diff(tc.want, facts{p.Idle, p.IdleLong}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
