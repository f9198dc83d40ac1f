package reconcile

import (
	"cmp"
	"context"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// inForce is what the status tells of TLS.
func inForce(c *api.EtcdCluster, found *credentials) *api.TLSStatus {
	s := &api.TLSStatus{Client: api.TLSPlaneStatus{Mode: c.ClientTLSMode()}, Peer: api.TLSPlaneStatus{Mode: c.PeerTLSMode()}}
	if c.Status.TLS != nil { // what members trust does not change by being lost
		was := c.Status.TLS.DeepCopy()
		was.Client.Mode, was.Peer.Mode = s.Client.Mode, s.Peer.Mode
		s = was
	}
	if found == nil {
		return s
	}
	s.Client.Authority, s.Peer.Authority = cmp.Or(found.client, s.Client.Authority), cmp.Or(found.peer, s.Peer.Authority)
	found.clientRotation.writeTo(&s.Client)
	found.peerRotation.writeTo(&s.Peer)
	return s
}

// trustsAnother reports whether members are to start with another authority than the status has.
func trustsAnother(c *api.EtcdCluster, found *credentials) bool {
	was, is := c.Status.TLS, inForce(c, found)
	return was != nil && (otherTrust(was.Client, is.Client) || otherTrust(was.Peer, is.Peer))
}

func otherTrust(was, is api.TLSPlaneStatus) bool {
	return was.Authority != "" && was.Authority != is.Authority || !slices.Equal(was.Trusts, is.Trusts)
}

// reportTrust writes down what members are to trust, before the first Pod starts with it: an
// operator that comes after this one would take the authority for lost.
func (r *Reconciler) reportTrust(ctx context.Context, c *api.EtcdCluster, found *credentials) (ctrl.Result, error) {
	next := c.Status.DeepCopy()
	next.TLS = inForce(c, found)
	if err := r.report(ctx, c, *next); !apierrors.IsConflict(err) && err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: afterChange}, nil
}

// barred is why no member is made or changed: its certificates are not as they must be.
func barred(seen observed) error {
	if seen.credentials == nil {
		return nil
	}
	return seen.credentials.barred
}

// warns is what a person has to do, though the cluster goes on; nil where that is nothing.
func (f *credentials) warns() *certificatesError {
	if f == nil {
		return nil
	}
	return f.warning
}

// warned is the step of a cluster at rest, with what a person has to do. Where an authority has
// expired, that is why members do not answer, and told before all that is no act.
func warned(seen observed, step membership.Step) membership.Step {
	if seen.credentials != nil && seen.credentials.lapsed != nil && !step.Acts() {
		return seen.credentials.lapsed.step()
	}
	if warning := seen.credentials.warns(); warning != nil && step.Action == membership.None && (step.Reason == membership.Healthy || step.Reason == membership.Hibernated) {
		return warning.step()
	}
	return step
}

// expiredFor is why all that a Pod trusts at a port has expired; empty where it has not.
func (f *credentials) expiredFor(c *api.EtcdCluster, pod *corev1.Pod) string {
	for _, part := range slices.Sorted(maps.Keys(f.expired)) {
		if pod != nil && !render.Trusts(c, pod, part) {
			return f.expired[part]
		}
	}
	return ""
}
