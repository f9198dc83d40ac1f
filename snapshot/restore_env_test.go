//go:build env

package snapshot

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"quorate.dev/e2e/node"
)

// at is what is served at a revision: every key with its value and its revisions.
func (m *etcd) at(revision int64) []string {
	m.Helper()
	r, err := m.dial().Get(m.Context(), "\x00", clientv3.WithFromKey(), clientv3.WithRev(revision))
	if err != nil {
		m.Fatal(err)
	}
	var all []string
	for _, kv := range r.Kvs {
		all = append(all, fmt.Sprintf("%s=%s created %d modified %d version %d", kv.Key, kv.Value, kv.CreateRevision, kv.ModRevision, kv.Version))
	}
	return all
}

// TestRestoreServes: with the revisions kept, every key is served at every revision of the history,
// as it was before.
func TestRestoreServes(t *testing.T) {
	anyVersion(t, 1, func(c *etcds, version string) {
		c.form()
		c.history(true)
		store := newMemory()
		m, err := Save(c.Context(), c.source(), store, SaveOptions{Name: "history"})
		if err != nil {
			c.Fatal(err)
		}
		before := map[int64][]string{}
		for revision := int64(180); revision <= m.Revision; revision += 13 {
			before[revision] = c.members[0].at(revision)
		}
		before[m.Revision] = c.members[0].at(m.Revision)
		c.members[0].kill()
		restored := newEtcds(c.T, version, 1)
		restored.restore(store, "history", func(o *RestoreOptions) { o.KeepRevisions = true })
		for revision, want := range before {
			if diff := cmp.Diff(want, restored.members[0].at(revision)); diff != "" || len(want) == 0 {
				c.Errorf("at revision %d: -want +got:\n%s", revision, diff)
			}
		}
	})
}

// TestRestoreBumps: every key is as it was, revisions go on far above, and a watcher of before is
// told that it has missed something.
func TestRestoreBumps(t *testing.T) {
	anyVersion(t, 1, func(c *etcds, version string) {
		c.form()
		c.history(false)
		store := newMemory()
		m, err := Save(c.Context(), c.source(), store, SaveOptions{Name: "history"})
		if err != nil {
			c.Fatal(err)
		}
		before, old := c.members[0].at(m.Revision), c.members[0].serving()
		c.members[0].kill()
		restored := newEtcds(c.T, version, 1)
		restored.restore(store, "history", func(*RestoreOptions) {})
		said, client := restored.members[0].serving(), restored.members[0].dial()
		if said.revision != m.Revision+defaultBump {
			c.Errorf("revision %d of the snapshot has become %d", m.Revision, said.revision)
		}
		if said.clusterID == old.clusterID || said.id == old.id {
			c.Errorf("the restored member %s has the IDs of the one before", hexID(said.id))
		}
		if diff := cmp.Diff(before, restored.members[0].at(0)); diff != "" {
			c.Errorf("-want +got:\n%s", diff)
		}
		for r := range client.Watch(c.Context(), "key", clientv3.WithPrefix(), clientv3.WithRev(m.Revision+1)) {
			if !errors.Is(r.Err(), rpctypes.ErrCompacted) {
				c.Errorf("a watcher of before sees %+v, %v", r.Events, r.Err())
			}
		}
		put, err := client.Put(c.Context(), "new", "x")
		if err != nil || put.Header.Revision != m.Revision+defaultBump+1 {
			c.Errorf("the first write is of revision %d: %v", put.Header.Revision, err)
		}
		if _, err := Save(c.Context(), restored.source(), newMemory(), SaveOptions{}); err != nil {
			c.Errorf("a snapshot of what was restored: %v", err)
		}
	})
}

// TestRestoreVersions: an etcd of the minor of the snapshot, or a newer one, serves it. An older
// one is refused.
func TestRestoreVersions(t *testing.T) {
	for n, was := range node.EtcdVersions() {
		t.Run("From"+was, func(t *testing.T) {
			t.Parallel()
			c := newEtcds(t, was, 1)
			c.form()
			c.history(true)
			c.members[0].storage(was)
			store := newMemory()
			if _, err := Save(t.Context(), c.source(), store, SaveOptions{Name: "old"}); err != nil {
				t.Fatal(err)
			}
			before := c.members[0].at(0)
			c.members[0].kill()
			for k, will := range node.EtcdVersions() {
				if k < n {
					path := t.TempDir() + "/snapshot.db"
					if _, err := Fetch(t.Context(), store, "old", path, FetchOptions{}); err != nil {
						t.Fatal(err)
					}
					o := c.members[0].restoreOptions()
					o.DataDir, o.EtcdVersion = t.TempDir()+"/data", will
					if err := Restore(t.Context(), path, o); !errors.Is(err, ErrTooOld) {
						t.Errorf("a snapshot of %s for %s: %v", was, will, err)
					}
					continue
				}
				restored := newEtcds(t, will, 1)
				restored.restore(store, "old", func(o *RestoreOptions) { o.EtcdVersion = will })
				if diff := cmp.Diff(before, restored.members[0].at(0)); diff != "" {
					t.Errorf("a snapshot of %s with %s: -want +got:\n%s", was, will, diff)
				}
				if v, err := Verify(t.Context(), store, "old", VerifyOptions{Etcd: restored.binary, Scratch: t.TempDir()}); err != nil || v.EtcdVersion != will {
					t.Errorf("a snapshot of %s verified with %s: %+v, %v", was, will, v, err)
				}
			}
		})
	}
}

// storage waits until a member from 3.6 on has written the version of its storage: some seconds
// after it was started.
func (m *etcd) storage(version string) {
	m.Helper()
	if strings.HasPrefix(version, "3.5.") {
		return
	}
	client := m.dial()
	m.eventually("the storage is of "+version, func() error {
		r, err := client.Status(m.Context(), url(m.client))
		if err != nil {
			return err
		}
		if !strings.HasPrefix(version, r.StorageVersion[:max(len(r.StorageVersion)-1, 0)]) || r.StorageVersion == "" {
			return fmt.Errorf("it is of %q", r.StorageVersion)
		}
		return nil
	})
}
