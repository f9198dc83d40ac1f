package reconcile

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/pki"
)

// ClientAuthority issues the certificates of a cluster's clients, and comes with all authorities
// that they have to trust now; nil where there is none, or the cluster was not looked at yet.
func (r *Reconciler) ClientAuthority(c *api.EtcdCluster) *pki.Authority {
	return r.keys.of(c).authority
}

// usersToCertify are the EtcdUsers that hold a certificate which is not of this authority, or comes
// with trust in others than the authority does now. An authority that issues nothing gives no other
// one. Nor is a user waited for while its certificate waits for a person (certificateBlocked).
func (l *inspection) usersToCertify(ctx context.Context, p plane, a *pki.Authority) ([]string, error) {
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
		if has == nil || u.Spec.Certificate == nil || !u.DeletionTimestamp.IsZero() || certificateBlocked(u) {
			continue
		}
		if a.Issues() && has.Authority != a.Fingerprint() || !slices.Equal(slices.Sorted(slices.Values(has.Trusts)), trusts) {
			behind = append(behind, u.Name)
		}
	}
	return behind, nil
}

// certificateBlocked reports whether nothing is written into the Secret with a user's certificate
// until a person acts, as its conditions say.
func certificateBlocked(u *api.EtcdUser) bool {
	stalled := meta.FindStatusCondition(u.Status.Conditions, api.ConditionStalled)
	if stalled == nil || stalled.Status != metav1.ConditionTrue {
		return false
	}
	return slices.Contains([]string{api.ReasonCertificateBlocked, api.ReasonInvalidSpec, api.ReasonNameTaken, api.ReasonClusterNotFound}, stalled.Reason)
}
