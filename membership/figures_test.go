package membership

import (
	"strconv"
	"sync/atomic"
	"testing"
)

// counted is what the cases of a test add to. The sum is an attribute of the test, which is printed
// when the last case has ended, for docs/reliability.md.
func counted(t *testing.T, what string) *atomic.Int64 {
	t.Helper()
	n := &atomic.Int64{}
	t.Cleanup(func() { t.Attr(what, strconv.FormatInt(n.Load(), 10)) })
	return n
}
