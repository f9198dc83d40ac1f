package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/apply"
	"quorate.dev/reconcile/pki"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// specClient is the field of the clients' port, for people.
const specClient = "spec.tls.client"

// plane is one port: the Secret of its authority, and those with what that issues.
type plane struct {
	spec      string // the field, for people
	authority string // the Secret
	secrets   []issuedSecret
	port      int    // of the members
	part      string // of the revision of a Pod that tells whom it trusts
	// status is what is known of the authority that the members trust; the zero one where nothing
	// is.
	status api.TLSPlaneStatus
	// asked is what the spec says of a rotation, and wait how long one gives applications.
	asked string
	wait  time.Duration
}

// known are the fingerprints of the authorities that members may trust.
func (p plane) known() []string { return append(slices.Clone(p.status.Trusts), p.status.Authority) }

// issuedSecret is a Secret with one certificate or several.
type issuedSecret struct {
	name         string
	certificates []leaf
}

// leaf is one certificate of a Secret.
type leaf struct {
	files pki.Names
	name  string // the common name
	use   pki.Use
}

func clientPlane(c *api.EtcdCluster) plane {
	p := plane{
		spec: specClient, authority: c.ClientAuthoritySecret(), port: api.PortClient, part: render.PartClientTrust, wait: rotationWait(c),
		secrets: []issuedSecret{
			// The server's is a client's as well: etcd's HTTP gateway connects to itself with it.
			{c.ServerSecret(), []leaf{{files, c.Name, pki.Use{Hosts: render.ServerHosts(c), Server: true, Client: true}}}},
			{c.OperatorSecret(), []leaf{{files, api.Manager, pki.Use{Client: true}}}},
			{c.ApplicationSecret(), []leaf{{files, c.ClientServiceName(), pki.Use{Client: true}}}},
		},
	}
	if c.Status.TLS != nil {
		p.status = c.Status.TLS.Client
	}
	if c.Spec.TLS != nil && c.Spec.TLS.Client != nil {
		p.asked = c.Spec.TLS.Client.RotateAuthority
	}
	return p
}

func (l *inspection) peerPlane() plane {
	c, hosts := l.c, render.PeerHosts(l.c)
	if more := l.r.Certificates.PeerHosts; more != nil {
		hosts = append(hosts, more(c)...)
	}
	connects := pki.Names{Cert: api.SecretPeerCert, Key: api.SecretPeerKey, CA: api.SecretCA}
	p := plane{
		spec: "spec.tls.peer", authority: c.PeerAuthoritySecret(), port: api.PortPeer, part: render.PartPeerTrust,
		secrets: []issuedSecret{{c.PeerSecret(), []leaf{
			{files, c.Name, pki.Use{Hosts: hosts, Server: true}},
			{connects, c.Name, pki.Use{Client: true}},
		}}},
	}
	if c.Status.TLS != nil {
		p.status = c.Status.TLS.Peer
	}
	if c.Spec.TLS != nil && c.Spec.TLS.Peer != nil {
		p.asked = c.Spec.TLS.Peer.RotateAuthority
	}
	return p
}

func (l *inspection) lifetime() time.Duration {
	if l.r.Certificates.Lifetime != 0 {
		return l.r.Certificates.Lifetime
	}
	return pki.LeafLifetime
}

// managed sees to it that the Secrets of a plane are there and good, and returns the fingerprint of
// the authority and how far its rotation is. Where it is lost nothing can be issued: what is there
// is used as long as it is good.
func (l *inspection) managed(ctx context.Context, p plane) (string, rotationReport, error) {
	h, lost, err := l.authority(ctx, p)
	if err != nil {
		return "", rotationReport{}, err
	}
	if lost != "" {
		return "", rotationReport{}, l.withoutAuthority(ctx, p, lost)
	}
	if h.issues.Ends().Before(l.now.Add(authorityEnds)) {
		l.warn(api.ReasonAuthorityLost, fmt.Sprintf("the certificate authority in Secret %s (%s) expires at %s, and nothing that it has issued is valid after that: its rotation must be over before then (status.tls, docs/tls.md#rotation)",
			p.authority, p.spec, pki.Instant(h.issues.Ends())))
	}
	published := true
	for _, s := range p.secrets {
		written, err := l.issue(ctx, h.issues, p, s)
		if err != nil && !h.expired { // then there is nothing to lose, and another one is about to issue
			return "", rotationReport{}, err
		}
		published = published && written
	}
	told, err := l.rotate(ctx, p, h, published)
	return h.issues.Fingerprint(), told, err
}

// authorityEnds is how long before the end of an authority a person is told.
const authorityEnds = 180 * 24 * time.Hour

// recreateAdvice is how a cluster of which no member runs gets another authority, or one that runs
// and can wait: etcd reads what it trusts at its start.
func recreateAdvice(p plane) string {
	return fmt.Sprintf("delete Secret %s, set spec.replicas to 0 and, once no Pod is left, back: the cluster then starts with a new authority%s", p.authority, clientsToo(p))
}

// rotateAdvice is how one that runs gets it.
func (l *inspection) rotateAdvice(p plane) string {
	field, _ := strings.CutPrefix(p.spec, "spec.tls.")
	request := l.now.UTC().Format("2006-01-02")
	for request == p.asked || request == p.status.RotateAuthority { // it would ask for nothing
		request += "-again"
	}
	return fmt.Sprintf(`to rotate the authority without a pause, run: kubectl patch etcdclusters.%s %s --namespace=%s --type=merge --patch='{"spec":{"tls":{"%s":{"rotateAuthority":"%s"}}}}' (docs/tls.md#when-an-authority-is-lost)`,
		api.GroupName, l.c.Name, l.c.Namespace, field, request)
}

// clientsToo is what else is to be done where clients trust the authority.
func clientsToo(p plane) string {
	if p.spec != specClient {
		return ""
	}
	return "; give your applications the new ca.crt and certificate"
}

// authority reads the authority of a plane, or makes it while there is no Pod that trusts another
// one, or begins a rotation to another one where it is lost and the spec asks for that. Else it
// says why it is lost.
func (l *inspection) authority(ctx context.Context, p plane) (h *authoritySecret, lost string, _ error) {
	secret, err := l.ours(ctx, p.authority, l.holds(p), l.adoptable(p.authority))
	if err != nil {
		return nil, "", err
	}
	if secret == nil {
		lost = "is missing"
	} else if h, err = readAuthoritySecret(secret, l.now); err != nil {
		lost = "cannot be used: " + err.Error()
	} else if p.status.Authority != "" && !h.follows(p.known()) {
		lost = "holds an authority that the members do not trust"
	}
	if lost == "" {
		return h, "", nil
	}
	trusted, err := l.hasPods(ctx)
	switch {
	case err != nil:
		return nil, "", err
	case trusted:
		if p.asked != "" && p.asked != p.status.RotateAuthority && l.writes {
			if err := l.rotateLost(ctx, p, secret); err != nil {
				return nil, "", err
			}
		}
		return nil, fmt.Sprintf("Secret %s with the certificate authority of %s %s", p.authority, p.spec, lost), nil
	case h != nil: // no member trusts any yet, or any more
		return h, "", nil
	case secret != nil: // the clock may be wrong, or a person at work
		return nil, "", &certificatesError{api.ReasonAuthorityLost, fmt.Sprintf("Secret %s with the certificate authority of %s %s, and is not written over: %s", p.authority, p.spec, lost, recreateAdvice(p))}
	case !l.writes:
		return nil, "", l.missing(p.authority)
	}
	cert, key, err := pki.NewAuthority(l.authorityName(p), l.now, l.authorityLifetime())
	if err != nil {
		return nil, "", err
	}
	made := &corev1.Secret{Data: map[string][]byte{api.SecretCert: cert, api.SecretKey: key}}
	if p.asked != "" { // it is a new one
		made.Data[api.SecretRotation] = []byte(p.asked)
	}
	if err := l.write(ctx, nil, p.authority, made.Data, "Created the certificate authority in Secret "+p.authority); err != nil {
		return nil, "", err
	}
	h, err = readAuthoritySecret(made, l.now)
	return h, "", err
}

// hasPods reports whether the cluster has any Pod, as the API server itself says.
func (l *inspection) hasPods(ctx context.Context) (bool, error) {
	pods := &corev1.PodList{}
	if err := l.r.Reader.List(ctx, pods, client.InNamespace(l.c.Namespace), client.MatchingLabels(render.Selector(l.c))); err != nil {
		return false, fmt.Errorf("list Pods: %w", err)
	}
	return len(pods.Items) > 0, nil
}

// issue sees to it that a Secret has what the authority has issued, good for as long as it takes to
// renew it, and reports whether it has. What cannot be renewed is used as long as it is good, and
// that is told.
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
			l.lookBy(again)
			continue
		}
		why, next[leaf.files.CA] = stale, a.PEM()
		if again, stale = a.Stale(next, leaf.files, leaf.use, l.now, l.lifetime()); stale == nil { // what is trusted is all that was wrong
			l.lookBy(again)
			continue
		}
		cert, key, err := a.Issue(leaf.name, leaf.use, data[leaf.files.Key], l.now, l.lifetime())
		if err != nil {
			return false, l.unissued(a, p, s, data, stale, fmt.Errorf("issue Secret %s: %w", s.name, err))
		}
		why, issued, next[leaf.files.Cert], next[leaf.files.Key] = stale, true, cert, key
		if _, refused := a.Stale(next, leaf.files, leaf.use, l.now, l.lifetime()); refused != nil { // else it is issued for ever
			return false, &certificatesError{api.ReasonCertificates, fmt.Sprintf("Secret %s cannot be issued: what the authority in Secret %s issues would be refused (%v): %s",
				s.name, p.authority, refused, recreateAdvice(p))}
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

// issuedNote is the event of a Secret that is written: it was not there, or a certificate in it was
// reissued, or what it trusts is updated.
func issuedNote(secret *corev1.Secret, name string, issued bool, why error) string {
	switch {
	case secret != nil && issued:
		return "Reissued the certificate in Secret " + name + ": " + why.Error()
	case secret != nil:
		return "Updated " + api.SecretCA + " of Secret " + name
	default:
		return "Issued the certificate in Secret " + name
	}
}

// unissued is what comes of a certificate that could not be reissued: the error, or a warning while
// what is there is good.
func (l *inspection) unissued(a *pki.Authority, p plane, s issuedSecret, data map[string][]byte, why, err error) error {
	ends, good := l.good(a, p, s, data)
	if !good {
		return err
	}
	l.lookBy(l.now.Add(unreadyLook))
	l.warn(api.ReasonCertificates, fmt.Sprintf("the certificate in Secret %s is to be reissued (%v), %s; it expires at %s", s.name, why, podstatus.FirstLine(err.Error()), pki.Instant(ends)))
	return nil
}

// good reports whether all certificates of a Secret can be used as they are, and until when.
func (l *inspection) good(a *pki.Authority, p plane, s issuedSecret, data map[string][]byte) (first time.Time, _ bool) {
	known := append(p.known(), pki.Fingerprints(a.PEM())...)
	for _, leaf := range s.certificates {
		ends, wrong := pki.Check(data, leaf.files, leaf.use, l.now)
		if wrong != nil || !trustsOnly(data[leaf.files.CA], known) {
			return first, false
		}
		if first.IsZero() || ends.Before(first) {
			first = ends
		}
	}
	return first, true
}

// withoutAuthority uses what is there, and tells until when that is good.
func (l *inspection) withoutAuthority(ctx context.Context, p plane, lost string) error {
	var first time.Time
	for _, s := range p.secrets {
		unusable := func(wrong error) error {
			return &certificatesError{api.ReasonAuthorityLost, fmt.Sprintf("%s, and Secret %s, which it would have to issue again, cannot be used (%v). Running members go on while their certificates are valid; no Pod is created or changed. "+
				"Put Secret %s back from a backup; or %s",
				lost, s.name, wrong, p.authority, recreateAdvice(p))}
		}
		secret, err := l.ours(ctx, s.name, l.issuedBy(p.known(), s), unusable(errUnowned))
		if err != nil {
			return err
		}
		for _, leaf := range s.certificates {
			var ends time.Time
			wrong := errors.New("it is missing")
			if secret != nil {
				ends, wrong = pki.Check(secret.Data, leaf.files, leaf.use, l.now)
			}
			if wrong != nil {
				return unusable(wrong)
			}
			if first.IsZero() || ends.Before(first) {
				first = ends
			}
		}
	}
	l.warn(api.ReasonAuthorityLost, fmt.Sprintf("%s: no certificate can be renewed, and the cluster serves until %s. Put the Secret back from a backup; or, %s", lost, pki.Instant(first), l.rotateAdvice(p)))
	return nil
}

// missing is why a Secret is not written.
func (l *inspection) missing(name string) error {
	return &certificatesError{api.ReasonCertificates, "Secret " + name + " is missing or cannot be used, and Quorate writes nothing while spec.suspend is true"}
}

// write a Secret over what was seen; where none was seen, only if there still is none.
func (l *inspection) write(ctx context.Context, seen *corev1.Secret, name string, data map[string][]byte, note string) error {
	secret := render.Secret(l.c, name, data)
	if seen == nil {
		secret.WithResourceVersion(apply.OnlyIfAbsent)
	} else {
		secret.WithUID(seen.UID).WithResourceVersion(seen.ResourceVersion).WithType(seen.Type)
	}
	err := l.r.Client.Apply(ctx, secret, client.FieldOwner(api.Manager), client.ForceOwnership)
	switch {
	case apierrors.IsForbidden(err):
		l.refused = true
		return &certificatesError{api.ReasonCertificates, fmt.Sprintf(
			"the API server does not let the operator write Secret %s (%v): if rights are missing, run: %s. It then goes on by itself (docs/tls.md#rights)", name, podstatus.FirstLine(err.Error()), l.r.grant(l.c))}
	case apierrors.IsInvalid(err): // it is immutable
		advice := "delete it, and it is created again"
		if seen != nil && equality.Semantic.DeepEqual(seen.Data, data) { // an authority, for one, is not issued again
			advice = "create it again with the same data, and not immutable"
		}
		return &certificatesError{api.ReasonCertificates, fmt.Sprintf(
			"the API server refuses to change Secret %s: %s (%s)", name, advice, podstatus.FirstLine(err.Error()))}
	case err != nil:
		return fmt.Errorf("apply Secret %s: %w", name, err)
	}
	if note != "" {
		l.r.Recorder.Eventf(l.c, nil, corev1.EventTypeNormal, api.ReasonIssued, "Issue", "%s", note)
	}
	return nil
}
