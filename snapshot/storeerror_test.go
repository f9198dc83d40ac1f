package snapshot

import (
	"errors"
	"fmt"
	neturl "net/url"
	"strings"
	"testing"
)

// TestStoreErrorQuery: the signature of a shared access signature is in the query of every URL that
// Azure is asked for.
func TestStoreErrorQuery(t *testing.T) {
	t.Parallel()
	failed := &neturl.Error{
		Op: "Get", URL: "https://account.blob.core.windows.net/prod/a.manifest.json?sv=2026-01-01&sig=c2VjcmV0", Err: errors.New("too many redirects"),
	}
	const text = `Get "https://account.blob.core.windows.net/prod/a.manifest.json": too many redirects`
	const want = "read azblob://prod/a: StoreFailed: " + text
	cases := map[string]struct {
		reason string
		args   StoreError
		want   string
	}{
		"Error":   {"the query is cut out", StoreError{Err: failed}, want},
		"Wrapped": {"also of one that is wrapped twice", StoreError{Err: fmt.Errorf("once: %w", failed)}, strings.Replace(want, "Get", "once: Get", 1)},
		"Detail":  {"also of what the store said", StoreError{Detail: failed.Error()}, want},
		"Two":     {"of every URL", StoreError{Err: errors.Join(failed, failed)}, want + "\n" + text},
		"None":    {"a question stays", StoreError{Detail: "why? because"}, "read azblob://prod/a: StoreFailed: why? because"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.args.Op, tc.args.Location, tc.args.Reason = "read", "azblob://prod/a", ReasonStoreFailed
			if got := tc.args.Error(); got != tc.want {
				t.Errorf("%s: want %q, got %q", tc.reason, tc.want, got)
			}
		})
	}
}
