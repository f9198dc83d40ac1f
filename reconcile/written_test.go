package reconcile

import (
	"testing"
	"time"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestBehind: a pass that would begin with less than what was written waits for the cache, and asks
// no member. It does not wait for ever.
func TestBehind(t *testing.T) {
	cases := map[string]struct {
		reason string
		last   *lastWrite // nil: this process has written nothing
		read   string
		want   bool
	}{
		"Behind":   {reason: "the cache does not know of the last write yet", last: &lastWrite{"12", time.Now()}, read: "9", want: true},
		"Level":    {reason: "it does", last: &lastWrite{"12", time.Now()}, read: "12"},
		"Ahead":    {reason: "another writer has written since", last: &lastWrite{"12", time.Now()}, read: "104"},
		"Nothing":  {reason: "an operator that has just started knows of no write", read: "9"},
		"Restored": {reason: "the API server's data are older than before", last: &lastWrite{"12", time.Now().Add(-catchUp)}, read: "9"},
		"Opaque":   {reason: "a version need not be a number", last: &lastWrite{"b", time.Now()}, read: "a"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			key := client.ObjectKeyFromObject(c)
			var w written
			if tc.last != nil {
				w.last.Store(key, *tc.last)
			}
			c.ResourceVersion = tc.read
			if got := w.behind(c); got != tc.want {
				t.Errorf("%s: behind is %t, want %t", tc.reason, got, tc.want)
			}
			w.forget(key)
			if w.behind(c) {
				t.Errorf("%s: behind what was forgotten", tc.reason)
			}
		})
	}
}

// TestReconcileBehind: until the cache has caught up nothing is read or written but the
// EtcdCluster.
func TestReconcileBehind(t *testing.T) {
	t.Parallel()
	c := newCluster()
	c.ResourceVersion = ""
	s := newStub(t, nil, c)
	key := client.ObjectKeyFromObject(c)
	s.written.last.Store(key, lastWrite{"1000000", time.Now()})
	r, err := s.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
	if err != nil || r.RequeueAfter != afterChange || len(s.writes) != 0 {
		t.Errorf("again after %s, with %v, having written %v", r.RequeueAfter, err, s.writes)
	}
	s.written.last.Store(key, lastWrite{"1000000", time.Now().Add(-catchUp)})
	if _, err := s.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil || len(s.writes) == 0 {
		t.Errorf("with %v, having written nothing: waiting has to end", err)
	}
}
