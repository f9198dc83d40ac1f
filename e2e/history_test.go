//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	api "quorate.dev/api/v1alpha1"
)

// history writes one key after the other for as long as it runs, and remembers which writes etcd acknowledged, in order.
// The others may or may not have happened.
type history struct {
	stop         func()
	acknowledged []string
	attempted    int
	longest      time.Duration // without an acknowledged write
}

const historyPrefix = "history/"

// write starts a history; its end, at the latest with the test, must be waited for before it is looked at.
func (s *stage) write(c *api.EtcdCluster) *history {
	s.Helper()
	cli := s.etcd(c)
	ctx, cancel := context.WithCancel(s.Context())
	h := &history{}
	var writing sync.WaitGroup
	writing.Go(func() { h.run(ctx, cli) })
	h.stop = sync.OnceFunc(func() { cancel(); writing.Wait() })
	s.Cleanup(h.stop)
	return h
}

func (h *history) run(ctx context.Context, cli *clientv3.Client) {
	last := time.Now()
	for ctx.Err() == nil {
		key := fmt.Sprintf("%s%06d", historyPrefix, h.attempted)
		h.attempted++
		// A short time-out, so that the client tries another member soon.
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		_, err := cli.Put(attempt, key, "")
		cancel()
		if err != nil {
			continue
		}
		h.acknowledged = append(h.acknowledged, key)
		h.longest, last = max(h.longest, time.Since(last)), time.Now()
	}
}

// check ends the history and fails the test unless everything acknowledged is in etcd, in the order of the
// acknowledgements.
func (s *stage) check(h *history, c *api.EtcdCluster) {
	s.Helper()
	h.stop()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	r, err := s.etcd(c).Get(ctx, historyPrefix, clientv3.WithPrefix())
	if err != nil {
		s.Fatalf("read the history: %v", err)
	}
	revisions := map[string]int64{}
	for _, kv := range r.Kvs {
		revisions[string(kv.Key)] = kv.CreateRevision
	}
	var last int64
	for _, key := range h.acknowledged {
		revision, there := revisions[key]
		switch {
		case !there:
			s.Errorf("acknowledged write %s is lost", key)
		case revision <= last:
			s.Errorf("acknowledged write %s is at revision %d, after one acknowledged earlier at %d", key, revision, last)
		}
		last = max(last, revision)
	}
	if len(h.acknowledged) == 0 {
		s.Error("no write was acknowledged at all")
	}
	s.Logf("%d writes attempted, %d acknowledged, all of them there; longest pause %s", h.attempted, len(h.acknowledged), h.longest.Round(time.Millisecond))
}
