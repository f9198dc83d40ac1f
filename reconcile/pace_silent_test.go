package reconcile

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestPaceWhileSilent: looks at a cluster whose members do not answer become rarer, forming or not.
// What heals it is not put off: neither a step, nor a look in which patience ends.
func TestPaceWhileSilent(t *testing.T) {
	t.Parallel()
	waits := func(reason membership.Reason) membership.Step {
		return membership.Step{Action: membership.Wait, Reason: reason}
	}
	// away has the node of db-2 be silent for so long.
	away := func(ago time.Duration) func(world, time.Time) {
		return func(w world, now time.Time) {
			since := now.Add(-ago)
			withNodeAway(w.pods["db-2"], since)
			w.cluster.Status.Members[2].DownSince = new(metav1.NewTime(since))
		}
	}
	cases := map[string]struct {
		reason string
		silent time.Duration
		given  func(world, time.Time)
		reach  membership.Reach
		step   membership.Step
		want   time.Duration
	}{
		"Begins":           {reason: "members may be back at once", step: waits(membership.QuorumLost), want: whileWaiting},
		"Minute":           {reason: "a tenth of the silence", silent: time.Minute, step: waits(membership.QuorumLost), want: 6 * time.Second},
		"Hour":             {reason: "no more rarely than at rest", silent: time.Hour, step: waits(membership.QuorumLost), want: atRest},
		"Forming":          {reason: "a cluster that has never answered is no exception", silent: time.Minute, step: waits(membership.Bootstrapping), want: 6 * time.Second},
		"JoinsBesideOne":   {reason: "a member is on its way to heal the cluster", silent: time.Hour, reach: membership.ReachQuorum, step: waits(membership.Joining), want: whileForming},
		"Acts":             {reason: "what is done is seen through", silent: time.Hour, step: membership.Step{Action: membership.Start}, want: afterAct},
		"OneAwaySince":     {reason: "patience with its node goes on for minutes", silent: time.Hour, given: away(2 * time.Minute), reach: membership.ReachQuorum, step: waits(membership.MemberDown), want: atRest},
		"ReplaceAfterSoon": {reason: "replaceAfter passes within the pause", silent: time.Hour, given: away(5*time.Minute - 4*time.Second), reach: membership.ReachQuorum, step: waits(membership.MemberDown), want: whileWaiting},
		"ReplaceAfterShort": {
			reason: "so it does with a short one", silent: time.Hour, reach: membership.ReachQuorum, step: waits(membership.MemberDown), want: whileWaiting,
			given: func(w world, now time.Time) {
				w.cluster.Spec.Recovery = &api.Recovery{ReplaceAfter: new(api.Duration("20s"))}
				away(12*time.Second)(w, now)
			},
		},
		"StallSoon": {
			reason: "then a person is told", silent: time.Hour, step: waits(membership.QuorumLost), want: whileWaiting,
			given: func(w world, now time.Time) { crashed(w.pods["db-0"], now.Add(-55*time.Second)) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, now := serving(t), time.Now()
			for _, pod := range w.pods {
				runningPod(pod, now.Add(-time.Hour))
			}
			if tc.given != nil {
				tc.given(w, now)
			}
			r := &Reconciler{StallAfter: time.Minute}
			seen := observed{pods: w.pods, claims: w.claims}
			seen.Reach = tc.reach
			key := client.ObjectKeyFromObject(w.cluster)
			r.unresponsive.waited(key, membership.CallTimeout, now.Add(-tc.silent))
			got := r.lookAgain(key, w.cluster, seen, tc.step, nil)
			if off := got - tc.want; off < 0 || off > time.Second/2 { // the clock goes on
				t.Errorf("%s: want the next look after %s, got %s", tc.reason, tc.want, got)
			}
		})
	}
}

// TestEventEndsPause: an event, such as of a Pod, does not wait for the end of a pause.
func TestEventEndsPause(t *testing.T) {
	t.Parallel()
	passes := make(chan struct{}, 10)
	queue := controlled(t, 1, func(context.Context, reconcile.Request) (reconcile.Result, error) {
		passes <- struct{}{}
		return reconcile.Result{RequeueAfter: time.Hour}, nil
	})
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db"}})}
	for n := range 3 {
		queue.Add(request)
		select {
		case <-passes:
		case <-time.After(10 * time.Second):
			t.Fatalf("event %d: no pass begins", n)
		}
	}
}
