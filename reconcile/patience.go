package reconcile

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// How long members are waited for.

// limits of patience with the members of a cluster, as points in time.
type limits struct {
	now time.Time
	// stallBefore: a member that is down since before then has had time enough to start.
	// readingTime is what etcd that has opened no port yet has beside that.
	stallBefore time.Time
	readingTime time.Duration
	// replaceBefore: a member that is down since before then is replaced. replaceEmptyBefore is the
	// same of a member whose volume came back empty.
	replaceBefore, replaceEmptyBefore time.Time
	// pause: a younger Pod is not recreated for its kubelet's back-off.
	pause time.Duration
	// unavailable is since when a cluster that has formed is not available; zero: it is.
	// unavailableSeen is the same, since this process has seen it.
	unavailable, unavailableSeen time.Time
	// first is when this process saw a container first, by containerKey, and the end of one, by
	// endedKey; zero: in its first look.
	first   map[string]time.Time
	seen    sights
	refused map[string]refusedPod // by member
}

// limits of patience with a cluster.
func (r *Reconciler) limits(c *api.EtcdCluster, now time.Time) limits {
	unavailable, seen := unavailableSince(c, now), r.sightings.of(c, now)
	unavailableSeen := unavailable
	if !unavailable.IsZero() && !seen.down.since.IsZero() {
		unavailableSeen = seen.down.since
	}
	return limits{
		now:                now,
		stallBefore:        now.Add(-r.StallAfter),
		replaceBefore:      now.Add(-replaceAfter(c)),
		replaceEmptyBefore: now.Add(-replaceEmptyAfter(c)),
		pause:              pause(c, now.Sub(unavailable)),
		unavailable:        unavailable,
		unavailableSeen:    unavailableSeen,
		seen:               seen,
		refused:            r.refusedPods.all(c),
	}
}

// replaceAfter is spec.recovery.replaceAfter, by default the five minutes after which Kubernetes
// itself gives up the Pods of a node that does not answer (the tolerations that
// DefaultTolerationSeconds adds).
func replaceAfter(c *api.EtcdCluster) time.Duration {
	if r := c.Spec.Recovery; r != nil && r.ReplaceAfter != nil && *r.ReplaceAfter == api.Never {
		return never
	}
	d, err := time.ParseDuration(patience(c))
	if err != nil { // the schema refuses it
		return 5 * time.Minute
	}
	return d
}

// never is longer than any member has been down.
const never = 100 * 365 * 24 * time.Hour

// replaceEmptyAfter is spec.recovery.replaceEmptyAfter, by default half a minute: time for a mount
// that was late.
func replaceEmptyAfter(c *api.EtcdCluster) time.Duration {
	d, err := time.ParseDuration(emptyPatience(c))
	if err != nil { // the schema refuses it
		return 30 * time.Second
	}
	return d
}

// emptyPatience is replaceEmptyAfter as people write it.
func emptyPatience(c *api.EtcdCluster) string {
	if r := c.Spec.Recovery; r != nil && r.ReplaceEmptyAfter != nil {
		return string(*r.ReplaceEmptyAfter)
	}
	return "30s"
}

// patience is replaceAfter as people write it; empty for Never.
func patience(c *api.EtcdCluster) string {
	if r := c.Spec.Recovery; r != nil && r.ReplaceAfter != nil {
		if *r.ReplaceAfter == api.Never {
			return ""
		}
		return string(*r.ReplaceAfter)
	}
	return "5m"
}

// overdueFacts tell whether what keeps etcd from running has lasted longer than waiting helps, and
// what that is where no word of the kubelet says it.
func overdueFacts(p *membership.Pod, pod *corev1.Pod, since time.Time, l limits) {
	long := since.Before(l.stallBefore)
	if p.Problem == "" && long {
		p.Problem = restoreWaits(pod)
	}
	p.Overdue = p.Problem != "" && long && !inconsistent(pod)
	if p.Problem == "" {
		p.Problem, p.Unstarted = unstartedFacts(pod, since, l)
	}
}

// unstartedFacts are why the kubelet of a Pod may have started no etcd, where that lasts; and
// whether it has lasted so long that a person has to look. The node may say by a clock that is
// behind since when it is so: the API server says when the Pod was created, and this process has
// seen when its last init container had ended.
func unstartedFacts(pod *corev1.Pod, since time.Time, l limits) (problem string, long bool) {
	const attaches = 6 * time.Minute // from a node that is lost, and few images are pulled for longer
	starts := []time.Time{since, pod.CreationTimestamp.Time}
	for _, s := range pod.Status.InitContainerStatuses {
		if s.State.Terminated != nil {
			starts = append(starts, s.State.Terminated.FinishedAt.Time, l.first[endedKey(pod, s)])
		}
	}
	since = latest(starts...)
	if !since.Before(l.stallBefore) {
		return "", false
	}
	problem = neverStarted(pod)
	return problem, problem != "" && since.Before(l.now.Add(-attaches))
}
