package membership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUpdatedNext: clients leave the member that is updated next while the one before proves
// itself, and only then.
func TestUpdatedNext(t *testing.T) {
	t.Parallel()
	proves := func(i *Instance) { changedTo(etcd37)(i); next(etcd37)(i); i.Pod.Unproved = true }
	ready := onAll(func(i *Instance) { i.Pod.Ready = true })
	cases := map[string]struct {
		reason string
		base   func() (Desired, Observed)
		args   []change
		want   []string
	}{
		"Proves":     {reason: "m-1 was updated, m-2 follows, and m-0 leads", base: upgrading(etcd36, etcd37), args: []change{on(1, proves), ready}, want: []string{"m-2"}},
		"Proved":     {reason: "its proof has yet to be recorded", base: upgrading(etcd36, etcd37), args: []change{on(1, changedTo(etcd37)), on(1, next(etcd37)), ready}, want: []string{"m-2"}},
		"First":      {reason: "no update has begun, and it may have to wait for its turn", base: upgrading(etcd36, etcd37), args: []change{ready}},
		"LastProves": {reason: "none follows", base: upgrading(etcd36, etcd37), args: []change{onAll(changedTo(etcd37)), on(0, proves), ready}},
		"NotReady":   {reason: "the Service does not lead to m-1 yet", base: upgrading(etcd36, etcd37), args: []change{on(1, proves), ready, on(1, func(i *Instance) { i.Pod.Ready = false })}},
		"Silent":     {reason: "another member is away", base: upgrading(etcd36, etcd37), args: []change{on(1, proves), ready, on(0, silent)}},
		"NoneProved": {reason: "if the proof fails, none serves beside it", base: upgrading(etcd36, etcd37), args: []change{on(0, proves), on(1, proves), ready}},
		"GivenUp":    {reason: "what was rolled back is not tried again", base: upgrading(etcd36, etcd37), args: []change{on(1, proves), ready, func(d *Desired, _ *Observed) { d.GivenUp = "m-2: it did not start" }}},
		"Resources":  {reason: "that restarts none", base: upgrading(etcd36, etcd37), args: []change{on(1, proves), ready, on(2, differs(ChangeResources, "resources")), on(2, runs(etcd37))}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, o := tc.base()
			for _, change := range tc.args {
				change(&d, &o)
			}
			if diff := cmp.Diff(tc.want, UpdatedNext(d, o)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
