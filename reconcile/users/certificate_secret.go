package users

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/apply"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

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
	case ofEarlier(secret, e), metav1.IsControlledBy(secret, e) && !secret.DeletionTimestamp.IsZero():
		return nil, waiting("waiting for the earlier Secret "+name+" to be gone", r.soon())
	case !metav1.IsControlledBy(secret, e):
		return nil, r.noCertificate(fmt.Sprintf("Secret %s exists and does not belong to this EtcdUser: %s", name, wayOut(secret)))
	default:
		return secret, said{}
	}
}

// ofEarlier reports whether a Secret belongs to an earlier EtcdUser of that name. The garbage
// collector deletes it.
func ofEarlier(secret *corev1.Secret, e *api.EtcdUser) bool {
	owner := metav1.GetControllerOf(secret)
	return owner != nil && owner.APIVersion == api.SchemeGroupVersion.String() && owner.Kind == "EtcdUser" && owner.Name == e.Name && owner.UID != e.UID
}

// wayOut is what to do where the name of a Secret is taken. One that an object controls, or that is
// of an etcd cluster, is not to be deleted.
func wayOut(secret *corev1.Secret) string {
	const rename = "remove spec.certificate, and then write it again with another secretName"
	if metav1.GetControllerOf(secret) != nil || secret.Labels[api.LabelCluster] != "" {
		return rename
	}
	return fmt.Sprintf("%s; or, if nothing needs that Secret, run: kubectl delete secret %s --namespace=%s", rename, secret.Name, secret.Namespace)
}

// noCertificate is what is said where a person has to act.
func (s Shared) noCertificate(message string) said {
	return said{stalled: true, reason: api.ReasonCertificateBlocked, message: message + " (spec.certificate)", after: s.soon()}
}

// writeCertificate applies the Secret, under the condition that it is as it was seen. Keys that
// others have written into it stay theirs.
func (r *UserReconciler) writeCertificate(ctx context.Context, e *api.EtcdUser, c *api.EtcdCluster, seen *corev1.Secret, data map[string][]byte, why error) (hinders said) {
	name := e.Spec.Certificate.SecretName
	own := map[string][]byte{}
	for _, key := range []string{files.Cert, files.Key, files.CA} {
		own[key] = data[key]
	}
	secret, note := render.UserSecret(c, e, own), "Issued the certificate in Secret "+name
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
	case apierrors.IsInvalid(err) && seen != nil && ptr.Deref(seen.Immutable, false):
		return r.noCertificate(fmt.Sprintf("Secret %[1]s is immutable, and its certificate has to be written (%[2]v): run: kubectl delete secret %[1]s --namespace=%[3]s. It is created again", name, why, e.Namespace))
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return r.noCertificate(fmt.Sprintf("the API server does not let the operator write Secret %s (%s): if rights are missing, give it those to get, create and patch Secrets in this namespace (docs/tls.md#rights); if a policy refuses it, correct the one or the other", name, podstatus.FirstLine(err.Error())))
	case err != nil:
		return waiting("waiting: Secret "+name+" cannot be written: "+podstatus.FirstLine(err.Error()), r.soon())
	}
	written := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}}
	r.Recorder.Eventf(e, written, corev1.EventTypeNormal, api.ReasonIssued, "Issue", "%s", podstatus.Within(note, mostNote))
	return said{}
}
