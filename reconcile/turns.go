package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// turns limits how many clusters are updated at a time (--max-changing): one commit may change the
// version of a hundred clusters, and a hundred leader elections at once would be too many. A free
// turn goes to the namespace with the fewest turns, of equal ones to the one that got none for the
// longest time, and there to the cluster that asked first. A cluster asks in its first pass that
// has nothing else to do before the update, for example because all members answer. Its place in
// the order survives a restart of the operator, to the second: it is the time of the condition
// Reconciling. Turns limit disruption. They are no lock: two operators that run at once each give
// turns.
type turns struct {
	// wake queues a pass over a cluster; nil in unit tests of turns.
	wake func(types.NamespacedName)

	mu      sync.Mutex
	resumed bool
	taken   map[types.NamespacedName]bool
	// saving has, for each cluster that takes a snapshot before its update, when this process first
	// saw that.
	saving map[types.NamespacedName]time.Time
	// last is the last step of each cluster with a turn.
	last    map[types.NamespacedName]lastStep
	waiting []asker // in the order in which they asked first
	// lately are the namespaces that got a turn while others of their clusters wait, the last one
	// at the end.
	lately []string
}

// snapshotTurn is how long a cluster keeps its turn while it takes the snapshot before its update.
// So a hundred clusters that are changed at once do not all take snapshots at once. A large
// database or a slow store may take hours, and no member is down meanwhile. So after this time
// other clusters get the turn, and the cluster waits for another turn when its snapshot is
// verified.
const snapshotTurn = 10 * time.Minute

// idleTurn is how long a cluster keeps its turn without a new step. It may wait for a volume that
// never grows or a node that never comes back, and the other clusters must get their update, such
// as a security patch. The cluster goes on to wait, and asks for another turn before its next
// change. After a restart of the operator the time begins again.
const idleTurn = 15 * time.Minute

// lastStep is the last step of a cluster, and when it was first seen.
type lastStep struct {
	step string
	at   time.Time
}

// asker is a cluster that waits for its turn. asks is false while the cluster has something else to
// do first, such as to wait for a member: it keeps its place, and others may go before it.
type asker struct {
	types.NamespacedName
	asks bool
}

// place is the index of a cluster in waiting; -1: it does not wait.
func (t *turns) place(key types.NamespacedName) int {
	return slices.IndexFunc(t.waiting, func(a asker) bool { return a.NamespacedName == key })
}

// queuedError says that the limit of clusters that are updated at a time is reached. slow names
// those that have taken no step for slowTurn; it may be empty.
type queuedError struct {
	limit int
	slow  string
}

func (e queuedError) Error() string {
	message := fmt.Sprintf("waiting for its turn behind other clusters, of which at most %d change at a time (--max-changing)", e.limit)
	if e.slow != "" {
		message += "; of those, " + e.slow + " took no step for more than a minute"
	}
	return message
}

// slowTurn is how long a cluster with a turn must have taken no step to be named in the messages of
// waiting clusters. If all were named, each step would change all these messages, at the cost of
// one write each. The text of queuedError has the same time in words.
const slowTurn = time.Minute

// mostNamed is how many clusters are named in one message.
const mostNamed = 5

// slow names the clusters with a turn that have taken no step for slowTurn. Clusters of other
// namespaces are only counted: the reader may have no right to know their names.
func (t *turns) slow(namespace string, now time.Time) string {
	var names []string
	others := 0
	for key, last := range t.last {
		switch {
		case !t.taken[key] || now.Sub(last.at) < slowTurn:
		case key.Namespace == namespace:
			names = append(names, key.Name)
		default:
			others++
		}
	}
	slices.Sort(names)
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed], fmt.Sprintf("%d more", more))
	}
	if others > 0 {
		names = append(names, fmt.Sprintf("%d in other namespaces", others))
	}
	return strings.Join(names, ", ")
}

// Turns are the clusters that have a turn to change, and those that wait for one, in their order.
func (r *Reconciler) Turns() (have, wait []types.NamespacedName) { return r.changing.holders() }

// holders are the clusters that have a turn, and those that wait for one.
func (t *turns) holders() (have, wait []types.NamespacedName) {
	t.mu.Lock()
	defer t.mu.Unlock()
	have = slices.Collect(maps.Keys(t.taken))
	for _, a := range t.waiting {
		wait = append(wait, a.NamespacedName)
	}
	return have, wait
}

// resume restores the turns after a restart of the operator, from the status of each cluster. A
// cluster that was not at rest may have members down, and has a turn. A cluster that waited goes on
// to wait, in the same order. Clusters with a turn, or next for one, get a pass before all others.
func (t *turns) resume(ctx context.Context, reader client.Reader, limit int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.resumed {
		return nil
	}
	all := &api.EtcdClusterList{}
	if err := reader.List(ctx, all); err != nil {
		return fmt.Errorf("list EtcdClusters: %w", err)
	}
	t.resumed, t.taken = true, map[types.NamespacedName]bool{}
	slices.SortStableFunc(all.Items, func(a, b api.EtcdCluster) int {
		return cmp.Or(reconcilingSince(&a).Compare(reconcilingSince(&b)), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	for i := range all.Items {
		c := &all.Items[i]
		key := client.ObjectKeyFromObject(c)
		reconciling := meta.FindStatusCondition(c.Status.Conditions, api.ConditionReconciling)
		switch {
		case c.Status.ClusterID == "": // it has never served
		case c.Status.Operation != nil:
			t.taken[key] = true
		case reconciling == nil:
		case reconciling.Reason == api.ReasonQueued:
			t.waiting = append(t.waiting, asker{key, true})
		default:
			t.taken[key] = true
		}
		if t.taken[key] {
			t.look(key)
		}
	}
	for _, key := range t.next(limit) {
		t.look(key)
	}
	return nil
}

func (t *turns) look(key types.NamespacedName) {
	if t.wake != nil {
		t.wake(key)
	}
}

// enter gives the cluster a turn, if it has none yet and is next. Otherwise it returns a
// queuedError.
func (t *turns) enter(c *api.EtcdCluster, limit int) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	key := client.ObjectKeyFromObject(c)
	if t.taken[key] {
		return nil
	}
	n := t.place(key)
	if n < 0 {
		n = len(t.waiting)
		t.waiting = append(t.waiting, asker{key, true})
	}
	t.waiting[n].asks = true
	if limit > 0 && !slices.Contains(t.next(limit), key) {
		return queuedError{limit, t.slow(c.Namespace, time.Now())}
	}
	t.waiting = slices.Delete(t.waiting, n, n+1)
	if t.taken == nil {
		t.taken = map[types.NamespacedName]bool{}
	}
	t.taken[key] = true
	t.lately = append(slices.DeleteFunc(t.lately, func(namespace string) bool {
		waits := slices.ContainsFunc(t.waiting, func(a asker) bool { return a.Namespace == namespace })
		return namespace == key.Namespace || !waits
	}), key.Namespace)
	return nil
}

// next are the waiting clusters that get the free turns.
func (t *turns) next(limit int) []types.NamespacedName {
	if len(t.taken) >= limit {
		return nil
	}
	have := map[string]int{} // by namespace
	for key := range t.taken {
		have[key.Namespace]++
	}
	lately := slices.Clone(t.lately)
	before := func(a, b string) bool {
		return cmp.Or(cmp.Compare(have[a], have[b]), cmp.Compare(slices.Index(lately, a), slices.Index(lately, b))) < 0
	}
	var asking, next []types.NamespacedName
	for _, a := range t.waiting {
		if a.asks {
			asking = append(asking, a.NamespacedName)
		}
	}
	for len(asking) > 0 && len(next) < limit-len(t.taken) {
		first := 0
		for n, key := range asking {
			if before(key.Namespace, asking[first].Namespace) {
				first = n
			}
		}
		namespace := asking[first].Namespace
		have[namespace]++
		lately = append(slices.DeleteFunc(lately, func(other string) bool { return other == namespace }), namespace)
		next = append(next, asking[first])
		asking = slices.Delete(asking, first, first+1)
	}
	return next
}

// leave is called after each pass. It takes the turn of a cluster that is at rest or stalled, whose
// snapshot takes longer than snapshotTurn, or that has taken no step for idleTurn; if such a
// cluster was waiting, it loses its place. The clusters that are next then get a pass.
func (t *turns) leave(key types.NamespacedName, limit int, step membership.Step, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := t.next(limit)
	rests := step.Action == membership.None || step.Action == membership.Stall || t.savesLong(key, step, now) || t.idlesLong(key, step, now)
	if rests {
		delete(t.taken, key)
		delete(t.last, key)
	}
	if step.Action == membership.None || step.Action == membership.Stall {
		delete(t.saving, key)
	}
	switch n := t.place(key); {
	case n < 0:
	case rests:
		t.waiting = slices.Delete(t.waiting, n, n+1)
	default:
		t.waiting[n].asks = step.Reason == membership.Reason(api.ReasonQueued)
	}
	for _, next := range t.next(limit) {
		if !slices.Contains(before, next) {
			t.look(next)
		}
	}
}

// idlesLong reports whether a cluster with a turn has taken no new step for idleTurn. A wait is no
// step.
func (t *turns) idlesLong(key types.NamespacedName, step membership.Step, now time.Time) bool {
	if !t.taken[key] {
		return false
	}
	last, known := t.last[key]
	if !known || step.Action != "" && step.Acts() && step.String() != last.step {
		if t.last == nil {
			t.last = map[types.NamespacedName]lastStep{}
		}
		t.last[key] = lastStep{step.String(), now}
		return false
	}
	return now.Sub(last.at) >= idleTurn
}

// savesLong reports whether the snapshot before a cluster's update has taken longer than
// snapshotTurn. A pass that ended before a step was decided changes nothing.
func (t *turns) savesLong(key types.NamespacedName, step membership.Step, now time.Time) bool {
	since, known := t.saving[key]
	switch {
	case step.Reason == membership.BackingUp && !known:
		if t.saving == nil {
			t.saving = map[types.NamespacedName]time.Time{}
		}
		t.saving[key] = now
		return false
	case step.Reason == membership.BackingUp:
		return now.Sub(since) >= snapshotTurn
	case step.Action != "":
		delete(t.saving, key)
	}
	return false
}

// shown is the step as the status tells it: what the API server has refused stays refused while it
// waits to be tried again.
func shown(c *api.EtcdCluster, step membership.Step) membership.Step {
	if said := refusal(c); said != nil && step.Reason == membership.Reason(api.ReasonQueued) {
		return membership.Step{Action: membership.Stall, Reason: membership.Reason(said.Reason), Message: said.Message}
	}
	return step
}

// reconcilingSince is when a cluster stopped being at rest; zero where it is.
func reconcilingSince(c *api.EtcdCluster) time.Time {
	if condition := meta.FindStatusCondition(c.Status.Conditions, api.ConditionReconciling); condition != nil {
		return condition.LastTransitionTime.Time
	}
	return time.Time{}
}
