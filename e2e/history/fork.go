package history

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// A restore is an operation of the history. The cluster goes on as another one, with what it had at
// one revision. Its own revisions begin a bump above that one, so that each answer tells by its
// revision which of the two has given it.

// fork is where the history of a restored cluster goes on; the zero fork is that of a cluster that
// was not restored.
type fork struct {
	revision      int64              // of what was restored
	resumed       int64              // at which the restored cluster begins
	kept          map[string]written // what it begins with
	called, ended time.Duration      // when it was asked for, and by when it was carried out
}

// written is when a key was last written, and how often.
type written struct {
	Last  event
	Times int64
}

// Restored tells the load that the cluster was restored since then, by which bump of the revision,
// and is served to clients again. It returns the revision of what was restored. What was written
// later is lost, and has to be.
func (l *Load) Restored(asked time.Time, bump int64) (revision int64) {
	l.Helper()
	ctx, cancel := context.WithTimeout(l.Context(), l.config.Patience)
	defer cancel()
	etcd := l.dial(l.serving(ctx)...)
	first := <-etcd.Watch(ctx, l.prefix, clientv3.WithRev(1)) // all that was before counts as compacted
	if first.CompactRevision <= bump || bump == 0 {
		l.Fatalf("the restored cluster begins at revision %d, with a bump of %d: %v", first.CompactRevision, bump, first.Err())
	}
	l.fork = fork{
		revision: first.CompactRevision - bump, resumed: first.CompactRevision,
		called: asked.Sub(l.begun), ended: time.Since(l.begun),
	}
	r, err := etcd.Get(ctx, l.prefix, clientv3.WithPrefix(), clientv3.WithRev(l.fork.resumed))
	if err != nil {
		l.Fatalf("read what was restored: %v", err)
	}
	l.fork.kept = writtenTo(r)
	return l.fork.revision
}

// writtenTo is what the keys themselves say.
func writtenTo(r *clientv3.GetResponse) map[string]written {
	keys := map[string]written{}
	for _, kv := range r.Kvs {
		keys[string(kv.Key)] = written{event{kv.ModRevision, string(kv.Key), string(kv.Value)}, kv.Version}
	}
	return keys
}

// former reports whether a cluster has answered that is no more.
func (f fork) former(o operation) bool { return o.revision <= f.resumed }

// fallen is where an answer has a higher revision than another one that was asked for after it had
// come.
func fallen(history []operation) (wrong []string) {
	answered := slices.DeleteFunc(slices.Clone(history), func(o operation) bool { return o.err != nil })
	slices.SortStableFunc(answered, func(a, b operation) int { return cmp.Compare(a.revision, b.revision) })
	var below, until operation // what was asked for last, at lower revisions; and with those of this revision
	at := int64(0)
	for _, o := range answered {
		if o.revision > at {
			at, below = o.revision, until
		}
		if o.ended < below.called {
			wrong = append(wrong, fmt.Sprintf("revisions go down: %s at revision %d was answered before %s at %d was asked for", o, o.revision, below, below.revision))
		}
		if o.called > until.called {
			until = o
		}
	}
	return wrong
}

// lost is what was acknowledged, or read, and is not where the answer has said: of the cluster that
// is checked among its events, and of a former one in what was restored, or written over there.
func (f fork) lost(history []operation, truth []event) (wrong []string) {
	events := map[int64]event{}
	for _, e := range truth {
		events[e.Revision] = e
	}
	for _, o := range history {
		now, kept := events[o.made], f.kept[o.key].Last
		switch {
		case o.err != nil, o.made == 0: // it tells of no write
		case o.made > f.resumed:
			if now.Key != o.key || now.Value != o.value {
				wrong = append(wrong, fmt.Sprintf("%s of revision %d is lost: there is %+v", o, o.made, now))
			}
		case !f.former(o):
			if kept.Revision != o.made || kept.Value != o.value {
				wrong = append(wrong, fmt.Sprintf("%s of revision %d is not of what was restored: that is %+v", o, o.made, kept))
			}
		case o.made > f.revision: // it is to be lost
		case kept.Revision < o.made, kept.Revision == o.made && kept.Value != o.value:
			wrong = append(wrong, fmt.Sprintf("%s of revision %d is lost: at revision %d %+v was restored", o, o.made, f.revision, kept))
		}
	}
	return wrong
}

// foreign is what is there and must not be: what a cluster has made after the revision that was
// restored, what was made twice, and what no client has asked for.
func (f fork) foreign(history []operation, truth []event, own string) (wrong []string) {
	asked, undone := map[string]operation{}, map[string]operation{}
	for _, o := range history {
		if o.write {
			asked[o.value] = o
		}
		if o.err == nil && f.former(o) && o.made > f.revision {
			undone[o.value] = o
		}
	}
	there := slices.Clone(truth)
	for _, key := range f.kept {
		there = append(there, key.Last)
		if key.Last.Revision > f.revision {
			wrong = append(wrong, fmt.Sprintf("at revision %d %+v was restored, which is later", f.revision, key.Last))
		}
	}
	made := map[string]event{}
	for _, e := range there {
		if o, ok := undone[e.Value]; ok {
			wrong = append(wrong, fmt.Sprintf("%s of revision %d is there, and revision %d was restored: %+v", o, o.made, f.revision, e))
		}
		if before, ok := made[e.Value]; ok {
			wrong = append(wrong, fmt.Sprintf("one write was made twice: %+v and %+v", before, e))
		}
		made[e.Value] = e
		if o, ok := asked[e.Value]; e.Key != own && (!ok || o.key != e.Key) {
			wrong = append(wrong, fmt.Sprintf("no client has asked for %+v", e))
		}
	}
	return wrong
}

// miscounted are the keys that were restored with another number of writes than were acknowledged,
// and may have been made.
func (f fork) miscounted(history []operation) (wrong []string) {
	least, most := map[string]int64{}, map[string]int64{}
	for _, o := range history {
		switch {
		case !o.write:
		case o.err != nil:
			most[o.key]++
		case o.revision <= f.revision:
			least[o.key]++
			most[o.key]++
		}
	}
	for key, kept := range f.kept {
		if kept.Times < least[key] || kept.Times > most[key] {
			wrong = append(wrong, fmt.Sprintf("%s was restored as written %d times, want %d to %d", key, kept.Times, least[key], most[key]))
		}
	}
	return wrong
}

// untold are acknowledged writes of which a watch of the former cluster has not told, though it has
// told of later ones; and what it has told of out of order.
func (f fork) untold(history []operation, heard []event) (wrong []string) {
	events, last := map[int64]event{}, int64(0)
	for _, e := range heard {
		if e.Revision <= last {
			wrong = append(wrong, fmt.Sprintf("the watch has told of %+v after revision %d", e, last))
		}
		events[e.Revision], last = e, e.Revision
	}
	for _, o := range history {
		if e := events[o.revision]; o.write && o.err == nil && o.revision <= last && (e.Key != o.key || e.Value != o.value) {
			wrong = append(wrong, fmt.Sprintf("the watch has not told of %s at revision %d, but of %+v", o, o.revision, e))
		}
	}
	return wrong
}

// read is a restore as each key has seen it: as a write of what was restored.
func (f fork) read(key string) operation {
	return operation{write: true, key: key, value: f.kept[key].Last.Value, revision: f.resumed, called: f.called, ended: f.ended}
}
