package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
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
	switch {
	case h.expired:
		l.warn(api.ReasonAuthorityLost, l.expired(p, h))
	case h.issues.Ends().Before(l.now.Add(authorityEnds)):
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
	switch {
	case h.expired && err == nil:
		l.found.lapsed = &certificatesError{api.ReasonAuthorityLost, l.expired(p, h)}
	case h.expired && !apierrors.IsConflict(err):
		err = &certificatesError{api.ReasonAuthorityLost, l.expired(p, h) + ". That does not succeed: " + podstatus.FirstLine(err.Error())}
	case published && h.outlived(l.now):
		l.found.expired[p.part] = fmt.Sprintf("the certificate authority before the one in Secret %s (%s) expired at %s", p.authority, p.spec, pki.Instant(h.former[0].NotAfter))
	}
	return h.issues.Fingerprint(), told, err
}

// expired says what comes next where the authority has expired.
func (l *inspection) expired(p plane, h *authoritySecret) string {
	next := "now, and the Pods that trust this one alone are recreated at once"
	if !l.writes {
		next = "when spec.suspend is false"
	}
	return fmt.Sprintf("the certificate authority in Secret %s (%s) expired at %s, and with it all that it has issued: another one takes its place %s (docs/tls.md#when-an-authority-has-expired)",
		p.authority, p.spec, pki.Instant(h.issues.Ends()), next)
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
	} else if h, lost, err = l.sound(ctx, p, secret); err != nil {
		return nil, "", err
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
	if err := l.write(ctx, nil, p.authority, made.Data, issuing("Created the certificate authority in Secret "+p.authority)); err != nil {
		return nil, "", err
	}
	h, err = readAuthoritySecret(made, l.now)
	return h, "", err
}

// sound reads the Secret of an authority, and says why it counts as lost. What cannot be used is
// nil.
func (l *inspection) sound(ctx context.Context, p plane, secret *corev1.Secret) (h *authoritySecret, lost string, _ error) {
	h, unusable := readAuthoritySecret(p.over(secret), l.now)
	if unusable == nil && h.unreadable != nil {
		known, err := l.reread(ctx, p, h)
		if err != nil {
			return nil, "", err
		}
		if !known {
			h, unusable = nil, h.unreadable
		}
	}
	switch {
	case unusable != nil:
		lost = "cannot be used: " + unusable.Error()
	case p.status.Authority != "" && !h.follows(p.status, p.known()):
		lost = "holds an authority that the members do not trust"
	}
	return h, lost, nil
}

// hasPods reports whether the cluster has any Pod, as the API server itself says.
func (l *inspection) hasPods(ctx context.Context) (bool, error) {
	pods := &corev1.PodList{}
	if err := l.r.Reader.List(ctx, pods, client.InNamespace(l.c.Namespace), client.MatchingLabels(render.Selector(l.c))); err != nil {
		return false, fmt.Errorf("list Pods: %w", err)
	}
	return len(pods.Items) > 0, nil
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
