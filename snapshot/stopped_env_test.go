//go:build env

package snapshot

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// withoutCommits has a database that is never written to the disk while etcd runs.
var withoutCommits = []string{"--backend-batch-interval=1h", "--backend-batch-limit=1000000000"}

// killAll ends all members at once, as a loss of power of all machines does.
func (c *etcds) killAll() {
	for _, m := range c.members {
		if m.cmd != nil {
			_ = m.cmd.Process.Kill() // it may have ended by itself
		}
	}
	for _, m := range c.members {
		m.kill()
	}
}

// end a member so that it has written its database, and its name within.
func (m *etcd) end() {
	m.Helper()
	says := m.serving()
	m.eventually("the member is listed by its name", func() error {
		if name, err := says.name(m.Context()); err != nil || name != m.name {
			return fmt.Errorf("it is listed as %q: %w", name, err)
		}
		return nil
	})
	if err := m.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		m.Fatal(err)
	}
	<-m.ended
}

// put writes keys one after the other, and returns them in their order.
func (m *etcd) put(prefix string, count int) []string {
	m.Helper()
	client := m.dial()
	keys := make([]string, 0, count)
	for n := range count {
		key := fmt.Sprintf("%s-%03d", prefix, n)
		if _, err := client.Put(m.Context(), key, "x"); err != nil {
			m.Fatal(err)
		}
		keys = append(keys, key)
	}
	return keys
}

// leaderAndFollower are a member that leads, and one that does not.
func (c *etcds) leaderAndFollower() (leader, follower *etcd) {
	for _, m := range c.members {
		says := m.serving()
		switch {
		case says.leader == says.id:
			leader = m
		case !says.learner:
			follower = m
		}
	}
	return leader, follower
}

// reaches waits until the member has applied a revision: it is in its log then.
func (m *etcd) reaches(revision int64) {
	m.Helper()
	from := Source{Endpoints: []string{url(m.client)}}
	m.eventually(fmt.Sprintf("%s has revision %d", m.name, revision), func() error {
		says, err := from.askOne(m.Context(), url(m.client))
		if err != nil {
			return err
		}
		defer says.close()
		if says.revision < revision {
			return fmt.Errorf("it is at %d", says.revision)
		}
		return nil
	})
}

// contents are the hashes of all files below a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		all[path] = fmt.Sprintf("%x %s %s", sha256.Sum256(data), info.Mode(), info.ModTime())
		return err
	})
	if err != nil || len(all) == 0 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	return all
}

// stoppedOptions are those by which a snapshot is saved of a member that was killed.
func (m *etcd) stoppedOptions(name string) SaveStoppedOptions {
	return SaveStoppedOptions{
		StoppedMember: StoppedMember{DataDir: m.dataDir}, Etcd: m.binary, Scratch: m.TempDir(), SaveOptions: SaveOptions{Name: name},
	}
}

// restoredKeys are the keys that a cluster of one member serves, that is made of a snapshot.
func (c *etcds) restoredKeys(version string, store Store, name string) map[string]int64 {
	c.Helper()
	restored := newEtcds(c.T, version, 1)
	restored.restore(store, name, func(o *RestoreOptions) { o.EtcdVersion = version })
	r, err := restored.members[0].dial().Get(c.Context(), "\x00", clientv3.WithFromKey())
	if err != nil {
		c.Fatal(err)
	}
	there := map[string]int64{}
	for _, kv := range r.Kvs {
		there[string(kv.Key)] = kv.ModRevision
	}
	restored.members[0].kill()
	return there
}

// logged are the keys that are put by the entries of a log.
func (m *etcd) logged() map[string]bool {
	m.Helper()
	w, err := wal.OpenForRead(zap.NewNop(), filepath.Join(m.dataDir, "member", "wal"), nil)
	if err != nil {
		m.Fatal(err)
	}
	_, _, entries, err := w.ReadAll()
	if err != nil {
		m.Fatal(err)
	}
	keys := map[string]bool{}
	for _, e := range entries {
		var r etcdserverpb.InternalRaftRequest
		if e.GetType() == raftpb.EntryNormal && proto.Unmarshal(e.GetData(), &r) == nil && r.Put != nil {
			keys[string(r.Put.Key)] = true
		}
	}
	return keys
}

// TestSaveStopped kills three members at once while they are written to, with their databases far
// behind their logs. Of a leader and of a follower everything is in the snapshot that is in its
// log.
func TestSaveStopped(t *testing.T) {
	anyVersion(t, 3, func(c *etcds, version string) {
		for _, m := range c.members {
			m.start(withoutCommits...)
		}
		leader, follower := c.leaderAndFollower()
		stop := c.writing(8)
		c.waitFor(500)
		c.killAll()
		acked := stop()
		logs := map[string]map[string]bool{}
		for _, m := range c.members {
			logs[m.name] = m.logged()
		}
		for role, m := range map[string]*etcd{"leader": leader, "follower": follower} {
			before := contents(c.T, m.dataDir)
			store, o := newMemory(), m.stoppedOptions(role)
			state, err := m.stopped().Read(c.Context())
			if err != nil {
				c.Fatal(err)
			}
			manifest, err := SaveStopped(c.Context(), store, o)
			if err != nil {
				c.Fatal(err)
			}
			if diff := cmp.Diff(before, contents(c.T, m.dataDir)); diff != "" {
				c.Errorf("the data directory of the %s has changed: -was +is:\n%s", role, diff)
			}
			if left, err := os.ReadDir(o.Scratch); err != nil || len(left) > 0 {
				c.Errorf("%v stays in the scratch directory (%v)", left, err)
			}
			if !strings.HasPrefix(version, state.EtcdVersion+".") || manifest.Member != m.name && state.EtcdVersion != "3.5" {
				// Etcd 3.5 has the name in the database alone, as far as it is read here.
				c.Errorf("the data is of etcd %q, and the manifest of member %q", state.EtcdVersion, manifest.Member)
			}
			if manifest.ClusterID != state.ClusterID || manifest.MemberID != state.MemberID || manifest.EtcdVersion != version {
				c.Errorf("the manifest is of another member: %+v", manifest)
			}
			there := c.restoredKeys(version, store, role)
			var logged int
			for _, a := range acked {
				_, is := there[a.key]
				if logs[m.name][a.key] {
					logged++
				}
				if is != logs[m.name][a.key] {
					c.Errorf("%s: acknowledged write %s is in the log: %t, and in the snapshot: %t", role, a.key, logs[m.name][a.key], is)
				}
			}
			c.Logf("%s: %d writes acknowledged, %d of them logged, %d keys restored; the database was at entry %d, the commit index at %d of %d",
				role, len(acked), logged, len(there), state.DatabaseIndex, state.CommitIndex, state.LastIndex)
			if logged < 400 || state.DatabaseIndex+400 > state.LastIndex {
				c.Errorf("%s: that shows little: %d writes, database at entry %d of %d", role, logged, state.DatabaseIndex, state.LastIndex)
			}
		}
	})
}

func (m *etcd) stopped() StoppedMember { return StoppedMember{DataDir: m.dataDir} }

// TestSaveStoppedNeedsLog shows what each step is for. A leader and a follower are killed when they
// have acknowledged a write: none of them has written down that it is committed.
func TestSaveStoppedNeedsLog(t *testing.T) {
	anyVersion(t, 3, func(c *etcds, version string) {
		for _, m := range c.members {
			m.start(withoutCommits...)
		}
		leader, follower := c.leaderAndFollower()
		for _, m := range c.members {
			if m != leader && m != follower {
				m.kill() // without the follower no write is acknowledged then
			}
		}
		leader.put("before", 20)
		leader.put("last", 1)
		c.killAll()
		for name, tc := range map[string]struct {
			reason string
			save   func(store Store, name string) error
			lost   []string
		}{
			"saved": {
				reason: "nothing is lost",
				save: func(store Store, name string) error {
					_, err := SaveStopped(c.Context(), store, follower.stoppedOptions(name))
					return err
				},
			},
			"torn": {
				reason: "what was being written when the power was lost was never acknowledged",
				save: func(store Store, name string) error {
					o := follower.stoppedOptions(name)
					o.DataDir = follower.copied()
					(&stoppedLog{T: c.T, dir: filepath.Join(o.DataDir, "member", "wal")}).tear()
					_, err := SaveStopped(c.Context(), store, o)
					return err
				},
			},
			"uncommitted": {
				reason: "etcd drops what it does not know to be committed",
				save:   func(store Store, name string) error { return follower.saveUncommitted(store, name) },
				lost:   []string{"last-000"},
			},
			"database": {
				reason: "the database is behind the log",
				save:   func(store Store, name string) error { return follower.saveDatabase(store, name) },
				lost:   slices.Concat(numbered("before", 20), numbered("last", 1)),
			},
		} {
			store := newMemory()
			if err := tc.save(store, name); err != nil {
				c.Fatalf("%s: %v", name, err)
			}
			there := c.restoredKeys(version, store, name)
			var lost []string
			for _, key := range slices.Concat(numbered("before", 20), numbered("last", 1)) {
				if _, is := there[key]; !is {
					lost = append(lost, key)
				}
			}
			if diff := cmp.Diff(tc.lost, lost); diff != "" {
				c.Errorf("%s: %s: lost, -want +got:\n%s", name, tc.reason, diff)
			}
		}
	})
}

func numbered(prefix string, count int) []string {
	var all []string
	for n := range count {
		all = append(all, fmt.Sprintf("%s-%03d", prefix, n))
	}
	return all
}

// copied is a plain copy of the data directory.
func (m *etcd) copied() string {
	m.Helper()
	dir := filepath.Join(m.TempDir(), servedDir)
	if err := os.CopyFS(dir, os.DirFS(m.dataDir)); err != nil {
		m.Fatal(err)
	}
	return dir
}

// saveUncommitted saves of a plain copy of the data directory.
func (m *etcd) saveUncommitted(store Store, name string) error {
	state, err := m.stopped().Read(m.Context())
	if err != nil {
		return err
	}
	_, err = m.stoppedOptions(name).saveCopy(m.Context(), store, filepath.Dir(m.copied()), state)
	return err
}

// saveDatabase saves of a member that is made of a copy of the database alone.
func (m *etcd) saveDatabase(store Store, name string) error {
	database, err := os.ReadFile(databaseIn(m.dataDir))
	if err != nil {
		return err
	}
	path := filepath.Join(m.TempDir(), "snapshot.db")
	if err := os.WriteFile(path, sealed(database), 0o600); err != nil {
		return err
	}
	only := newEtcds(m.T, m.version(), 1)
	o := only.members[0].restoreOptions()
	o.KeepRevisions = true
	if err := Restore(m.Context(), path, o); err != nil {
		return err
	}
	only.form()
	_, err = Save(m.Context(), only.source(), store, SaveOptions{Name: name})
	return err
}

// version is that of the binary.
func (m *etcd) version() string {
	m.Helper()
	version, err := etcdVersion(m.Context(), m.binary)
	if err != nil {
		m.Fatal(err)
	}
	return version
}
