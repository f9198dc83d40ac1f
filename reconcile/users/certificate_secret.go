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

// certificateSecret is the Secret of a user's certificate; nil: there is none. blocked says why it
// cannot be written to.
func (r *UserReconciler) certificateSecret(ctx context.Context, e *api.EtcdUser, c *api.EtcdCluster) (_ *corev1.Secret, blocked said) {
	name := e.Spec.Certificate.SecretName
	secret := &corev1.Secret{}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: e.Namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, said{}
	case apierrors.IsForbidden(err):
		return nil, r.noCertificate(fmt.Sprintf("the operator may not read Secret %s. To give it the rights on Secrets in this namespace, run: %s", name, r.Grant(c)))
	case err != nil:
		return nil, waiting("waiting: Secret "+name+" cannot be read: "+podstatus.FirstLine(err.Error()), r.soon())
	case apply.OfEarlier(secret, "EtcdUser", e), metav1.IsControlledBy(secret, e) && !secret.DeletionTimestamp.IsZero():
		return nil, waiting("waiting until the earlier Secret "+name+" is deleted. If it lasts, look at the finalizers of that Secret", r.soon())
	case !metav1.IsControlledBy(secret, e):
		return nil, r.noCertificate(adviceOn(secret))
	default:
		return secret, said{}
	}
}

// adviceOn is what to do where the name of a Secret is taken. One that an object controls, or that
// is of an etcd cluster, is not to be deleted.
func adviceOn(secret *corev1.Secret) string {
	const rename = "apply the EtcdUser without spec.certificate, and then with another secretName"
	owner, cluster := metav1.GetControllerOf(secret), secret.Labels[api.LabelCluster]
	switch {
	case owner != nil:
		return fmt.Sprintf("Secret %s belongs to %s %s, and not to this EtcdUser: %s", secret.Name, owner.Kind, owner.Name, rename)
	case cluster != "":
		return fmt.Sprintf("Secret %s is labelled as one of EtcdCluster %s, and was not created for this EtcdUser: %s", secret.Name, cluster, rename)
	default:
		return fmt.Sprintf("Secret %[1]s was not created for this EtcdUser, so its key may be known to others: %[3]s. Or delete it if nothing needs it: kubectl delete secret %[1]s --namespace=%[2]s", secret.Name, secret.Namespace, rename)
	}
}

// noCertificate is what is said where a person has to act. The message may end with a command.
func (s Shared) noCertificate(message string) said {
	return said{stalled: true, reason: api.ReasonCertificateBlocked, message: "spec.certificate: " + message, after: s.soon()}
}

// writeCertificate applies the Secret, under the condition that it is as it was seen. Keys that
// others have written into it stay theirs.
func (r *UserReconciler) writeCertificate(ctx context.Context, e *api.EtcdUser, c *api.EtcdCluster, seen *corev1.Secret, data map[string][]byte, why error) (blocked said) {
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
		note = "Updated Secret " + name + ", because " + why.Error()
	}
	err := r.Client.Apply(ctx, secret, client.FieldOwner(api.Manager), client.ForceOwnership)
	switch {
	case apierrors.IsConflict(err):
		return waiting("waiting: Secret "+name+" has changed meanwhile", afterConflict)
	case apierrors.IsInvalid(err) && seen != nil && ptr.Deref(seen.Immutable, false):
		return r.noCertificate(fmt.Sprintf("Secret %[1]s is immutable, and its certificate has to be written (%[2]v). It is created again after you run: kubectl delete secret %[1]s --namespace=%[3]s", name, why, e.Namespace))
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err):
		return r.noCertificate(fmt.Sprintf("the API server does not let the operator write Secret %s (%s). If a policy refuses it, change that policy, or what it asks for. If rights are missing, run: %s", name, podstatus.FirstLine(err.Error()), r.Grant(c)))
	case err != nil:
		return waiting("waiting: Secret "+name+" cannot be written: "+podstatus.FirstLine(err.Error()), r.soon())
	}
	written := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: name}}
	r.Recorder.Eventf(e, written, corev1.EventTypeNormal, api.ReasonIssued, "Issue", "%s", podstatus.Within(note, mostNote))
	return said{}
}
