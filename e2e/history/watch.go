package history

import (
	"context"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// event is one change, as a watch tells it.
type event struct {
	Revision   int64
	Key, Value string
}

// watch writes down every change, and goes on behind the last one where a watch ends; behind what
// was restored where it is told that its own revision is no more.
func (l *Load) watch(ctx context.Context, etcd *clientv3.Client) {
	pace := time.NewTicker(l.config.Pace)
	defer pace.Stop()
	for next := l.first + 1; ctx.Err() == nil; <-pace.C {
		watching, cancel := context.WithCancel(clientv3.WithRequireLeader(ctx))
		for r := range etcd.Watch(watching, l.prefix, clientv3.WithPrefix(), clientv3.WithRev(next)) {
			if r.CompactRevision > 0 { // the cluster was restored: what it begins with is read
				next = r.CompactRevision + 1
			}
			if len(r.Events) == 0 {
				continue
			}
			l.mu.Lock()
			l.events = append(l.events, eventsOf(r)...)
			close(l.heard)
			l.heard = make(chan struct{})
			l.mu.Unlock()
			next = r.Events[len(r.Events)-1].Kv.ModRevision + 1
		}
		cancel()
	}
}

// until that revision, and not what came with it.
func until(events []event, revision int64) []event {
	return slices.DeleteFunc(events, func(e event) bool { return e.Revision > revision })
}

func eventsOf(r clientv3.WatchResponse) []event {
	events := make([]event, 0, len(r.Events))
	for _, e := range r.Events {
		events = append(events, event{Revision: e.Kv.ModRevision, Key: string(e.Kv.Key), Value: string(e.Kv.Value)})
	}
	return events
}

// hear waits until the watch has told of that revision, and returns all that it has told.
func (l *Load) hear(revision int64) []event {
	l.Helper()
	late := time.After(l.config.Patience)
	for {
		l.mu.Lock()
		events, more := slices.Clone(l.events), l.heard
		l.mu.Unlock()
		if n := len(events); n > 0 && events[n-1].Revision >= revision {
			return until(events, revision)
		}
		select {
		case <-more:
		case <-late:
			l.Fatalf("the watch has told of %d events and not of revision %d", len(events), revision)
		}
	}
}
