package reconcile

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// The data of the voters is compared beside the passes, since reading 2 GB takes seconds: one member
// after the other, and the leader last, since a member applies nothing while it reads. What comes of
// it is a fact as long as it is about the voters that there are. It is kept in memory alone: an
// operator that starts compares again.

const (
	// mostComparing is how many clusters are compared at a time.
	mostComparing = 2
	// inPass is how long a pass waits for a comparison: a small database takes some milliseconds.
	inPass = 100 * time.Millisecond
	// comparingShare is the part of the time that comparisons may take: one in so many.
	comparingShare = 100
	// compareAtRest is how often a cluster is compared in which nothing happens, at most.
	compareAtRest = 5 * time.Minute
	// compareAgain is when one is tried again on which a step waits.
	compareAgain = time.Second
	// mostUnanswered is what one counts for at most that has waited for a member in vain.
	mostUnanswered = 10 * time.Second
)

// comparisons are those of all clusters.
type comparisons struct {
	// wake has a cluster looked at again; nil where nobody looks.
	wake func(types.NamespacedName)

	mu      sync.Mutex
	slots   chan struct{}
	cluster map[types.NamespacedName]*comparison
}

// comparison of one cluster: the last one, and the one that runs.
type comparison struct {
	about  string // the voters and alarms that it is about
	hashes map[string]membership.Hash
	whole  bool // each voter that serves was compared
	differ bool
	ended  time.Time
	took   time.Duration

	running chan struct{} // closed at its end; nil where none runs
	subject string        // of the one that runs
	late    bool          // the pass that began it has not got it
	cancel  context.CancelFunc
}

// compared adds to the instances what is known of their data, and begins a comparison where one is due.
func (r *Reconciler) compared(ctx context.Context, c *api.EtcdCluster, seen *observed) {
	serving := toCompare(seen)
	if len(serving) < 2 || seen.ClusterID == 0 {
		return
	}
	key, about := client.ObjectKeyFromObject(c), subject(c, seen)
	if running := r.comparing.begin(ctx, key, about, urgent(c, seen), func(ctx context.Context) (map[string]membership.Hash, bool) {
		return r.compareData(ctx, serving)
	}); running != nil {
		select {
		case <-running:
		case <-time.After(inPass):
			r.comparing.late(key)
		case <-ctx.Done():
		}
	}
	hashes := r.comparing.result(key, about)
	for n := range seen.Instances {
		if i := &seen.Instances[n]; i.Endpoint.Answered() {
			i.Hash = hashes[i.Name]
		}
	}
}

// forget a cluster that is gone.
func (all *comparisons) forget(key types.NamespacedName) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if k := all.cluster[key]; k != nil && k.running != nil {
		k.cancel()
	}
	delete(all.cluster, key)
}

// late: the pass that has begun a comparison goes on without it.
func (all *comparisons) late(key types.NamespacedName) {
	all.mu.Lock()
	defer all.mu.Unlock()
	if k := all.cluster[key]; k != nil && k.running != nil {
		k.late = true
	}
}

// result of the last comparison, where it was about this.
func (all *comparisons) result(key types.NamespacedName, about string) map[string]membership.Hash {
	all.mu.Lock()
	defer all.mu.Unlock()
	if k := all.cluster[key]; k != nil && k.about == about {
		return k.hashes
	}
	return nil
}

// begin a comparison, where one is due. It returns the end of the one that runs and is about this.
func (all *comparisons) begin(ctx context.Context, key types.NamespacedName, about string, urgent bool, compare func(context.Context) (map[string]membership.Hash, bool)) <-chan struct{} {
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.cluster == nil {
		all.cluster, all.slots = map[types.NamespacedName]*comparison{}, make(chan struct{}, mostComparing)
	}
	k := all.cluster[key]
	if k == nil {
		k = &comparison{}
		all.cluster[key] = k
	}
	switch {
	case k.running != nil && k.subject != about:
		k.late = true // what would come of it is no fact any more
		k.cancel()
		return nil
	case k.running != nil:
		return nil // the pass that began it has waited
	case !k.due(about, urgent, time.Now()):
		return nil
	}
	// The operator's end ends it, and so does a change of what it is about.
	ctx, k.cancel = context.WithCancel(ctx)
	running := make(chan struct{})
	k.running, k.subject, k.late = running, about, false
	go func() {
		var hashes map[string]membership.Hash
		var whole bool
		var took time.Duration
		select {
		case all.slots <- struct{}{}:
			began := time.Now()
			hashes, whole = guarded(ctx, compare)
			took = time.Since(began)
			<-all.slots
		case <-ctx.Done():
		}
		all.mu.Lock()
		defer all.mu.Unlock()
		k.cancel()
		k.running, k.ended = nil, time.Now()
		switch {
		case whole:
			k.took = took
		case took > 0:
			k.took = min(took, mostUnanswered)
		}
		k.about, k.hashes, k.whole = about, hashes, whole
		k.differ = differ(hashes)
		close(running)
		if k.late && all.wake != nil {
			all.wake(key)
		}
	}()
	return running
}

// guarded: what goes wrong here is this cluster's, and not the end of the operator, which nothing else
// would keep from it beside a pass.
func guarded(ctx context.Context, compare func(context.Context) (map[string]membership.Hash, bool)) (hashes map[string]membership.Hash, whole bool) {
	defer func() {
		if p := recover(); p != nil {
			log.FromContext(ctx).Error(fmt.Errorf("panic: %v", p), "Members cannot be compared", "stack", string(debug.Stack()))
			hashes, whole = nil, false
		}
	}()
	return compare(ctx)
}

// due reports whether a comparison is to begin: at once where a step waits for it; else when enough
// time has passed for what the last one took, after a member has started and from time to time.
func (k *comparison) due(about string, urgent bool, now time.Time) bool {
	since, pause := now.Sub(k.ended), comparingShare*k.took
	known := k.about == about
	switch {
	case k.ended.IsZero():
		return true
	case known && k.whole:
		return since >= max(compareAtRest, pause)
	case urgent || k.differ:
		return !known || since >= max(compareAgain, k.took)
	default:
		return since >= max(compareAgain, pause)
	}
}

// urgent reports whether a step waits for a comparison, or will: etcd has accused a member, or one is
// to come or to go.
func urgent(c *api.EtcdCluster, seen *observed) bool {
	n := voters(*seen)
	return n != size(c) || n != len(seen.Members) ||
		slices.ContainsFunc(seen.Instances, func(i membership.Instance) bool {
			accuses := func(a membership.Alarm) bool { return a.Kind == membership.AlarmCorrupt }
			pod := seen.pods[i.Name]
			return i.Volume.Spare || slices.ContainsFunc(i.Endpoint.Alarms, accuses) || pod != nil && inconsistent(pod)
		})
}

// voter is one to be compared.
type voter struct {
	name, ip string
	revision int64
	leads    bool
}

// toCompare are the voters that serve, the leader last. Where etcd's list is not known there are none.
func toCompare(seen *observed) []voter {
	var serving []voter
	for _, i := range seen.Instances {
		m, pod := seen.Member(i.ID), seen.pods[i.Name]
		if m != nil && !m.Learner && pod != nil && i.Serves() {
			serving = append(serving, voter{i.Name, pod.Status.PodIP, i.Endpoint.Revision, i.Leads()})
		}
	}
	n := slices.IndexFunc(serving, func(v voter) bool { return v.leads })
	if n >= 0 {
		serving = append(slices.Delete(slices.Clone(serving), n, n+1), serving[n])
	}
	return serving
}

// subject is what a comparison is about, and what ends its being a fact where it changes: which
// members vote and serve, in which container; which learners there are, and whether they have got
// their data; which members etcd accuses; and whether one is too many, since those that stay may be
// needed to tell afterwards.
func subject(c *api.EtcdCluster, seen *observed) string {
	about := []string{fmt.Sprint(voters(*seen) > size(c))}
	for _, i := range seen.Instances {
		m, pod := seen.Member(i.ID), seen.pods[i.Name]
		if m == nil || pod == nil {
			continue
		}
		about = append(about, fmt.Sprint(m.ID, m.Learner, pod.UID, containerID(pod), i.Serves() || m.Learner && i.Publishes()))
		for _, a := range i.Endpoint.Alarms {
			if a.Kind == membership.AlarmCorrupt {
				about = append(about, "alarm "+a.Member.String())
			}
		}
	}
	slices.Sort(about)
	return strings.Join(slices.Compact(about), "\n")
}

func containerID(pod *corev1.Pod) string {
	if s := containerStatus(pod); s != nil {
		return s.ContainerID
	}
	return ""
}

// compareData asks each voter for its hash, at the lowest revision that one of them has, which all of
// them have then. Where one was compacted meanwhile it is tried again; and where the lowest revision
// is compacted, each one tells of its present one, which are the same if nothing is written. It
// returns what can be compared, and whether that is all of them.
func (r *Reconciler) compareData(ctx context.Context, serving []voter) (map[string]membership.Hash, bool) {
	const tries = 4
	present := false
	for try := range tries {
		var revision int64
		if try > 0 {
			r.revisions(ctx, serving)
		}
		if !present {
			revision = slices.MinFunc(serving, func(a, b voter) int { return int(a.revision - b.revision) }).revision
		}
		hashes, compacted := map[string]membership.Hash{}, false
		for _, v := range serving {
			h, err := r.hash(ctx, v, revision)
			if errors.Is(err, membership.ErrCompacted) {
				compacted = true
				break
			}
			if err != nil {
				log.FromContext(ctx).V(1).Info("Member cannot be compared", "member", v.name, "error", err.Error())
				continue
			}
			hashes[v.name] = h
		}
		if present = compacted && !present; compacted || !sameRevision(hashes) {
			continue
		}
		return hashes, len(hashes) == len(serving)
	}
	return nil, false
}

func (r *Reconciler) hash(ctx context.Context, v voter, revision int64) (membership.Hash, error) {
	etcd, err := r.Dial(v.ip, api.PortClient)
	if err != nil {
		return membership.Hash{}, err
	}
	hash, err := etcd.Hash(ctx, revision)
	return hash, errors.Join(err, etcd.Close())
}

// revisions are asked for again. A member that does not answer keeps what it said before: revisions grow.
func (r *Reconciler) revisions(ctx context.Context, serving []voter) {
	for n := range serving {
		etcd, endpoint, err := r.askOne(ctx, serving[n].ip)
		if err != nil {
			continue
		}
		serving[n].revision = endpoint.Revision
		_ = etcd.Close() // it was only read from
	}
}

func sameRevision(hashes map[string]membership.Hash) bool {
	var first membership.Hash
	for _, h := range hashes {
		if first == (membership.Hash{}) {
			first = h
		}
		if h.Revision != first.Revision || h.Compacted != first.Compacted {
			return false
		}
	}
	return true
}

func differ(hashes map[string]membership.Hash) bool {
	var first membership.Hash
	for _, h := range hashes {
		if first == (membership.Hash{}) {
			first = h
		}
		if h != first {
			return true
		}
	}
	return false
}
