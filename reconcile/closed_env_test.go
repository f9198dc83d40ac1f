//go:build env

package reconcile_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/membership"
	"quorate.dev/reconcile"
)

// closable is a network between an operator and the members, as a NetworkPolicy may close it, for
// connections that there are as well.
type closable struct{ closed atomic.Bool }

type overNetwork struct {
	membership.Client
	network *closable
}

func (o overNetwork) Lasts() bool {
	return !o.network.closed.Load() && o.Client.(membership.Lasting).Lasts()
}

func (n *closable) between(r *reconcile.Reconciler) {
	dial, scrape := r.Dial, r.Scrape
	shut := errors.New("the network is closed")
	r.Dial = func(host string, port int) (membership.Client, error) {
		if n.closed.Load() {
			return nil, shut
		}
		etcd, err := dial(host, port)
		return overNetwork{etcd, n}, err
	}
	r.Scrape = func(ctx context.Context, host string, port int) (membership.Endpoint, error) {
		if n.closed.Load() {
			return membership.Endpoint{}, shut
		}
		return scrape(ctx, host, port)
	}
}

// TestNetworkClosed: the members serve, and the operator reaches none of them, at the first start
// and later. It says so, and which ports it needs; and when they are open, it goes on.
func TestNetworkClosed(t *testing.T) {
	s := newStage(t)
	network := &closable{}
	network.closed.Store(true)
	s.operate(network.between)
	c := s.cluster("db", 3)
	contract.Watch(s, c)
	s.create(c)
	told := func(available metav1.ConditionStatus, reason string) {
		t.Helper()
		const message = "no member answers the operator, and kubelets report that etcd serves in db-0, db-1, db-2. " +
			"Allow ports 2379 and 2381 from the operator to the members, and 2380 among the members (NetworkPolicy, service mesh)"
		s.await(c, "stalled, with the ports to open", func() bool {
			stalled := meta.FindStatusCondition(c.Status.Conditions, api.ConditionStalled)
			return stalled != nil && stalled.Reason == api.ReasonUnreachable && stalled.Message == message
		})
		got := meta.FindStatusCondition(c.Status.Conditions, api.ConditionAvailable)
		if got.Status != available || got.Reason != reason {
			t.Errorf("Available is %s with %s, want %s with %s", got.Status, got.Reason, available, reason)
		}
	}
	told(metav1.ConditionFalse, api.ReasonNotFormed)
	network.closed.Store(false)
	s.ready(c)
	before := identityOf(c)

	network.closed.Store(true)
	told(metav1.ConditionUnknown, api.ReasonUnreachable)
	network.closed.Store(false)
	s.ready(c)
	if diff := cmp.Diff(before, identityOf(c)); diff != "" {
		t.Errorf("the members changed: -want +got:\n%s", diff)
	}
	if slices.ContainsFunc(s.pods(c), func(p corev1.Pod) bool { return p.Status.ContainerStatuses[0].RestartCount > 0 }) {
		t.Error("a member was restarted")
	}
}
