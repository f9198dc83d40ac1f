package snapshot

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a network of its own: in a bubble of synctest, minutes of waiting for it take no time.
type pipes struct {
	connected chan net.Conn
	closed    chan struct{}
	close     func()
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.connected:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { p.close(); return nil }
func (p *pipes) Addr() net.Addr { return &net.TCPAddr{} }

func (p *pipes) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case p.connected <- server:
		return client, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

// open a store, whose server ends with the bubble.
func (p *pipes) open(t *testing.T, c Config, server http.Handler) Store {
	t.Helper()
	p.connected, p.closed = make(chan net.Conn), make(chan struct{})
	p.close = sync.OnceFunc(func() { close(p.closed) })
	s := &http.Server{Handler: server}
	ended := make(chan struct{})
	go func() {
		_ = s.Serve(p) // it ends with the test
		close(ended)
	}()
	store, err := openStore(t.Context(), c, p.dial)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_, _ = store.Close(), s.Shutdown(context.WithoutCancel(t.Context())) // they go with the test
		<-ended
	})
	return store
}

// slowly is the server of a store of any kind: it takes and gives a piece, and then the next after
// the pause. Without a pause there is no next one.
type slowly struct {
	pause time.Duration
	ended <-chan struct{}
}

const (
	// piece is what io.Copy writes at once.
	piece       = 32 << 10
	slowContent = 10 * piece
)

func (s slowly) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	object := strings.HasSuffix(r.URL.Path, "/a")
	switch {
	case r.Method == http.MethodHead && !object:
		h.Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
	case r.Method == http.MethodHead, r.Method == http.MethodGet && object && r.URL.Query().Get("alt") == "json":
		h.Set("X-Ms-Error-Code", "BlobNotFound")
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete, r.Header.Get("Range") != "": // the rest, where a read has stalled
		s.wait()
	case r.Method == http.MethodGet:
		h.Set("Last-Modified", "Mon, 02 Jan 2006 15:04:05 GMT")
		h.Set("Content-Length", "327680")
		s.move(func() error {
			_, err := w.Write(bytes.Repeat([]byte(" "), piece))
			_ = http.NewResponseController(w).Flush() // the client notices
			return err
		})
	default:
		s.move(func() error {
			_, err := io.CopyN(io.Discard, r.Body, piece)
			return err
		})
		h.Set("Content-Type", "application/json")
		if r.Header.Get("X-Ms-Version") != "" {
			w.WriteHeader(http.StatusCreated)
		}
		_, _ = io.WriteString(w, `{"bucket": "bucket", "name": "a"}`) // the client notices
	}
}

// move pieces until the last.
func (s slowly) move(one func() error) {
	for range slowContent / piece {
		if one() != nil || !s.wait() {
			return
		}
	}
}

// wait tells whether there is a next piece.
func (s slowly) wait() bool {
	if s.pause == 0 {
		<-s.ended
		return false
	}
	<-time.After(s.pause) // in the time of the bubble
	return true
}

// slowStores are asked by IP address, where no proxy is between.
var slowStores = map[string]Config{
	"S3":    {S3: &S3{Bucket: "bucket", Endpoint: "http://127.0.0.1:1"}},
	"GCS":   {GCS: &GCS{Bucket: "bucket", Endpoint: "http://127.0.0.1:1"}},
	"Azure": {Azure: &Azure{Account: "account", Container: "container", Endpoint: "http://127.0.0.1:1/account"}},
}

func slowCredentials(t *testing.T) {
	t.Helper()
	fakeCredentials(t)
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	t.Setenv("AZURE_STORAGE_KEY", "c2VjcmV0")
}

var slowCalls = map[string]func(context.Context, Store) error{
	"create": func(ctx context.Context, s Store) error {
		return s.Create(ctx, "a", func(w io.Writer) error {
			_, err := w.Write(make([]byte, slowContent))
			return err
		})
	},
	"read": func(ctx context.Context, s Store) error {
		r, err := s.Open(ctx, "a")
		if err != nil {
			return err
		}
		defer r.Close()
		_, err = io.Copy(io.Discard, r)
		return err
	},
	"list":   func(ctx context.Context, s Store) error { return s.List(ctx, "", func(Object) error { return nil }) },
	"delete": func(ctx context.Context, s Store) error { return s.Delete(ctx, "there") },
}

// TestStoreStalls: a store that does not go on is given up, and the error says what to do.
func TestStoreStalls(t *testing.T) {
	slowCredentials(t)
	for name, config := range slowStores {
		for op, call := range slowCalls {
			t.Run(name+"/"+op, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					ended := make(chan struct{})
					store := new(pipes).open(t, config, slowly{ended: ended})
					t.Cleanup(func() { close(ended) })
					began := time.Now()
					err := call(t.Context(), store)
					wantReason(t, err, ReasonUnreachable, nil)
					const want = "Unreachable: the connection stalled: nothing came or went for 2m0s; check the endpoint"
					if err == nil || !strings.Contains(err.Error(), want) {
						t.Errorf("want %q, got %v", want, err)
					}
					most := attempts * (stallTimeout + dialTimeout)
					if took := time.Since(began); took < stallTimeout || took > most {
						t.Errorf("it was given up after %s: want %s to %s", took, stallTimeout, most)
					}
				})
			})
		}
	}
}

// TestStoreIsSlow: what goes on is not given up, however long it takes.
func TestStoreIsSlow(t *testing.T) {
	slowCredentials(t)
	for name, config := range slowStores {
		for _, op := range []string{"create", "read"} {
			t.Run(name+"/"+op, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					const pause = 100 * time.Second
					store := new(pipes).open(t, config, slowly{pause: pause})
					began := time.Now()
					if err := slowCalls[op](t.Context(), store); err != nil {
						t.Error(err)
					}
					if took := time.Since(began); took < 9*pause {
						t.Errorf("it took %s", took)
					}
				})
			})
		}
	}
}
