//go:build env

package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	clientv3 "go.etcd.io/etcd/client/v3"

	"quorate.dev/e2e/node"
)

// history writes keys, overwrites and deletes some, and compacts where it is asked to.
func (c *etcds) history(compact bool) {
	c.Helper()
	client := c.members[0].dial()
	for n := range 300 {
		if _, err := client.Put(c.Context(), fmt.Sprintf("key-%d", n%90), fmt.Sprintf("value-%d", n)); err != nil {
			c.Fatal(err)
		}
		if n%7 == 0 {
			if _, err := client.Delete(c.Context(), fmt.Sprintf("key-%d", n%50), clientv3.WithPrefix()); err != nil {
				c.Fatal(err)
			}
		}
		if n == 200 && compact {
			if _, err := client.Compact(c.Context(), 180, clientv3.WithCompactPhysical()); err != nil {
				c.Fatal(err)
			}
		}
	}
}

// TestVerify saves, and verifies by an etcd of the same version, with history that is compacted and
// with all of it.
func TestVerify(t *testing.T) {
	anyVersion(t, 1, func(c *etcds, version string) {
		c.form()
		for _, compact := range []bool{false, true} {
			c.history(compact)
			store := newMemory()
			name := fmt.Sprintf("compacted-%t", compact)
			m, err := Save(c.Context(), c.source(), store, SaveOptions{Name: name, Cluster: "default/db"})
			if err != nil {
				c.Fatal(err)
			}
			v, err := Verify(c.Context(), store, name, VerifyOptions{Etcd: c.binary, Scratch: c.TempDir()})
			if err != nil {
				c.Fatal(err)
			}
			if diff := cmp.Diff(Verification{Format: Format, Name: name, Mode: ModeRestore, At: v.At, SHA256: m.SHA256, EtcdVersion: version, Hash: v.Hash}, v); diff != "" || v.Hash == 0 {
				c.Errorf("-want +got:\n%s", diff)
			}
			stored, err := List(c.Context(), store)
			if err != nil {
				c.Fatal(err)
			}
			if diff := cmp.Diff([]Stored{{Manifest: m, Verification: &v}}, stored, cmpopts.IgnoreFields(Stored{}, "Modified")); diff != "" {
				c.Errorf("-want +got:\n%s", diff)
			}
		}
	})
}

// TestVerifyCatches: a store that changes a byte, and an etcd that serves other data than the
// snapshot has.
func TestVerifyCatches(t *testing.T) {
	c := newEtcds(t, node.Etcd36, 1)
	c.form()
	c.history(true)
	store := newMemory()
	m, err := Save(c.Context(), c.source(), store, SaveOptions{Name: "good"})
	if err != nil {
		c.Fatal(err)
	}
	liar := newMemory()
	maps.Copy(liar.objects, store.objects)
	liar.objects[m.Object] = bytes.Clone(store.objects[m.Object])
	liar.objects[m.Object][m.StoredSize/2] ^= 0x10
	for _, mode := range []Mode{ModeHash, ModeRestore} {
		_, err := Verify(c.Context(), liar, "good", VerifyOptions{Mode: mode, Etcd: c.binary, Scratch: c.TempDir()})
		judge(c.T, string(mode), err, CheckStoredSHA256)
	}
	if _, there := liar.objects[verificationKey("good")]; there {
		c.Error("it is recorded as verified")
	}

	path := c.TempDir() + "/snapshot.db"
	if _, err := Fetch(c.Context(), store, "good", path, FetchOptions{}); err != nil {
		c.Fatal(err)
	}
	serves := func(change func(*RestoreOptions), then func(*clientv3.Client)) error {
		restored := newEtcds(c.T, node.Etcd36, 1)
		restored.restore(store, "good", change)
		then(restored.members[0].dial())
		_, err := VerifyServed(c.Context(), path, url(restored.members[0].client), m)
		return err
	}
	kept := func(o *RestoreOptions) { o.KeepRevisions = true }
	if err := serves(kept, func(*clientv3.Client) {}); err != nil {
		c.Error(err)
	}
	if err := serves(kept, func(client *clientv3.Client) { // what comes later is not of the snapshot
		if _, err := client.Put(c.Context(), "later", "x"); err != nil {
			c.Fatal(err)
		}
	}); err != nil {
		c.Error(err)
	}
	err = serves(func(*RestoreOptions) {}, func(*clientv3.Client) {})
	if err == nil || !strings.Contains(err.Error(), "restore with the revisions kept") {
		c.Errorf("the history is gone: %v", err)
	}
	// Another cluster that has come as far serves other data.
	other := newEtcds(c.T, node.Etcd36, 1)
	other.form()
	for range m.Revision + 5 {
		if _, err := other.members[0].dial().Put(c.Context(), "key", "x"); err != nil {
			c.Fatal(err)
		}
	}
	_, err = VerifyServed(c.Context(), path, url(other.members[0].client), m)
	judge(c.T, "another cluster", err, CheckServed)
	m.SHA256 = strings.Repeat("0", 64)
	_, err = VerifyServed(c.Context(), path, url(other.members[0].client), m)
	judge(c.T, "another snapshot", err, CheckSHA256)
}

// TestVerifyEtcd: what is said where the etcd cannot be run.
func TestVerifyEtcd(t *testing.T) {
	c := newEtcds(t, node.Etcd37, 1)
	c.form()
	c.members[0].storage(node.Etcd37)
	store := newMemory()
	if _, err := Save(c.Context(), c.source(), store, SaveOptions{Name: "good"}); err != nil {
		c.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason, etcd, says string
		want               error
	}{
		"None":     {"no binary is given", "", "give the path of an etcd", nil},
		"NoBinary": {"there is none", "/nowhere/etcd", "run /nowhere/etcd --version", nil},
		"Other":    {"it is something else", "/bin/echo", "does not say which etcd it is", nil},
		"TooOld":   {"it cannot read it", binary(t, node.Etcd35), "take an etcd 3.7 or newer", ErrTooOld},
	} {
		t.Run(name, func(t *testing.T) {
			scratch := t.TempDir()
			_, err := Verify(t.Context(), store, "good", VerifyOptions{Etcd: tc.etcd, Scratch: scratch})
			if err == nil || !strings.Contains(err.Error(), tc.says) || tc.want != nil && !errors.Is(err, tc.want) {
				t.Errorf("%s: want an error that says %q, got %v", tc.reason, tc.says, err)
			}
			if left := names(t, scratch); len(left) > 0 {
				t.Errorf("%s: %v is left", tc.reason, left)
			}
		})
	}
}

// TestVerifyAuth: a snapshot of an etcd with users is saved as one of them, and verified without
// one.
func TestVerifyAuth(t *testing.T) {
	anyVersion(t, 1, func(c *etcds, version string) {
		c.form()
		c.history(false)
		client := c.members[0].dial()
		if _, err := client.UserAdd(c.Context(), "root", "secret"); err != nil {
			c.Fatal(err)
		}
		if _, err := client.UserGrantRole(c.Context(), "root", "root"); err != nil {
			c.Fatal(err)
		}
		if _, err := client.AuthEnable(c.Context()); err != nil {
			c.Fatal(err)
		}
		from, store := c.source(), newMemory()
		if _, err := Save(c.Context(), from, store, SaveOptions{Name: "none"}); err == nil {
			c.Error("it is saved without a user")
		}
		from.Username, from.Password = "root", "secret"
		if _, err := Save(c.Context(), from, store, SaveOptions{Name: "good"}); err != nil {
			c.Fatal(err)
		}
		deep := filepath.Join(c.TempDir(), strings.Repeat("d", longestSocket)) // no socket has so long a path
		if err := os.Mkdir(deep, 0o700); err != nil {
			c.Fatal(err)
		}
		if _, err := Verify(c.Context(), store, "good", VerifyOptions{Etcd: c.binary, Scratch: deep}); err != nil {
			c.Error(err)
		}
		restored := newEtcds(c.T, version, 1)
		o := restored.members[0].restoreOptions()
		path := c.TempDir() + "/snapshot.db"
		if _, err := Fetch(c.Context(), store, "good", path, FetchOptions{}); err != nil {
			c.Fatal(err)
		}
		if err := Restore(c.Context(), path, o); err != nil {
			c.Fatal(err)
		}
		restored.members[0].start()
		restored.members[0].eventually("it asks for a password", func() error {
			ctx, cancel := context.WithTimeout(c.Context(), askTimeout)
			defer cancel()
			_, err := restored.members[0].dial().Get(ctx, "key")
			if err == nil {
				c.Fatal("what was restored serves without users")
			}
			if !strings.Contains(err.Error(), "user name") {
				return err
			}
			return nil
		})
	})
}
