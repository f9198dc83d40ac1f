// Package history is a load on an etcd cluster whose answers are checked: clients read and write
// while a test does to the cluster what it does, and afterwards everything that they were told must
// be what one single store would have told them.
package history

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Config is where a load goes, and how hard it is.
type Config struct {
	// Dial connects a client to endpoints, one for each member.
	Dial func(endpoints ...string) (*clientv3.Client, error)
	// Pods of the cluster: clients go to those that are ready, at each time, and the data in all is
	// compared in the end.
	Pods Pods

	// Clients is how many there are, each of which makes one request at a time, Pace after the last
	// one began or when that is over. One that failed is not repeated, since it may have been
	// carried out.
	Clients int
	Pace    time.Duration
	// Timeout is that of one request, short, so that a client tries another member soon.
	Timeout time.Duration
	// Keys is how many there are: few, for clients to meet.
	Keys int
	// WritesOnly: no client reads meanwhile. Unwatched: none watches, since etcd that is asked to
	// end waits for those that do.
	WritesOnly, Unwatched bool
	// Floor is how many acknowledged writes a second there must be at least while a member is
	// ready, on any machine: a run with next to no load shows nothing. How many are reached depends
	// on the machine; that the clients did what they could is judged by shares.
	Floor float64
	// Patience bounds every wait.
	Patience time.Duration
}

// Load is what the clients asked for, and what became of it.
type Load struct {
	testing.TB
	config    Config
	begun     time.Time
	first     int64  // the revision after which the load began
	fork      fork   // where the cluster was restored meanwhile
	prefix    string // of its keys, and of no other load's: a request of that one may still be carried out
	end       func()
	acked     atomic.Int64
	clients   []*clientv3.Client // the last one watches
	histories [][]operation

	mu     sync.Mutex
	events []event
	heard  chan struct{} // closed and recreated at each event
	gone   time.Time     // since when no member is ready; zero where one is
	away   time.Duration // how long there was none before
	pauses pauses
}

// Start returns a load whose clients are at work. It ends with the test, or with Check.
func Start(t testing.TB, config Config) *Load {
	t.Helper()
	ctx := t.Context()
	l := &Load{TB: t, config: config, heard: make(chan struct{}), histories: make([][]operation, config.Clients)}
	asking, enough := context.WithTimeout(ctx, config.Patience)
	defer enough()
	endpoints := l.serving(asking)
	for range config.Clients + 1 {
		l.clients = append(l.clients, l.dial(endpoints...))
	}
	r, err := l.clients[config.Clients].Get(asking, "load")
	if err != nil {
		t.Fatalf("read before the load: %v", err)
	}
	l.begun, l.first, l.prefix = time.Now(), r.Header.Revision, fmt.Sprintf("load/%d/", r.Header.Revision)
	l.pauses.last = l.begun
	writing, cancel := context.WithCancel(ctx)
	var working, listening sync.WaitGroup
	for n, etcd := range l.clients[:config.Clients] {
		working.Go(func() { l.histories[n] = l.ask(writing, n, etcd) })
	}
	hearing, deafen := context.WithCancel(ctx)
	if !config.Unwatched {
		listening.Go(func() { l.watch(hearing, l.clients[config.Clients]) })
	}
	listening.Go(func() { config.Pods.follow(hearing, func() { l.redirect(hearing) }) })
	l.end = sync.OnceFunc(func() { cancel(); l.over(&working, "the requests of the clients") })
	t.Cleanup(func() { l.end(); deafen(); l.over(&listening, "the watches") })
	l.Await(10)
	return l
}

// over waits until all of them have ended.
func (l *Load) over(all *sync.WaitGroup, what string) {
	l.Helper()
	done := make(chan struct{})
	go func() { all.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(l.config.Patience):
		l.Errorf("waited %s for %s to end", l.config.Patience, what)
	}
}

func (l *Load) dial(endpoints ...string) *clientv3.Client {
	l.Helper()
	etcd, err := l.config.Dial(endpoints...)
	if err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() { _ = etcd.Close() }) // a test that fails here has failed before
	return etcd
}

func (l *Load) serving(ctx context.Context) []string {
	l.Helper()
	endpoints, err := l.config.Pods.serving(ctx)
	if err != nil {
		l.Fatal(err)
	}
	return endpoints
}

// redirect sends the clients where the Service leads now. Where that cannot be told, since the API
// server is away or the test is over, it is where it was.
func (l *Load) redirect(ctx context.Context) {
	endpoints, err := l.config.Pods.serving(ctx)
	if err != nil {
		return
	}
	l.met(len(endpoints) > 0)
	if len(endpoints) == 0 || slices.Equal(endpoints, l.clients[0].Endpoints()) {
		return
	}
	for _, etcd := range l.clients {
		etcd.SetEndpoints(endpoints...)
	}
}

// met writes down whether a member is ready, and returns for how long none was before.
func (l *Load) met(ready bool) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case ready && !l.gone.IsZero():
		l.away += time.Since(l.gone)
		l.gone = time.Time{}
	case !ready && l.gone.IsZero():
		l.gone = time.Now()
	}
	return l.away
}

// operation is one request. An empty value that was read is a key that is not there.
type operation struct {
	client        int
	write         bool
	key, value    string
	revision      int64         // at which it was answered, and an acknowledged write was made
	made          int64         // the revision at which the value was written; 0 where it is not there
	called, ended time.Duration // since the load began
	err           error
	cut           bool // it was under way when the load ended
}

func (o operation) String() string {
	if o.write {
		return "write of " + o.key + "=" + o.value
	}
	return "read of " + o.key + "=" + o.value
}

// ask for one thing after the other, reads and writes in turn.
func (l *Load) ask(ctx context.Context, n int, etcd *clientv3.Client) []operation {
	random := rand.New(rand.NewPCG(uint64(n), 0))
	pace := time.NewTicker(l.config.Pace)
	defer pace.Stop()
	var history []operation
	for {
		select {
		case <-ctx.Done():
			return history
		case <-pace.C:
		}
		o := operation{client: n, write: l.config.WritesOnly || len(history)%2 == 0, key: fmt.Sprintf("%s%d", l.prefix, random.IntN(l.config.Keys))}
		if o.write {
			o.value = fmt.Sprintf("%d-%d", n, len(history)) // no two writes write the same
		}
		attempt, cancel := context.WithTimeout(ctx, l.config.Timeout)
		o.called = time.Since(l.begun)
		o.err = o.make(attempt, etcd)
		o.ended = time.Since(l.begun)
		o.cut = ctx.Err() != nil
		cancel()
		if o.write && o.err == nil {
			l.acked.Add(1)
			l.mu.Lock()
			l.pauses.acknowledged(time.Now())
			l.mu.Unlock()
		}
		history = append(history, o)
	}
}

func (o *operation) make(ctx context.Context, etcd *clientv3.Client) error {
	if o.write {
		r, err := etcd.Put(ctx, o.key, o.value)
		if err == nil {
			o.revision, o.made = r.Header.Revision, r.Header.Revision
		}
		return err
	}
	r, err := etcd.Get(ctx, o.key)
	if err != nil {
		return err
	}
	o.revision = r.Header.Revision
	if len(r.Kvs) > 0 {
		o.value, o.made = string(r.Kvs[0].Value), r.Kvs[0].ModRevision
	}
	return nil
}

// Await that many acknowledged writes from now on.
func (l *Load) Await(writes int64) {
	l.Helper()
	pace := time.NewTicker(l.config.Pace)
	defer pace.Stop()
	late := time.After(l.config.Patience)
	for enough := l.acked.Load() + writes; l.acked.Load() < enough; {
		select {
		case <-pace.C:
		case <-late:
			l.Fatalf("waited %s for %d more acknowledged writes, and %d are missing", l.config.Patience, writes, enough-l.acked.Load())
		}
	}
}
