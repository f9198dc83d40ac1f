//go:build env

package snapshot

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quorate.dev/e2e/node"
)

// TestSaveStoppedLearner: a learner among the members is no obstacle, and of a learner alone a
// snapshot is saved too.
func TestSaveStoppedLearner(t *testing.T) { anyVersion(t, 3, saveBesideLearner) }

func saveBesideLearner(c *etcds, version string) {
	c.Helper()
	// The learner is sent a snapshot: the entries of before are gone when it comes.
	flags := []string{"--snapshot-count=20", "--snapshot-catchup-entries=5"}
	if strings.HasPrefix(version, "3.5.") {
		flags[1] = "--experimental-snapshot-catchup-entries=5"
	}
	for _, m := range c.members {
		m.start(flags...)
	}
	for _, m := range c.members {
		m.serving()
	}
	keys := c.members[0].put("early", 100)
	voter := c.members[1]
	learner := &etcd{etcds: c, name: "m-3", client: freePort(c.T), peer: freePort(c.T), dataDir: filepath.Join(c.TempDir(), "data")}
	client := c.members[0].dial()
	c.members[0].eventually("a learner is added", func() error { // not before the members are known to be connected
		return second(client.MemberAddAsLearner(c.Context(), []string{url(learner.peer)}))
	})
	c.members = append(c.members, learner)
	learner.start(append(flags, "--initial-cluster-state=existing")...)
	keys = append(keys, c.members[0].put("late", 20)...)
	last, err := client.Get(c.Context(), keys[len(keys)-1])
	if err != nil {
		c.Fatal(err)
	}
	for _, m := range []*etcd{voter, learner} {
		m.reaches(last.Header.Revision)
	}
	c.killAll()
	for role, m := range map[string]*etcd{"voter": voter, "learner": learner} {
		state, err := m.stopped().Read(c.Context())
		if err != nil {
			c.Fatal(err)
		}
		if state.Learner != (m == learner) || state.log.snapshot.GetIndex() == 0 {
			c.Errorf("the %s is a learner: %t, with a snapshot of entry %d", role, state.Learner, state.log.snapshot.GetIndex())
		}
		store := newMemory()
		if _, err := SaveStopped(c.Context(), store, m.stoppedOptions(role)); err != nil {
			c.Errorf("%s: %v", role, err)
			continue
		}
		there := c.restoredKeys(version, store, role)
		for _, key := range keys {
			if _, is := there[key]; !is {
				c.Errorf("%s: %s is lost", role, key)
			}
		}
	}
}

// TestSaveStoppedVersions: an etcd of the next minor will do, and others are refused before
// anything is copied.
func TestSaveStoppedVersions(t *testing.T) {
	t.Parallel()
	versions := node.EtcdVersions()
	for n, was := range versions {
		c := newEtcds(t, was, 1)
		c.form()
		c.members[0].storage(was)
		keys := c.members[0].put("key", 3)
		c.members[0].end()
		for k, will := range versions {
			store, o := newMemory(), c.members[0].stoppedOptions("as-"+will)
			o.Etcd = binary(t, will)
			m, err := SaveStopped(t.Context(), store, o)
			switch {
			case k == n || k == n+1:
				if err != nil {
					t.Errorf("data of %s with etcd %s: %v", was, will, err)
					continue
				}
				if m.Member != c.members[0].name || m.EtcdVersion != will {
					t.Errorf("data of %s with etcd %s: the manifest says %s, etcd %s", was, will, m.Member, m.EtcdVersion)
				}
				there := c.restoredKeys(will, store, "as-"+will)
				for _, key := range keys {
					if _, is := there[key]; !is {
						t.Errorf("data of %s with etcd %s: %s is lost", was, will, key)
					}
				}
			case k < n && !errors.Is(err, ErrTooOld), k > n && (err == nil || !strings.Contains(err.Error(), "skips a minor")):
				t.Errorf("data of %s with etcd %s: %v", was, will, err)
			}
		}
	}
}

// TestSaveStoppedRefused: of a member that runs, and of what no etcd can read, nothing is saved,
// and nothing stays.
func TestSaveStoppedRefused(t *testing.T) {
	t.Parallel()
	c := newEtcds(t, node.Etcd36, 1)
	m := c.members[0]
	c.form()
	c.members[0].put("key", 3)
	client := m.dial()
	for _, err := range []error{
		second(client.UserAdd(t.Context(), "root", "open-sesame")), second(client.UserGrantRole(t.Context(), "root", "root")), second(client.AuthEnable(t.Context())),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	store, o := newMemory(), m.stoppedOptions("refused")
	if _, err := SaveStopped(t.Context(), store, o); !errors.Is(err, ErrInUse) {
		t.Errorf("of a member that runs: %v", err)
	}
	c.killAll()
	if _, err := SaveStopped(t.Context(), store, o); err == nil || !strings.Contains(err.Error(), "user name is empty") {
		t.Errorf("without a user: %v", err)
	}
	o.Username, o.Password = "root", "wrong"
	if _, err := SaveStopped(t.Context(), store, o); err == nil || !strings.Contains(err.Error(), "invalid user ID or password") {
		t.Errorf("with a wrong password: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	o.Progress = func(Progress) { cancel() }
	if _, err := SaveStopped(ctx, store, o); !errors.Is(err, context.Canceled) {
		t.Errorf("when it is interrupted: %v", err)
	}
	if left, err := os.ReadDir(o.Scratch); err != nil || len(left) > 0 || len(store.objects) > 0 {
		t.Errorf("%v and %v stay (%v)", left, store.objects, err)
	}
	o.Progress, o.Username, o.Password = nil, "root", "open-sesame"
	if _, err := SaveStopped(t.Context(), store, o); err != nil {
		t.Errorf("with a user: %v", err)
	}
}

// second is the error of a call.
func second[T any](_ T, err error) error { return err }
