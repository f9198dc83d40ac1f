package history

import (
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Result is how much was at stake.
type Result struct {
	Attempted, Acknowledged int           // writes
	Failed                  int           // writes that were not acknowledged before the load ended
	Longest                 time.Duration // without an acknowledged write
	Away                    time.Duration // without a member that is ready
	Lasted                  time.Duration
	Busy                    float64 // the share of the time in which the clients were at work
	Answered                float64 // the share of the writes that were acknowledged, while members answered
}

// Check ends the load and fails the test unless what the clients saw is what one single store would
// have shown them: every acknowledged write is there, in the order of real time; reads and writes
// are linearizable; a watch told of every change once and in order; and all members have the same
// data. Where the cluster was restored, that is one that goes back to what was restored, and no
// further.
func (l *Load) Check(t testing.TB) Result {
	t.Helper()
	l.TB = t // it may be a part of the test that began the load
	l.end()
	lasted, away := time.Since(l.begun), l.met(true)
	ctx, cancel := context.WithTimeout(t.Context(), l.config.Patience)
	defer cancel()
	etcd := l.dial(l.serving(ctx)...)
	last, err := etcd.Put(ctx, l.prefix+"end", "")
	if err != nil {
		l.Fatalf("write after the load: %v", err)
	}
	truth, history := l.replay(ctx, etcd, last.Header.Revision), slices.Concat(l.histories...)
	told := history
	if !l.config.Unwatched {
		told = slices.Concat(history, l.checkWatch(history, truth, last.Header.Revision))
	}
	l.checkRevisions(ctx, etcd, truth, last.Header.Revision)
	for _, wrong := range slices.Concat(fallen(history), l.fork.lost(told, truth), l.fork.foreign(told, truth, l.prefix+"end"), l.fork.miscounted(history)) {
		l.Errorf("%s", wrong)
	}
	l.checkLinearizable(history, truth)
	l.checkHashes(ctx, last.Header.Revision)
	return l.report(history, lasted, away)
}

// replay reads all that was written since the load began, or the cluster was restored, out of
// etcd's history, which nothing has compacted since. What is carried out later, of a request that
// was given up, belongs to no client.
func (l *Load) replay(ctx context.Context, etcd *clientv3.Client, last int64) []event {
	l.Helper()
	var events []event
	for r := range etcd.Watch(ctx, l.prefix, clientv3.WithPrefix(), clientv3.WithRev(max(l.first, l.fork.resumed)+1)) {
		if err := r.Err(); err != nil {
			l.Fatalf("replay the history: %v", err)
		}
		events = append(events, eventsOf(r)...)
		if n := len(events); n > 0 && events[n-1].Revision >= last {
			return until(events, last)
		}
	}
	l.Fatalf("the history ends after %d events, before revision %d", len(events), last)
	return nil
}

// checkRevisions compares the events with what a key itself says: when it was last written, and how
// often.
func (l *Load) checkRevisions(ctx context.Context, etcd *clientv3.Client, truth []event, last int64) {
	l.Helper()
	r, err := etcd.Get(ctx, l.prefix, clientv3.WithPrefix(), clientv3.WithRev(last))
	if err != nil {
		l.Fatal(err)
	}
	want, got := writtenTo(r), maps.Clone(l.fork.kept)
	if got == nil {
		got = map[string]written{}
	}
	var previous int64
	for _, e := range truth {
		got[e.Key] = written{e, got[e.Key].Times + 1}
		if e.Revision <= previous {
			l.Errorf("event of revision %d after that of %d", e.Revision, previous)
		}
		previous = e.Revision
	}
	if diff := gocmp.Diff(want, got); diff != "" {
		l.Errorf("the events are not those that made the keys: -keys +events:\n%s", diff)
	}
}

// checkWatch compares what the watch was told with the events, and returns what it was told by a
// former cluster.
func (l *Load) checkWatch(history []operation, truth []event, last int64) (former []operation) {
	l.Helper()
	heard := l.hear(last)
	n := slices.IndexFunc(heard, func(e event) bool { return e.Revision > l.fork.resumed })
	if diff := gocmp.Diff(truth, heard[n:]); diff != "" {
		l.Errorf("the watch has not told of every change once and in order: -want +got:\n%s", diff)
	}
	for _, wrong := range l.fork.untold(history, heard[:n]) {
		l.Errorf("%s", wrong)
	}
	for _, e := range heard[:n] {
		former = append(former, operation{key: e.Key, value: e.Value, revision: e.Revision, made: e.Revision})
	}
	return former
}

// checkHashes compares the data of all members at that revision.
func (l *Load) checkHashes(ctx context.Context, revision int64) {
	l.Helper()
	hashes := map[string]uint32{}
	pods, err := l.config.Pods.staying(ctx)
	if err != nil {
		l.Fatal(err)
	}
	for i := range pods {
		name, endpoint := pods[i].Name, l.config.Pods.Endpoint(&pods[i])
		etcd := l.dial(endpoint)
		if _, err := etcd.Get(ctx, l.prefix); err != nil { // a linearizable read: then it has all there is
			l.Fatalf("read at %s: %v", name, err)
		}
		r, err := etcd.HashKV(ctx, endpoint, revision)
		if err != nil {
			l.Fatalf("hash of %s: %v", name, err)
		}
		hashes[name] = r.Hash
	}
	for name, hash := range hashes {
		for other, different := range hashes {
			if name < other && hash != different {
				l.Errorf("the data of %s and %s differ: hashes %v at revision %d", name, other, hashes, revision)
			}
		}
	}
}

// report says how much was at stake, and fails the test where that was next to nothing.
func (l *Load) report(history []operation, lasted, away time.Duration) Result {
	l.Helper()
	r := resultOf(history, lasted)
	r.Away, r.Lasted, r.Busy = away, lasted, busy(history, l.config.Pace, lasted, l.config.Clients)
	l.Logf("%d writes attempted in %s, %d acknowledged; longest without one %s; clients at work for %.0f%% of the time, %.0f%% acknowledged while members answered",
		r.Attempted, lasted.Round(time.Second), r.Acknowledged, r.Longest.Round(time.Millisecond), 100*r.Busy, 100*r.Answered)
	for _, void := range r.void(l.config.Floor, lasted) {
		l.Errorf("the load was too small to show anything: %s; for %s no member was ready", void, r.Away.Round(time.Millisecond))
	}
	return r
}
