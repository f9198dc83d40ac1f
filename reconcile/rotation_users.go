package reconcile

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/pki"
)

// ClientAuthority issues the certificates of a cluster's clients, and comes with all authorities
// that they have to trust now; nil where there is none, or the cluster was not looked at yet.
func (r *Reconciler) ClientAuthority(c *api.EtcdCluster) *pki.Authority {
	return r.keys.of(c).authority
}

// usersBehind are the EtcdUsers that hold a certificate which is not of this authority, or comes
// with trust in others than the authority does now. One that is Stalled waits for a person, and is
// not waited for: its conditions say so.
func (l *inspection) usersBehind(ctx context.Context, p plane, a *pki.Authority) ([]string, error) {
	if p.spec != specClient {
		return nil, nil
	}
	_, users, err := l.r.usersOf(ctx, l.c)
	if err != nil {
		return nil, err
	}
	trusts := pki.Fingerprints(a.PEM()) // sorted
	var behind []string
	for i := range users {
		u := &users[i]
		has := u.Status.Certificate
		if has == nil || u.Spec.Certificate == nil || !u.DeletionTimestamp.IsZero() || meta.IsStatusConditionTrue(u.Status.Conditions, api.ConditionStalled) {
			continue
		}
		if has.Authority != a.Fingerprint() || !slices.Equal(slices.Sorted(slices.Values(has.Trusts)), trusts) {
			behind = append(behind, u.Name)
		}
	}
	return behind, nil
}
