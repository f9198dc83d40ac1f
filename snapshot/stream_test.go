package snapshot

import (
	"crypto/sha256"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"time"
)

// TestSlowStore: a member that sends a snapshot keeps all pages of its database, so it must not
// wait for the store.
func TestSlowStore(t *testing.T) {
	t.Parallel()
	const patience = 30 * time.Second
	stream := make([]byte, 48<<20, 48<<20+sha256.Size) // more than gRPC has on its way
	_, _ = rand.NewChaCha8([32]byte{}).Read(stream)    // it cannot fail
	sum := sha256.Sum256(stream)
	f, store := newFake(1, append(stream, sum[:]...)), newMemory()
	f.sent = make(chan struct{})
	store.write = func(_ string, w io.Writer) io.Writer {
		return writerFunc(func(p []byte) (int, error) {
			select {
			case <-f.sent:
				return w.Write(p)
			case <-time.After(patience):
				return 0, errors.New("the member has not sent all of the snapshot to a store that takes nothing")
			}
		})
	}
	_, err := Save(t.Context(), Source{Endpoints: []string{f.serve(t)}}, store, SaveOptions{Name: "good", Keep: t.TempDir()})
	judge(t, "it is no database, which is found out at the end", err, CheckDatabase)
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
