package hostlet

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// endless is the body of an answer that begins and goes on until its request
// ends, or the server has had enough of it after an hour.
type endless struct {
	context.Context
	begun bool
}

func (e *endless) Close() error { return nil }

func (e *endless) Read(p []byte) (int, error) {
	if !e.begun {
		e.begun = true
		return copy(p, "begun"), nil
	}
	select {
	case <-e.Done():
		return 0, e.Err()
	case <-time.After(time.Hour):
		return 0, io.EOF
	}
}

// TestBounded: a request without an answer, or without the end of one, ends in
// an error that names it.
func TestBounded(t *testing.T) {
	t.Parallel()
	begins := func(r *http.Request) (*http.Response, error) {
		return &http.Response{Body: &endless{Context: r.Context()}}, nil
	}
	type result struct {
		Body, Error string
		After       time.Duration
	}
	cases := map[string]struct {
		reason string
		path   string
		server roundTrip
		want   result
	}{
		"Answered": {
			reason: "the answer is there", path: "/pods",
			server: func(*http.Request) (*http.Response, error) {
				return &http.Response{Body: io.NopCloser(strings.NewReader("done"))}, nil
			},
			want: result{Body: "done"},
		},
		"Silent": {
			reason: "no answer begins", path: "/pods",
			server: func(r *http.Request) (*http.Response, error) { <-r.Context().Done(); return nil, r.Context().Err() },
			want:   result{Error: "waited 1m0s for the answer to GET /pods\ncontext canceled", After: time.Minute},
		},
		"Halfway": {
			reason: "an answer begins and does not end", path: "/pods", server: begins,
			want: result{Body: "begun", Error: "waited 1m0s for the answer to GET /pods\ncontext canceled", After: time.Minute},
		},
		"Watch": {
			reason: "a watch lasts as long as the server likes", path: "/pods?watch=true", server: begins,
			want: result{Body: "begun", After: time.Hour},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server"+tc.path, nil)
				if err != nil {
					t.Fatal(err)
				}
				var got result
				response, err := bounded(tc.server, time.Minute).RoundTrip(request)
				if err == nil {
					var body []byte
					body, err = io.ReadAll(response.Body)
					got.Body = string(body)
					_ = response.Body.Close() // it was only read from
				}
				if got.After = time.Since(begun); err != nil {
					got.Error = err.Error()
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
				}
			})
		})
	}
}
