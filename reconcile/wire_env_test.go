//go:build env

package reconcile_test

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wire is the way between operators and the API server: what is asked for on it is counted,
// answered by another, or not at all.
type wire struct {
	mu      sync.Mutex
	instead answerer // nil while the API server answers all
	watches []io.Closer
	wrote   []string
	refused int
}

// answerer answers a request, or leaves it to the API server.
type answerer func(*http.Request) (answered bool, _ *http.Response, _ error)

// over puts the wire before the API server.
func (w *wire) over(server http.RoundTripper) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		if answered, response, err := w.ask(r); answered {
			if r.Body != nil {
				_ = r.Body.Close() // it was only read from
			}
			return response, err
		}
		response, err := server.RoundTrip(r)
		if err == nil && r.URL.Query().Get("watch") != "" {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.watches = append(w.watches, response.Body)
		}
		return response, err
	})
}

func (w *wire) ask(r *http.Request) (answered bool, response *http.Response, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.instead != nil {
		answered, response, err = w.instead(r)
	}
	switch {
	case answered:
		w.refused++
	case r.Method != http.MethodGet && isDryRun(r):
		w.wrote = append(w.wrote, r.Method+" "+r.URL.Path+tried)
	case r.Method != http.MethodGet:
		w.wrote = append(w.wrote, r.Method+" "+r.URL.Path)
	}
	return answered, response, err
}

// tried is at the end of a write that was a dry run.
const tried = " (dry run)"

// writes that have reached the API server.
func (w *wire) writes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.wrote)
}

// refusals so far.
func (w *wire) refusals() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.refused
}

// answer from now on in place of the API server; nil lets it answer again.
func (w *wire) answer(instead answerer) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.instead = instead
}

// cut the wire: nothing answers any more, and what was being watched ends.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.instead = func(*http.Request) (bool, *http.Response, error) {
		return true, nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
	for _, watch := range w.watches {
		_ = watch.Close() // it was only read from
	}
	w.watches = nil
}

func (w *wire) mend() { w.answer(nil) }

// tooMany answers one in so many requests as an API server does that has too much to do; which one
// is left to chance, lest it be the same of every attempt. Only where it says when to come again,
// the client does so by itself.
func tooMany(of int, header http.Header) answerer {
	random := rand.New(rand.NewPCG(0, 0))
	return func(r *http.Request) (bool, *http.Response, error) {
		if random.IntN(of) > 0 {
			return false, nil, nil
		}
		return true, &http.Response{
			Status: "429 Too Many Requests", StatusCode: http.StatusTooManyRequests,
			Proto: r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor,
			Header: header.Clone(), Request: r,
			Body: io.NopCloser(strings.NewReader("Too many requests, please try again later.")),
		}, nil
	}
}

// isDryRun reports whether a request writes nothing. A deletion says so in its body, in JSON or in
// protobuf.
func isDryRun(r *http.Request) bool {
	if r.URL.Query().Get("dryRun") != "" {
		return true
	}
	if r.Method != http.MethodDelete || r.GetBody == nil {
		return false
	}
	body, err := r.GetBody()
	if err != nil {
		return false
	}
	raw, err := io.ReadAll(body)
	return err == nil && bytes.Contains(raw, []byte(metav1.DryRunAll))
}
