package reconcile

import (
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// How long a change that the API server has refused in earnest is not tried again: the second time
// twice as long, and so on. A policy that is gone wakes nothing.
const (
	firstPause = 30 * time.Second
	lastPause  = 8 * time.Minute
)

// refusals are the changes that the API server refused in earnest, by cluster. An operator that
// starts knows of none, and tries each once. A spec that has changed since is tried at once. Only
// Update, Expand and Repair are paused: every other step is tried at each look.
type refusals struct {
	mu sync.Mutex
	of map[types.NamespacedName]map[string]refusedChange // by action and members
}

type refusedChange struct {
	uid        types.UID
	generation int64
	err        error
	pause      time.Duration
	until      time.Time
}

// pending is what the API server said to a change that is not to be tried again yet; else nil.
func (r *refusals) pending(c *api.EtcdCluster, step membership.Step, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if last, ok := r.last(c, step); ok && now.Before(last.until) {
		return last.err
	}
	return nil
}

// remember what became of a step.
func (r *refusals) remember(c *api.EtcdCluster, step membership.Step, err error, now time.Time) {
	if step.Action != membership.Update && step.Action != membership.Expand && step.Action != membership.Repair {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	last, again := r.last(c, step)
	key := client.ObjectKeyFromObject(c)
	switch {
	case err == nil:
		delete(r.of[key], changeKey(step))
	case !refuses(err) || again && now.Before(last.until): // or it was not tried
	default:
		pause := firstPause
		if again {
			pause = min(2*last.pause, lastPause)
		}
		if r.of == nil {
			r.of = map[types.NamespacedName]map[string]refusedChange{}
		}
		if r.of[key] == nil {
			r.of[key] = map[string]refusedChange{}
		}
		r.of[key][changeKey(step)] = refusedChange{c.UID, c.Generation, err, pause, now.Add(pause)}
	}
}

// growth reports whether the API server has refused larger volumes for this spec.
func (r *refusals) growth(c *api.EtcdCluster) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	for change, last := range r.of[client.ObjectKeyFromObject(c)] {
		if strings.HasPrefix(change, string(membership.Expand)+" ") && last.asks(c) {
			return true
		}
	}
	return false
}

// ofRepair is what the API server has said to the Repair of a member while that is paused; else
// empty. Whatever else heals the cluster goes on meanwhile.
func (r *refusals) ofRepair(c *api.EtcdCluster, name string, now time.Time) string {
	for _, change := range []membership.Change{membership.ChangeResources, membership.ChangeImage} {
		if err := r.pending(c, membership.Step{Action: membership.Repair, Change: change, Members: []string{name}}, now); err != nil {
			return refusalOf(err)
		}
	}
	return ""
}

// forget a cluster that is gone.
func (r *refusals) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, key)
}

// last is the last refusal of the same change; false where the spec is another one by now.
func (r *refusals) last(c *api.EtcdCluster, step membership.Step) (refusedChange, bool) {
	last, ok := r.of[client.ObjectKeyFromObject(c)][changeKey(step)]
	return last, ok && last.asks(c)
}

// asks reports whether the spec still asks for what was refused.
func (r refusedChange) asks(c *api.EtcdCluster) bool {
	return r.uid == c.UID && r.generation == c.Generation
}

func changeKey(step membership.Step) string {
	return strings.Join(append([]string{string(step.Action), string(step.Change)}, step.Members...), " ")
}
