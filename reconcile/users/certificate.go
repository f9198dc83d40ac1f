package users

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/apply"
	"quorate.dev/reconcile/pki"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// A user's certificate is issued by the authority of the clients' port, after etcd has the user.
// The Secret belongs to the EtcdUser by UID: one that somebody else has created is not written to,
// since its author would know the key. A rotation of the authority waits until the status of the
// EtcdUser says that the Secret is of its step (usersBehind).

// files are the keys of a certificate in a Secret.
var files = pki.Names{Cert: api.SecretCert, Key: api.SecretKey, CA: api.SecretCA}

// certify issues and renews the certificate of a user where spec.certificate asks for one, and
// writes into the status what its Secret holds. what is said of the user so far; what hinders the
// certificate is said in its place, unless a person has to act for the former.
func (r *UserReconciler) certify(ctx context.Context, e *api.EtcdUser, c *api.EtcdCluster, next *api.EtcdUserStatus, what said) said {
	switch {
	case e.Spec.Certificate == nil:
		next.Certificate = nil
		return what
	case c.Spec.Suspend, next.Applied == nil, next.Applied.ClusterID != c.Status.ClusterID: // the user comes first
		return what
	}
	after, hinders := r.certificate(ctx, e, c, next, time.Now())
	if hinders.reason != "" && !what.stalled {
		return hinders
	}
	if what.after == 0 || after > 0 && after < what.after {
		what.after = after
	}
	return what
}

// certificate does so, and returns when the certificate is to be looked at again, and what hinders
// it; zero where nothing does.
func (r *UserReconciler) certificate(ctx context.Context, e *api.EtcdUser, c *api.EtcdCluster, next *api.EtcdUserStatus, now time.Time) (after time.Duration, hinders said) {
	if mode := c.ClientTLSMode(); mode != api.TLSManaged {
		return 0, said{stalled: true, reason: api.ReasonInvalidSpec, message: fmt.Sprintf(
			"spec.certificate needs spec.tls.client.mode Managed, and EtcdCluster %s has %s: remove spec.certificate, and have your own authority issue a client certificate with the common name %s", c.Name, mode, e.EtcdName())}
	}
	authority := r.Authority(c)
	switch {
	case authority == nil && next.Certificate != nil && now.Before(next.Certificate.Expires.Time): // the EtcdCluster warns
		return r.soon(), said{}
	case authority == nil:
		return 0, waiting("waiting for the certificate authority of EtcdCluster "+c.Name+" (see its conditions)", r.soon())
	}
	name := e.Spec.Certificate.SecretName
	secret, hinders := r.certificateSecret(ctx, e)
	if hinders.reason != "" {
		return 0, hinders
	}
	var data map[string][]byte
	if secret != nil {
		data = secret.Data
	}
	issued, again, stale, err := authority.Renew(e.EtcdName(), data, files, now, r.lifetime())
	switch {
	case err != nil:
		return 0, waiting(fmt.Sprintf("waiting to issue the certificate in Secret %s (%v): %v. The conditions of EtcdCluster %s say what to do", name, stale, err, c.Name), r.soon())
	case stale != nil:
		if hinders := r.writeCertificate(ctx, e, c, secret, issued, stale); hinders.reason != "" {
			return 0, hinders
		}
	}
	next.Certificate = held(issued)
	return max(min(again.Sub(now), r.every()), afterConflict), said{}
}

// certificateSecret is the Secret of a user's certificate; nil: there is none. hinders says why it
// cannot be written to.
func (r *UserReconciler) certificateSecret(ctx context.Context, e *api.EtcdUser) (_ *corev1.Secret, hinders said) {
	name := e.Spec.Certificate.SecretName
	secret := &corev1.Secret{}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, said{}
	case apierrors.IsForbidden(err):
		return nil, r.noCertificate(fmt.Sprintf("the operator may not read Secret %s: give it the right to get, create and patch Secrets in this namespace (docs/tls.md#rights)", name))
	case err != nil:
		return nil, waiting("waiting: Secret "+name+" cannot be read: "+podstatus.FirstLine(err.Error()), r.soon())
	case !metav1.IsControlledBy(secret, e):
		return nil, r.noCertificate(fmt.Sprintf("Secret %[1]s exists and does not belong to this EtcdUser: remove spec.certificate, and then write it again with another secretName; or, if nothing needs that Secret, run: kubectl delete secret %[1]s --namespace=%[2]s", name, e.Namespace))
	case !secret.DeletionTimestamp.IsZero():
		return nil, waiting("waiting for the earlier Secret "+name+" to be gone", r.soon())
	default:
		return secret, said{}
	}
}

// noCertificate is what is said where a person has to act.
func (s Shared) noCertificate(message string) said {
	return said{stalled: true, reason: api.ReasonCertificateBlocked, message: message + " (spec.certificate)", after: s.soon()}
}

func (s Shared) lifetime() time.Duration {
	if s.Lifetime != 0 {
		return s.Lifetime
	}
	return pki.LeafLifetime
}

// writeCertificate applies the Secret, under the condition that it is as it was seen.
func (r *UserReconciler) writeCertificate(ctx context.Context, e *api.EtcdUser, c *api.EtcdCluster, seen *corev1.Secret, data map[string][]byte, why error) (hinders said) {
	name := e.Spec.Certificate.SecretName
	secret, note := render.UserSecret(c, e, data), "Issued the certificate in Secret "+name
	if seen == nil {
		secret.WithResourceVersion(apply.OnlyIfAbsent)
	} else {
		secret.WithUID(seen.UID).WithResourceVersion(seen.ResourceVersion).WithType(seen.Type)
		note = "Wrote Secret " + name + " again: " + why.Error()
	}
	err := r.Client.Apply(ctx, secret, client.FieldOwner(api.Manager), client.ForceOwnership)
	switch {
	case apierrors.IsConflict(err):
		return waiting("waiting: Secret "+name+" has changed meanwhile", afterConflict)
	case apierrors.IsForbidden(err):
		return r.noCertificate(fmt.Sprintf("the API server does not let the operator write Secret %s (%s): if rights are missing, give it those to get, create and patch Secrets in this namespace (docs/tls.md#rights)", name, podstatus.FirstLine(err.Error())))
	case apierrors.IsInvalid(err): // it is immutable
		return r.noCertificate(fmt.Sprintf("the API server refuses to change Secret %[1]s (%[2]s): run: kubectl delete secret %[1]s --namespace=%[3]s. It is created again", name, podstatus.FirstLine(err.Error()), e.Namespace))
	case err != nil:
		return waiting("waiting: Secret "+name+" cannot be written: "+podstatus.FirstLine(err.Error()), r.soon())
	}
	written := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}}
	r.Recorder.Eventf(e, written, corev1.EventTypeNormal, api.ReasonIssued, "Issue", "%s", podstatus.Within(note, mostNote))
	return said{}
}

// held is what the status says of a Secret.
func held(data map[string][]byte) *api.IssuedCertificate {
	issuer, expires := pki.Issuer(data, files)
	trusts := pki.Fingerprints(data[files.CA])
	return &api.IssuedCertificate{Authority: issuer, Trusts: slices.Compact(trusts), Expires: metav1.NewTime(expires)}
}
