//go:build env

package membership

import (
	"bytes"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

var hashMiB = flag.Int("hash.mib", 16, "how large the database is of which TestHashCost has the hash taken; 1700 makes 2 GB")

// TestHashCost tells how long a member reads its database for a hash, and how long a write waits
// for it meanwhile, which is no longer: it is one call, and holds up nothing after it.
func TestHashCost(t *testing.T) {
	anyVersion(t, 1, func(c *etcds, _ Version) { hashCost(c) })
}

func hashCost(c *etcds) {
	m := c.members[0]
	m.bootstrapAlone()
	m.serving()
	kv, client := m.kv(), m.dial()
	random := rand.NewChaCha8([32]byte{})
	for n := range *hashMiB {
		var puts []clientv3.Op
		for k := range 100 {
			value := bytes.Repeat([]byte{0}, 10<<10)
			_, _ = random.Read(value) // never fails
			puts = append(puts, clientv3.OpPut(fmt.Sprintf("/registry/pods/%d-%d", n, k), string(value)))
		}
		if _, err := kv.Txn(c.Context()).Then(puts...).Commit(); err != nil {
			c.Fatal(err)
		}
	}
	var reads, stalls []time.Duration
	for range 5 {
		done := make(chan time.Duration)
		go func() {
			began := time.Now()
			if _, err := client.Hash(c.Context(), 0); err != nil {
				c.Errorf("hash: %v", err)
			}
			done <- time.Since(began)
		}()
		var longest time.Duration
		for read := time.Duration(0); read == 0; {
			began := time.Now()
			m.put("probe", "value")
			longest = max(longest, time.Since(began))
			select {
			case read = <-done:
				reads, stalls = append(reads, read), append(stalls, longest)
			default:
			}
		}
	}
	c.Logf("%d MiB: hashes took %s, the longest writes meanwhile %s", *hashMiB, reads, stalls)
}
