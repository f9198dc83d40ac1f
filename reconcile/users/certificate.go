package users

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/pki"
)

// A user's certificate is issued by the authority of the clients' port, after etcd has the user.
// The Secret belongs to the EtcdUser by UID: one that something else has created is not written to,
// since its author would know the key. A rotation of the authority waits until the status of the
// EtcdUser says that the Secret is of its step (usersToCertify).

// files are the keys of a certificate in a Secret.
var files = pki.Names{Cert: api.SecretCert, Key: api.SecretKey, CA: api.SecretCA}

// certify issues and renews the certificate of a user where spec.certificate asks for one, and
// writes into the status what its Secret holds. what is said of the user so far. What blocks the
// certificate is said in its place, or beside it where a person has to act for the former.
func (r *UserReconciler) certify(ctx context.Context, e *api.EtcdUser, c *api.EtcdCluster, next *api.EtcdUserStatus, what said) said {
	now := time.Now()
	switch {
	case e.Spec.Certificate == nil:
		next.Certificate = nil
		return what
	case c.Spec.Suspend:
		if has := next.Certificate; has != nil && !now.Before(has.Expires.Time) {
			return joined(what, waiting(fmt.Sprintf("waiting: the certificate in Secret %s expired at %s, and nothing is issued while spec.suspend of EtcdCluster %s is true",
				e.Spec.Certificate.SecretName, pki.Instant(has.Expires.Time), c.Name), 0))
		}
		return what
	case next.Certificate == nil && (next.Applied == nil || next.Applied.ClusterID != c.Status.ClusterID): // the user comes first
		return what
	}
	after, blocked := r.certificate(ctx, e, c, next, now)
	if blocked.reason != "" {
		return joined(what, blocked)
	}
	if what.after == 0 || after > 0 && after < what.after {
		what.after = after
	}
	return what
}

// joined is what is said of a user of which the certificate is blocked. Where a person has to act
// for the certificate, that comes first: a rotation of the authority does not wait for it then.
func joined(what, blocked said) said {
	first, second := blocked, what
	switch {
	case !what.stalled && what.reason != api.ReasonRoleNotFound, what.reason == blocked.reason:
		return blocked
	case !blocked.stalled:
		first, second = what, blocked
	}
	first.message, first.after = first.message+". Also: "+second.message, blocked.after
	return first
}

// certificate issues or renews the certificate of a user. It returns when to look at it again, and
// what blocks it; zero where nothing does.
func (r *UserReconciler) certificate(ctx context.Context, e *api.EtcdUser, c *api.EtcdCluster, next *api.EtcdUserStatus, now time.Time) (after time.Duration, blocked said) {
	if mode := c.ClientTLSMode(); mode != api.TLSManaged {
		advice := "set it to Managed, or remove spec.certificate"
		if mode == api.TLSSecret {
			advice = "remove spec.certificate, and have your own authority issue a client certificate with the common name " + e.EtcdName()
		}
		return 0, said{stalled: true, reason: api.ReasonInvalidSpec, message: fmt.Sprintf(
			"spec.certificate works only with spec.tls.client.mode Managed, and that of EtcdCluster %s is %s: %s", c.Name, mode, advice)}
	}
	if r.Skew != nil && r.Skew(now) != 0 {
		return 0, waiting("waiting: the clock of the operator is more than an hour from that of the API server, so certificates are neither checked nor issued. Set the clock of the operator's node", r.soon())
	}
	authority := r.Authority(c)
	switch {
	case authority == nil && next.Certificate != nil && now.Before(next.Certificate.Expires.Time): // the EtcdCluster warns
		return r.soon(), said{}
	case authority == nil:
		return 0, waiting("waiting for the certificate authority of EtcdCluster "+c.Name+" (see its conditions)", r.soon())
	}
	name := e.Spec.Certificate.SecretName
	secret, blocked := r.certificateSecret(ctx, e, c)
	if blocked.reason != "" {
		return 0, blocked
	}
	var data map[string][]byte
	if secret != nil {
		data = secret.Data
	}
	issued, again, stale, err := authority.Renew(e.EtcdName(), data, files, now, r.lifetime())
	switch {
	case err != nil:
		if _, wrong := pki.Check(data, files, pki.Use{Client: true}, now); wrong != nil { // a rotation is the way to another one, and does not wait for this one
			next.Certificate = nil
		}
		return 0, waiting(fmt.Sprintf("waiting: the authority of EtcdCluster %[1]s cannot issue a certificate now (%[2]v), and Secret %[3]s needs one (%[4]v). The conditions of EtcdCluster %[1]s say what to do", c.Name, err, name, stale), r.soon())
	case stale != nil:
		if blocked := r.writeCertificate(ctx, e, c, secret, issued, stale); blocked.reason != "" {
			return 0, blocked
		}
	}
	next.Certificate = certificateStatus(issued)
	return max(min(again.Sub(now), r.every()), afterConflict), said{}
}

// certificateStatus is what the status says of a Secret.
func certificateStatus(data map[string][]byte) *api.IssuedCertificate {
	issuer, expires := pki.Issuer(data, files)
	trusts := pki.Fingerprints(data[files.CA])
	return &api.IssuedCertificate{Authority: issuer, Trusts: slices.Compact(trusts), Expires: metav1.NewTime(expires)}
}

func (s Shared) lifetime() time.Duration {
	if s.Lifetime != 0 {
		return s.Lifetime
	}
	return pki.LeafLifetime
}
