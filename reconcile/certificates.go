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

// A pass checks certificates first: a Pod is created only after the Secrets that it mounts hold
// valid certificates, and the operator needs its own certificate to connect to members. Secrets are
// neither watched nor listed. They are read by name, and the result is used until the next look.

// Certificates configures how certificates are issued and checked. The operator uses the zero
// value; tests set other values.
type Certificates struct {
	// Lifetime of a leaf that is issued; 0: pki.LeafLifetime.
	Lifetime time.Duration
	// AuthorityLifetime is the validity of an authority; 0: pki.AuthorityLifetime. An authority is
	// rotated when a third of its validity is left.
	AuthorityLifetime time.Duration
	// Every is how often the Secrets of a ready cluster are read; 0: restingLook.
	Every time.Duration
	// Hosts are further names and addresses in the members' certificates, for tests in which DNS
	// does not resolve the names of members.
	Hosts func(*api.EtcdCluster) []string
}

// How often the Secrets of a cluster are read.
const (
	restingLook = 5 * time.Minute  // the cluster is ready
	unreadyLook = 10 * time.Second // it is not, or the operator lacks a right on Secrets
	blockedLook = time.Second      // a Secret is missing or wrong
)

// credentials are the result of one look at the Secrets of a cluster.
type credentials struct {
	// configs are the TLS configurations with which the operator connects to members, by the name
	// of its Secret: that of the spec, and those for Pods of a former mode. A Secret without a
	// valid certificate has none.
	configs map[string]*tls.Config
	// unasked are the messages about Pods of a former mode to which the operator cannot connect, by
	// the name of its Secret.
	unasked map[string]*certificatesError
	// blocked is why no Pod is created or changed; nil: nothing is in the way.
	blocked error
	// onlyClients: blocked is set for the clients' port alone.
	onlyClients bool
	// unread: blocked is set only because the operator has no right on a Secret. A kubelet can
	// mount that Secret all the same.
	unread bool
	// warning is what an administrator has to do although the cluster goes on; nil: nothing.
	warning *certificatesError
	// authorityExpired is the message about an authority that has expired; nil: none has.
	authorityExpired *certificatesError
	// client and peer are the fingerprints of the authorities; empty where an authority is lost, or
	// the mode is not Managed.
	client, peer string
	// expired has, by the part of a Pod's revision (render.PartClientTrust, PartPeerTrust), which
	// authority expired that is all that a Pod trusts whose part differs from the current one.
	expired map[string]string
	// authority issues the certificates of clients; nil where it is lost, or the mode is not
	// Managed.
	authority *pki.Authority
	// clientRotation and peerRotation are the reports of the rotations.
	clientRotation, peerRotation rotationReport

	cluster    types.UID
	generation int64
	ports      string    // of otherPorts, when it was looked
	again      time.Time // when to look again, at the latest
}

// certificatesError is a reason and a message about certificates for the status.
type certificatesError struct {
	reason  string
	message string
}

func (e *certificatesError) Error() string { return e.message }

// step is the step that is reported in place of the planned one.
func (e *certificatesError) step() membership.Step {
	return membership.Step{Action: membership.Stall, Reason: membership.Reason(e.reason), Message: e.message}
}

// keys caches the credentials of each cluster.
type keys struct{ known sync.Map } // *credentials by types.NamespacedName

func (k *keys) of(c *api.EtcdCluster) *credentials {
	known, ok := k.known.Load(client.ObjectKeyFromObject(c))
	if !ok || known.(*credentials).cluster != c.UID {
		return &credentials{}
	}
	return known.(*credentials)
}

func (k *keys) forget(key types.NamespacedName) { k.known.Delete(key) }

// secure returns the credentials of a cluster. Where they are due, it reads the Secrets again, and
// with mode Managed creates, renews and rotates certificates. Its only errors are a conflict, and
// that Pods cannot be listed.
func (r *Reconciler) secure(ctx context.Context, c *api.EtcdCluster, now time.Time) (*credentials, error) {
	known := r.keys.of(c)
	others, err := r.otherPorts(ctx, c)
	switch {
	case err != nil:
		return nil, err
	case !c.ClientTLS() && !c.PeerTLS() && len(others) == 0:
		r.keys.forget(client.ObjectKeyFromObject(c)) // it may have had TLS until its spec was changed
		return &credentials{}, nil
	case known.generation == c.Generation && known.ports == others.String() && now.Before(known.again):
		return known, nil
	}
	found := &credentials{
		cluster: c.UID, generation: c.Generation, ports: others.String(), again: now.Add(r.nextLook(c)),
		configs: map[string]*tls.Config{}, unasked: map[string]*certificatesError{}, expired: map[string]string{},
	}
	l := &inspection{r: r, c: c, now: now, found: found, writes: !c.Spec.Suspend && c.DeletionTimestamp.IsZero()}
	err = l.clock()
	if err == nil {
		clients, peers := l.clients(ctx), l.peers(ctx)
		found.onlyClients = peers == nil
		err = errors.Join(clients, peers)
		if conflict := l.keepOthers(ctx, others); conflict != nil {
			return nil, conflict
		}
	}
	var wrong *certificatesError
	var foreign *foreignError
	var terminating *terminatingError
	switch {
	case errors.As(err, &wrong):
		found.blocked = wrong
	case errors.As(err, &foreign):
		found.blocked = foreign
	case errors.As(err, &terminating):
		found.blocked = terminating
	case apierrors.IsConflict(err):
		return nil, err
	case err != nil: // the pass goes on, and fails in the end
		found.blocked = err
	}
	switch {
	case found.blocked == nil:
	case l.refused: // only an administrator can give the right, and each look is in the audit log
		found.unread = true
		l.lookBy(now.Add(unreadyLook))
	default:
		found.again = now.Add(blockedLook)
	}
	for operator, config := range known.configs {
		_, other := others[operator]
		switch now := found.configs[operator]; {
		case now == nil && (other || operator == c.OperatorSecret()): // the earlier certificate may still be valid
			found.configs[operator] = config
			delete(found.unasked, operator)
		case now != nil && pki.Same(now, config): // connections are kept as long as it is the same
			found.configs[operator] = config
		}
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
	writes bool // false: no Secret is written (spec.suspend, or the EtcdCluster is being deleted)
	// refused: the API server does not let the operator read a Secret, or write one.
	refused bool
}

// clients checks the Secrets of the clients' port, and reads the operator's certificate.
func (l *inspection) clients(ctx context.Context) error {
	var err, getErr error
	var secret *corev1.Secret
	switch l.c.ClientTLSMode() {
	case api.TLSManaged:
		p := l.clientPlane()
		l.found.client, l.found.clientRotation, err = l.managed(ctx, p)
		secret, getErr = l.operators(ctx, p)
	case api.TLSSecret:
		err = l.ownClients(ctx)
		secret, getErr = l.get(ctx, l.c.OperatorSecret())
	default:
		return nil
	}
	if getErr == nil && secret != nil {
		if config, configErr := pki.Config(secret.Data, files, l.now); configErr == nil && l.otherUser(config) == nil {
			l.found.configs[l.c.OperatorSecret()] = config
		}
	}
	return errors.Join(err, getErr)
}

// peers checks the Secrets of the peers' port.
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

// files are the keys of a certificate in most Secrets.
var files = pki.Names{Cert: api.SecretCert, Key: api.SecretKey, CA: api.SecretCA}

// get reads a Secret from the API server; nil: there is none, or the spec names none.
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
			"the operator may not read Secret %s. To give it the right in this namespace, run: %s. It then goes on by itself (docs/tls.md#rights)%s", name, l.r.Grant(l.c), orWithoutTLS(l.c))}
	case err != nil:
		return nil, fmt.Errorf("get Secret %s: %w", name, err)
	}
	return secret, nil
}

// warn sets the warning, if there is none yet.
func (l *inspection) warn(reason, message string) {
	if l.found.warning == nil {
		l.found.warning = &certificatesError{reason, message}
	}
}

// lookBy has the next look no later than t.
func (l *inspection) lookBy(t time.Time) {
	if t.Before(l.found.again) {
		l.found.again = t
	}
}

// untilCertificatesLook is how long it takes until the Secrets are to be read again.
func untilCertificatesLook(seen observed, now time.Time) time.Duration {
	if seen.credentials == nil || seen.credentials.again.IsZero() {
		return atRest
	}
	return max(seen.credentials.again.Sub(now), afterConflict)
}
