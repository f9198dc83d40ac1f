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

// specClient is the field of the spec for the clients' port, as messages name it.
const specClient = "spec.tls.client"

// plane is one port of the members, for clients or for peers, with the Secret of its certificate
// authority and the Secrets with the certificates that this issues.
type plane struct {
	spec      string         // the field of the spec, as messages name it
	authority string         // the name of the authority's Secret
	secrets   []issuedSecret // the Secrets with certificates
	port      int            // the port of the members
	part      string         // the part of a Pod's revision for the authorities that the Pod trusts
	// status is the status of the port; zero before it is first written.
	status api.TLSPlaneStatus
	// asked is rotateAuthority of the spec, and wait is spec.tls.client.rotationWait.
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

func (l *inspection) clientPlane() plane {
	c := l.c
	p := plane{
		spec: specClient, authority: c.ClientAuthoritySecret(), port: api.PortClient, part: render.PartClientTrust, wait: rotationWait(c),
		secrets: []issuedSecret{
			// The server's is a client's as well: etcd's HTTP gateway connects to itself with it.
			{c.ServerSecret(), []leaf{{files, c.Name, pki.Use{Hosts: l.hosts(render.ServerHosts(c)), Server: true, Client: true}}}},
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
	c, hosts := l.c, l.hosts(render.PeerHosts(l.c))
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

func (l *inspection) hosts(hosts []string) []string {
	if more := l.r.Certificates.Hosts; more != nil {
		hosts = append(hosts, more(l.c)...)
	}
	return hosts
}

func (l *inspection) lifetime() time.Duration {
	if l.r.Certificates.Lifetime != 0 {
		return l.r.Certificates.Lifetime
	}
	return pki.LeafLifetime
}

// managed creates and renews the Secrets of a port, and makes the next write of its rotation. It
// returns the fingerprint of the authority and the report of the rotation. If the authority is
// lost, no certificate can be issued, and the existing ones are used while they are valid.
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
		l.warn(api.ReasonAuthorityLost, l.expired(p, h.issues.Ends(), ""))
	case h.issues.Ends().Before(l.now.Add(authorityEnds)):
		l.warn(api.ReasonAuthorityLost, fmt.Sprintf("the certificate authority in Secret %s (%s) expires at %s, and nothing that it has issued is valid after that: its rotation must be over before then (status.tls, docs/tls.md#rotation)",
			p.authority, p.spec, pki.Instant(h.issues.Ends())))
	}
	if p.spec == specClient {
		l.found.authority = h.issues
	}
	secretsWritten := true
	for _, s := range p.secrets {
		written, err := l.issue(ctx, h.issues, p, s)
		if err != nil && !h.expired { // an expired authority fails here, and the rotation below replaces it
			return "", rotationReport{}, err
		}
		secretsWritten = secretsWritten && written
	}
	report, err := l.rotate(ctx, p, h, secretsWritten)
	switch {
	case h.expired && err == nil:
		l.found.authorityExpired = &certificatesError{api.ReasonAuthorityLost, l.expired(p, h.issues.Ends(), "")}
	case h.expired && !apierrors.IsConflict(err):
		err = &certificatesError{api.ReasonAuthorityLost, l.expired(p, h.issues.Ends(), "") + notDone + podstatus.FirstLine(err.Error())}
	case secretsWritten && h.formerExpired(l.now):
		l.found.expired[p.part] = fmt.Sprintf("the certificate authority before the one in Secret %s (%s) expired at %s", p.authority, p.spec, pki.Instant(h.former[0].NotAfter))
	}
	return h.issues.Fingerprint(), report, err
}

// notDone begins why another authority cannot be written.
const notDone = ". That does not succeed: "

// expired is the message for an authority that has expired. also is what else is wrong with it.
func (l *inspection) expired(p plane, ends time.Time, also string) string {
	next := "now, and the Pods that trust only the expired one are recreated at once"
	if !l.writes {
		next = "when spec.suspend is false"
	}
	return fmt.Sprintf("the certificate authority in Secret %s (%s) expired at %s, and so have all certificates that it issued%s: a new authority replaces it %s (docs/tls.md#when-an-authority-has-expired)",
		p.authority, p.spec, pki.Instant(ends), also, next)
}

// authorityEnds is how long before an authority expires the status warns.
const authorityEnds = 180 * 24 * time.Hour

// recreateAdvice says how a cluster gets a new authority with all members stopped: etcd reads
// ca.crt only when it starts. Data in memory would be lost with them.
func (l *inspection) recreateAdvice(p plane) string {
	if l.c.Spec.Storage.Medium == api.MediumMemory {
		return "take a snapshot, and restore it into another EtcdCluster (spec.bootstrap.restore): with spec.storage.medium Memory this one cannot be scaled to 0"
	}
	return fmt.Sprintf("delete Secret %s, set spec.replicas to 0 and, once no Pod is left, revert spec.replicas: the cluster then starts with a new authority%s", p.authority, clientsToo(p))
}

// rotateAdvice says how a running cluster gets a new authority.
func (l *inspection) rotateAdvice(p plane) string {
	field, _ := strings.CutPrefix(p.spec, "spec.tls.")
	request := l.now.UTC().Format("2006-01-02")
	for request == p.asked || request == p.status.RotateAuthority { // the same value as before would begin no rotation
		request += "-again"
	}
	return fmt.Sprintf(`to rotate the authority without a pause, run: kubectl patch etcdclusters.%s %s --namespace=%s --type=merge --patch='{"spec":{"tls":{"%s":{"mode":"Managed","rotateAuthority":"%s"}}}}' (docs/tls.md#when-an-authority-is-lost)`,
		api.GroupName, l.c.Name, l.c.Namespace, field, request)
}

// clientsToo is the end of recreateAdvice for the authority that applications trust.
func clientsToo(p plane) string {
	if p.spec != specClient {
		return ""
	}
	return "; give your applications the new ca.crt and certificate"
}

// authority reads the authority of a port. If there is none and no Pod trusts one, it creates one.
// If the authority is lost and rotateAuthority asks for another one, it begins a rotation. lost
// says why the authority cannot be used; empty: it can.
func (l *inspection) authority(ctx context.Context, p plane) (h *authoritySecret, lost string, _ error) {
	secret, err := l.ours(ctx, p.authority, l.holds(p), l.adoptable(p.authority))
	if err != nil {
		return nil, "", err
	}
	if secret == nil {
		lost = "is missing"
	} else if h, lost, err = l.readAuthority(ctx, p, secret); err != nil {
		return nil, "", err
	}
	if lost == "" {
		return h, "", nil
	}
	trusted, err := l.hasPods(ctx, p)
	switch {
	case err != nil:
		return nil, "", err
	case trusted:
		if secret == nil {
			if err := l.replaceExpired(ctx, p); err != nil {
				return nil, "", err
			}
		}
		if p.asked != "" && p.asked != p.status.RotateAuthority && l.writes {
			if err := l.rotateLost(ctx, p, secret); err != nil {
				return nil, "", err
			}
		}
		return nil, fmt.Sprintf("Secret %s with the certificate authority of %s %s", p.authority, p.spec, lost), nil
	case h != nil: // no member trusts another authority
		return h, "", nil
	case secret != nil: // the clock may be wrong, or an administrator is changing the Secret
		return nil, "", &certificatesError{api.ReasonAuthorityLost, fmt.Sprintf("Secret %s with the certificate authority of %s %s, and is not overwritten: %s", p.authority, p.spec, lost, l.recreateAdvice(p))}
	case !l.writes:
		return nil, "", l.missing(p.authority)
	}
	cert, key, err := pki.NewAuthority(l.authorityName(p), l.now, l.authorityLifetime())
	if err != nil {
		return nil, "", err
	}
	made := &corev1.Secret{Data: map[string][]byte{api.SecretCert: cert, api.SecretKey: key}}
	if p.asked != "" { // this new authority is what was asked for
		made.Data[api.SecretRotation] = []byte(p.asked)
	}
	if err := l.write(ctx, nil, p.authority, made.Data, issuing("Created the certificate authority in Secret "+p.authority)); err != nil {
		return nil, "", err
	}
	h, err = readAuthoritySecret(made, l.now)
	return h, "", err
}

// readAuthority reads the Secret of an authority. lost says why the authority counts as lost; h is
// nil where it cannot be used at all.
func (l *inspection) readAuthority(ctx context.Context, p plane, secret *corev1.Secret) (h *authoritySecret, lost string, _ error) {
	h, unusable := readAuthoritySecret(p.withoutEnded(secret), l.now)
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
	case p.status.Authority != "" && !h.continues(p.status, p.known()):
		lost = "holds an authority that the members do not trust"
	}
	return h, lost, nil
}

// mountedBy reports whether a Pod has certificates of the port that Quorate has issued, and so
// trusts its authority.
func (p plane) mountedBy(pod *corev1.Pod) bool {
	return slices.ContainsFunc(p.secrets, func(s issuedSecret) bool { return render.Mounts(pod, s.name) })
}

// hasPods reports whether any Pod of the cluster trusts the authority of a port: those of another
// mode do not. It reads from the API server, not from the cache.
func (l *inspection) hasPods(ctx context.Context, p plane) (bool, error) {
	pods := &corev1.PodList{}
	if err := l.r.Reader.List(ctx, pods, client.InNamespace(l.c.Namespace), client.MatchingLabels(render.Selector(l.c))); err != nil {
		return false, fmt.Errorf("list Pods: %w", err)
	}
	return slices.ContainsFunc(pods.Items, func(pod corev1.Pod) bool { return p.mountedBy(&pod) }), nil
}

// withoutAuthority checks the existing certificates of a port whose authority is lost. The error
// says what cannot be used; otherwise a warning says until when they are valid.
func (l *inspection) withoutAuthority(ctx context.Context, p plane, lost string) error {
	var first time.Time
	lacks := ""
	for _, s := range p.secrets {
		unusable := func(wrong error) error {
			return &certificatesError{api.ReasonAuthorityLost, fmt.Sprintf("%s, and Secret %s, which it would have to issue again, cannot be used (%v). Running members go on while their certificates are valid; no Pod is created or changed. "+
				"Restore Secret %s from a backup; or %s",
				lost, s.name, wrong, p.authority, l.recreateAdvice(p))}
		}
		secret, err := l.ours(ctx, s.name, l.issuedBy(p.known(), s), unusable(errUnowned))
		if err != nil {
			return err
		}
		for _, leaf := range s.certificates {
			var ends time.Time
			wrong := errors.New("it is missing")
			if secret != nil {
				ends, wrong = pki.Check(secret.Data, leaf.files, l.needed(s, leaf.use), l.now)
			}
			if wrong != nil {
				return unusable(wrong)
			}
			if _, asked := pki.Check(secret.Data, leaf.files, leaf.use, l.now); asked != nil {
				lacks = fmt.Sprintf(", also the one in Secret %s, of which %v", s.name, asked)
			}
			if first.IsZero() || ends.Before(first) {
				first = ends
			}
		}
	}
	l.warn(api.ReasonAuthorityLost, fmt.Sprintf("%s: no certificate can be renewed%s, and the cluster serves until %s. Restore the Secret from a backup; or, %s", lost, lacks, pki.Instant(first), l.rotateAdvice(p)))
	return nil
}
