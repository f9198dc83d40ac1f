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

// tlsStatus is status.tls.
func tlsStatus(c *api.EtcdCluster, found *credentials) *api.TLSStatus {
	s := &api.TLSStatus{Client: api.TLSPlaneStatus{Mode: c.ClientTLSMode()}, Peer: api.TLSPlaneStatus{Mode: c.PeerTLSMode()}}
	if c.Status.TLS != nil { // members still trust an authority that is lost
		was := c.Status.TLS.DeepCopy()
		was.Client.Mode, was.Peer.Mode = s.Client.Mode, s.Peer.Mode
		s = was
	}
	if s.Client.Mode != api.TLSManaged && s.Client.Rotation != nil {
		s.Client.Rotation.Message = "it goes on when spec.tls.client.mode is Managed again"
	}
	if found == nil {
		return s
	}
	s.Client.Authority, s.Peer.Authority = cmp.Or(found.client, s.Client.Authority), cmp.Or(found.peer, s.Peer.Authority)
	found.clientRotation.writeTo(&s.Client)
	found.peerRotation.writeTo(&s.Peer)
	return s
}

// trustsAnother reports whether new Pods would trust other authorities than the status has.
func trustsAnother(c *api.EtcdCluster, found *credentials) bool {
	was, is := c.Status.TLS, tlsStatus(c, found)
	return was != nil && (otherTrust(was.Client, is.Client) || otherTrust(was.Peer, is.Peer))
}

func otherTrust(was, is api.TLSPlaneStatus) bool {
	return was.Authority != "" && was.Authority != is.Authority || !slices.Equal(was.Trusts, is.Trusts)
}

// reportTrust writes the authorities into the status before the first Pod is created with them.
// Otherwise the operator would take them for unknown after a restart, and the authority for lost.
func (r *Reconciler) reportTrust(ctx context.Context, c *api.EtcdCluster, found *credentials) (ctrl.Result, error) {
	next := c.Status.DeepCopy()
	next.TLS = tlsStatus(c, found)
	if err := r.report(ctx, c, *next); !apierrors.IsConflict(err) && err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{RequeueAfter: afterChange}, nil
}

// blockedByCertificates is why no Pod is created or changed; nil where the certificates are good.
func blockedByCertificates(seen observed) error {
	if seen.credentials == nil {
		return nil
	}
	return seen.credentials.blocked
}

// warns is the warning about certificates of a cluster that goes on; nil: there is none.
func (f *credentials) warns() *certificatesError {
	if f == nil {
		return nil
	}
	return f.warning
}

// silent is why members do not answer the operator; nil: certificates are no reason.
func (f *credentials) silent() *certificatesError {
	if f == nil {
		return nil
	}
	silent := f.authorityExpired
	for _, operator := range slices.Sorted(maps.Keys(f.unasked)) {
		silent = cmp.Or(silent, f.unasked[operator])
	}
	return silent
}

// warned returns the step that the status reports: the warning about certificates in place of the
// step of a healthy or hibernated cluster. An expired authority is why members do not answer, and
// so is a certificate that is gone: these are reported in place of any step that does nothing.
func warned(seen observed, step membership.Step) membership.Step {
	if silent := seen.credentials.silent(); silent != nil && !step.Acts() {
		return silent.step()
	}
	if warning := seen.credentials.warns(); warning != nil && step.Action == membership.None && (step.Reason == membership.Healthy || step.Reason == membership.Hibernated) {
		return warning.step()
	}
	return step
}

// expiredFor says which authorities have expired that are all that a Pod trusts at a port; empty:
// the Pod trusts a valid one.
func (f *credentials) expiredFor(c *api.EtcdCluster, pod *corev1.Pod) string {
	for _, part := range slices.Sorted(maps.Keys(f.expired)) {
		if pod != nil && !render.Trusts(c, pod, part) && (part != render.PartClientTrust || render.ClientPort(c, pod).Mode == api.TLSManaged) {
			return f.expired[part]
		}
	}
	return ""
}
