package contract

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	api "quorate.dev/api/v1alpha1"
)

// Outages are the times in which a cluster that has served once says that it is not Available.
type Outages struct {
	mu      sync.Mutex
	served  bool
	begun   time.Time // of one that lasts; zero where none does
	longest time.Duration
	told    []string // what the status said in each
}

// WatchOutages of an EtcdCluster until the test or step ends that began it.
func WatchOutages(t Stage, c *api.EtcdCluster) *Outages {
	t.Helper()
	o := &Outages{}
	Follow(t, c, func(seen *api.EtcdCluster) { o.see(time.Now(), seen) })
	return o
}

func (o *Outages) see(now time.Time, c *api.EtcdCluster) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch available := meta.IsStatusConditionTrue(c.Status.Conditions, api.ConditionAvailable); {
	case available && !o.begun.IsZero():
		o.longest = max(o.longest, now.Sub(o.begun))
		o.begun = time.Time{}
	case available:
		o.served = true
	case o.served:
		if o.begun.IsZero() {
			o.begun = now
		}
		o.told = append(o.told, Describe(c))
	}
}

// Served reports whether the cluster was ever seen Available: before that there are no outages.
func (o *Outages) Served() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.served
}

// Take returns the longest one since it was last asked, and what the status said in all of them.
// One that lasts still counts from its beginning, here and the next time.
func (o *Outages) Take() (longest time.Duration, told []string) {
	return o.take(time.Now())
}

func (o *Outages) take(now time.Time) (longest time.Duration, told []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	longest, told = o.longest, o.told
	if !o.begun.IsZero() {
		longest = max(longest, now.Sub(o.begun))
	}
	o.longest, o.told = 0, nil
	return longest, told
}
