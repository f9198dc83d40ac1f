package reconcile

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/pki"
)

// TestSecretsOfAnEarlierCluster: the garbage collector is about to delete them. A cluster that
// began with them would be without its authority a moment later.
func TestSecretsOfAnEarlierCluster(t *testing.T) {
	t.Parallel()
	c := managed()
	var objects []client.Object
	for _, secret := range secrets(t, managed()) {
		objects = append(objects, ownedBy("earlier", secret))
	}
	s := newStub(t, nil, objects...)
	found, err := s.secure(t.Context(), c, noon)
	if err != nil {
		t.Fatal(err)
	}
	var terminating *terminatingError
	if !errors.As(found.blocked, &terminating) || len(s.writes) > 0 || found.client != "" {
		t.Errorf("it begins with what is going: blocked by %v, %d writes, authority %q", found.blocked, len(s.writes), found.client)
	}
}

// unhappy is an error of the API server that no other try gets past.
var (
	dead      = apierrors.NewInternalError(errors.New("failed calling webhook"))
	immutable = apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "db-server-tls", nil)
	forbidden = apierrors.NewForbidden(corev1.Resource("secrets"), "x", nil)
)

// lock makes Secrets immutable.
func lock(names ...string) func(map[string]*corev1.Secret) {
	return func(all map[string]*corev1.Secret) {
		for _, name := range names {
			if secret := all[name]; secret != nil {
				secret.Immutable = new(true)
			}
		}
	}
}

// TestSecretsThatCannotBeWritten: a certificate that is good for weeks bars nothing because it
// cannot be renewed; one that is missing does. No pass is given up for it.
func TestSecretsThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	renewal := noon.Add(pki.LeafLifetime * 2 / 3)
	cases := map[string]struct {
		reason  string
		refuses error
		suspend bool
		change  func(map[string]*corev1.Secret)
		at      time.Time
		blocked string // is part of it
		warning string // the same
	}{
		"WebhookAtRenewal":   {reason: "a policy engine is down", refuses: dead, at: renewal, warning: "failed calling webhook"},
		"ImmutableAtRenewal": {reason: "a person has made it immutable", refuses: immutable, at: renewal, change: lock("db-server-tls"), warning: "delete it, and it is created again"},
		"InvalidAtRenewal":   {reason: "a policy may answer like this, and to delete the Secret would not help", refuses: immutable, at: renewal, warning: "if a policy refuses it, change that policy"},
		"ForbiddenAtRenewal": {reason: "the rights were taken away", refuses: forbidden, at: renewal, warning: "quorate-secrets"},
		"PutBackBare": {
			reason: "the policy of an installation lets the operator write what has the label of a cluster", refuses: forbidden, at: noon,
			change: func(all map[string]*corev1.Secret) {
				all["db-client-ca"].OwnerReferences, all["db-client-ca"].Labels = nil, nil
			},
			warning: "run: kubectl label secret db-client-ca --namespace=ns etcd.quorate.dev/cluster=db",
		},
		"ImmutablePutBack": {
			reason: "an authority that is deleted is lost", refuses: immutable, at: noon,
			change: func(all map[string]*corev1.Secret) {
				lock("db-client-ca")(all)
				all["db-client-ca"].OwnerReferences = nil
			},
			warning: "create it again with the same data, and not immutable",
		},
		"SuspendedAtRenewal": {reason: "nothing is written, and it is not missing", suspend: true, at: renewal, warning: "which is not done while spec.suspend is true; it expires at 2026-08-30 12:00:00 UTC"},
		"WebhookMissing":     {reason: "no Pod would start", refuses: dead, at: noon, change: func(all map[string]*corev1.Secret) { delete(all, "db-server-tls") }, blocked: "failed calling webhook"},
		"ImmutableExpired":   {reason: "it is of no use any more", refuses: immutable, at: noon.Add(pki.LeafLifetime + time.Hour), change: lock("db-server-tls", "db-client-tls", "db-peer-tls"), blocked: "delete it"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := managed()
			all := secrets(t, c)
			c.Spec.Suspend = tc.suspend
			if tc.change != nil {
				tc.change(all)
			}
			objects := []client.Object{withTLS(newPod("db-0"))}
			for _, secret := range all {
				objects = append(objects, secret)
			}
			s := newStub(t, func(w write) error {
				if w.Kind == "Secret" {
					return tc.refuses
				}
				return nil
			}, objects...)
			found, err := s.secure(t.Context(), c, tc.at)
			if err != nil {
				t.Fatalf("%s: the pass is given up: %v", tc.reason, err)
			}
			got := ""
			if found.warning != nil {
				got = found.warning.message
			}
			if blocked := text(found.blocked); (blocked == "") != (tc.blocked == "") || !strings.Contains(blocked, tc.blocked) {
				t.Errorf("%s: blocked by %q, want %q", tc.reason, blocked, tc.blocked)
			}
			if (got == "") != (tc.warning == "") || !strings.Contains(got, tc.warning) {
				t.Errorf("%s: warning %q, want %q", tc.reason, got, tc.warning)
			}
		})
	}
}

// TestSecretsThatCannotBeRead: the cluster is looked at all the same, with the certificate that is
// known, and told of it.
func TestSecretsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	c := managed()
	objects := []client.Object{withTLS(newPod("db-0"))}
	for _, secret := range secrets(t, c) {
		objects = append(objects, secret)
	}
	s := newStub(t, nil, objects...)
	if _, err := s.secure(t.Context(), c, noon); err != nil {
		t.Fatal(err)
	}
	s.Reader = refusedReader{s.Reader, apierrors.NewInternalError(errors.New("failed to decrypt"))}
	found, err := s.secure(t.Context(), c, noon.Add(restingLook))
	if err != nil || !strings.Contains(text(found.blocked), "failed to decrypt") || len(found.configs) == 0 {
		t.Errorf("%v, %+v", err, found)
	}
}

// TestAuthorityThatIssuesNothing: a person's authority whose certificates everybody refuses does
// not issue again and again.
func TestAuthorityThatIssuesNothing(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change func(*x509.Certificate)
	}{
		"OtherNames": {reason: "name constraints", change: func(c *x509.Certificate) {
			c.PermittedDNSDomainsCritical, c.PermittedDNSDomains = true, []string{"example.com"}
		}},
		"NoCertSign": {reason: "the usage of its key", change: func(c *x509.Certificate) { c.KeyUsage = x509.KeyUsageDigitalSignature }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := managed()
			all := secrets(t, c)
			all["db-client-ca"].Data = people(t, tc.change)
			var objects []client.Object
			for _, secret := range all {
				objects = append(objects, secret)
			}
			s := newStub(t, nil, objects...)
			found, err := s.secure(t.Context(), c, noon)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.writes) > 0 || !strings.Contains(text(found.blocked), "what the authority in Secret db-client-ca issues would be refused") {
				t.Errorf("%s: %d writes, blocked by %v", tc.reason, len(s.writes), found.blocked)
			}
		})
	}
}

// people is the Secret of an authority that a person has made.
func people(t *testing.T, change func(*x509.Certificate)) map[string][]byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "people"}, NotBefore: noon.Add(-time.Hour), NotAfter: noon.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	change(template)
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}),
	}
}

// TestAuthorityIsWrittenDownFirst: an operator that ends after it has made Pods, and before it has
// written the status, leaves no cluster whose good authority the next one takes for another's.
func TestAuthorityIsWrittenDownFirst(t *testing.T) {
	t.Parallel()
	c := managed()
	all := secrets(t, c)
	c.Status.TLS.Peer.Authority = strings.Repeat("0", 64) // of before it was hibernated
	objects := []client.Object{c}
	for _, secret := range all {
		objects = append(objects, secret)
	}
	s := newStub(t, nil, objects...)
	if _, err := s.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(c)}); err != nil {
		t.Fatal(err)
	}
	for _, write := range s.writes {
		if write.Kind != "Secret" && write.Kind != "status" {
			t.Errorf("%+v is written before the status", write)
		}
	}
	if len(s.status) != 1 || s.status[0].TLS.Peer.Authority == c.Status.TLS.Peer.Authority {
		t.Errorf("the status: -was, +is\n%s", cmp.Diff(c.Status, s.status))
	}
}

// TestSecretNamesWithoutSpec: a status says Secret, and the spec no longer does.
func TestSecretNamesWithoutSpec(t *testing.T) {
	t.Parallel()
	c := newCluster()
	c.Spec.TLS = nil
	c.Status.TLS = &api.TLSStatus{Client: api.TLSPlaneStatus{Mode: api.TLSSecret}, Peer: api.TLSPlaneStatus{Mode: api.TLSSecret}}
	if found, err := newStub(t, nil).secure(t.Context(), c, noon); err != nil || found.blocked == nil {
		t.Errorf("%v, %+v", err, found)
	}
}

// TestAuthorityIsNeverWrittenOver: what cannot be used now may be again: a clock that is wrong, or
// a person who has written a half.
func TestAuthorityIsNeverWrittenOver(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change func(map[string]*corev1.Secret)
		at     time.Time
		want   string
	}{
		"ClockOfAnotherYear": {reason: "the node has just started", change: func(map[string]*corev1.Secret) {}, at: noon.AddDate(-10, 0, 0), want: "cannot be used: tls.crt is not valid before"},
		"Half":               {reason: "a person is at work", change: func(all map[string]*corev1.Secret) { delete(all["db-client-ca"].Data, "tls.key") }, at: noon, want: "cannot be used: tls.key is missing or empty"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := managed()
			all := secrets(t, c)
			tc.change(all)
			var objects []client.Object
			for _, secret := range all {
				objects = append(objects, secret)
			}
			s := newStub(t, nil, objects...) // hibernated
			found, err := s.secure(t.Context(), c, tc.at)
			if err != nil {
				t.Fatal(err)
			}
			if len(s.writes) > 0 || !strings.Contains(text(found.blocked), tc.want) {
				t.Errorf("%s: %v are written, blocked by %v", tc.reason, s.writes, found.blocked)
			}
		})
	}
}
