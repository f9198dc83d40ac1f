package snapshot

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestGCSAnswers shows what becomes of the answers of Google that the server of the tests does not
// give.
func TestGCSAnswers(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", "")
	cases := map[string]struct {
		reason string
		status int
		why    string // Google's reason
		open   Reason
		create Reason
		says   string
	}{
		"Denied":    {"The role is missing.", 403, "forbidden", ReasonAccessDenied, ReasonAccessDenied, "roles/storage.objectUser"},
		"Anonymous": {"The token is not known.", 401, "required", ReasonInvalidCredentials, ReasonInvalidCredentials, "GOOGLE_APPLICATION_CREDENTIALS"},
		"Missing":   {"What is created is missing nowhere but in a bucket.", 404, "notFound", ReasonNotFound, ReasonNoSuchBucket, ""},
		"Exists":    {"The condition is not met.", 412, "conditionNotMet", ReasonAlreadyExists, ReasonAlreadyExists, ""},
		"Quota":     {"A quota that a write meets has the status of a lack of rights.", 403, "quotaExceeded", ReasonAccessDenied, ReasonStoreFull, ""},
		"Busy":      {"The store stays busy through all attempts.", 429, "rateLimitExceeded", ReasonBusy, ReasonBusy, "try again later"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body) // the client notices
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(tc.status)
				_, _ = fmt.Fprintf(w, `{"error": {"code": %d, "message": "words", "errors": [{"reason": %q}]}}`, tc.status, tc.why)
			}))
			t.Cleanup(server.Close)
			s := openFake(t, Config{GCS: &GCS{Bucket: "bucket", Endpoint: server.URL}})
			_, err := s.Open(t.Context(), "a")
			wantReason(t, err, tc.open, nil)
			if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "open gs://bucket/a: ") {
				t.Errorf("got %v, want %q: %s", err, tc.says, tc.reason)
			}
			err = s.Create(t.Context(), "a", func(w io.Writer) error {
				_, err := w.Write([]byte("content"))
				return err
			})
			wantReason(t, err, tc.create, nil)
		})
	}
}
