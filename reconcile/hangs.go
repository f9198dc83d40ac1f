package reconcile

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// PassTakes is how long a pass of a controller may take. What it waits for is given up then, and it
// is tried again with growing pauses. A webhook may hang for 30 s.
const PassTakes = 2 * time.Minute

// hangsAfter is how long a pass may go on before its worker counts as one that hangs: what it does
// has not ended with its time.
const hangsAfter = 2 * PassTakes

// underWay are the passes that go on, by cluster: there is one at a time for each.
type underWay struct {
	mu    sync.Mutex
	began map[types.NamespacedName]time.Time
}

// begin of a pass. It returns what ends it.
func (u *underWay) begin(key types.NamespacedName, now time.Time) (end func()) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.began == nil {
		u.began = map[types.NamespacedName]time.Time{}
	}
	u.began[key] = now
	return func() {
		u.mu.Lock()
		defer u.mu.Unlock()
		delete(u.began, key)
	}
}

// hangs says which pass does.
func (u *underWay) hangs(now time.Time) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	for key, began := range u.began {
		if now.Sub(began) > hangsAfter {
			return fmt.Errorf("the pass for EtcdCluster %s goes on for more than %s", key, hangsAfter)
		}
	}
	return nil
}

// Alive is an error while a worker hangs: nothing but another process helps then. It is a health
// check of the operator.
func (r *Reconciler) Alive(*http.Request) error { return r.underWay.hangs(time.Now()) }
