package reconcile

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// A status says by the clock of its writer since when a majority is lost, or a cluster does not
// serve. By the clock of another operator that may be an hour ago though it was a second. So it
// counts since this process has seen it, on the monotonic clock. It was written before that: by a
// right clock, that of the API server as well, at least so much time has passed.
//
// Nothing of this is truth that a restart loses: what is forgotten is waited for once more.

// sightings remembers since when this process has seen what the statuses of clusters say.
type sightings struct {
	mu   sync.Mutex
	seen map[types.NamespacedName]sights
}

// sights are those of one cluster.
type sights struct {
	loss sight // status.quorumLoss.since
	gone sight // status.quorumLoss.lostSince
	down sight // the condition Available is not True
}

// sight is since when something was seen; the zero sight: it is not so.
type sight struct {
	what  string
	since time.Time
}

func (s sight) again(what string, now time.Time) sight {
	if s.what == what {
		return s
	}
	return sight{what, now}
}

// of a cluster, as its status is now.
func (s *sightings) of(c *api.EtcdCluster, now time.Time) sights {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := client.ObjectKeyFromObject(c)
	was, is := s.seen[key], sights{}
	if loss := c.Status.QuorumLoss; loss != nil {
		is.loss = was.loss.again(fmt.Sprint(c.UID, loss.ClusterID, loss.Since.Unix()), now)
		if loss.LostSince != nil {
			is.gone = was.gone.again(fmt.Sprint(c.UID, loss.ClusterID, loss.LostSince.Unix()), now)
		}
	}
	if available := meta.FindStatusCondition(c.Status.Conditions, api.ConditionAvailable); available != nil && available.Status != metav1.ConditionTrue {
		is.down = was.down.again(fmt.Sprint(c.UID, available.LastTransitionTime.Unix()), now)
	}
	if s.seen == nil {
		s.seen = map[types.NamespacedName]sights{}
	}
	s.seen[key] = is
	return is
}

func (s *sightings) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.seen, key)
}

// asWritten are the times that a status says, for one look alone.
func asWritten(c *api.EtcdCluster) sights {
	is := sights{}
	if loss := c.Status.QuorumLoss; loss != nil {
		is.loss.since = loss.Since.Time
		if loss.LostSince != nil {
			is.gone.since = loss.LostSince.Time
		}
	}
	return is
}
