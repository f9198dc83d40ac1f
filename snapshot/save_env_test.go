//go:build env

package snapshot

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"quorate.dev/e2e/node"
)

// acknowledged is a write that a client was told of: the key is its place in the order of its
// writer.
type acknowledged struct {
	key      string
	revision int64
	at       time.Time
}

// writing writes keys until it is stopped, and returns what was acknowledged.
func (c *etcds) writing(writers int) (stop func() []acknowledged) {
	c.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: c.source().Endpoints, DialTimeout: askTimeout, Logger: zap.NewNop()})
	if err != nil {
		c.Fatal(err)
	}
	ctx, cancel := context.WithCancel(c.Context())
	var all sync.WaitGroup
	acked := make([][]acknowledged, writers)
	for w := range writers {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				key := fmt.Sprintf("w-%d-%06d", w, n)
				if r, err := client.Put(ctx, key, strings.Repeat(key, 20)); err == nil {
					acked[w] = append(acked[w], acknowledged{key, r.Header.Revision, time.Now()})
				}
			}
		})
	}
	return func() []acknowledged {
		cancel()
		all.Wait()
		_ = client.Close() // what it was told is known
		return slices.Concat(acked...)
	}
}

// waitFor a revision of the cluster.
func (c *etcds) waitFor(revision int64) {
	c.Helper()
	ctx, cancel := context.WithTimeout(c.Context(), soon)
	defer cancel()
	client := c.members[0].dial()
	now, err := client.Get(ctx, "\x00")
	if err != nil {
		c.Fatal(err)
	}
	watch := client.Watch(ctx, "", clientv3.WithPrefix(), clientv3.WithRev(now.Header.Revision+1))
	for r := range watch {
		if r.Header.Revision >= revision {
			return
		}
	}
	c.Fatalf("revision %d was not reached", revision)
}

// TestSaveUnderLoad saves from three members while they are written to and one of them is killed.
// All members are made of the snapshot. What was acknowledged before the save began is there, and
// everything that is there is of the revision that it says.
func TestSaveUnderLoad(t *testing.T) {
	anyVersion(t, 3, func(c *etcds, version string) {
		c.form()
		stop := c.writing(8)
		c.waitFor(500)
		c.members[2].kill()
		store := newMemory()
		m, err := Save(c.Context(), c.source(), store, SaveOptions{Name: "loaded"})
		if err != nil {
			c.Fatal(err)
		}
		c.waitFor(m.Revision + 100)
		acked := stop()
		for _, m := range c.members {
			m.kill()
		}
		restored := newEtcds(c.T, version, 3)
		restored.restore(store, "loaded", func(o *RestoreOptions) { o.EtcdVersion = version })
		client := restored.members[1].dial()
		r, err := client.Get(c.Context(), "w-", clientv3.WithPrefix())
		if err != nil {
			c.Fatal(err)
		}
		there := map[string]int64{}
		for _, kv := range r.Kvs {
			there[string(kv.Key)] = kv.ModRevision
		}
		var before, after int
		for _, a := range acked {
			switch revision, is := there[a.key]; {
			case a.revision <= m.Revision && revision != a.revision:
				c.Errorf("%s was acknowledged at revision %d, is there: %t, at %d: the snapshot is of %d", a.key, a.revision, is, revision, m.Revision)
			case a.revision > m.Revision && is:
				c.Errorf("%s of revision %d is in a snapshot of %d", a.key, a.revision, m.Revision)
			case a.at.Before(m.StartedAt) && !is:
				c.Errorf("%s was acknowledged %s before the save began, and is not there", a.key, m.StartedAt.Sub(a.at))
			case a.at.Before(m.StartedAt):
				before++
			case !is:
				after++
			}
		}
		if before < 400 || after < 50 || c.Failed() {
			c.Errorf("of %d writes %d were acknowledged before, and %d are not in the snapshot", len(acked), before, after)
		}
	})
}

// restore makes all members of a stored snapshot, and starts them.
func (c *etcds) restore(store Store, name string, change func(*RestoreOptions)) Manifest {
	c.Helper()
	path := c.TempDir() + "/snapshot.db"
	manifest, err := Fetch(c.Context(), store, name, path, FetchOptions{})
	if err != nil {
		c.Fatal(err)
	}
	for _, m := range c.members {
		o := m.restoreOptions()
		change(&o)
		if err := Restore(c.Context(), path, o); err != nil {
			c.Fatal(err)
		}
	}
	c.form()
	return manifest
}

// TestSaveChooses: a member under a CORRUPT alarm is not taken, nor one of another cluster.
func TestSaveChooses(t *testing.T) {
	c := newEtcds(t, node.Etcd36, 3)
	c.form()
	client := c.members[0].dial()
	for n := range 20 {
		if _, err := client.Put(c.Context(), fmt.Sprint(n), "x"); err != nil {
			c.Fatal(err)
		}
	}
	said := c.members[1].serving()
	alarm := &etcdserverpb.AlarmRequest{Action: etcdserverpb.AlarmRequest_ACTIVATE, MemberID: said.id, Alarm: etcdserverpb.AlarmType_CORRUPT}
	if _, err := etcdserverpb.NewMaintenanceClient(client.ActiveConnection()).Alarm(c.Context(), alarm); err != nil {
		c.Fatal(err)
	}
	m, err := Save(c.Context(), c.source(), newMemory(), SaveOptions{})
	if err != nil {
		c.Fatal(err)
	}
	if m.MemberID == hexID(said.id) || m.Member == "m-1" {
		c.Errorf("it was taken from the member under the alarm: %+v", m)
	}
	accused := Source{Endpoints: []string{url(c.members[1].client)}}
	if _, err := Save(c.Context(), accused, newMemory(), SaveOptions{}); !errors.Is(err, ErrNoMember) || !strings.Contains(err.Error(), "CORRUPT") {
		c.Errorf("from the member under the alarm: %v", err)
	}
	if _, err := Save(c.Context(), c.source(), newMemory(), SaveOptions{ClusterID: "abc"}); !errors.Is(err, ErrOtherCluster) {
		c.Errorf("from another cluster: %v", err)
	}
	for _, lost := range c.members[1:] {
		lost.kill()
	}
	if _, err := Save(c.Context(), c.source(), newMemory(), SaveOptions{}); err == nil || !strings.Contains(err.Error(), "without a majority") {
		c.Errorf("without a majority: %v", err)
	}
}
