package reconcile

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// written remembers the last write of each EtcdCluster by this process. It saves time and guards
// nothing: that is what resource versions do. controller-runtime's own
// EnableReadYourWritesConsistency waits without a bound, and is not for several namespaces.
type written struct{ last sync.Map } // lastWrite by types.NamespacedName

type lastWrite struct {
	version string
	at      time.Time
}

// catchUp is how long the cache is waited for. Versions that are lower for longer come of an API
// server whose data were restored.
const catchUp = time.Second

// quick is for how long after a write a learner is looked at more often. One that takes longer has
// more to fetch than a few looks matter for.
const quick = 5 * time.Second

func (w *written) remember(c *api.EtcdCluster) {
	w.last.Store(client.ObjectKeyFromObject(c), lastWrite{c.ResourceVersion, time.Now()})
}

func (w *written) forget(key types.NamespacedName) { w.last.Delete(key) }

// behind reports whether what was read is older than what was written: whatever was decided on it
// would end in a conflict, after every member had been asked for nothing.
func (w *written) behind(c *api.EtcdCluster) bool {
	last := w.of(client.ObjectKeyFromObject(c))
	order, err := resourceversion.CompareResourceVersion(c.ResourceVersion, last.version)
	return err == nil && order < 0 && time.Since(last.at) < catchUp
}

// lately reports whether the status of a cluster has changed just now.
func (w *written) lately(key types.NamespacedName) bool { return time.Since(w.of(key).at) < quick }

// of a cluster that nothing was written of, it is the zero lastWrite.
func (w *written) of(key types.NamespacedName) lastWrite {
	last, _ := w.last.Load(key)
	write, _ := last.(lastWrite)
	return write
}
