package contract

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// patience bounds every wait, and for how long the API server may be away: far more than a busy
// machine takes.
const patience = 4 * time.Minute

// follower is told of each state of one EtcdCluster.
type follower struct {
	Stage
	cluster client.ObjectKey
	told    func(*api.EtcdCluster)
	done    chan struct{}

	mu    sync.Mutex
	seen  string        // the resource version up to which it was told
	gone  bool          // the last thing that it was told is that there is none
	heard chan struct{} // closed and made again at each event
}

// Follow an EtcdCluster from now on. A watch that ends goes on where it was; where that is not
// possible a state may have been missed, and the test fails. stop returns when all that has
// happened until then was told, and so does the end of the test.
func Follow(t Stage, c *api.EtcdCluster, told func(*api.EtcdCluster)) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context())) // the test's own ends before its clean-up
	f := &follower{Stage: t, cluster: client.ObjectKeyFromObject(c), told: told, done: make(chan struct{}), heard: make(chan struct{})}
	list := &api.EtcdClusterList{}
	if err := t.List(ctx, list, f.only()); err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		f.hear(&list.Items[i], false)
	}
	f.seen, f.gone = list.ResourceVersion, len(list.Items) == 0
	w, err := f.watch(ctx)
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(f.done)
		f.follow(ctx, w)
	}()
	stop = sync.OnceFunc(func() {
		defer cancel()
		f.catchUp(ctx)
		cancel()
		select {
		case <-f.done:
		case <-time.After(patience):
			t.Errorf("waited %s for the watch of %s to end", patience, f.cluster)
		}
	})
	t.Cleanup(stop)
	return stop
}

// only this EtcdCluster.
func (f *follower) only() client.ListOption {
	return &client.ListOptions{Namespace: f.cluster.Namespace, FieldSelector: fields.OneTermEqualSelector("metadata.name", f.cluster.Name)}
}

func (f *follower) watch(ctx context.Context) (watch.Interface, error) {
	f.mu.Lock()
	from := f.seen
	f.mu.Unlock()
	return f.Watch(ctx, &api.EtcdClusterList{}, f.only(), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: from, AllowWatchBookmarks: true}})
}

func (f *follower) follow(ctx context.Context, w watch.Interface) {
	for {
		for event := range w.ResultChan() {
			object, ok := event.Object.(*api.EtcdCluster)
			switch {
			case ctx.Err() != nil:
				w.Stop()
				return
			case !ok:
				f.Errorf("the watch of %s has missed what has happened since resource version %s: %v", f.cluster, f.seen, apierrors.FromObject(event.Object))
				w.Stop()
				return
			case event.Type == watch.Bookmark:
				f.note(object.ResourceVersion)
			default:
				f.hear(object, event.Type == watch.Deleted)
			}
		}
		var err error
		if w, err = f.again(ctx); err != nil {
			if ctx.Err() == nil {
				f.Errorf("the watch of %s has ended: %v", f.cluster, err)
			}
			return
		}
	}
}

// again watches as soon as there is an API server again.
func (f *follower) again(ctx context.Context) (watch.Interface, error) {
	pace := time.NewTicker(time.Second)
	defer pace.Stop()
	for late := time.After(patience); ctx.Err() == nil; {
		w, err := f.watch(ctx)
		if err == nil {
			return w, nil
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
		case <-late:
			return nil, fmt.Errorf("waited %s for another one: %w", patience, err)
		}
	}
	return nil, ctx.Err()
}

func (f *follower) hear(c *api.EtcdCluster, deleted bool) {
	if !deleted && c.DeletionTimestamp.IsZero() {
		f.told(c)
	}
	f.mu.Lock()
	f.gone = deleted
	f.mu.Unlock()
	f.note(c.ResourceVersion)
}

func (f *follower) note(version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = version
	close(f.heard)
	f.heard = make(chan struct{})
}

// catchUp waits until the follower was told of what there is now.
func (f *follower) catchUp(ctx context.Context) {
	f.Helper()
	now := &api.EtcdCluster{}
	err := f.Get(ctx, f.cluster, now)
	if client.IgnoreNotFound(err) != nil {
		f.Errorf("find out how far the watch has to come: %v", err)
		return
	}
	for late := time.After(patience); ; {
		f.mu.Lock()
		seen, gone, more := f.seen, f.gone, f.heard
		f.mu.Unlock()
		if err != nil && gone || err == nil && revision(seen) >= revision(now.ResourceVersion) {
			return
		}
		select {
		case <-more:
		case <-f.done: // the test has failed
			return
		case <-late:
			f.Errorf("waited %s for the watch to tell of %s at resource version %q; it has told of %q", patience, f.cluster, now.ResourceVersion, seen)
			return
		}
	}
}

// revision is the number that a resource version of one API server is.
func revision(version string) uint64 {
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		return 0 // nothing was told yet
	}
	return n
}
