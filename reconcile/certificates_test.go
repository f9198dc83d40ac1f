package reconcile

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/pki"
	"quorate.dev/render"
)

// noon is when these clusters are made.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

// managed is newCluster with TLS on both ports.
func managed() *api.EtcdCluster {
	c := newCluster()
	c.Status.TLS = nil
	c.Spec.TLS = &api.TLS{Client: &api.ClientTLS{Mode: api.TLSManaged}, Peer: &api.PeerTLS{Mode: api.TLSManaged}}
	return c
}

// plainText is what the status says of a cluster without TLS.
func plainText() *api.TLSStatus {
	return &api.TLSStatus{Client: api.TLSPlaneStatus{Mode: api.TLSDisabled}, Peer: api.TLSPlaneStatus{Mode: api.TLSDisabled}}
}

// withTLS is a Pod that was made for a cluster with TLS on both ports.
func withTLS(pod *corev1.Pod) *corev1.Pod {
	pod.Spec.Containers = []corev1.Container{{Name: render.Container, Args: []string{"--listen-client-urls=https://0.0.0.0:2379"}}}
	for name, secret := range map[string]string{"server-tls": "db-server-tls", "peer-tls": "db-peer-tls"} {
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{
			Name: name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: secret}},
		})
	}
	return pod
}

// secrets are those that the operator makes of a cluster, by name, and notes what its members
// trust.
func secrets(t *testing.T, c *api.EtcdCluster) map[string]*corev1.Secret {
	t.Helper()
	s := newStub(t, nil)
	found, err := s.secure(t.Context(), c, noon)
	if err != nil || found.blocked != nil {
		t.Fatal(err, found)
	}
	made := map[string]*corev1.Secret{}
	for name, data := range s.secrets {
		made[name] = ownedBy("cluster", &corev1.Secret{ObjectMeta: child(name, "secret"), Data: data})
	}
	c.Status.TLS = tlsStatus(c, found)
	return made
}

// everySecret of a cluster with TLS on both ports.
var everySecret = []string{"db-client-ca", "db-client-tls", "db-operator-tls", "db-peer-ca", "db-peer-tls", "db-server-tls"}

// leaves are those that are renewed.
var leaves = []string{"db-client-tls", "db-operator-tls", "db-peer-tls", "db-server-tls"}

func TestManagedCertificates(t *testing.T) {
	t.Parallel()
	type world struct {
		c       *api.EtcdCluster
		secrets map[string]*corev1.Secret
		running bool
		at      time.Time
		server  time.Time // by the clock of the API server; zero: unknown
	}
	type want struct {
		Written []string // the Secrets
		Blocked string   // begins the message
		Warning string   // begins the message
		Dials   bool
	}
	rest := want{Dials: true}
	cases := map[string]struct {
		reason string
		change func(*world)
		want   want
	}{
		"AtRest":   {reason: "what is good is left alone", change: func(*world) {}, want: rest},
		"Fresh":    {reason: "a new cluster gets all", change: func(w *world) { clear(w.secrets); w.running = false; w.c.Status.TLS = nil }, want: want{Written: everySecret}},
		"LeafGone": {reason: "a person has deleted it", change: func(w *world) { delete(w.secrets, "db-server-tls") }, want: want{Written: []string{"db-server-tls"}, Dials: true}},
		"LeafHalf": {reason: "a person has replaced a half of it", change: func(w *world) {
			w.secrets["db-peer-tls"].Data["client.key"] = w.secrets["db-client-tls"].Data["tls.key"]
		}, want: want{Written: []string{"db-peer-tls"}, Dials: true}},
		"LeafOther": {reason: "a person has replaced it by another cluster's", change: func(w *world) { w.secrets["db-client-tls"].Data = secrets(t, managed())["db-client-tls"].Data }, want: want{Written: []string{"db-client-tls"}, Dials: true}},
		"AltNames": {
			reason: "a name was added",
			change: func(w *world) { w.c.Spec.TLS.Client.AltNames = []api.AltName{"etcd.example.com"} },
			want:   want{Written: []string{"db-server-tls"}, Dials: true},
		},
		"Renewal": {reason: "well before the end", change: func(w *world) { w.at = noon.Add(pki.LeafLifetime * 2 / 3) }, want: want{Written: leaves, Dials: true}},
		"Away":    {reason: "the operator was away for a year: its own certificate has expired too", change: func(w *world) { w.at = noon.AddDate(1, 0, 0) }, want: want{Written: leaves}},
		"AuthorityGone": {
			reason: "what runs trusts it, and nothing else can sign for it",
			change: func(w *world) { delete(w.secrets, "db-peer-ca") },
			want:   want{Warning: "Secret db-peer-ca with the certificate authority of spec.tls.peer is missing: no certificate can be renewed, and the cluster serves until 2026-08-30 12:00:00 UTC. ", Dials: true},
		},
		"AuthorityDamaged": {
			reason: "its key alone is lost",
			change: func(w *world) { delete(w.secrets["db-client-ca"].Data, "tls.key") },
			want:   want{Warning: "Secret db-client-ca with the certificate authority of spec.tls.client cannot be used: tls.key is missing or empty: no certificate", Dials: true},
		},
		"AuthorityReplaced": {
			reason: "members would refuse what another one signs",
			change: func(w *world) { w.secrets["db-client-ca"].Data = secrets(t, managed())["db-client-ca"].Data },
			want:   want{Warning: "Secret db-client-ca with the certificate authority of spec.tls.client holds an authority that the members do not trust: no certificate", Dials: true},
		},
		"AuthorityAndLeafGone": {
			reason: "no Pod would start without the leaf",
			change: func(w *world) { delete(w.secrets, "db-client-ca"); delete(w.secrets, "db-server-tls") },
			want:   want{Blocked: "Secret db-client-ca with the certificate authority of spec.tls.client is missing, and Secret db-server-tls, which it would have to issue again, cannot be used (it is missing). ", Dials: true},
		},
		"AltNamesAuthorityGone": {
			reason: "no member stays down for a name that clients use",
			change: func(w *world) {
				delete(w.secrets, "db-client-ca")
				w.c.Spec.TLS.Client.AltNames = []api.AltName{"etcd.example.com"}
			},
			want: want{Warning: "Secret db-client-ca with the certificate authority of spec.tls.client is missing: no certificate can be renewed, also the one in Secret db-server-tls, of which tls.crt is not valid for etcd.example.com: its subject alternative names lack it, and the cluster serves until ", Dials: true},
		},
		"AltNamesSuspended": {
			reason: "what is there serves all others",
			change: func(w *world) {
				w.c.Spec.Suspend = true
				w.c.Spec.TLS.Client.AltNames = []api.AltName{"etcd.example.com"}
			},
			want: want{Warning: "the certificate in Secret db-server-tls is to be reissued (tls.crt is not valid for etcd.example.com: its subject alternative names lack it), which is not done while spec.suspend is true; it expires at 2026-08-30 12:00:00 UTC", Dials: true},
		},
		"AuthorityGoneHibernated": {
			reason: "no member runs that trusts another one",
			change: func(w *world) { delete(w.secrets, "db-client-ca"); w.running = false },
			want:   want{Written: []string{"db-client-ca", "db-client-tls", "db-operator-tls", "db-server-tls"}, Dials: true},
		},
		"AuthorityReplacedHibernated": {
			reason: "the same with an authority of a person's",
			change: func(w *world) {
				w.secrets["db-client-ca"].Data = secrets(t, managed())["db-client-ca"].Data
				w.running = false
			},
			want: want{Written: []string{"db-client-tls", "db-operator-tls", "db-server-tls"}, Dials: true},
		},
		"AuthorityEnds": {
			reason: "nothing that it has issued outlives it",
			change: func(w *world) { w.at = noon.Add(pki.AuthorityLifetime - 30*24*time.Hour) },
			want:   want{Written: everySecret, Warning: "the certificate authority in Secret db-client-ca (spec.tls.client) expires at "},
		},
		"Age": {
			reason: "it is rotated long before its end",
			change: func(w *world) { w.at = noon.Add(pki.AuthorityLifetime*2/3 + time.Hour) },
			want:   want{Written: everySecret},
		},
		"RotationAsked": {
			reason: "the next authority is made beside the one that issues",
			change: func(w *world) { w.c.Spec.TLS.Peer.RotateAuthority = "a" },
			want:   want{Written: []string{"db-peer-ca"}, Dials: true},
		},
		"RotationDone": {
			reason: "it was done for the same word",
			change: func(w *world) { w.c.Spec.TLS.Peer.RotateAuthority, w.c.Status.TLS.Peer.RotateAuthority = "a", "a" },
			want:   rest,
		},
		"RotationSuspended": {
			reason: "a person works by hand",
			change: func(w *world) { w.c.Spec.TLS.Peer.RotateAuthority, w.c.Spec.Suspend = "a", true },
			want:   rest,
		},
		"AuthorityGoneRotation": {
			reason: "members go on trusting the lost one, which takes no key, until the next one has issued all",
			change: func(w *world) { delete(w.secrets, "db-peer-ca"); w.c.Spec.TLS.Peer.RotateAuthority = "a" },
			want:   want{Written: []string{"db-peer-ca"}, Warning: "Secret db-peer-ca with the certificate authority of spec.tls.peer is missing: ", Dials: true},
		},
		"AuthorityOfBefore": {
			reason: "it was put back as it was before members trusted the next one alone: these would refuse what the former one signs",
			change: func(w *world) {
				former, data := secrets(t, managed())["db-peer-ca"].Data, w.secrets["db-peer-ca"].Data
				data["next.crt"], data["next.key"] = data["tls.crt"], data["tls.key"]
				data["tls.crt"], data["tls.key"] = former["tls.crt"], former["tls.key"]
			},
			want: want{Warning: "Secret db-peer-ca with the certificate authority of spec.tls.peer holds an authority that the members do not trust: ", Dials: true},
		},
		"AuthorityGoneAgain": {
			reason: "the command asks for another word than the last one, of the same day: else it would do nothing",
			change: func(w *world) {
				delete(w.secrets, "db-peer-ca")
				w.c.Spec.TLS.Peer.RotateAuthority, w.c.Status.TLS.Peer.RotateAuthority = "2026-06-01", "2026-06-01"
			},
			want: want{Warning: "Secret db-peer-ca with the certificate authority of spec.tls.peer is missing: no certificate can be renewed, and the cluster serves until 2026-08-30 12:00:00 UTC. " +
				"Restore the Secret from a backup; or, to rotate the authority without a pause, run: kubectl patch etcdclusters.etcd.quorate.dev db --namespace=ns --type=merge " +
				`--patch='{"spec":{"tls":{"peer":{"mode":"Managed","rotateAuthority":"2026-06-01-again"}}}}'`, Dials: true},
		},
		"AuthorityUnowned": {
			reason: "the certificate of the authority is no secret: beside it there may be another authority of its writer",
			change: func(w *world) {
				secret := w.secrets["db-peer-ca"]
				secret.OwnerReferences = nil
				others := secrets(t, managed())["db-peer-ca"].Data
				secret.Data["tls.key"], secret.Data["next.crt"], secret.Data["next.key"] = nil, others["tls.crt"], others["tls.key"]
			},
			want: want{Blocked: "Secret db-peer-ca has the label of this EtcdCluster, and is neither owned by it nor known from its status", Dials: true},
		},
		"Foreign": {
			reason: "another one's Secret is not written over",
			change: func(w *world) {
				w.secrets["db-server-tls"].OwnerReferences, w.secrets["db-server-tls"].Labels = nil, nil
				w.secrets["db-server-tls"].Data = secrets(t, managed())["db-server-tls"].Data
			},
			want: want{Blocked: "Secret db-server-tls exists and belongs to another application", Dials: true},
		},
		"Suspended": {
			reason: "a person works by hand",
			change: func(w *world) { w.c.Spec.Suspend = true; delete(w.secrets, "db-server-tls") },
			want:   want{Blocked: "Secret db-server-tls is missing or cannot be used, and Quorate writes nothing while spec.suspend is true", Dials: true},
		},
		"ClockAhead": {
			reason: "by this clock the authorities have expired, and all Pods would be recreated at once",
			change: func(w *world) { w.at, w.server = noon.AddDate(11, 0, 0), noon },
			want: want{Blocked: "The clock of the operator is 96432h0m0s ahead of that of the API server, so certificates are neither checked nor issued. " +
				"Set the clock of the operator's node. Running members go on; no Pod is created or changed until this is fixed"},
		},
		"ClockBehind": {
			reason: "by this clock no certificate is valid yet",
			change: func(w *world) { w.server = w.at.Add(2 * time.Hour) },
			want:   want{Blocked: "The clock of the operator is 2h0m0s behind that of the API server"},
		},
		"ClockClose":      {reason: "no certificate depends on an hour", change: func(w *world) { w.server = w.at.Add(-time.Hour) }, want: rest},
		"SuspendedAtRest": {reason: "what is good is good", change: func(w *world) { w.c.Spec.Suspend = true }, want: rest},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := world{c: managed(), running: true, at: noon.Add(time.Hour)}
			w.secrets = secrets(t, w.c)
			tc.change(&w)
			var objects []client.Object
			for _, name := range slices.Sorted(maps.Keys(w.secrets)) {
				objects = append(objects, w.secrets[name])
			}
			if w.running {
				objects = append(objects, withTLS(newPod("db-0")))
			}
			s := newStub(t, nil, objects...)
			if !w.server.IsZero() {
				s.ServerTime = &ServerTime{}
				s.ServerTime.note(w.server.Format(http.TimeFormat), w.at)
			}
			found, err := s.secure(t.Context(), w.c, w.at)
			if err != nil {
				t.Fatal(err)
			}
			got := want{Dials: len(found.configs) > 0, Blocked: text(found.blocked)}
			if found.warning != nil {
				got.Warning = found.warning.message
			}
			for _, write := range s.sorted() {
				got.Written = append(got.Written, write.Name)
				known := w.secrets[write.Name]
				if known != nil && write.ResourceVersion != "5" || known == nil && write.ResourceVersion != "1" {
					t.Errorf("%s: Secret %s is written whatever is there: %+v", tc.reason, write.Name, write)
				}
			}
			same := cmp.Comparer(func(a, b string) bool {
				return a == b || a != "" && strings.HasPrefix(b, a) || b != "" && strings.HasPrefix(a, b)
			})
			if diff := cmp.Diff(tc.want, got, same); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
			if len(s.told()) != len(got.Written) {
				t.Errorf("%s: not each Secret has an event", tc.reason)
			}
		})
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// TestCertificatesAreRemembered: a cluster at rest is not asked for its Secrets at each look.
func TestCertificatesAreRemembered(t *testing.T) {
	t.Parallel()
	c := managed()
	objects := []client.Object{withTLS(newPod("db-0"))}
	for _, secret := range secrets(t, c) {
		objects = append(objects, secret)
	}
	s := newStub(t, nil, objects...)
	counted := &countedReader{Reader: s.Reader}
	s.Reader = counted
	for n, at := range []time.Duration{0, time.Second, unreadyLook + time.Second, unreadyLook + 2*time.Second} {
		before := counted.gets
		if _, err := s.secure(t.Context(), c, noon.Add(at)); err != nil {
			t.Fatal(err)
		}
		if looked := counted.gets > before; looked != (n%2 == 0) {
			t.Errorf("after %s the Secrets are read: %t", at, looked)
		}
	}
	c.Generation++
	before := counted.gets
	if _, err := s.secure(t.Context(), c, noon.Add(unreadyLook+3*time.Second)); err != nil || counted.gets == before {
		t.Errorf("another spec is not looked at: %v", err)
	}
}

type countedReader struct {
	client.Reader
	gets int
}

func (r *countedReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	r.gets++
	return r.Reader.Get(ctx, key, o, opts...)
}

// TestPlainTextReadsNoSecret: an operator without the rights is enough for it.
func TestPlainTextReadsNoSecret(t *testing.T) {
	t.Parallel()
	s := newStub(t, nil)
	counted := &countedReader{Reader: s.Reader}
	s.Reader = counted
	found, err := s.secure(t.Context(), newCluster(), noon)
	if err != nil || found.blocked != nil || counted.gets > 0 {
		t.Errorf("%v, %+v, %d reads", err, found, counted.gets)
	}
}

// TestNoTLSInstead: a new cluster that has no TLS any more is not held up by what was wrong with
// its certificates.
func TestNoTLSInstead(t *testing.T) {
	t.Parallel()
	c := managed()
	s := newStub(t, nil)
	s.Reader = refusedReader{s.Reader, forbidden}
	if found, err := s.secure(t.Context(), c, noon); err != nil || found.blocked == nil {
		t.Fatalf("the Secrets may not be read: %v, %+v", err, found)
	}
	c.Generation++
	if found, err := s.secure(t.Context(), asks(c, api.TLSDisabled, api.TLSDisabled), noon); err != nil || found.blocked != nil {
		t.Errorf("without TLS none are needed: %v, %+v", err, found)
	}
}

// TestCertificatesRefused: an operator without the rights says which commands give them, and no
// more than the modes need.
func TestCertificatesRefused(t *testing.T) {
	t.Parallel()
	const apply = " --dry-run=client --output=yaml | kubectl apply --server-side --force-conflicts -f -"
	own, unasked := newCluster(), managed()
	own.Spec.TLS = &api.TLS{Client: &api.ClientTLS{Mode: api.TLSDisabled}, Peer: &api.PeerTLS{Mode: api.TLSSecret, SecretRef: &api.SecretReference{Name: "peers"}}}
	own.Status.TLS = nil
	unasked.Spec.TLS = nil
	cases := map[string]struct {
		reason  string
		c       *api.EtcdCluster
		account string
		reads   bool // it may read, and not write
		want    string
	}{
		"Read": {
			reason: "the operator of an installation without these rights", c: managed(),
			want: "the operator may not read Secret db-client-ca. To give it the right in this namespace, run: " +
				"kubectl create role quorate-secrets --namespace=ns --verb=get,create,patch --resource=secrets" + apply + "; " +
				"kubectl create rolebinding quorate-secrets --namespace=ns --role=quorate-secrets --serviceaccount=quorate-system:quorate" + apply + ". It then goes on by itself (docs/tls.md#rights)",
		},
		"Unasked": {
			reason: "the spec says nothing, and TLS is only the default", c: unasked,
			want: "the operator may not read Secret db-client-ca. To give it the right in this namespace, run: " +
				"kubectl create role quorate-secrets --namespace=ns --verb=get,create,patch --resource=secrets" + apply + "; " +
				"kubectl create rolebinding quorate-secrets --namespace=ns --role=quorate-secrets --serviceaccount=quorate-system:quorate" + apply +
				". It then goes on by itself (docs/tls.md#rights). For a cluster without TLS, set spec.tls.client.mode and spec.tls.peer.mode to Disabled instead",
		},
		"Elsewhere": {
			reason: "mode Secret is only read, and the operator is in a namespace of people", c: own, account: "ops:etcd",
			want: "the operator may not read Secret peers. To give it the right in this namespace, run: " +
				"kubectl create role quorate-secrets-get --namespace=ns --verb=get --resource=secrets" + apply + "; " +
				"kubectl create rolebinding quorate-secrets-get --namespace=ns --role=quorate-secrets-get --serviceaccount=ops:etcd" + apply + ". It then goes on by itself (docs/tls.md#rights)",
		},
		"Write": {
			reason: "the rights of mode Secret are too few", c: managed(), reads: true,
			want: `the API server does not let the operator write Secret db-client-ca (secrets "x" is forbidden: <nil>): if a policy refuses it, change that policy, or what it asks for; if rights are missing, run: ` +
				"kubectl create role quorate-secrets --namespace=ns --verb=get,create,patch --resource=secrets" + apply + "; " +
				"kubectl create rolebinding quorate-secrets --namespace=ns --role=quorate-secrets --serviceaccount=quorate-system:quorate" + apply + ". It then goes on by itself (docs/tls.md#rights)",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub(t, func(w write) error {
				if w.Kind == "Secret" {
					return forbidden
				}
				return nil
			})
			s.ServiceAccount = tc.account
			if !tc.reads {
				s.Reader = refusedReader{s.Reader, forbidden}
			}
			found, err := s.secure(t.Context(), tc.c, noon)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, text(found.blocked)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if wait := found.again.Sub(noon); wait != unreadyLook {
				t.Errorf("%s: it is refused every %s, and a person is to act", tc.reason, wait)
			}
		})
	}
}

type refusedReader struct {
	client.Reader
	err error
}

func (r refusedReader) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return r.err
}

func TestOwnCertificates(t *testing.T) {
	t.Parallel()
	authority := func(t *testing.T) *pki.Authority {
		t.Helper()
		cert, key, err := pki.NewAuthority("people", noon, pki.AuthorityLifetime)
		if err != nil {
			t.Fatal(err)
		}
		a, err := pki.ReadAuthority(map[string][]byte{"tls.crt": cert, "tls.key": key}, files, noon)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	c := newCluster()
	c.Spec.TLS = &api.TLS{
		Client: &api.ClientTLS{Mode: api.TLSSecret, SecretRef: &api.SecretReference{Name: "server"}, OperatorSecretRef: &api.SecretReference{Name: "operator"}},
		Peer:   &api.PeerTLS{Mode: api.TLSSecret, SecretRef: &api.SecretReference{Name: "peers"}},
	}
	of := func(t *testing.T, a *pki.Authority, use pki.Use) map[string][]byte {
		t.Helper()
		cert, key, err := a.Issue("x", use, nil, noon, pki.LeafLifetime)
		if err != nil {
			t.Fatal(err)
		}
		return map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": a.PEM()}
	}
	ours, others := authority(t), authority(t)
	server := pki.Use{Hosts: render.RequiredServerHosts(c), Server: true, Client: true}
	peer := pki.Use{Hosts: render.PeerHosts(c), Server: true, Client: true}
	const goesOn = ". Running members go on; no Pod is created or changed until this is fixed"
	cases := map[string]struct {
		reason  string
		change  func(t *testing.T, all map[string]map[string][]byte)
		at      time.Time
		blocked string
		warning string
	}{
		"Good": {reason: "as cert-manager writes them", change: func(*testing.T, map[string]map[string][]byte) {}, at: noon},
		"NoServer": {
			reason: "it may come later", change: func(_ *testing.T, all map[string]map[string][]byte) { delete(all, "server") }, at: noon,
			blocked: "Secret server (spec.tls.client.secretRef): it does not exist: create it with tls.crt, tls.key and ca.crt" + goesOn,
		},
		"NoOperators": {
			reason: "members could not be asked", change: func(_ *testing.T, all map[string]map[string][]byte) { delete(all, "operator") }, at: noon,
			blocked: "Secret operator (spec.tls.client.operatorSecretRef): it does not exist: create it with tls.crt, tls.key and ca.crt" + goesOn,
		},
		"NoPeers": {
			reason: "no member would start", change: func(_ *testing.T, all map[string]map[string][]byte) { delete(all, "peers") }, at: noon,
			blocked: "Secret peers (spec.tls.peer.secretRef): it does not exist: create it with tls.crt, tls.key and ca.crt" + goesOn,
		},
		"PeerNames": {
			reason: "members would refuse each other",
			change: func(t *testing.T, all map[string]map[string][]byte) { t.Helper(); all["peers"] = of(t, ours, server) }, at: noon,
			blocked: "Secret peers (spec.tls.peer.secretRef): tls.crt is not valid for db.ns.svc: its subject alternative names lack it" + goesOn,
		},
		"OperatorsAuthority": {
			reason: "two issuers were mixed up",
			change: func(t *testing.T, all map[string]map[string][]byte) {
				t.Helper()
				all["operator"] = of(t, others, pki.Use{Client: true})
			}, at: noon,
			blocked: "Secret operator (spec.tls.client.operatorSecretRef): members would refuse it: its certificate was not issued by an authority in ca.crt of Secret server (tls.crt was not issued by an authority in ca.crt)" + goesOn,
		},
		"OperatorsTrust": {
			reason: "the operator would refuse the members",
			change: func(_ *testing.T, all map[string]map[string][]byte) {
				all["server"]["ca.crt"] = append(ours.PEM(), others.PEM()...)
				all["operator"] = of(t, others, pki.Use{Client: true})
			}, at: noon,
			blocked: "Secret operator (spec.tls.client.operatorSecretRef): the members would be refused: the certificate in Secret server was not issued by an authority in ca.crt of this one (tls.crt was not issued by an authority in ca.crt)" + goesOn,
		},
		"EndsSoon": {
			reason: "the issuer has not renewed it", change: func(*testing.T, map[string]map[string][]byte) {}, at: noon.Add(pki.LeafLifetime - time.Hour),
			warning: "the certificate in Secret server (spec.tls.client.secretRef) expires at 2026-08-30 12:00:00 UTC: renew it; nothing needs a restart",
		},
		"Expired": {
			reason: "and then it is over", change: func(*testing.T, map[string]map[string][]byte) {}, at: noon.Add(pki.LeafLifetime + time.Hour),
			blocked: "Secret server (spec.tls.client.secretRef): tls.crt expired at 2026-08-30 12:00:00 UTC" + goesOn,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := map[string]map[string][]byte{"server": of(t, ours, server), "operator": of(t, ours, pki.Use{Client: true}), "peers": of(t, ours, peer)}
			tc.change(t, all)
			var objects []client.Object
			for name, data := range all {
				secret := &corev1.Secret{Data: data}
				secret.Name, secret.Namespace = name, "ns"
				objects = append(objects, secret)
			}
			s := newStub(t, nil, objects...)
			found, err := s.secure(t.Context(), c, tc.at)
			if err != nil {
				t.Fatal(err)
			}
			got := ""
			if found.warning != nil {
				got = found.warning.message
			}
			if diff := cmp.Diff([]string{tc.blocked, tc.warning}, []string{text(found.blocked), got}); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
			if len(s.writes) > 0 {
				t.Errorf("%s: what others write is written: %v", tc.reason, s.writes)
			}
		})
	}
}

// TestBlocked: while certificates are wrong the Services follow the spec, and no Pod is made or
// changed, whatever the step.
func TestBarred(t *testing.T) {
	t.Parallel()
	wrong := &certificatesError{api.ReasonCertificates, "Secret db-server-tls: tls.crt expired"}
	steps := map[string]membership.Step{
		"Start":  {Action: membership.Start, Reason: membership.Starting, Members: []string{"db-1"}},
		"Stop":   {Action: membership.Stop, Reason: membership.Replacing, Members: []string{"db-1"}},
		"Update": {Action: membership.Update, Change: membership.ChangeImage, Reason: membership.Changing, Members: []string{"db-0"}, Version: membership.Version{Major: 3, Minor: 6, Patch: 17}},
		"None":   {Action: membership.None, Reason: membership.Healthy},
	}
	for name, step := range steps {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := managed(), healthy()
			c.Status.ClusterID = seen.ID().String()
			seen.credentials = &credentials{blocked: wrong}
			live := []client.Object{c}
			for _, claim := range seen.claims {
				live = append(live, claim)
			}
			s := newStub(t, nil, live...)
			err := s.act(t.Context(), c, seen, step)
			for _, write := range s.writes {
				if write.Kind != "Service" && write.Kind != "PodDisruptionBudget" {
					t.Errorf("%+v is written", write)
				}
			}
			got, ok := obstacle(err, step)
			want := membership.Step{Action: membership.Stall, Reason: membership.Reason(api.ReasonCertificates), Message: wrong.message}
			if diff := cmp.Diff(want, got); diff != "" || !ok {
				t.Errorf("-want, +got\n%s", diff)
			}
		})
	}
}

// TestBarredHibernates: a cluster whose authority is lost is stopped all the same, since it gets
// another one that way.
func TestBarredHibernates(t *testing.T) {
	t.Parallel()
	c, seen := managed(), healthy()
	c.Status.ClusterID = seen.ID().String()
	c.Spec.Replicas = new(int32(0))
	seen.credentials = &credentials{blocked: &certificatesError{api.ReasonAuthorityLost, "Secret db-client-ca is missing"}}
	live := []client.Object{c}
	for _, claim := range seen.claims {
		live = append(live, claim)
	}
	for _, pod := range seen.pods {
		live = append(live, pod)
	}
	s := newStub(t, nil, live...)
	step := membership.Step{Action: membership.Stop, Reason: membership.Hibernating, Members: []string{"db-0", "db-1", "db-2"}}
	if err := s.act(t.Context(), c, seen, step); err != nil {
		t.Fatal(err)
	}
	deleted := map[string]bool{}
	for _, write := range s.writes {
		if write.Kind == "Pod" && write.Verb == "delete" {
			deleted[write.Name] = true
		}
	}
	if diff := cmp.Diff(map[string]bool{"db-0": true, "db-1": true, "db-2": true}, deleted); diff != "" {
		t.Errorf("Pods that are deleted: -want +got:\n%s", diff)
	}
}

// TestWarned: a cluster that goes on says what a person has to do, and that it has less safety than
// it is to have.
func TestWarned(t *testing.T) {
	t.Parallel()
	warning := &certificatesError{api.ReasonAuthorityLost, "Secret db-client-ca is missing"}
	c, seen := managed(), healthy()
	seen.credentials = &credentials{warning: warning}
	step := warned(seen, membership.Step{Action: membership.None, Reason: membership.Healthy, Message: "3 healthy members"})
	s := status(c, seen, step)
	got := map[string]string{}
	for _, condition := range s.Conditions {
		got[condition.Type] = string(condition.Status) + " " + condition.Reason
	}
	want := map[string]string{
		api.ConditionReady: "False AuthorityLost", api.ConditionStalled: "True AuthorityLost", api.ConditionDegraded: "True AuthorityLost", api.ConditionAvailable: "True Serving",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want, +got\n%s", diff)
	}
	goesOn := membership.Step{Action: membership.Wait, Reason: membership.Joining, Message: "db-3 catches up"}
	if diff := cmp.Diff(goesOn, warned(seen, goesOn)); diff != "" {
		t.Errorf("work that goes on is not told: -want, +got\n%s", diff)
	}
	seen.credentials.authorityExpired = &certificatesError{api.ReasonAuthorityLost, "the authority in Secret db-client-ca expired"}
	silent := membership.Step{Action: membership.None, Reason: membership.Suspended, Message: "suspended by spec.suspend; without it: no member answers"}
	if diff := cmp.Diff(seen.credentials.authorityExpired.step(), warned(seen, silent)); diff != "" {
		t.Errorf("why no member answers is not told: -want, +got\n%s", diff)
	}
	stop := membership.Step{Action: membership.Stop, Reason: membership.Hibernating, Message: "stopping db-0"}
	if diff := cmp.Diff(stop, warned(seen, stop)); diff != "" {
		t.Errorf("what is done is not told: -want, +got\n%s", diff)
	}
}

// TestOutWithTLS: a kubelet has no certificate with which to ask whether a member serves clients,
// so that one that has yet to stays out of their Service.
func TestOutWithTLS(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change func(*observed)
		want   bool
	}{
		"Voter":      {reason: "it serves", change: func(*observed) {}},
		"Learner":    {reason: "it has no vote yet", change: func(seen *observed) { seen.Members[0].Learner = true }, want: true},
		"ToCome":     {reason: "etcd does not list it yet", change: func(seen *observed) { seen.Members, seen.Instances[0].ID = seen.Members[1:], 0 }, want: true},
		"Publishing": {reason: "it votes and does not serve yet", change: func(seen *observed) { seen.Instances[0].Endpoint = membership.Endpoint{Publishing: 0xa0} }, want: true},
		"NoList":     {reason: "what is not known takes no member out", change: func(seen *observed) { seen.Members, seen.Reach = nil, membership.ReachSome }},
		"Forming": {reason: "clients are shut out anyway", change: func(seen *observed) {
			seen.ClusterID, seen.Members = 0, nil
			for n := range seen.Instances {
				seen.Instances[n].Volume.ClusterID = 0
			}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := healthy()
			tc.change(&seen)
			if got := out(managed(), seen, seen.Instances[0], withTLS(newPod("db-0"))); got != tc.want {
				t.Errorf("%s: it is out: %t", tc.reason, got)
			}
			if out(managed(), seen, seen.Instances[0], seen.pods["db-0"]) {
				t.Errorf("%s: its Pod is out that serves without TLS, where its kubelet can tell", tc.reason)
			}
		})
	}
}
