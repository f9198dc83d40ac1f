package reconcile

import (
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// What a Pod's readiness says of etcd. The condition Ready is about all containers and all
// readiness gates of a Pod, and two write it: the kubelet and the node controller.

// markedNotReady reports whether the node controller has taken the Pod's readiness back, because
// its node is not heard of. It sets Ready to False and changes nothing else (MarkPodsNotReady in
// pkg/controller/util/node/controller_utils.go, the same from Kubernetes 1.33 to 1.37): a condition
// that was True has no reason then, and ContainersReady stays True. The kubelet gives a reason
// wherever it finds a Pod not ready: ContainersNotReady, ReadinessGatesNotReady,
// UnknownContainerStatuses, PodFailed or PodCompleted (pkg/kubelet/status/generate.go). A Pod that
// its kubelet has found not ready before gets no mark: only its deletion, which Kubernetes decides
// five minutes later, tells that its node is away.
func markedNotReady(pod *corev1.Pod) bool {
	ready, containers := podstatus.Condition(pod, corev1.PodReady), podstatus.Condition(pod, corev1.ContainersReady)
	return ready != nil && ready.Status != corev1.ConditionTrue && ready.Reason == "" &&
		(containers == nil || containers.Status == corev1.ConditionTrue)
}

// nodeGone reports whether etcd runs as far as the kubelet has last said, and the node controller
// says that nothing has been heard of that since. Or the Pod was deleted, its grace is over, and no
// kubelet confirms it.
func nodeGone(pod *corev1.Pod, now time.Time) bool {
	if !pod.DeletionTimestamp.IsZero() {
		const margin = 10 * time.Second // for the kubelet to confirm that it has killed what did not end by itself
		return pod.Spec.NodeName != "" && pod.DeletionTimestamp.Add(margin).Before(now)
	}
	s := containerStatus(pod)
	return s != nil && s.Ready && s.State.Running != nil && markedNotReady(pod)
}

// evicting is how long Kubernetes may take to delete the Pods of a node that it has given up.
const evicting = time.Minute

// forgotten reports whether nothing has been heard of the node of a Pod for so long that Kubernetes
// would have deleted the Pod.
func forgotten(pod *corev1.Pod, l limits) bool {
	return pod.DeletionTimestamp.IsZero() && nodeGone(pod, l.now) &&
		podstatus.Condition(pod, corev1.PodReady).LastTransitionTime.Time.Before(l.replaceBefore.Add(-evicting))
}

// unreadyBesideEtcd is what else than etcd keeps the Pod from being ready, in words that follow its
// name; empty where nothing does.
func unreadyBesideEtcd(pod *corev1.Pod) string {
	ready := map[string]bool{}
	for _, s := range slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses) {
		ready[s.Name] = s.Ready
	}
	var unready []string
	for _, c := range pod.Spec.InitContainers {
		if sidecar(c) && !ready[c.Name] {
			unready = append(unready, "its container "+c.Name+" is not ready")
		}
	}
	for _, c := range pod.Spec.Containers {
		if c.Name != render.Container && !ready[c.Name] {
			unready = append(unready, "its container "+c.Name+" is not ready")
		}
	}
	for _, gate := range pod.Spec.ReadinessGates {
		if c := podstatus.Condition(pod, gate.ConditionType); c == nil || c.Status != corev1.ConditionTrue {
			unready = append(unready, "its readiness gate "+string(gate.ConditionType)+" is not True")
		}
	}
	return strings.Join(unready, ", ")
}

// sidecar reports whether an init container runs beside those that come after it.
func sidecar(c corev1.Container) bool {
	return c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways
}

// notReadySince is when the containers of the Pod stopped being ready or, where they never were,
// began. A Pod of last year whose container was restarted a second ago has had no more time than a
// new one. A readiness gate is no part of that.
func notReadySince(pod *corev1.Pod) time.Time {
	if c := podstatus.Condition(pod, corev1.ContainersReady); c != nil && c.Status != corev1.ConditionTrue && !c.LastTransitionTime.IsZero() {
		return c.LastTransitionTime.Time
	}
	if ready := podstatus.Condition(pod, corev1.PodReady); ready != nil && !ready.LastTransitionTime.IsZero() {
		return ready.LastTransitionTime.Time
	}
	return pod.CreationTimestamp.Time
}

// downSince is since when patience with the member runs. Where its readiness is not etcd's alone,
// it may have been taken back long before etcd went down: patience then runs since Quorate has
// found the member down at the earliest, as its status remembers.
func downSince(c *api.EtcdCluster, pod *corev1.Pod, now time.Time) time.Time {
	since := notReadySince(pod)
	containers := podstatus.Condition(pod, corev1.ContainersReady)
	if !pod.DeletionTimestamp.IsZero() && !markedNotReady(pod) && containers != nil && containers.Status == corev1.ConditionTrue {
		since = pod.DeletionTimestamp.Time // all that is known: it ran, and was to be gone by then
	}
	if unreadyBesideEtcd(pod) == "" && !markedNotReady(pod) || !votes(c, pod.Name) {
		return since
	}
	return later(since, lastSeen(c, pod.Name).DownSince, now)
}

// emptySince is since when patience with a volume that came back empty runs. The Pod tells how etcd
// has ended last, and not when it did so for the first time: its node may have been away for
// minutes before, with its data.
func emptySince(c *api.EtcdCluster, pod *corev1.Pod, down, now time.Time) time.Time {
	return later(down, lastSeen(c, pod.Name).EmptySince, now)
}

// latest of these times, of which there is one at least.
func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

// later of the two; now where the second one is not known yet.
func later(a time.Time, b *metav1.Time, now time.Time) time.Time {
	switch {
	case b == nil:
		return now
	case b.After(a):
		return b.Time
	default:
		return a
	}
}

// lastSeen is what the status remembers of a member.
func lastSeen(c *api.EtcdCluster, name string) api.MemberStatus {
	for _, m := range c.Status.Members {
		if m.Name == name {
			return m
		}
	}
	return api.MemberStatus{}
}

// votes reports whether the status remembers the member as a voter.
func votes(c *api.EtcdCluster, name string) bool {
	return slices.ContainsFunc(c.Status.Members, func(m api.MemberStatus) bool {
		return m.Name == name && m.ID != "" && m.Role != api.RoleLearner
	})
}

// readyFacts tells what the kubelet has found of etcd: whether it is ready, and whether that has
// been so, or the opposite, for longer than waiting helps. One look that fails
// is no such time: a cluster that has formed must have been without service for as long.
func readyFacts(pod *corev1.Pod, down time.Time, l limits) (ready, readyLong, unreadyLong bool) {
	s := containerStatus(pod)
	if s == nil || s.State.Running == nil || !pod.DeletionTimestamp.IsZero() || markedNotReady(pod) {
		return false, false, false
	}
	since := latest(s.State.Running.StartedAt.Time, l.unavailable)
	if s.Ready {
		for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
			if c := podstatus.Condition(pod, kind); c != nil && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(since) {
				since = c.LastTransitionTime.Time
			}
		}
		return true, since.Before(l.stallBefore), false
	}
	before := l.startedBefore(s)
	return false, false, since.Before(before) && down.Before(before)
}

// publishesTwice is when etcd has tried twice to propose its name, before which it serves no
// clients: a request to itself times out after 7 s.
const publishesTwice = 10 * time.Second

// startedBefore is when etcd of a container must have been started to have had time enough to
// serve. Before it opens a port it reads its data, which takes the longer the more there is.
func (l limits) startedBefore(s *corev1.ContainerStatus) time.Time {
	if s.Started != nil && *s.Started { // the probe of its start has passed
		return l.stallBefore
	}
	return l.stallBefore.Add(-l.readingTime)
}

// databaseToRead is the size of the largest member's database, in bytes, or of what its first
// members are restored from. Where neither is known, as when an EtcdCluster is created again over
// the volumes of an earlier one, the database may fill the volume; a new one is empty.
func databaseToRead(c *api.EtcdCluster, claim *corev1.PersistentVolumeClaim) int64 {
	var size int64
	if c.Status.DBSize != nil {
		size = c.Status.DBSize.Value()
	}
	inPlace := c.Status.Restore != nil && c.Status.Restore.Phase == api.RestoreRestoring // what was there may have been smaller
	if r := c.Status.Restored; r != nil && (size == 0 || inPlace) {
		size = max(size, r.Size)
	}
	switch {
	case size > 0:
		return size
	case claim != nil && claim.Annotations[api.AnnotationClusterID] != "":
		return capacity(claim).Value()
	default:
		return 0
	}
}

// readingTime is how long etcd may take to read a database of that size before it opens a port:
// 15 s for each 100 MB and what is left of them, which is what etcd's hardware guide expects of the
// slowest disk that it names (etcd.io/docs/v3.6/op-guide/hardware/#disks).
func readingTime(bytes int64) time.Duration {
	const each, takes = 100e6, 15 * time.Second
	const most = 1 << 50 // a member may say anything
	return takes * time.Duration(1+min(max(bytes-1, 0), most)/each)
}

// idleFacts tells whether etcd runs without being ready for longer than it takes by itself to try
// once more to serve, and for longer than waiting helps.
func idleFacts(pod *corev1.Pod, l limits) (idle, long bool) {
	s := containerStatus(pod)
	if s == nil || s.Ready || s.State.Running == nil || !pod.DeletionTimestamp.IsZero() || markedNotReady(pod) {
		return false, false
	}
	since := latest(s.State.Running.StartedAt.Time, notReadySince(pod), l.first[containerKey(pod)]) // the clock of its node may be behind
	idle = since.Before(l.now.Add(-publishesTwice))
	return idle, idle && since.Before(l.startedBefore(s))
}

// clearNodeLost takes back what the node controller says of a member that answers: its kubelet is
// away, and etcd is not.
func clearNodeLost(p *membership.Pod, pod *corev1.Pod) {
	if pod.DeletionTimestamp.IsZero() && markedNotReady(pod) {
		p.Problem, p.Damaged, p.Overdue, p.Forsaken = "", false, false, false
	}
}

// podsNotReady is the step of a cluster whose members serve, and whose Pods are kept from being
// ready by something beside etcd alone: the Service for clients leads to none of them. False where
// a member has yet to be found ready.
func podsNotReady(seen observed, stallBefore time.Time) (membership.Step, bool) {
	var why []string
	lasts := true
	for name, pod := range seen.pods {
		s, what := containerStatus(pod), unreadyBesideEtcd(pod)
		if s == nil || !s.Ready || what == "" {
			return membership.Step{}, false
		}
		why = append(why, name+" ("+what+")")
		ready := podstatus.Condition(pod, corev1.PodReady)
		lasts = lasts && ready != nil && ready.LastTransitionTime.Time.Before(stallBefore)
	}
	slices.Sort(why)
	step := membership.Step{
		Action: membership.Wait, Reason: membership.Reason(api.ReasonPodsNotReady),
		Message: "etcd serves, and the Service for clients has no ready endpoint, because of other containers or readiness gates: " + strings.Join(why, "; "),
	}
	if lasts {
		step.Action = membership.Stall
		step.Message += ". Repair these containers and readiness gates; where an admission policy adds them, change the policy, and then delete one Pod after the other"
	}
	return step, len(why) > 0
}
