package snapshot

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAzureAnswers shows what becomes of the answers of Azure, and where its requests go. No server
// of its protocol can be built here: what succeeds is not shown.
func TestAzureAnswers(t *testing.T) {
	t.Setenv("AZURE_STORAGE_KEY", "c2VjcmV0")
	cases := map[string]struct {
		reason string
		status int
		code   string
		open   Reason
		create Reason
	}{
		"NoBlob":      {"A blob is missing.", 404, "BlobNotFound", ReasonNotFound, ReasonNoSuchBucket},
		"NoContainer": {"The container is missing.", 404, "ContainerNotFound", ReasonNoSuchBucket, ReasonNoSuchBucket},
		"Exists":      {"Both words for it are known.", 409, "BlobAlreadyExists", ReasonAlreadyExists, ReasonAlreadyExists},
		"Condition":   {"Both words for it are known.", 412, "ConditionNotMet", ReasonAlreadyExists, ReasonAlreadyExists},
		"Key":         {"The account key is wrong.", 403, "AuthenticationFailed", ReasonInvalidCredentials, ReasonInvalidCredentials},
		"Role":        {"The role is missing.", 403, "AuthorizationPermissionMismatch", ReasonAccessDenied, ReasonAccessDenied},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			t.Log(tc.reason)
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // the client notices
				if r.Method == http.MethodHead {   // that the blob is there shows with the write
					w.Header().Set("X-Ms-Error-Code", "BlobNotFound")
					w.WriteHeader(http.StatusNotFound)
					return
				}
				w.Header().Set("X-Ms-Error-Code", tc.code)
				w.WriteHeader(tc.status)
			}))
			t.Cleanup(server.Close)
			s := openFake(t, Config{Azure: &Azure{Account: "account", Container: "container", Endpoint: server.URL + "/account"}})
			_, err := s.Open(t.Context(), "a")
			wantReason(t, err, tc.open, nil)
			for _, size := range []int{0, 10, partSize, large} {
				err := s.Create(t.Context(), "a", func(w io.Writer) error {
					_, err := w.Write(make([]byte, size))
					return err
				})
				wantReason(t, err, tc.create, nil)
			}
		})
	}
}

// TestAzureRequest looks at what is sent.
func TestAzureRequest(t *testing.T) {
	t.Setenv("AZURE_STORAGE_KEY", "c2VjcmV0")
	type request struct{ Path, Block, Condition string }
	var mu sync.Mutex
	var got []request
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the client notices
		mu.Lock()
		defer mu.Unlock()
		if r.Method != http.MethodPut {
			w.Header().Set("X-Ms-Error-Code", "BlobNotFound")
			w.WriteHeader(http.StatusNotFound)
			return
		}
		got = append(got, request{r.URL.Path, r.URL.Query().Get("comp"), r.Header.Get("If-None-Match")})
		w.WriteHeader(http.StatusCreated)
	}))
	t.Cleanup(server.Close)
	s := openFake(t, Config{Azure: &Azure{Account: "account", Container: "container", Prefix: "p", Endpoint: server.URL + "/account/"}})
	create(t, s, "small", []byte("content"))
	create(t, s, "large", make([]byte, partSize+1))
	slices.SortFunc(got, func(a, b request) int { return strings.Compare(a.Path+a.Block, b.Path+b.Block) })
	want := []request{
		{"/account/container/p/large", "block", ""}, {"/account/container/p/large", "block", ""},
		{"/account/container/p/large", "blocklist", "*"},
		{"/account/container/p/small", "", "*"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAzureURL(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff("https://account.blob.core.windows.net/c", (&Azure{Account: "account", Container: "c"}).url()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
