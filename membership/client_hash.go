package membership

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// HashTimeout bounds Client.Hash. etcd reads its whole database for it: 8 GiB, the most that it is
// made for, from a slow disk of 100 MB/s.
const HashTimeout = 2 * time.Minute

// ErrCompacted is the answer to a question about a revision that is compacted.
var ErrCompacted = errors.New("the revision is compacted")

// Hash of a revision at which a member was compacted may be one that etcd has kept since then, and
// does not tell what is on the disk now (HashByRev in server/storage/mvcc/hash.go). So a look at
// the revision before follows, which fails exactly where this one is compacted.
func (c *client) Hash(ctx context.Context, revision int64) (_ Hash, err error) {
	defer c.ended(&err)
	ctx, cancel := context.WithTimeout(ctx, HashTimeout)
	defer cancel()
	r, err := c.etcd.HashKV(ctx, c.url, revision)
	if err == nil && revision > 0 {
		_, err = c.etcd.Get(ctx, "\x00", clientv3.WithRev(max(revision-1, 1)), clientv3.WithSerializable(), clientv3.WithCountOnly())
	}
	switch {
	case errors.Is(err, rpctypes.ErrCompacted):
		return Hash{}, fmt.Errorf("hash of etcd %s at revision %d: %w", c.address, revision, ErrCompacted)
	case err != nil:
		return Hash{}, fmt.Errorf("hash of etcd %s at revision %d: %w", c.address, revision, err)
	}
	return Hash{
		Revision:  cmp.Or(revision, r.HashRevision, r.Header.Revision), // 3.5 tells the last alone
		Compacted: r.CompactRevision,
		Sum:       r.Hash,
	}, nil
}
