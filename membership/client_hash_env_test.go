//go:build env

package membership

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"quorate.dev/e2e/node"
)

// TestClientHash: what is told of a revision is read from the disk. Of a revision at which the
// member was compacted etcd has kept a hash, and that is not told; its present data can be asked
// for then.
func TestClientHash(t *testing.T) {
	sums := make(chan uint32, 3)
	withVersions(t, node.EtcdVersions(), 1, func(c *etcds, _ Version) {
		m := c.members[0]
		m.bootstrapAlone()
		m.serving()
		client := m.dial()
		hash := func(revision int64) Hash {
			c.Helper()
			h, err := client.Hash(c.Context(), revision)
			if err != nil {
				c.Fatal(err)
			}
			return h
		}
		m.put("key", "before")
		m.put("key", "after")
		says, err := client.Status(c.Context())
		if err != nil {
			c.Fatal(err)
		}
		at := says.Revision
		if diff := cmp.Diff(Hash{Revision: at, Compacted: -1, Sum: hash(at).Sum}, hash(0)); diff != "" {
			c.Errorf("the present data is not that of revision %d: -want +got:\n%s", at, diff)
		}
		if before := hash(at - 1); before.Sum == hash(at).Sum || before.Revision != at-1 {
			c.Errorf("the data before is %+v, and now %+v", before, hash(at))
		}
		if _, err := m.kv().Compact(c.Context(), at); err != nil {
			c.Fatal(err)
		}
		if h, err := client.Hash(c.Context(), at); !errors.Is(err, ErrCompacted) {
			c.Errorf("of a revision that is compacted it tells %+v, error %v", h, err)
		}
		if h, err := client.Hash(c.Context(), at-1); !errors.Is(err, ErrCompacted) {
			c.Errorf("of a revision before that it tells %+v, error %v", h, err)
		}
		if h := hash(0); h.Revision != at || h.Compacted != at {
			c.Errorf("its present data is %+v", h)
		}
		m.put("key", "at last")
		h := hash(at + 1)
		if h.Revision != at+1 || h.Compacted != at {
			c.Errorf("its data after that is %+v", h)
		}
		sums <- h.Sum
	})
	t.Cleanup(func() { // when all minors have told
		close(sums)
		var all []uint32
		for sum := range sums {
			all = append(all, sum)
		}
		if len(slices.Compact(all)) != 1 {
			t.Errorf("the same data has different hashes on different minors: %08x", all)
		}
	})
}
