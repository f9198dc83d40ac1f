package snapshot

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/maphash"
	"slices"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/storage/mvcc"
	"go.etcd.io/etcd/server/v3/storage/schema"
	"google.golang.org/protobuf/encoding/protowire"
)

// keyspace is what etcd says of all its keys at a revision.
type keyspace struct {
	revision  int64
	compacted int64
	hash      uint32 // HashKV
	live      int64  // the keys that have a value
}

// shard is the number of keys of which is remembered at once whether they were seen: 8 bytes each,
// and as much again for the map. A database with more keys is read once more for each shard. The
// number of all its revisions, one bit each, is kept too.
const shard = 1 << 20

// hashKeyspace computes from a file of a snapshot what etcd's HashKV answers at the revision of the
// snapshot (kvHasher in server/storage/mvcc/hash.go). Etcd keeps an index of all keys in memory for
// it; this reads the file a few times instead.
func hashKeyspace(ctx context.Context, file string, d Description) (keyspace, error) {
	return hashSharded(ctx, file, d, shard)
}

func hashSharded(ctx context.Context, file string, d Description, shard int64) (keyspace, error) {
	k := keyspace{revision: d.Revision, compacted: d.Compacted}
	err := viewDatabase(ctx, file, func(tx *bbolt.Tx) error {
		keys := tx.Bucket(schema.Key.Name())
		if keys == nil {
			return errors.New("it has no keys")
		}
		keep := make(bits, d.TotalKeys/64+1)
		shards := uint64(d.TotalKeys/shard + 1)
		for n := range shards {
			if err := k.mark(ctx, keys, keep, d.TotalKeys, n, shards); err != nil {
				return err
			}
		}
		return k.sum(ctx, keys, keep)
	})
	return k, err
}

// bits has one for each key with its revision, in their order.
type bits []uint64

func (b bits) set(n int64)      { b[n/64] |= 1 << (n % 64) }
func (b bits) has(n int64) bool { return b[n/64]&(1<<(n%64)) != 0 }

var seed = maphash.MakeSeed()

// mark the last revision of every key of a shard that has a value: what a compaction now would keep
// (keyIndex.keep).
func (k *keyspace) mark(ctx context.Context, keys *bbolt.Bucket, keep bits, total int64, shard, shards uint64) error {
	seen := map[uint64]struct{}{}
	c, at := keys.Cursor(), total
	for rev, kv := c.Last(); rev != nil; rev, kv = c.Prev() {
		at--
		if at < 0 {
			return errors.New("it has more keys than before")
		}
		key, err := keyOf(kv)
		if err != nil {
			return fmt.Errorf("revision %x: %w", rev, err)
		}
		sum := maphash.Bytes(seed, key)
		if sum%shards != shard {
			continue
		}
		if _, is := seen[sum]; is {
			continue
		}
		seen[sum] = struct{}{}
		if !mvcc.IsTombstone(rev) {
			keep.set(at)
			if len(key) > 0 { // what a bump of the revision has written is no key that a client can read
				k.live++
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// keyOf reads the key of a KeyValue as it is stored: its first field.
func keyOf(kv []byte) ([]byte, error) {
	for rest := kv; len(rest) > 0; {
		number, kind, n := protowire.ConsumeTag(rest)
		if n < 0 {
			return nil, protowire.ParseError(n)
		}
		rest = rest[n:]
		if number == 1 && kind == protowire.BytesType {
			key, n := protowire.ConsumeBytes(rest)
			return key, protowire.ParseError(min(n, 0))
		}
		if n = protowire.ConsumeFieldValue(number, kind, rest); n < 0 {
			return nil, protowire.ParseError(n)
		}
		rest = rest[n:]
	}
	return nil, nil // what a bump of the revision has written
}

// sum up what etcd hashes. What compaction removes is left out, whether it was removed yet or not.
func (k *keyspace) sum(ctx context.Context, keys *bbolt.Bucket, keep bits) error {
	h := crc32.New(crc32.MakeTable(crc32.Castagnoli))
	h.Write(schema.Key.Name())
	keeps := slices.ContainsFunc(keep, func(some uint64) bool { return some != 0 })
	var at int64
	err := keys.ForEach(func(rev, kv []byte) error {
		kept := keep.has(at)
		at++
		main := mvcc.BytesToRev(rev).Main
		switch {
		case main <= k.compacted && keeps && !kept: // etcd removes nothing where it would keep nothing
		case main == k.compacted && mvcc.IsTombstone(rev): // only some versions remove it
		default:
			h.Write(rev)
			h.Write(kv)
		}
		return ctx.Err()
	})
	k.hash = h.Sum32()
	return err
}
