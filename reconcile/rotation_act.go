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

// rotationReport is what the status says of the rotations of a plane.
type rotationReport struct {
	known   bool
	trusts  []string // as the Secrets have it; nil where they are being written
	request string
	status  *api.RotationStatus
}

// writeTo writes it into the status.
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

// rotate takes the rotation of a plane one step on, where it is time, and says how far it is.
// published: all Secrets hold what they are to hold.
func (l *inspection) rotate(ctx context.Context, p plane, h *authoritySecret, published bool) (rotationReport, error) {
	told := rotationReport{known: true, request: cmp.Or(h.request, p.status.RotateAuthority)}
	h.rotated = h.rotated || len(p.status.Trusts) > 0 // a Secret that was put back may lack the sign of it
	switch {
	case !published:
	case h.rotated:
		told.trusts = pki.Fingerprints(h.issues.PEM())
	default:
		told.trusts = []string{}
	}
	f := rotationFacts{
		Step: h.step, Asked: p.asked, Done: told.request, Due: h.damaged || h.expired || !l.now.Before(h.issues.Ends().Add(-l.authorityLifetime()/3)),
		Expired: h.expired, Outlived: h.outlived(l.now), Suspended: !l.writes, Published: published, Since: h.since, Wait: p.wait, Now: l.now,
		Reported: p.status.Authority == h.issues.Fingerprint(),
	}
	if h.step == "" && !f.Due && (f.Asked == "" || f.Asked == f.Done) && p.status.Rotation == nil {
		return told, nil // at rest
	}
	pods, err := l.podsOf(ctx, cached{l.r.Client, l.c.Name})
	if err != nil {
		return told, err
	}
	f.Members = l.members(ctx, p, h, pods, published)
	state := nextRotation(f)
	if state.Move != moveNone { // nothing is written on the word of the cache alone
		same, err := l.unchanged(ctx, pods)
		if err != nil {
			return told, err
		}
		if !same {
			state.Move, state.Again = moveNone, l.now.Add(afterAct)
		}
	}
	if state.Step != "" {
		told.status = &api.RotationStatus{Step: state.Step, Message: podstatus.Within(state.Waits, mostWaits)}
	}
	if !state.Again.IsZero() {
		l.lookBy(state.Again)
	}
	if state.Move == moveNone {
		return told, nil
	}
	told.request, err = l.move(ctx, p, h, state.Move, told.request)
	if state.Move == moveBegin && err == nil { // else it would look as if it were over
		told.status = &api.RotationStatus{Step: api.RotationTrustBoth}
	}
	return told, err
}

// mostWaits is how long the message of a rotation may be, as the schema has it.
const mostWaits = 1024

// move writes what takes a rotation on, and returns for which value of rotateAuthority it is.
func (l *inspection) move(ctx context.Context, p plane, h *authoritySecret, move rotationMove, request string) (string, error) {
	data := maps.Clone(h.secret.Data)
	text := ""
	switch move {
	case moveNone:
		return request, nil
	case moveBegin:
		valid := slices.DeleteFunc(slices.Clone(h.former), func(c *x509.Certificate) bool { return pki.Expired(c, l.now) })
		return p.asked, l.begin(ctx, p, h.secret, data, valid, "of "+p.spec)
	case moveMark:
		data[api.SecretRotation], data[api.SecretSince] = []byte(request), []byte(l.now.UTC().Format(time.RFC3339))
		l.lookBy(l.now)
		return request, l.write(ctx, h.secret, p.authority, data, note{})
	case moveReissue:
		data[api.SecretPreviousCert] = pki.Encode(append([]*x509.Certificate{h.issues.Certificate()}, h.former...))
		data[api.SecretCert], data[api.SecretKey] = data[api.SecretNextCert], data[api.SecretNextKey]
		data[api.SecretNextCert], data[api.SecretNextKey] = []byte{}, []byte{}
		text = "step 2 of 3: all certificates are reissued by the new one"
	case moveFinish:
		data[api.SecretPreviousCert] = []byte{}
		text = "step 3 of 3: members stop trusting the former one"
	}
	return request, l.advance(ctx, p, h.secret, data, request, "Rotating the certificate authority of "+p.spec+", "+text)
}

// begin makes the next authority, beside the one in the data, and those of before that are still
// trusted. which says of which authority the rotation is, for people.
func (l *inspection) begin(ctx context.Context, p plane, secret *corev1.Secret, data map[string][]byte, former []*x509.Certificate, which string) (err error) {
	data[api.SecretPreviousCert] = pki.Encode(former)
	if data[api.SecretNextCert], data[api.SecretNextKey], err = pki.NewAuthority(l.authorityName(p), l.now, l.authorityLifetime()); err != nil {
		return err
	}
	return l.advance(ctx, p, secret, data, p.asked, "Rotating the certificate authority "+which+", step 1 of 3: "+p.peers()+" must trust the new one as well")
}

// advance writes the Secret of an authority with the next step of a rotation, and has that looked
// at at once.
func (l *inspection) advance(ctx context.Context, p plane, secret *corev1.Secret, data map[string][]byte, request, text string) error {
	data[api.SecretRotation], data[api.SecretSince] = []byte(request), []byte{}
	l.lookBy(l.now)
	return l.write(ctx, secret, p.authority, data, note{api.ReasonRotation, "Rotate", text})
}

// peers are the two sides of the connections to the port, for people.
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
