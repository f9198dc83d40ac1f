package reconcile

import (
	"bytes"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/pki"
	"quorate.dev/reconcile/podstatus"
)

// rotateLost begins a rotation where the authority is lost and rotateAuthority asks for another
// one. Members go on trusting the lost authority and those before it, because members may still
// present certificates that these issued. Trust takes only the certificate of an authority, not its
// key, and the certificates are read from ca.crt of the other Secrets. If the certificate of the
// lost authority is in none of them, no rotation begins.
func (l *inspection) rotateLost(ctx context.Context, p plane, secret *corev1.Secret) error {
	trusted, err := l.trusted(ctx, p)
	if err != nil {
		return err
	}
	found := pki.Find(pki.Encode(trusted), p.status.Authority)
	if len(found) == 0 {
		return nil
	}
	if len(trusted) >= mostTrusted {
		return &certificatesError{api.ReasonAuthorityLost, fmt.Sprintf("the certificate authority of %s is lost, and %d former authorities are still trusted, which is the limit: no rotation begins. Restore Secret %s from a backup; or %s",
			p.spec, len(trusted)-1, p.authority, l.recreateAdvice(p))}
	}
	data := map[string][]byte{}
	if secret != nil {
		data = maps.Clone(secret.Data)
	}
	if lost := pki.Encode(found); !bytes.Equal(data[api.SecretCert], lost) {
		data[api.SecretCert], data[api.SecretKey] = lost, []byte{}
	}
	former := slices.DeleteFunc(trusted, func(c *x509.Certificate) bool { return slices.ContainsFunc(found, c.Equal) })
	return l.begin(ctx, p, secret, data, former, "of "+p.spec+", which is lost")
}

// replaceExpired begins a rotation where the authority has expired and its Secret is gone: what it
// has issued has expired as well, so that members refuse each other at each new connection, and the
// Secret would not help if a person restored it. The error says what comes. nil: the authority has
// not expired, or its certificate is in none of the other Secrets, or one of these is not
// Quorate's: a person restores the lost one.
func (l *inspection) replaceExpired(ctx context.Context, p plane) error {
	trusted, err := l.trusted(ctx, p)
	var wrong *certificatesError
	switch {
	case errors.As(err, &wrong):
		return nil
	case err != nil:
		return err
	}
	found := pki.Find(pki.Encode(trusted), p.status.Authority)
	if len(found) == 0 || !pki.Expired(found[0], l.now) {
		return nil
	}
	expired := &certificatesError{api.ReasonAuthorityLost, l.expired(p, found[0].NotAfter, ", and the Secret is missing")}
	if l.writes {
		err = l.rotateLost(ctx, p, nil)
	}
	switch {
	case apierrors.IsConflict(err):
		return err
	case err != nil:
		expired.message += notDone + podstatus.FirstLine(err.Error())
		return expired
	}
	l.warn(expired.reason, expired.message)
	l.found.authorityExpired = expired
	return expired
}

// trusted are the certificates of the authorities that members may trust: those that the status
// names and that are in ca.crt of the port's Secrets.
func (l *inspection) trusted(ctx context.Context, p plane) ([]*x509.Certificate, error) {
	var all []*x509.Certificate
	for _, s := range p.secrets {
		secret, err := l.ours(ctx, s.name, l.issuedBy(p.known(), s), l.replaceable(s.name))
		if err != nil {
			return nil, err
		}
		if secret == nil {
			continue
		}
		for _, c := range pki.Find(secret.Data[api.SecretCA], p.known()...) {
			if !slices.ContainsFunc(all, c.Equal) {
				all = append(all, c)
			}
		}
	}
	return all, nil
}

// reread reads the former authorities from ca.crt of the port's Secrets, where previous.crt of the
// authority's Secret cannot be read. It reports whether all authorities in the status were found.
func (l *inspection) reread(ctx context.Context, p plane, h *authoritySecret) (bool, error) {
	trusted, err := l.trusted(ctx, p)
	if err != nil {
		return false, err
	}
	h.trust(trusted)
	known := pki.Fingerprints(h.issues.PEM())
	if slices.ContainsFunc(p.status.Trusts, func(one string) bool { return !slices.Contains(known, one) }) {
		return false, nil
	}
	l.warn(api.ReasonCertificates, fmt.Sprintf("Secret %[1]s (%[2]s): %[3]v. Its certificates were read from ca.crt of the other Secrets, and the rotation goes on. "+
		`To write %[4]s again, run: kubectl patch secret %[1]s --namespace=%[5]s --type=merge --patch="{\"data\":{\"%[4]s\":\"$(kubectl get secret %[6]s --namespace=%[5]s --output=jsonpath='{.data.ca\.crt}')\"}}"`,
		p.authority, p.spec, h.unreadable, api.SecretPreviousCert, l.c.Namespace, p.secrets[0].name))
	return true, nil
}
