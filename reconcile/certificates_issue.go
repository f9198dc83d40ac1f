package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/apply"
	"quorate.dev/reconcile/pki"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// issue writes a Secret with certificates of the authority where they are missing, wrong or due for
// renewal, and reports whether the Secret is as it must be. A certificate that cannot be renewed is
// used while it is valid, with a warning.
func (l *inspection) issue(ctx context.Context, a *pki.Authority, p plane, s issuedSecret) (written bool, _ error) {
	secret, err := l.ours(ctx, s.name, l.issuedBy(append(p.known(), pki.Fingerprints(a.PEM())...), s), l.replaceable(s.name))
	if err != nil {
		return false, err
	}
	var data map[string][]byte
	if secret != nil {
		data = secret.Data
	}
	next, why := map[string][]byte{}, error(nil)
	maps.Copy(next, data)
	issued := false
	for _, leaf := range s.certificates {
		again, stale := a.Stale(data, leaf.files, leaf.use, l.now, l.lifetime())
		if stale == nil {
			l.unrenewed(a, p, s, again)
			l.lookBy(again)
			continue
		}
		why, next[leaf.files.CA] = stale, a.PEM()
		if again, stale = a.Stale(next, leaf.files, leaf.use, l.now, l.lifetime()); stale == nil { // only ca.crt was wrong
			l.lookBy(again)
			continue
		}
		cert, key, err := a.Issue(leaf.name, leaf.use, data[leaf.files.Key], l.now, l.lifetime())
		if err != nil {
			return false, l.unissued(a, p, s, data, stale, fmt.Errorf("issue Secret %s: %w", s.name, err))
		}
		why, issued, next[leaf.files.Cert], next[leaf.files.Key] = stale, true, cert, key
		if _, refused := a.Stale(next, leaf.files, leaf.use, l.now, l.lifetime()); refused != nil { // issuing it once more would not help
			return false, &certificatesError{api.ReasonCertificates, fmt.Sprintf("Secret %s cannot be issued: what the authority in Secret %s issues would be refused (%v): %s",
				s.name, p.authority, refused, l.recreateAdvice(p))}
		}
	}
	if why == nil {
		return true, nil
	}
	if l.writes {
		err = l.write(ctx, secret, s.name, next, issuedNote(secret, s.name, issued, why))
	} else {
		err = l.missing(s.name)
	}
	if err == nil || apierrors.IsConflict(err) {
		return err == nil, err
	}
	if !l.writes {
		if _, good := l.good(a, p, s, data); good {
			err = errors.New("which is not done while spec.suspend is true")
		}
	}
	return false, l.unissued(a, p, s, data, why, err)
}

// issuedNote is the event of a Secret that is written: it is new, or a certificate in it was
// reissued, or only its ca.crt has changed.
func issuedNote(secret *corev1.Secret, name string, issued bool, why error) note {
	switch {
	case secret != nil && issued:
		return issuing("Reissued the certificate in Secret " + name + ": " + why.Error())
	case secret != nil:
		return issuing("Updated " + api.SecretCA + " of Secret " + name)
	default:
		return issuing("Issued the certificate in Secret " + name)
	}
}

// unissued handles a certificate that could not be reissued: it returns the error, or only warns
// while the existing certificate is valid.
func (l *inspection) unissued(a *pki.Authority, p plane, s issuedSecret, data map[string][]byte, why, err error) error {
	ends, good := l.good(a, p, s, data)
	if !good {
		return err
	}
	l.lookBy(l.now.Add(unreadyLook))
	l.warn(api.ReasonCertificates, fmt.Sprintf("the certificate in Secret %s is to be reissued (%v), %s; it expires at %s", s.name, why, podstatus.FirstLine(err.Error()), pki.Instant(ends)))
	return nil
}

// unrenewed warns of a certificate that expires soon while the authority's key is lost. Only the
// authority of step Reissue of a rotation can renew it.
func (l *inspection) unrenewed(a *pki.Authority, p plane, s issuedSecret, ends time.Time) {
	if a.Issues() || l.now.Before(ends.Add(-l.lifetime()/3)) {
		return
	}
	wait := ""
	if p.wait > 0 {
		wait = ". spec.tls.client.rotationWait can be 0s for that"
	}
	l.warn(api.ReasonAuthorityLost, fmt.Sprintf("the certificate in Secret %s expires at %s, and the authority that issued it (%s) is lost: the rotation must be in step %s before then (status.tls)%s",
		s.name, pki.Instant(ends), p.spec, api.RotationReissue, wait))
}

// good reports whether all certificates of a Secret can be used, and when the first one expires.
func (l *inspection) good(a *pki.Authority, p plane, s issuedSecret, data map[string][]byte) (first time.Time, _ bool) {
	known := append(p.known(), pki.Fingerprints(a.PEM())...)
	for _, leaf := range s.certificates {
		ends, wrong := pki.Check(data, leaf.files, l.needed(s, leaf.use), l.now)
		if wrong != nil || !trustsOnly(data[leaf.files.CA], known) {
			return first, false
		}
		if first.IsZero() || ends.Before(first) {
			first = ends
		}
	}
	return first, true
}

// needed is what members, the operator and its Jobs need of a certificate. A name that other
// clients use (spec.tls.client.altNames) may be missing: for that no member stays down.
func (l *inspection) needed(s issuedSecret, use pki.Use) pki.Use {
	if s.name == l.c.ServerSecret() {
		use.Hosts = l.hosts(render.RequiredServerHosts(l.c))
	}
	return use
}

// missing is the error for a Secret that is needed and not written while spec.suspend is true.
func (l *inspection) missing(name string) error {
	return &certificatesError{api.ReasonCertificates, "Secret " + name + " is missing or cannot be used, and Quorate writes nothing while spec.suspend is true"}
}

// note is the event of a Secret that is written; the zero note is no event.
type note struct{ reason, action, text string }

func issuing(text string) note { return note{api.ReasonIssued, "Issue", text} }

// write applies a Secret. It fails with a conflict where the Secret has changed since it was read,
// or exists by now and did not then.
func (l *inspection) write(ctx context.Context, seen *corev1.Secret, name string, data map[string][]byte, event note) error {
	secret := render.Secret(l.c, name, data)
	if seen == nil {
		secret.WithResourceVersion(apply.OnlyIfAbsent)
	} else {
		secret.WithUID(seen.UID).WithResourceVersion(seen.ResourceVersion).WithType(seen.Type)
	}
	err := l.r.Client.Apply(ctx, secret, client.FieldOwner(api.Manager), client.ForceOwnership)
	switch {
	case apierrors.IsInvalid(err) && seen != nil && ptr.Deref(seen.Immutable, false):
		advice := "delete it, and it is created again"
		if seen != nil && equality.Semantic.DeepEqual(seen.Data, data) { // an authority, for one, is not issued again
			advice = "create it again with the same data, and not immutable"
		}
		return &certificatesError{api.ReasonCertificates, fmt.Sprintf(
			"the API server refuses to change Secret %s: %s (%s)", name, advice, podstatus.FirstLine(err.Error()))}
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err): // a policy answers with either
		l.refused = true
		return &certificatesError{api.ReasonCertificates, fmt.Sprintf(
			"the API server does not let the operator write Secret %s (%v): if a policy refuses it, change that policy, or what it asks for; if rights are missing, run: %s. It then goes on by itself (docs/tls.md#rights)%s", name, podstatus.FirstLine(err.Error()), l.r.Grant(l.c), orWithoutTLS(l.c))}
	case err != nil:
		return fmt.Errorf("apply Secret %s: %w", name, err)
	}
	if event.text != "" {
		// Events of one reason about the same objects are counted as one event.
		written := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: l.c.Namespace, Name: name}}
		l.r.Recorder.Eventf(l.c, written, corev1.EventTypeNormal, event.reason, event.action, "%s", event.text)
	}
	return nil
}
