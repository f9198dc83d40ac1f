package reconcile

import (
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// An answer is not yet success. etcd may answer from what its member was changed to, and end a
// moment later: a limit of memory shows when the database is read, and clients come back. With a
// limit of cpu it may answer now and then. So a member has to stay ready for a while before the
// next one is changed, and before its volume says that it has served with what it has.

// How long a member has to be ready.
const (
	// provesInPlace is after its container was started again where it is, or resized. etcd has read
	// its log and answered a linearizable read by then. It is short, because each member of a
	// rollout waits so long.
	provesInPlace = 500 * time.Millisecond
	// probesTake is how long after that its kubelet may take to find it ready. A kubelet finds a
	// container that was started again as ready as the one before, until its probes begin, each
	// within a second: that says nothing in this time. What the member itself answers does.
	probesTake = 5 * time.Second
	// provesNew is after a new Pod, which may have other flags and another node: three probes of
	// its readiness, one a second.
	provesNew = 3 * time.Second
	// provesTried is with a lower limit of cpu, memory or local storage, or after a crash: longer
	// than the first back-off of a kubelet, 10 s, and the second, 20 s, and than the 10 s between
	// two looks of a kubelet at local storage. etcd that crashes again and again is seen to wait by
	// then.
	provesTried = 30 * time.Second
)

// whileProving is the longest time between two looks at a member that is to stay ready: it has to
// answer in each of them.
const whileProving = provesNew + rounding

// rounding is what a time in the API may be too early: it is kept in whole seconds.
const rounding = time.Second

// proofs remembers since when this process has seen containers do well, by cluster and container.
// It shortens the wait to what is asked for, and is no truth: the status of a Pod tells the same to
// the second. But that is the time of its node, whose clock may be behind: of a container that did
// not do well when it was looked at last it counts from then on.
type proofs struct {
	mu    sync.Mutex
	looks map[types.NamespacedName]lastLook
	// first is when this process saw the containers of the last look first; zero where that was its
	// first look at their cluster, in which they may have run for days.
	first map[types.NamespacedName]map[string]time.Time
}

// lastLook is when a cluster was looked at last, and what did well then.
type lastLook struct {
	at   time.Time
	well map[string]seenWell
}

// seen remembers which containers there are now, and returns when each was seen first.
func (p *proofs) seen(key types.NamespacedName, containers []string, now time.Time) map[string]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, looked := p.first[key]
	next := map[string]time.Time{}
	for _, id := range containers {
		first, known := before[id]
		if !known && looked {
			first = now
		}
		next[id] = first
	}
	if p.first == nil {
		p.first = map[types.NamespacedName]map[string]time.Time{}
	}
	p.first[key] = next
	return next
}

// seenWell is since when a container was seen to do well, and when it was last seen not to; zero
// where it never was.
type seenWell struct{ since, not time.Time }

// look remembers which containers do well now, and since when.
func (p *proofs) look(key types.NamespacedName, containers []string, now time.Time) map[string]seenWell {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, next := p.looks[key], lastLook{now, map[string]seenWell{}}
	for _, id := range containers {
		next.well[id] = seenWell{since: now, not: before.at}
		if seen, known := before.well[id]; known {
			next.well[id] = seen
		}
	}
	if p.looks == nil {
		p.looks = map[types.NamespacedName]lastLook{}
	}
	p.looks[key] = next
	return next.well
}

func (p *proofs) forget(key types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.looks, key)
	delete(p.first, key)
}

// prove tells of each member whether it has done well for long enough, and returns how long it
// takes until the first of those has that do and have not yet; 0 where there is none.
func (r *Reconciler) prove(c *api.EtcdCluster, seen *observed, first map[string]time.Time, now time.Time) (next time.Duration) {
	all := r.proving.look(client.ObjectKeyFromObject(c), doWell(c, *seen, first, now), now)
	for n := range seen.Instances {
		i := &seen.Instances[n]
		pod := seen.pods[i.Name]
		if pod == nil {
			continue
		}
		s := containerStatus(pod)
		i.Pod.Crashed = s != nil && endedByItself(s)
		id := containerKey(pod)
		seenTo, well := all[id]
		if !well {
			i.Pod.Unproved = true
			continue
		}
		left := proves(c, seen.claims[i.Name], pod, *i, seenTo, first[id], now)
		if left <= 0 {
			continue
		}
		i.Pod.Unproved = true
		if next == 0 || left < next {
			next = left
		}
	}
	return next
}

// firstSeen is when this process saw the container of etcd in each Pod first, and the end of each
// container before it.
func (r *Reconciler) firstSeen(c *api.EtcdCluster, pods map[string]*corev1.Pod, now time.Time) map[string]time.Time {
	all := make([]string, 0, len(pods))
	for _, pod := range pods {
		all = append(all, containerKey(pod))
		for _, s := range pod.Status.InitContainerStatuses {
			if s.State.Terminated != nil {
				all = append(all, endedKey(pod, s))
			}
		}
	}
	return r.proving.seen(client.ObjectKeyFromObject(c), all, now)
}

// endedKey names an init container of a Pod that has ended.
func endedKey(pod *corev1.Pod, s corev1.ContainerStatus) string {
	return pod.Name + "/" + s.ContainerID + " has ended"
}

// containerKey names the container of etcd in a Pod, as it is now.
func containerKey(pod *corev1.Pod) string {
	return pod.Name + "/" + ptr.Deref(containerStatus(pod), corev1.ContainerStatus{}).ContainerID
}

// doWell are the members and containers in which etcd does well now: the kubelet finds it ready or,
// before its probes, etcd itself answers. One that has something new has to do both.
func doWell(c *api.EtcdCluster, seen observed, first map[string]time.Time, now time.Time) (well []string) {
	for _, i := range seen.Instances {
		pod := seen.pods[i.Name]
		if pod == nil {
			continue
		}
		id := containerKey(pod)
		does := i.Pod.Ready && (i.Serves() || !i.OnTrial())
		if beforeProbes(c, seen.claims[i.Name], pod, i, first[id], now) {
			does = i.Serves()
		}
		if does {
			well = append(well, id)
		}
	}
	return well
}

// proves is how long it takes until a member that does well, and was seen to, has done so for long
// enough. Of one that was probed its kubelet may know that it has been ready for longer; but not
// that one on trial has also answered, where this process looks for the first time.
func proves(c *api.EtcdCluster, claim *corev1.PersistentVolumeClaim, pod *corev1.Pod, i membership.Instance, seen seenWell, first, now time.Time) time.Duration {
	since, ready := seen.since, readySince(pod)
	if ready.Before(seen.not) {
		ready = seen.not
	}
	if ready.Before(since) && !beforeProbes(c, claim, pod, i, first, now) && (!seen.not.IsZero() || !i.OnTrial()) {
		since = ready
	}
	left := since.Add(provesAfter(c, claim, pod, i)).Sub(now)
	if resized, ok := resizedAt(pod, i); ok && !resized.After(now.Add(rounding)) { // else the clock of the API server is ahead
		stays := provesInPlace
		if lowersLimit(c, claim, pod) {
			stays = provesTried
		}
		left = max(left, resized.Add(stays).Sub(now))
	}
	return left
}

// beforeProbes reports whether etcd was started again where it is, as it was asked to, and so
// lately that its kubelet may not have probed it yet. When that was the kubelet says by the clock
// of its node, which may be behind; first is when this process saw the container first.
func beforeProbes(c *api.EtcdCluster, claim *corev1.PersistentVolumeClaim, pod *corev1.Pod, i membership.Instance, first, now time.Time) bool {
	s := containerStatus(pod)
	return s != nil && s.State.Running != nil && s.RestartCount > 0 && provesAfter(c, claim, pod, i) == provesInPlace &&
		pod.DeletionTimestamp.IsZero() && (s.State.Running.StartedAt.Add(probesTake).After(now) || first.Add(probesTake).After(now))
}

// readySince is since when the kubelet has found etcd ready, at the latest.
func readySince(pod *corev1.Pod) time.Time {
	since := containerStatus(pod).State.Running.StartedAt.Time
	for _, kind := range []corev1.PodConditionType{corev1.ContainersReady, corev1.PodReady} {
		if c := podstatus.Condition(pod, kind); c != nil && c.Status == corev1.ConditionTrue && c.LastTransitionTime.After(since) {
			since = c.LastTransitionTime.Time
		}
	}
	return since.Add(rounding)
}

// provesAfter is how long the member of a Pod has to be ready.
func provesAfter(c *api.EtcdCluster, claim *corev1.PersistentVolumeClaim, pod *corev1.Pod, i membership.Instance) time.Duration {
	s := containerStatus(pod)
	switch {
	case endedByItself(s), slices.Contains(i.Pod.Untried, "resources") && lowersLimit(c, claim, pod):
		return provesTried
	case s.RestartCount == 0:
		return provesNew
	default:
		return provesInPlace
	}
}

// endedByItself reports whether the container before this one was not asked to end: etcd exits with
// 0 after SIGTERM as the first process of its container, and else of the signal.
func endedByItself(s *corev1.ContainerStatus) bool {
	const terminated = 128 + 15
	exit := podstatus.LastExit(s)
	return exit != nil && (exit.ExitCode != 0 && exit.ExitCode != terminated || exit.Reason == podstatus.OOMKilled)
}

// lowersLimit reports whether a Pod may use less cpu, memory or local storage than its member has
// served with.
func lowersLimit(c *api.EtcdCluster, claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) bool {
	served, ok := render.AsServed(c, said(claim))
	if !ok {
		return false
	}
	before := ptr.Deref(served.Spec.Resources, api.Resources{}).Limits
	for _, of := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory, corev1.ResourceEphemeralStorage} {
		now, limited := etcdContainer(pod).Resources.Limits[of]
		if had, bounded := before[of]; limited && (!bounded || now.Cmp(had) < 0) {
			return true
		}
	}
	return false
}

// resizedAt is when the cpu and memory of a running Pod were changed, where its member has not
// served with them yet.
func resizedAt(pod *corev1.Pod, i membership.Instance) (time.Time, bool) {
	applied := appliedAt(pod)
	return applied.Add(rounding), slices.Equal(i.Pod.Untried, []string{"resources"}) &&
		applied.Sub(containerStatus(pod).State.Running.StartedAt.Time) > provesNew
}

// starved reports whether etcd was killed for want of memory since the Pod was applied last.
func starved(pod *corev1.Pod) bool {
	s := containerStatus(pod)
	if s == nil {
		return false
	}
	exit := podstatus.LastExit(s)
	return exit != nil && exit.Reason == podstatus.OOMKilled && !exit.FinishedAt.Time.Before(appliedAt(pod))
}

// again is when to look again, if no watch tells earlier: a member that was changed has proved
// itself then, and everything else that is waited for meanwhile has a watch.
func again(seen observed, step membership.Step, lately bool) time.Duration {
	wait := after(step, lately)
	if step.Action == membership.Wait && step.Reason == membership.Bootstrapping && !slices.ContainsFunc(slices.Collect(maps.Values(seen.pods)), listens) {
		return whileWaiting // there is no member to ask yet, and the watch of Pods tells when there is
	}
	only := step.Action == membership.Wait && step.Reason == membership.Changing && !slices.ContainsFunc(seen.Instances, func(i membership.Instance) bool {
		return i.Pod.Changing || !i.Serves()
	})
	switch {
	case seen.proves == 0:
		return wait
	case only:
		return min(seen.proves, whileProving)
	default:
		return min(wait, seen.proves)
	}
}
