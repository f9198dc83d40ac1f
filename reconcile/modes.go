package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// The modes of TLS are written into status.tls before anything else is done. A new cluster of which
// the spec says nothing has mode Managed. One that exists is never changed by that: where its
// status is lost, or it is created again over its volumes, its Pods and claims say which modes its
// members were made with.

// settleModes writes the modes in force into status.tls, unless they are there already. It reads
// Pods and claims from the API server only where the status does not say whether the cluster is
// new.
func (r *Reconciler) settleModes(ctx context.Context, c *api.EtcdCluster) error {
	written := c.Status.TLS
	if !c.DeletionTimestamp.IsZero() || written != nil && written.Client.Mode == c.ClientTLSMode() && written.Peer.Mode == c.PeerTLSMode() {
		return nil
	}
	next := *c.Status.DeepCopy()
	next.TLS = tlsStatus(c, nil)
	if modesUnknown(c) {
		seen, err := r.objects(ctx, c, r.Reader)
		if err != nil {
			return err
		}
		next = withModes(c, seen)
	}
	return r.report(ctx, c, next)
}

// settleAndSecure returns the credentials for the modes in force, which it writes down first.
func (r *Reconciler) settleAndSecure(ctx context.Context, c *api.EtcdCluster, now time.Time) (*credentials, error) {
	if err := r.settleModes(ctx, c); err != nil {
		return nil, err
	}
	return r.secure(ctx, c, now)
}

// modesUnknown reports whether the status does not say if the cluster is new: it is, or its status
// was lost.
func modesUnknown(c *api.EtcdCluster) bool { return c.Status.TLS == nil && c.Status.ClusterID == "" }

// withModes is the status of such a cluster with the modes. Where members were made before, it has
// the high-water mark of their ordinals as well, so that the modes stand from now on.
func withModes(c *api.EtcdCluster, seen observed) api.EtcdClusterStatus {
	runs, recorded, next := modesOf(c, seen)
	client, peer := c.AskedClientTLSMode(), c.AskedPeerTLSMode()
	if recorded.Peer != "" && peer != "" && (recorded.Peer == api.TLSDisabled) != (peer == api.TLSDisabled) {
		peer = "" // the data has the members' addresses: with another scheme they would not reach each other
	}
	standard := api.TLSManaged
	if next > 0 {
		standard = api.TLSDisabled // made by a release that recorded no modes, and had this default
	}
	s := *c.Status.DeepCopy()
	s.NextOrdinal = max(s.NextOrdinal, int32(next))
	s.TLS = &api.TLSStatus{
		Client: api.TLSPlaneStatus{Mode: cmp.Or(client, runs.Client, recorded.Client, standard)},
		Peer:   api.TLSPlaneStatus{Mode: cmp.Or(runs.Peer, peer, recorded.Peer, standard)},
	}
	return s
}

// modesOf are the modes that Pods run with, those that claims record, and the high-water mark of
// their ordinals; 0: there are none. What is being deleted, or is another owner's, does not count.
// Where two differ, TLS counts.
func modesOf(c *api.EtcdCluster, seen observed) (runs, recorded render.Modes, next int) {
	counts := func(o client.Object) bool {
		ordinal, ours := c.Ordinal(o.GetName())
		if foreign, terminating := belongs(c, o); !ours || foreign || terminating {
			return false
		}
		next = max(next, ordinal+1)
		return true
	}
	for _, name := range slices.Sorted(maps.Keys(seen.pods)) {
		if pod := seen.pods[name]; counts(pod) {
			runs = encrypted(runs, render.RunningModes(c, pod))
		}
	}
	for _, claims := range []map[string]*corev1.PersistentVolumeClaim{seen.claims, seen.former.claims} {
		for _, name := range slices.Sorted(maps.Keys(claims)) {
			if claim := claims[name]; counts(claim) {
				recorded = encrypted(recorded, render.RecordedModes(claim))
			}
		}
	}
	return runs, recorded, next
}

// encrypted are of two modes of each port the one with TLS, if there is one.
func encrypted(a, b render.Modes) render.Modes {
	either := func(a, b api.TLSMode) api.TLSMode {
		if a == api.TLSDisabled {
			return cmp.Or(b, a)
		}
		return cmp.Or(a, b)
	}
	return render.Modes{Client: either(a.Client, b.Client), Peer: either(a.Peer, b.Peer)}
}

// asksAnotherPeerMode returns the step that the status reports: in place of the step of a healthy
// or hibernated cluster, that the spec asks for another mode of the members' port than the one in
// force. The schema refuses such a change. It cannot refuse a cluster that is created again over
// volumes of another mode.
func asksAnotherPeerMode(c *api.EtcdCluster, step membership.Step) membership.Step {
	asked, inForce := c.AskedPeerTLSMode(), c.PeerTLSMode()
	if step.Action != membership.None || step.Reason != membership.Healthy && step.Reason != membership.Hibernated || asked == "" || asked == inForce {
		return step
	}
	return membership.Step{
		Action: membership.Stall, Reason: membership.ChangeNotSupported,
		Message: fmt.Sprintf("spec.tls.peer.mode is %[1]s, but the members were made with %[2]s, which stays in force: write %[2]s. To have %[1]s, create another EtcdCluster with it, and restore a snapshot of this one into it (spec.bootstrap.restore)",
			asked, inForce),
	}
}
