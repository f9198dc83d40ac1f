package reconcile

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/pki"
	"quorate.dev/render"
)

// Certificates are looked at before everything else: no Pod is made before the Secrets that it
// mounts hold what etcd starts with, and members are asked with the operator's own certificate.
// Secrets are neither watched nor listed, but read by name, and what was found counts for a while.

// Certificates say how certificates are issued and looked after. The zero value is what the
// operator has.
type Certificates struct {
	// Lifetime of a leaf that is issued; 0: pki.LeafLifetime.
	Lifetime time.Duration
	// AuthorityLifetime is the same of an authority; 0: pki.AuthorityLifetime. An authority is
	// rotated when a third of it is left.
	AuthorityLifetime time.Duration
	// Every is how often the Secrets of a cluster are looked at that is ready; 0: restingLook.
	Every time.Duration
	// PeerHosts are further names and addresses by which members reach each other, where names have
	// no addresses of their own.
	PeerHosts func(*api.EtcdCluster) []string
}

// How often the Secrets of a cluster are looked at: while it is ready, while it is not or rights
// are missing, and while another thing is wrong with them.
const (
	restingLook = 5 * time.Minute
	unreadyLook = 10 * time.Second
	barredLook  = time.Second
)

// credentials are what a look at the Secrets of a cluster has found.
type credentials struct {
	// config is how members are asked; nil where clients need no TLS, or there is no certificate
	// for it.
	config *tls.Config
	// barred is why no Pod is made and no member changed.
	barred error
	// unread: that is because the operator has no right on a Secret. The kubelets mount it all the
	// same.
	unread bool
	// warning is what a person has to do, though the cluster goes on.
	warning *certificatesError
	// lapsed is that an authority has expired and issues nothing; nil where none has.
	lapsed *certificatesError
	// client and peer are the fingerprints of the authorities; empty where these are lost, or not
	// Quorate's.
	client, peer string
	// expired has the parts of the revision of a Pod for trust (render.PartClientTrust) of which
	// it is known that a Pod with another one trusts expired authorities alone, and the words for
	// that.
	expired map[string]string
	// clientRotation and peerRotation are what is told of their rotations.
	clientRotation, peerRotation rotationReport

	cluster    types.UID
	generation int64
	again      time.Time // when to look again, at the latest
}

// certificatesError is what is wrong with certificates, for people.
type certificatesError struct {
	reason  string
	message string
}

func (e *certificatesError) Error() string { return e.message }

// step is what is told instead of the planned one.
func (e *certificatesError) step() membership.Step {
	return membership.Step{Action: membership.Stall, Reason: membership.Reason(e.reason), Message: e.message}
}

// keys remembers the credentials of each cluster.
type keys struct{ known sync.Map } // *credentials by types.NamespacedName

func (k *keys) of(c *api.EtcdCluster) *credentials {
	known, ok := k.known.Load(client.ObjectKeyFromObject(c))
	if !ok || known.(*credentials).cluster != c.UID {
		return &credentials{}
	}
	return known.(*credentials)
}

func (k *keys) forget(key types.NamespacedName) { k.known.Delete(key) }

// secure looks at the Secrets of a cluster, where it is time. It issues what is missing or wrong in
// those that are Quorate's. Its only error is a conflict.
func (r *Reconciler) secure(ctx context.Context, c *api.EtcdCluster, now time.Time) (*credentials, error) {
	known := r.keys.of(c)
	if !c.ClientTLS() && !c.PeerTLS() || known.generation == c.Generation && now.Before(known.again) {
		return known, nil
	}
	found := &credentials{cluster: c.UID, generation: c.Generation, again: now.Add(r.nextLook(c)), expired: map[string]string{}}
	l := &inspection{r: r, c: c, now: now, found: found, writes: !c.Spec.Suspend && c.DeletionTimestamp.IsZero()}
	err := l.clock()
	if err == nil {
		err = errors.Join(l.clients(ctx), l.peers(ctx))
	}
	var wrong *certificatesError
	var foreign *foreignError
	var terminating *terminatingError
	switch {
	case errors.As(err, &wrong):
		found.barred = wrong
	case errors.As(err, &foreign):
		found.barred = foreign
	case errors.As(err, &terminating):
		found.barred = terminating
	case apierrors.IsConflict(err):
		return nil, err
	case err != nil: // the pass goes on, and fails in the end
		found.barred = err
	}
	switch {
	case found.barred == nil:
	case l.refused: // a person is to act, and an audit log has each look
		found.unread = true
		l.lookBy(now.Add(unreadyLook))
	default:
		found.again = now.Add(barredLook)
	}
	if found.config == nil { // what was known may still serve to ask
		found.config = known.config
	}
	r.keys.known.Store(client.ObjectKeyFromObject(c), found)
	return found, nil
}

func (r *Reconciler) nextLook(c *api.EtcdCluster) time.Duration {
	rest := r.Certificates.Every
	if rest == 0 {
		rest = restingLook
	}
	if meta.IsStatusConditionTrue(c.Status.Conditions, api.ConditionReady) {
		return rest
	}
	return min(rest, unreadyLook)
}

// inspection is one look at the Secrets of a cluster.
type inspection struct {
	r      *Reconciler
	c      *api.EtcdCluster
	now    time.Time
	found  *credentials
	writes bool // else what is missing stays missing
	// refused: the API server does not let the operator read a Secret, or write one.
	refused bool
}

// clients looks at what clients and the operator need.
func (l *inspection) clients(ctx context.Context) error {
	var err, getErr error
	var secret *corev1.Secret
	switch l.c.ClientTLSMode() {
	case api.TLSManaged:
		p := clientPlane(l.c)
		l.found.client, l.found.clientRotation, err = l.managed(ctx, p)
		secret, getErr = l.operators(ctx, p)
	case api.TLSSecret:
		err = l.ownClients(ctx)
		secret, getErr = l.get(ctx, l.c.OperatorSecret())
	default:
		return nil
	}
	if getErr == nil && secret != nil {
		if config, configErr := pki.Config(secret.Data, files, l.now); configErr == nil {
			l.found.config = config
		}
	}
	return errors.Join(err, getErr)
}

// peers looks at what members need among themselves.
func (l *inspection) peers(ctx context.Context) error {
	var err error
	switch l.c.PeerTLSMode() {
	case api.TLSManaged:
		l.found.peer, l.found.peerRotation, err = l.managed(ctx, l.peerPlane())
	case api.TLSSecret:
		err = l.own(ctx, l.c.PeerSecret(), "spec.tls.peer.secretRef", pki.Use{Hosts: render.PeerHosts(l.c), Server: true, Client: true})
	case api.TLSDisabled:
	}
	return err
}

// files are those of most Secrets.
var files = pki.Names{Cert: api.SecretCert, Key: api.SecretKey, CA: api.SecretCA}

// get is a Secret as the API server has it; nil where there is none, or the spec names none.
func (l *inspection) get(ctx context.Context, name string) (*corev1.Secret, error) {
	if name == "" {
		return nil, nil
	}
	secret := &corev1.Secret{}
	err := l.r.Reader.Get(ctx, client.ObjectKey{Namespace: l.c.Namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case apierrors.IsForbidden(err):
		l.refused = true
		return nil, &certificatesError{api.ReasonCertificates, fmt.Sprintf(
			"the operator may not read Secret %s, and an installation has no right on Secrets unless it is given. To give it in this namespace, run: %s. It then goes on by itself (docs/tls.md#rights)", name, l.r.grant(l.c))}
	case err != nil:
		return nil, fmt.Errorf("get Secret %s: %w", name, err)
	}
	return secret, nil
}

// warn of what a person has to do. The first warning counts.
func (l *inspection) warn(reason, message string) {
	if l.found.warning == nil {
		l.found.warning = &certificatesError{reason, message}
	}
}

// lookBy makes the next look come no later.
func (l *inspection) lookBy(t time.Time) {
	if t.Before(l.found.again) {
		l.found.again = t
	}
}

// dial connects to a member, with the operator's own certificate where clients need one.
func (r *Reconciler) dial(c *api.EtcdCluster, member, ip string) (membership.Client, error) {
	if !c.ClientTLS() {
		return r.Dial(ip, api.PortClient)
	}
	config := r.keys.of(c).config
	if config == nil {
		return nil, fmt.Errorf("dial etcd %s: there is no client certificate", ip)
	}
	config = config.Clone()
	config.ServerName = c.MemberHost(member)
	return r.DialTLS(ip, api.PortClient, config)
}

// soonRenewed is when the Secrets are to be looked at again, where no other look is earlier.
func soonRenewed(c *api.EtcdCluster, seen observed, now time.Time) time.Duration {
	if seen.credentials == nil || !c.ClientTLS() && !c.PeerTLS() {
		return atRest
	}
	return max(seen.credentials.again.Sub(now), afterConflict)
}
