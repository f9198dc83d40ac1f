package reconcile

import (
	"cmp"
	"context"
	"crypto/x509"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/pki"
	"quorate.dev/reconcile/podstatus"
)

// rotationReport is what the status reports about the rotation of one port.
type rotationReport struct {
	known   bool                // false: the status stays as it is
	trusts  []string            // the fingerprints in ca.crt; nil while the Secrets are being written
	request string              // rotateAuthority of the last rotation
	status  *api.RotationStatus // nil: no rotation is under way
}

// writeTo writes the report into the status.
func (r rotationReport) writeTo(s *api.TLSPlaneStatus) {
	if !r.known {
		return
	}
	s.RotateAuthority, s.Rotation = r.request, r.status
	switch {
	case r.trusts == nil:
	case len(r.trusts) == 0:
		s.Trusts = nil
	default:
		s.Trusts = r.trusts
	}
}

// rotate makes the next write of a port's rotation, where one is due, and reports its progress.
// secretsWritten: all Secrets of the port hold the certificates of the current step.
func (l *inspection) rotate(ctx context.Context, p plane, h *authoritySecret, secretsWritten bool) (rotationReport, error) {
	report := rotationReport{known: true, request: cmp.Or(h.request, p.status.RotateAuthority)}
	h.rotated = h.rotated || len(p.status.Trusts) > 0 // a Secret that was restored from a backup may lack the keys of a rotation
	switch {
	case !secretsWritten:
	case h.rotated:
		report.trusts = pki.Fingerprints(h.issues.PEM())
	default:
		report.trusts = []string{}
	}
	f := rotationFacts{
		Step: h.step, Asked: p.asked, Done: report.request, Due: h.damaged || h.expired || !l.now.Before(h.issues.Ends().Add(-l.authorityLifetime()/3)),
		Expired: h.expired, FormerExpired: h.formerExpired(l.now), Suspended: !l.writes, SecretsWritten: secretsWritten, Since: h.since, Wait: p.wait, Now: l.now,
		Reported: p.status.Authority == h.issues.Fingerprint(), Underway: p.status.Rotation != nil,
	}
	if h.step == "" && !f.Due && (f.Asked == "" || f.Asked == f.Done) && p.status.Rotation == nil {
		return report, nil // at rest
	}
	pods, err := podsOf(ctx, cached{l.r.Client, l.c.Name}, l.c)
	if err != nil {
		return report, err
	}
	f.Members = l.members(ctx, p, h, pods, secretsWritten)
	if f.Users, err = l.usersToCertify(ctx, p, h.issues); err != nil {
		return report, err
	}
	state := nextRotation(f)
	if state.Move != moveNone { // the cache may be behind: compare with the API server before a write
		same, err := l.unchanged(ctx, pods)
		if err != nil {
			return report, err
		}
		if !same {
			state.Move, state.Again = moveNone, l.now.Add(afterAct)
		}
	}
	if state.Step != "" {
		report.status = &api.RotationStatus{Step: state.Step, Message: podstatus.Within(state.Waits, mostWaits)}
	}
	if !state.Again.IsZero() {
		l.lookBy(state.Again)
	}
	if state.Move == moveNone {
		return report, nil
	}
	report.request, err = l.move(ctx, p, h, state.Move, report.request)
	if state.Move == moveBegin && err == nil { // the status must not say in between that no rotation is under way
		report.status = &api.RotationStatus{Step: api.RotationTrustBoth}
	}
	return report, err
}

// mostWaits is the maximum length of the message of a rotation in the CRD.
const mostWaits = 1024

// move makes one write of a rotation, and returns the value of rotateAuthority that it is for.
func (l *inspection) move(ctx context.Context, p plane, h *authoritySecret, move rotationMove, request string) (string, error) {
	data := maps.Clone(h.secret.Data)
	text := ""
	switch move {
	case moveNone:
		return request, nil
	case moveBegin:
		valid := slices.DeleteFunc(slices.Clone(h.former), func(c *x509.Certificate) bool { return pki.Expired(c, l.now) })
		return p.asked, l.begin(ctx, p, h.secret, data, valid, "of "+p.spec)
	case moveMark, moveForget:
		since := []byte{}
		if move == moveMark {
			since = []byte(l.now.UTC().Format(time.RFC3339))
		}
		data[api.SecretRotation], data[api.SecretSince] = []byte(request), since
		l.lookBy(l.now)
		return request, l.write(ctx, h.secret, p.authority, data, note{})
	case moveReissue:
		data[api.SecretPreviousCert] = pki.Encode(append([]*x509.Certificate{h.issues.Certificate()}, h.former...))
		data[api.SecretCert], data[api.SecretKey] = data[api.SecretNextCert], data[api.SecretNextKey]
		data[api.SecretNextCert], data[api.SecretNextKey] = []byte{}, []byte{}
		text = "step 2 of 3: the new authority reissues all certificates"
	case moveFinish:
		data[api.SecretPreviousCert] = []byte{}
		text = "step 3 of 3: members stop trusting the former authority"
	}
	return request, l.advance(ctx, p, h.secret, data, request, "Rotating the certificate authority of "+p.spec+", "+text)
}

// begin begins a rotation: it creates the new authority and writes it into the Secret, beside the
// one that issues (in data) and the former ones that stay trusted. which is the end of the event's
// text: the authority that is rotated.
func (l *inspection) begin(ctx context.Context, p plane, secret *corev1.Secret, data map[string][]byte, former []*x509.Certificate, which string) (err error) {
	data[api.SecretPreviousCert] = pki.Encode(former)
	if data[api.SecretNextCert], data[api.SecretNextKey], err = pki.NewAuthority(l.authorityName(p), l.now, l.authorityLifetime()); err != nil {
		return err
	}
	return l.advance(ctx, p, secret, data, p.asked, "Rotating the certificate authority "+which+", step 1 of 3: "+p.peers()+" must trust the new authority as well")
}

// advance writes the next step of a rotation into the authority's Secret. The next look follows at
// once.
func (l *inspection) advance(ctx context.Context, p plane, secret *corev1.Secret, data map[string][]byte, request, text string) error {
	data[api.SecretRotation], data[api.SecretSince] = []byte(request), []byte{}
	l.lookBy(l.now)
	return l.write(ctx, secret, p.authority, data, note{api.ReasonRotation, "Rotate", text})
}

// peers names the two sides of connections to the port, for events.
func (p plane) peers() string {
	if p.spec == specClient {
		return "members and applications"
	}
	return "members"
}

func (l *inspection) authorityName(p plane) string {
	return l.c.Namespace + "/" + l.c.Name + " " + p.spec
}

func (l *inspection) authorityLifetime() time.Duration {
	return cmp.Or(l.r.Certificates.AuthorityLifetime, pki.AuthorityLifetime)
}
