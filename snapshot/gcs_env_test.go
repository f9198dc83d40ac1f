//go:build env

package snapshot

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

func TestGCS(t *testing.T) {
	c := Config{GCS: &GCS{Bucket: testBucket, Endpoint: startGCS(t)}}
	makeGCSBucket(t, c)
	testStore(t, func(t *testing.T) Store { return openTestStore(t, ofTest(t, c)) })
}

func TestGCSLarge(t *testing.T) {
	c := Config{GCS: &GCS{Bucket: testBucket, Endpoint: startGCS(t)}}
	makeGCSBucket(t, c)
	largeStream(t, openTestStore(t, c))
}

func makeGCSBucket(t *testing.T, c Config) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, c.GCS.Endpoint+"/storage/v1/b?project=quorate",
		strings.NewReader(`{"name": "`+c.GCS.Bucket+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Fatal(answer.Status)
	}
}

// TestGCSRefused shows what is said of each thing that is wrong with a store.
func TestGCSRefused(t *testing.T) {
	endpoint := startGCS(t)
	cases := map[string]struct {
		reason string
		store  GCS
		want   Reason
	}{
		"NoBucket": {"A bucket that is not there is not created.", GCS{Bucket: "missing", Endpoint: endpoint}, ReasonNoSuchBucket},
		"NoServer": {"Nothing listens at the endpoint.", GCS{Bucket: testBucket, Endpoint: "http://" + storeAddress(t)}, ReasonUnreachable},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Log(tc.reason)
			s := openTestStore(t, Config{GCS: &tc.store})
			wantReason(t, s.List(t.Context(), "", func(Object) error { return nil }), tc.want, nil)
			err := s.Create(t.Context(), "a", func(w io.Writer) error {
				_, err := w.Write([]byte("content"))
				return err
			})
			wantReason(t, err, tc.want, nil)
		})
	}
}
