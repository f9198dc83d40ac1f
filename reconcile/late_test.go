package reconcile

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
)

// slow is an API server that takes its time to show an EtcdCluster, as it is looked at between an
// intent and its request to etcd.
type slow struct {
	client.Reader
	by time.Duration
}

func (s slow) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if _, ok := o.(*api.EtcdCluster); ok {
		<-time.After(s.by)
	}
	return s.Reader.Get(ctx, key, o, opts...)
}

// timed is a member that remembers how long it has for what it is asked.
type timed struct {
	changing
	left *time.Duration
}

func (e timed) ask(ctx context.Context, request string) error {
	if deadline, ok := ctx.Deadline(); ok {
		*e.left = time.Until(deadline)
	}
	return e.take(request)
}

func (e timed) Remove(ctx context.Context, id membership.ID) error {
	return e.ask(ctx, "remove "+id.String())
}

func (e timed) Downgrade(ctx context.Context, to membership.Version) error {
	return e.ask(ctx, "downgrade to "+to.String())
}

// TestLate: what etcd is asked for has ended, whatever etcd makes of it, before the intent has
// lived its life: another operator may begin something else then.
func TestLate(t *testing.T) {
	shrinking := func(w *world) { w.cluster.Spec.Replicas = new(int32(1)) }
	downgrading := func(w *world) {
		w.runs("3.7.3", image37, "db-0", "db-1", "db-2")
		w.cluster.Spec.Version = "3.6.16"
	}
	cases := map[string]struct {
		reason string
		given  func(*world)
		slow   time.Duration
		want   []string
		left   time.Duration
		err    error
	}{
		"InTime":          {reason: "etcd gives up by itself 7 s after it was asked, and the intent lives for 15 s", given: shrinking, want: []string{"remove a2"}, left: 8 * time.Second},
		"Slow":            {reason: "what has passed since the intent is gone", given: shrinking, slow: 5 * time.Second, want: []string{"remove a2"}, left: 3 * time.Second},
		"TooLate":         {reason: "etcd would still be at it when another one begins", given: shrinking, slow: 8 * time.Second, err: apply.ErrChanged},
		"DowngradeInTime": {reason: "so it is with what changes no membership", given: downgrading, want: []string{"downgrade to 3.6.16"}, left: 8 * time.Second},
		"DowngradeLate":   {reason: "so it is with what changes no membership", given: downgrading, slow: 9 * time.Second, err: apply.ErrChanged},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := serving(t)
				tc.given(&w)
				w.address()
				var got []string
				var left time.Duration
				s := newStub(t, nil, w.objects()...)
				dial := w.dial(func(request string) error { got = append(got, request); return nil })
				s.Dial = func(host string, port int) (membership.Client, error) {
					c, err := dial(host, port)
					return timed{c.(changing), &left}, err
				}
				s.Reader = slow{s.Reader, tc.slow}
				seen, err := s.observe(t.Context(), w.cluster, s.Client)
				if err != nil {
					t.Fatal(err)
				}
				step := membership.Plan(desired(w.cluster), seen.Observed)
				if err := s.take(t.Context(), w.cluster, seen, step); !errors.Is(err, tc.err) {
					t.Errorf("%s: error is %v, want %v", tc.reason, err, tc.err)
				}
				if diff := cmp.Diff(tc.want, got); diff != "" || left != tc.left {
					t.Errorf("%s: %s left, want %s; -want +got:\n%s", tc.reason, left, tc.left, diff)
				}
			})
		})
	}
}

// TestUnsettled: until it is known what has become of a downgrade, or of its end, nothing else is
// begun.
func TestUnsettled(t *testing.T) {
	t.Parallel()
	down := func(w *world) {
		w.runs("3.7.3", image37, "db-0", "db-1", "db-2")
		w.cluster.Spec.Version = "3.6.16"
	}
	told := func(w *world) {
		for name, e := range w.asked.endpoints {
			e.Downgrade = membership.Version{Major: 3, Minor: 6}
			w.asked.endpoints[name] = e
		}
	}
	lost := errors.New("context deadline exceeded")
	remove := membership.Step{Action: membership.Remove, Members: []string{"db-2"}, ID: 0xa2}
	cases := map[string]struct {
		reason string
		given  func(*world)
		answer error
		since  func(*world) // what shows afterwards
		ago    time.Duration
		err    error
	}{
		"Unanswered":        {reason: "etcd may still begin it", given: down, answer: lost, err: errInFlight},
		"Shows":             {reason: "it has begun, whether etcd answered or not", given: down, answer: lost, since: told},
		"Over":              {reason: "etcd has given it up", given: down, answer: lost, ago: intentLife + time.Second},
		"Refused":           {reason: "that was an answer", given: down, answer: membership.ErrLater},
		"Answered":          {reason: "etcd has said that it is done", given: down},
		"CancelUnanswered":  {reason: "etcd may still end it", given: func(w *world) { down(w); told(w); w.cluster.Spec.Version = "3.7.3" }, answer: lost, err: errInFlight},
		"CancelledAndShown": {reason: "it has ended", given: func(w *world) { down(w); told(w); w.cluster.Spec.Version = "3.7.3" }, answer: lost, since: down},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			tc.given(&w)
			w.address()
			s := newStub(t, nil, w.objects()...)
			s.Dial = w.dial(func(string) error { return tc.answer })
			seen, err := s.observe(t.Context(), w.cluster, s.Client)
			if err != nil {
				t.Fatal(err)
			}
			step := membership.Plan(desired(w.cluster), seen.Observed)
			if err := s.take(t.Context(), w.cluster, seen, step); !errors.Is(err, tc.answer) {
				t.Fatalf("%s: %s: error is %v, want %v", tc.reason, step, err, tc.answer)
			}
			if tc.since != nil {
				for name, e := range w.asked.endpoints {
					e.Downgrade = membership.Version{}
					w.asked.endpoints[name] = e
				}
				tc.since(&w)
				if seen, err = s.observe(t.Context(), w.cluster, s.Client); err != nil {
					t.Fatal(err)
				}
			}
			if op := w.cluster.Status.Operation; tc.ago > 0 {
				op.Since.Time = op.Since.Add(-tc.ago)
			}
			if err := s.intend(t.Context(), w.cluster, seen, remove, volumeUID); !errors.Is(err, tc.err) {
				t.Errorf("%s: another operation begins with %v, want %v", tc.reason, err, tc.err)
			}
		})
	}
}
