package reconcile

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"quorate.dev/membership"
)

// TestHangs: a pass that goes on for long after its time is one of a worker that hangs.
func TestHangs(t *testing.T) {
	t.Parallel()
	one, other := types.NamespacedName{Namespace: "ns", Name: "db"}, types.NamespacedName{Namespace: "ns", Name: "other"}
	began := time.Now()
	cases := map[string]struct {
		reason string
		passes func(*underWay)
		after  time.Duration
		want   string // what the error has in it; empty: all workers work
	}{
		"None":  {reason: "nothing is to be done", passes: func(*underWay) {}, after: time.Hour},
		"Short": {reason: "a pass may take its time", passes: func(u *underWay) { u.begin(one, began) }, after: PassTakes},
		"Long":  {reason: "its time is over, and it goes on", passes: func(u *underWay) { u.begin(one, began) }, after: hangsAfter + time.Second, want: "ns/db"},
		"Ended": {reason: "it has ended", passes: func(u *underWay) { u.begin(one, began)() }, after: time.Hour},
		"Beside": {
			reason: "the end of one is none of the other",
			passes: func(u *underWay) {
				u.begin(one, began)
				u.begin(other, began)()
			},
			after: time.Hour, want: "ns/db",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := &underWay{}
			tc.passes(u)
			err := u.hangs(began.Add(tc.after))
			if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestPassUnderWay: a pass is under way from its beginning to its end, also where it falls.
func TestPassUnderWay(t *testing.T) {
	cases := map[string]struct {
		reason string
		panics bool
	}{
		"Ends":  {reason: "it has taken its step"},
		"Falls": {reason: "controller-runtime recovers it", panics: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.address()
			s := newStub(t, nil, w.objects()...)
			later := func() bool { return s.underWay.hangs(time.Now().Add(time.Hour)) != nil }
			during := make(chan bool, 100)
			s.Dial = func(host string, port int) (membership.Client, error) {
				during <- later()
				if tc.panics {
					panic("broken")
				}
				return w.dial(nil)(host, port)
			}
			func() {
				defer func() { _ = recover() }()                                                                     // as controller-runtime does
				_, _ = s.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.cluster)}) // what it does is not asked here
			}()
			if diff := cmp.Diff([]bool{true, false}, []bool{<-during, later()}); diff != "" {
				t.Errorf("%s: under way while it goes on, and afterwards: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestComparedBeyond: a comparison outlives the pass that has begun it, and not the operator.
func TestComparedBeyond(t *testing.T) {
	t.Parallel()
	asked := make(chan context.Context, 1)
	r := &Reconciler{Dial: func(string, int) (membership.Client, error) {
		return hashing{hash: func(ctx context.Context, _ int64) (membership.Hash, error) {
			select {
			case asked <- ctx:
			default: // the first one is enough
			}
			<-ctx.Done()
			return membership.Hash{}, ctx.Err()
		}}, nil
	}}
	pass, cancel := context.WithCancel(t.Context())
	c, seen := newCluster(), serves3()
	r.compared(pass, c, &seen)
	comparison := <-asked
	cancel()
	if err := comparison.Err(); err != nil {
		t.Errorf("it has ended with the pass: %v", err)
	}
	r.comparing.end()
	<-comparison.Done()
}
