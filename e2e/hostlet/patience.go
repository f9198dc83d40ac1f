package hostlet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"
)

// patience is how long anything may take that a test waits for without a
// time-out of its own: more than it takes on a busy machine of two cores.
const patience = 4 * time.Minute

// awaitEnd of something. It panics where that does not come, since
// processes would outlive their test: the end of the test binary kills them.
func awaitEnd(done <-chan struct{}, what string) {
	late := time.NewTimer(patience)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
		panic(fmt.Sprintf("waited %s for the end of %s", patience, what))
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (do roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return do(r) }

// bounded fails a request that has no whole answer in time, and names it. Of a
// watch only the beginning of the answer is waited for.
func bounded(server http.RoundTripper, patience time.Duration) http.RoundTripper {
	return roundTrip(func(r *http.Request) (*http.Response, error) {
		ctx, cancel := context.WithCancelCause(r.Context())
		late := time.AfterFunc(patience, func() {
			cancel(fmt.Errorf("waited %s for the answer to %s %s", patience, r.Method, r.URL.Path))
		})
		response, err := server.RoundTrip(r.WithContext(ctx))
		if err != nil {
			late.Stop()
			err = cause(ctx, r.Context(), err)
			cancel(nil)
			return nil, err
		}
		if r.URL.Query().Get("watch") != "" {
			late.Stop()
		}
		response.Body = &boundedBody{ReadCloser: response.Body, ctx: ctx, of: r.Context(), end: func() { late.Stop(); cancel(nil) }}
		return response, nil
	})
}

type boundedBody struct {
	io.ReadCloser
	ctx, of context.Context
	end     func()
}

func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = cause(b.ctx, b.of, err)
	}
	return n, err
}

func (b *boundedBody) Close() error {
	b.end()
	return b.ReadCloser.Close()
}

// cause of an error: that it took too long, where the request's own context is not what ended.
func cause(ctx, of context.Context, err error) error {
	if late := context.Cause(ctx); late != nil && of.Err() == nil {
		return errors.Join(late, err)
	}
	return err
}
