package reconcile

import (
	"bytes"
	"cmp"
	"context"
	"crypto/x509"
	"fmt"
	"maps"
	"slices"
	"time"
	"unicode/utf8"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/pki"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// authoritySecret is what the Secret of an authority holds.
type authoritySecret struct {
	secret *corev1.Secret
	// issues is the authority that issues, with all that are trusted. expired: it is not valid any
	// more. next is the one that comes after it, where that can be used.
	issues  *pki.Authority
	expired bool
	next    *pki.Authority
	step    api.RotationStep
	// rotated: it has been rotated, or is being. damaged: the one to come cannot be used, and is to
	// be made again. request is the value of rotateAuthority then.
	rotated, damaged bool
	request          string
	since            time.Time
}

var nextFiles = pki.Names{Cert: api.SecretNextCert, Key: api.SecretNextKey}

// mostRequest is how many characters the request of a rotation may have, as the schema has it.
const mostRequest = 64

// readAuthoritySecret reads the Secret of an authority. An authority without its key, or that has
// expired, is good enough for members to trust while the next one is there.
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
		if h.next == nil {
			return nil, err
		}
		former, certErr := pki.ReadCertificate(api.SecretCert, data[api.SecretCert])
		if certErr != nil {
			return nil, err
		}
		h.issues, h.expired = pki.Keyless(former), now.After(former.NotAfter)
	}
	switch {
	case h.next != nil:
		h.issues = h.issues.Beside(h.next.Certificate())
	case h.step == "" && len(data[api.SecretPreviousCert]) > 0:
		former, err := pki.ReadCertificate(api.SecretPreviousCert, data[api.SecretPreviousCert])
		if err != nil {
			return nil, err
		}
		h.step, h.issues = api.RotationReissue, h.issues.Beside(former)
	}
	return h, nil
}

// follows reports whether one of the authorities that are to be trusted is known: the one that
// issues, or the one before it. That the one to come is known is not enough: members that trust it
// alone, because the Secret is of before, refuse what the former one issues.
func (h *authoritySecret) follows(known []string) bool {
	prints := []string{h.issues.Fingerprint()}
	if h.step == api.RotationReissue {
		prints = pki.Fingerprints(h.issues.PEM())
	}
	return slices.ContainsFunc(prints, func(one string) bool { return slices.Contains(known, one) })
}

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
	switch {
	case !published:
	case h.rotated:
		told.trusts = pki.Fingerprints(h.issues.PEM())
	default:
		told.trusts = []string{}
	}
	f := rotationFacts{
		Step: h.step, Asked: p.asked, Done: told.request, Due: h.damaged || !l.now.Before(h.issues.Ends().Add(-l.authorityLifetime()/3)),
		Expired: h.expired, Suspended: !l.writes, Published: published, Since: h.since, Wait: p.wait, Now: l.now,
	}
	if h.step == "" && !f.Due && (f.Asked == "" || f.Asked == f.Done) && p.status.Rotation == nil {
		return told, nil // at rest
	}
	var err error
	if f.Members, err = l.members(ctx, p, h, published); err != nil {
		return told, err
	}
	state := nextRotation(f)
	if state.Step != "" {
		told.status = &api.RotationStatus{Step: state.Step, Message: podstatus.Within(state.Waits, mostWaits)}
	}
	if !state.Again.IsZero() {
		l.lookBy(state.Again)
	}
	if state.Move == moveNone {
		return told, nil
	}
	l.lookBy(l.now) // to carry on with what was written
	told.request, err = l.move(ctx, p, h, state.Move)
	if state.Move == moveBegin && err == nil { // else it would look as if it were over
		told.status = &api.RotationStatus{Step: api.RotationTrustBoth}
	}
	return told, err
}

// mostWaits is how long the message of a rotation may be, as the schema has it.
const mostWaits = 1024

// move writes what takes a rotation on, and returns for which value of rotateAuthority it is.
func (l *inspection) move(ctx context.Context, p plane, h *authoritySecret, move rotationMove) (request string, _ error) {
	data := maps.Clone(h.secret.Data)
	request = cmp.Or(h.request, p.status.RotateAuthority)
	var note string
	switch move {
	case moveNone:
		return request, nil
	case moveBegin:
		cert, key, err := pki.NewAuthority(l.authorityName(p), l.now, l.authorityLifetime())
		if err != nil {
			return request, err
		}
		request = p.asked
		data[api.SecretNextCert], data[api.SecretNextKey], data[api.SecretPreviousCert] = cert, key, []byte{}
		note = "Rotating the certificate authority of " + p.spec + ", step 1 of 3: " + p.peers() + " must trust the new one as well"
	case moveMark:
		data[api.SecretSince] = []byte(l.now.UTC().Format(time.RFC3339))
		data[api.SecretRotation] = []byte(request)
		return request, l.write(ctx, h.secret, p.authority, data, "")
	case moveReissue:
		data[api.SecretPreviousCert] = data[api.SecretCert]
		data[api.SecretCert], data[api.SecretKey] = data[api.SecretNextCert], data[api.SecretNextKey]
		data[api.SecretNextCert], data[api.SecretNextKey] = []byte{}, []byte{}
		note = "Rotating the certificate authority of " + p.spec + ", step 2 of 3: all certificates are reissued by the new one"
	case moveFinish:
		data[api.SecretPreviousCert] = []byte{}
		note = "Rotating the certificate authority of " + p.spec + ", step 3 of 3: members stop trusting the former one"
	}
	data[api.SecretSince], data[api.SecretRotation] = []byte{}, []byte(request)
	if err := l.write(ctx, h.secret, p.authority, data, ""); err != nil {
		return request, err
	}
	l.r.Recorder.Eventf(l.c, nil, corev1.EventTypeNormal, api.ReasonRotation, "Rotate", "%s", note)
	return request, nil
}

// peers are the two sides of the connections to the port, for people.
func (p plane) peers() string {
	if p.spec == specClient {
		return "members and applications"
	}
	return "members"
}

// rotateLost begins a rotation where the authority is lost, and a person asks for another one:
// members go on trusting the certificate of the lost one, which needs no key for that. It is read
// from what was issued, and nothing begins where that is not known. The next look goes on with it.
func (l *inspection) rotateLost(ctx context.Context, p plane, secret *corev1.Secret) error {
	former, err := l.formerAuthority(ctx, p)
	if former == nil || err != nil {
		return err
	}
	data := map[string][]byte{}
	if secret != nil {
		data = maps.Clone(secret.Data)
	}
	cert, key, err := pki.NewAuthority(l.authorityName(p), l.now, l.authorityLifetime())
	if err != nil {
		return err
	}
	if !bytes.Equal(data[api.SecretCert], former) {
		data[api.SecretCert], data[api.SecretKey] = former, []byte{}
	}
	data[api.SecretNextCert], data[api.SecretNextKey], data[api.SecretPreviousCert] = cert, key, []byte{}
	data[api.SecretRotation], data[api.SecretSince] = []byte(p.asked), []byte{}
	if err := l.write(ctx, secret, p.authority, data, ""); err != nil {
		return err
	}
	l.r.Recorder.Eventf(l.c, nil, corev1.EventTypeNormal, api.ReasonRotation, "Rotate", "Rotating the certificate authority of %s, which is lost, step 1 of 3: %s must trust the new one as well", p.spec, p.peers())
	l.lookBy(l.now)
	return nil
}

// formerAuthority is the certificate of the authority that the members trust, from the Secrets with
// what it has issued; nil where none of these has it.
func (l *inspection) formerAuthority(ctx context.Context, p plane) ([]byte, error) {
	for _, s := range p.secrets {
		secret, err := l.ours(ctx, s.name, l.issuedBy(p.known(), s), l.replaceable(s.name))
		if err != nil {
			return nil, err
		}
		if secret == nil {
			continue
		}
		if former := pki.Find(secret.Data[api.SecretCA], p.status.Authority); former != nil {
			return former, nil
		}
	}
	return nil, nil
}

// members are those that may run, and those that the status knows, with what is known of their
// trust. They are asked for what they show once their Pods are as they must be.
func (l *inspection) members(ctx context.Context, p plane, h *authoritySecret, published bool) ([]memberTrust, error) {
	list := &corev1.PodList{}
	if err := l.r.Reader.List(ctx, list, client.InNamespace(l.c.Namespace), client.MatchingLabels(render.Selector(l.c))); err != nil {
		return nil, fmt.Errorf("list Pods: %w", err)
	}
	pods := map[string]*corev1.Pod{}
	for n := range list.Items {
		pod := &list.Items[n]
		if foreign, _ := belongs(l.c, pod); !foreign && pod.Annotations[api.AnnotationProvisions] == "" { // what provisions is compared when it is to run etcd
			pods[pod.Name] = pod
		}
	}
	var all []memberTrust
	ask := published && h.step != ""
	for _, name := range slices.Sorted(maps.Keys(pods)) {
		m := memberTrust{Name: name, Exists: true, Trusts: l.trusts(p, h, pods[name])}
		all, ask = append(all, m), ask && m.Trusts
	}
	for _, m := range l.c.Status.Members {
		if pods[m.Name] == nil && size(l.c) > 0 {
			all, ask = append(all, memberTrust{Name: m.Name}), false
		}
	}
	if ask {
		l.ask(ctx, p, h, pods, all)
	}
	return all, nil
}

// trusts reports whether a Pod was made to trust what the Secrets hold now. What the status says of
// it may be behind that.
func (l *inspection) trusts(p plane, h *authoritySecret, pod *corev1.Pod) bool {
	if h.rotated && !slices.Equal(p.status.Trusts, pki.Fingerprints(h.issues.PEM())) {
		return false
	}
	return render.Trusts(l.c, pod, p.part)
}

// ask has each member show its certificate, and accept one, of the newer authority.
func (l *inspection) ask(ctx context.Context, p plane, h *authoritySecret, pods map[string]*corev1.Pod, all []memberTrust) {
	by, shows := h.next, (*pki.Authority)(nil)
	if h.step == api.RotationReissue {
		by, shows = h.issues, h.issues
	}
	if by == nil {
		return
	}
	prove := l.r.handshaker
	if prove == nil {
		prove = handshake
	}
	defer l.r.workers.releaseIfSlow(l.c.Namespace)()
	config, err := by.Client(api.Manager, h.issues.PEM(), l.now)
	var asked crew
	for n := range all {
		m := &all[n]
		if err != nil {
			m.Problem = "cannot be asked: " + err.Error()
			continue
		}
		asked.do(func() {
			config := config.Clone()
			config.ServerName = l.c.MemberHost(m.Name)
			shown, err := prove(ctx, pods[m.Name].Status.PodIP, p.port, config)
			m.Problem = unready(p, shows, shown, err)
		})
	}
	asked.wait()
}

// unready is why a member is not ready for the next step; empty where it is.
func unready(p plane, shows *pki.Authority, shown *x509.Certificate, err error) string {
	switch {
	case shown != nil && shows != nil && !shows.Issued(shown):
		return fmt.Sprintf("presents a certificate of the former authority at port %d: its kubelet has yet to write the new one, which takes a minute or two", p.port)
	case shown != nil && err != nil:
		return fmt.Sprintf("does not accept a certificate of the new authority at port %d (%v)", p.port, err)
	case err != nil:
		return fmt.Sprintf("does not answer at port %d, which must be open from the operator to the members (%v)", p.port, err)
	default:
		return ""
	}
}

func (l *inspection) authorityName(p plane) string {
	return l.c.Namespace + "/" + l.c.Name + " " + p.spec
}

func (l *inspection) authorityLifetime() time.Duration {
	return cmp.Or(l.r.Certificates.AuthorityLifetime, pki.AuthorityLifetime)
}
