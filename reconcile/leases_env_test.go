//go:build env

package reconcile_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/mvccpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/snapshot"
)

// lessee is an etcd client with leases: one that lasts, one that ends, both in the snapshot, and
// one that was granted later. The lock is that of the first when the snapshot is taken, and then
// that of the last.
type lessee struct {
	*clientv3.Client
	lasting, ending, later clientv3.LeaseID
}

const (
	lasts = 600 // seconds
	ends  = 3   // seconds, and so after a second more
)

// leases is a client that has been granted what is in the snapshot.
func (s *stage) leases(w *way) *lessee {
	s.Helper()
	etcd, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"http://" + w.address}, DialTimeout: patience, Logger: zap.NewNop(),
	})
	s.must(err)
	s.Cleanup(func() { _ = etcd.Close() }) // a test that fails here has failed before
	l := &lessee{Client: etcd}
	l.lasting, l.ending = s.grant(s.Context(), l, lasts), s.grant(s.Context(), l, ends)
	s.attach(s.Context(), l, "lock", l.lasting)
	s.attach(s.Context(), l, "lasting", l.lasting)
	s.attach(s.Context(), l, "ending", l.ending)
	return l
}

func (s *stage) grant(ctx context.Context, l *lessee, seconds int64) clientv3.LeaseID {
	s.Helper()
	lease, err := l.Grant(ctx, seconds)
	s.must(err)
	return lease.ID
}

func (s *stage) attach(ctx context.Context, l *lessee, key string, lease clientv3.LeaseID) {
	s.Helper()
	_, err := l.Put(ctx, key, "", clientv3.WithLease(lease))
	s.must(err)
}

// goesOnLeasing waits for the end of the lease that ends, and has another one granted, which takes
// the lock. The client hears of that by a watch, which goes on.
func (s *stage) goesOnLeasing(ctx context.Context, l *lessee, m snapshot.Manifest) clientv3.WatchChan {
	s.Helper()
	s.awaitDeleted(l.Watch(ctx, "ending", clientv3.WithRev(m.Revision+1)), "ending")
	l.later = s.grant(ctx, l, lasts)
	s.attach(ctx, l, "lock", l.later)
	s.attach(ctx, l, "later", l.later)
	watched := l.Watch(ctx, "lock", clientv3.WithRev(m.Revision+1))
	if response := <-watched; len(response.Events) == 0 {
		s.Fatalf("the client is told nothing of the lock: %+v", response)
	}
	return watched
}

// awaitDeleted waits until a watch tells that the key is deleted.
func (s *stage) awaitDeleted(watched clientv3.WatchChan, key string) {
	s.Helper()
	late := time.After(patience)
	for {
		select {
		case response, ok := <-watched:
			if !ok || response.Err() != nil {
				s.Fatalf("the watch for the end of %s ended: %v", key, response.Err())
			}
			for _, e := range response.Events {
				if e.Type == mvccpb.DELETE && string(e.Kv.Key) == key {
					return
				}
			}
		case <-late:
			s.Fatalf("waited %s for the end of the lease of %s", patience, key)
		}
	}
}

// leasesAgain fails unless the leases are those of the snapshot, begun again after that time, and
// the one that was granted later is not.
func (s *stage) leasesAgain(l *lessee, restored int64, begun time.Time) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	all, err := l.Get(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(restored))
	s.must(err)
	got := map[string]clientv3.LeaseID{}
	for _, kv := range all.Kvs {
		if kv.Lease != 0 {
			got[string(kv.Key)] = clientv3.LeaseID(kv.Lease)
		}
	}
	if diff := cmp.Diff(map[string]clientv3.LeaseID{"lock": l.lasting, "lasting": l.lasting, "ending": l.ending}, got); diff != "" {
		s.Errorf("keys with a lease: -want +got:\n%s", diff)
	}
	left, err := l.TimeToLive(ctx, l.lasting)
	s.must(err)
	// It was granted seconds before that: the end of another one was waited for.
	if least := lasts - int64(time.Since(begun).Seconds()) - 1; left.GrantedTTL != lasts || left.TTL < least {
		s.Errorf("of %d s of the lease %d are left, want at least %d", left.GrantedTTL, left.TTL, least)
	}
	s.awaitDeleted(l.Watch(ctx, "ending", clientv3.WithRev(restored+1)), "ending")

	if left, err := l.TimeToLive(ctx, l.later); err != nil || left.TTL != -1 {
		s.Errorf("a lease that was granted later: %+v, %v", left, err)
	}
	if _, err := l.KeepAliveOnce(ctx, l.later); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		s.Errorf("to keep it alive is answered with %v", err)
	}
	if _, err := l.Revoke(ctx, l.later); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		s.Errorf("to revoke it is answered with %v", err)
	}
	if _, err := l.Put(ctx, "another", "", clientv3.WithLease(l.later)); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		s.Errorf("to write with it is answered with %v", err)
	}
	if _, err := l.KeepAliveOnce(ctx, l.lasting); err != nil {
		s.Errorf("a lease of the snapshot is not kept alive: %v", err)
	}
}

// withoutGap fails unless a watch from the restored revision on tells of every revision since.
func (s *stage) withoutGap(l *lessee, restored int64) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	watched := l.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(restored+1))
	var last int64
	for range 3 {
		written, err := l.Put(ctx, "after", "")
		s.must(err)
		last = written.Header.Revision
	}
	for next := restored + 1; next <= last; {
		response := <-watched
		if err := response.Err(); err != nil || len(response.Events) == 0 {
			s.Fatalf("the watch from revision %d ended at %d of %d: %v", restored+1, next, last, err)
		}
		for _, e := range response.Events {
			if e.Kv.ModRevision != next {
				s.Fatalf("the watch told of revision %d, want %d", e.Kv.ModRevision, next)
			}
			next++
		}
	}
}

// TestRestoredLeases: leases and watches after a restore are as docs/restore.md says.
func TestRestoredLeases(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		restore func(*stage, *api.EtcdCluster) *api.EtcdCluster
		inPlace bool
	}{
		"InPlace": {
			reason:  "the same Service, and so the client goes on",
			inPlace: true,
			restore: func(s *stage, c *api.EtcdCluster) *api.EtcdCluster {
				e := s.etcdRestore("back", anyway)
				s.create(e)
				s.restores(e)
				return c
			},
		},
		"NewCluster": {
			reason: "a client of the former cluster goes to another one",
			restore: func(s *stage, _ *api.EtcdCluster) *api.EtcdCluster {
				c := s.fromSnapshot("new", 1)
				s.create(c)
				return c
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, agents)
			s.operate()
			c := s.cluster("db", 1)
			s.create(c)
			s.ready(c)
			s.awaitLed(c, "db-0")
			l := s.leases(s.way(c))
			m := s.snapshot(c, "monday")
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			watched := s.goesOnLeasing(ctx, l, m)
			begun := time.Now()
			c = tc.restore(s, c)
			s.ready(c)
			if tc.inPlace {
				response := <-watched
				if !errors.Is(response.Err(), rpctypes.ErrCompacted) || response.CompactRevision != m.Revision+bumped {
					t.Errorf("the watch of before goes on with %+v, %v", response, response.Err())
				}
			} else {
				s.awaitLed(c, memberNames(c)...)
				former := l
				l = &lessee{Client: s.etcd(c), lasting: former.lasting, ending: former.ending, later: former.later}
			}
			s.leasesAgain(l, m.Revision+bumped, begun)
			s.withoutGap(l, m.Revision+bumped)
		})
	}
}
