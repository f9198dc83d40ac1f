package reconcile

import (
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
)

// refusedPods are the Pods that the API server did not let the operator create, by cluster and
// member, and since when. The condition Stalled is no such fact: it may speak of another act, of
// another member or of another spec, and its time is that of the first of them. They are in memory
// alone: an operator that starts tries to create each Pod once more.
type refusedPods struct {
	mu sync.Mutex
	of map[types.NamespacedName]map[string]refusedPod
}

// refusedPod is a Pod that was refused: of what it was made, what the API server said, and when it
// said so first and last.
type refusedPod struct {
	madeOf  string
	message string
	since   time.Time
	last    time.Time
}

// refusalLapses is how long a refusal counts: longer than the pause between two tries. Where other
// steps came first for that long, nothing is known of what the API server would say now.
const refusalLapses = 2 * time.Minute

// madeOf names what the Pod of a member is made of, over its very volume.
func madeOf(of *api.EtcdCluster, claim *corev1.PersistentVolumeClaim) string {
	return string(claim.UID) + render.Served(of, "")
}

// remember what became of the creation of a Pod.
func (r *refusedPods) remember(c *api.EtcdCluster, name, madeOf string, err error, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := client.ObjectKeyFromObject(c)
	switch {
	case err == nil:
		delete(r.of[key], name)
	case refuses(err):
		last := refusedPod{madeOf, "the API server refuses what the spec asks for: " + refusalOf(err), now, now}
		if before, again := r.of[key][name]; again && before.madeOf == madeOf && now.Sub(before.last) < refusalLapses {
			last.since = before.since
		}
		if r.of == nil {
			r.of = map[types.NamespacedName]map[string]refusedPod{}
		}
		if r.of[key] == nil {
			r.of[key] = map[string]refusedPod{}
		}
		r.of[key][name] = last
	}
}

// all are the refused Pods of a cluster, by member.
func (r *refusedPods) all(c *api.EtcdCluster) map[string]refusedPod {
	r.mu.Lock()
	defer r.mu.Unlock()
	return maps.Clone(r.of[client.ObjectKeyFromObject(c)])
}

// forget a cluster that is gone.
func (r *refusedPods) forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.of, key)
}
