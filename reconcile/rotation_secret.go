package reconcile

import (
	"crypto/x509"
	"fmt"
	"slices"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/pki"
)

// authoritySecret is what the Secret of an authority holds.
type authoritySecret struct {
	secret *corev1.Secret
	// issues is the authority that issues, with all authorities that are trusted. expired: it has
	// expired. next is the authority in next.crt; nil where there is none or it cannot be used.
	// former are the earlier authorities that are still trusted (previous.crt).
	issues  *pki.Authority
	expired bool
	next    *pki.Authority
	former  []*x509.Certificate
	step    api.RotationStep
	// rotated: a rotation is under way, or there was one. damaged: next.crt or next.key cannot be
	// used, and the new authority is to be created again. unreadable is why previous.crt cannot be
	// read; nil where it can.
	rotated, damaged bool
	unreadable       error
	// request is rotateAuthority of the last rotation. since is rotationFacts.Since.
	request string
	since   time.Time
}

var nextFiles = pki.Names{Cert: api.SecretNextCert, Key: api.SecretNextKey}

// mostRequest is the maximum length of rotateAuthority in the CRD, in characters.
const mostRequest = 64

// mostTrusted is how many authorities a port trusts at a time, the limit of status.tls.*.trusts in
// the CRD: the current one, the new one, and one more for each that was lost during a rotation.
const mostTrusted = 8

// readAuthoritySecret reads the Secret of an authority. An authority without its key can be
// trusted, but cannot issue: that is an error unless next.crt is there or the authority has
// expired.
func readAuthoritySecret(secret *corev1.Secret, now time.Time) (*authoritySecret, error) {
	data := secret.Data
	_, rotated := data[api.SecretNextCert]
	h := &authoritySecret{secret: secret, rotated: rotated}
	if request := string(data[api.SecretRotation]); utf8.RuneCountInString(request) <= mostRequest {
		h.request = request
	}
	if since, err := time.Parse(time.RFC3339, string(data[api.SecretSince])); err == nil {
		h.since = since
	}
	if len(data[api.SecretPreviousCert]) > 0 {
		h.step = api.RotationReissue
		h.former, h.unreadable = pki.ReadCertificates(api.SecretPreviousCert, data[api.SecretPreviousCert], mostTrusted)
	}
	if len(data[api.SecretNextCert]) > 0 {
		var err error
		if h.next, err = pki.ReadAuthority(data, nextFiles, now); err != nil {
			h.damaged = true
		} else {
			h.step = api.RotationTrustBoth
		}
	}
	var err error
	if h.issues, err = pki.ReadAuthority(data, files, now); err != nil {
		only, unread := pki.ReadCertificates(api.SecretCert, data[api.SecretCert], 1)
		if unread != nil {
			return nil, err
		}
		h.expired = pki.Expired(only[0], now)
		if h.next == nil && !h.expired {
			return nil, err
		}
		h.issues = pki.Keyless(only[0])
	}
	if h.next != nil {
		h.issues = h.issues.Beside(h.next.Certificate())
	}
	if all := len(pki.Fingerprints(h.issues.Beside(h.former...).PEM())); all > mostTrusted {
		h.former, h.unreadable = nil, fmt.Errorf("with %s there are %d authorities; the limit is %d", api.SecretPreviousCert, all, mostTrusted)
	}
	h.trust(h.former)
	return h, nil
}

// trust adds former authorities to those that are trusted.
func (h *authoritySecret) trust(former []*x509.Certificate) {
	h.issues = h.issues.Beside(former...)
	h.former = slices.DeleteFunc(former, func(c *x509.Certificate) bool {
		return c.Equal(h.issues.Certificate()) || h.next != nil && c.Equal(h.next.Certificate())
	})
}

// withoutEnded returns the Secret without the former authorities of a rotation that has ended, as
// the status has it. A backup of the Secret may be of step Reissue: if its former authorities were
// trusted again, all Pods would look as if they trusted nothing else.
func (p plane) withoutEnded(secret *corev1.Secret) *corev1.Secret {
	former, err := pki.ReadCertificates(api.SecretPreviousCert, secret.Data[api.SecretPreviousCert], mostTrusted)
	under := p.status.Rotation != nil && p.status.Rotation.Step != api.RotationTrustNew
	if err != nil || under || p.status.Authority == "" || pki.Fingerprint(secret.Data[api.SecretCert]) != p.status.Authority {
		return secret
	}
	trusted := pki.Find(pki.Encode(former), p.known()...)
	if len(trusted) == len(former) {
		return secret
	}
	secret = secret.DeepCopy()
	secret.Data[api.SecretPreviousCert] = pki.Encode(trusted)
	return secret
}

// continues reports whether members accept what the Secret's authority issues, and the Secret still
// has the authority that issued until now (s.Authority). known are the authorities that members may
// trust. It is false for a Secret from a backup of before the last rotation: members that trust
// only the new authority refuse certificates of the former one.
func (h *authoritySecret) continues(s api.TLSPlaneStatus, known []string) bool {
	return slices.Contains(pki.Fingerprints(h.issues.PEM()), s.Authority) && (h.step == api.RotationReissue || slices.Contains(known, h.issues.Fingerprint()))
}

// formerExpired reports whether all former authorities have expired: a Pod that trusts only these
// accepts no connection.
func (h *authoritySecret) formerExpired(now time.Time) bool {
	valid := func(c *x509.Certificate) bool { return !pki.Expired(c, now) }
	return h.step == api.RotationReissue && len(h.former) > 0 && !slices.ContainsFunc(h.former, valid)
}
