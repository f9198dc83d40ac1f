package reconcile

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/pki"
)

// midway is a cluster whose authority of members is in step Reissue: young issues, and former was
// before it. The certificates are still those of former.
type midway struct {
	c             *api.EtcdCluster
	secrets       map[string]*corev1.Secret
	former, young *pki.Authority
	at            time.Time
}

func newMidway(t *testing.T) *midway {
	t.Helper()
	m := &midway{c: managed(), at: noon.Add(time.Hour)}
	m.secrets = secrets(t, m.c)
	data := m.secrets["db-peer-ca"].Data
	m.former = authorityIn(t, data)
	cert, key, err := pki.NewAuthority("young", noon, pki.AuthorityLifetime)
	if err != nil {
		t.Fatal(err)
	}
	data["previous.crt"], data["tls.crt"], data["tls.key"] = data["tls.crt"], cert, key
	data["next.crt"], data["next.key"], data["rotation"] = nil, nil, []byte("a")
	m.young = authorityIn(t, data)
	m.secrets["db-peer-tls"].Data["ca.crt"] = m.young.Beside(m.former.Certificate()).PEM()
	plane := &m.c.Status.TLS.Peer
	plane.Authority, plane.Trusts, plane.RotateAuthority = m.young.Fingerprint(), m.trusted(), "a"
	m.c.Spec.TLS.Peer.RotateAuthority = "a"
	return m
}

func authorityIn(t *testing.T, data map[string][]byte) *pki.Authority {
	t.Helper()
	a, err := pki.ReadAuthority(data, files, noon)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// trusted are both authorities, as the status has them.
func (m *midway) trusted() []string {
	return slices.Sorted(slices.Values([]string{m.former.Fingerprint(), m.young.Fingerprint()}))
}

// look at the Secrets, of which what is written is there afterwards.
func (m *midway) look(t *testing.T) *credentials {
	t.Helper()
	objects := []client.Object{withTLS(newPod("db-0"))}
	for _, name := range slices.Sorted(maps.Keys(m.secrets)) {
		objects = append(objects, m.secrets[name])
	}
	s := newStub(t, nil, objects...)
	found, err := s.secure(t.Context(), m.c, m.at)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range s.secrets {
		m.secrets[name] = ownedBy("cluster", &corev1.Secret{ObjectMeta: child(name, "secret"), Data: data})
	}
	m.c.Status.TLS = tlsStatus(m.c, found)
	return found
}

// TestLostMidway: where the authority that issues is lost, and so is rotated, members go on
// trusting the one before it as well: some may still show a certificate of that.
func TestLostMidway(t *testing.T) {
	t.Parallel()
	reissue := func(t *testing.T, m *midway) {
		t.Helper()
		data := m.secrets["db-peer-tls"].Data
		data["ca.crt"] = m.young.PEM() // so that all is issued again
		m.look(t)
	}
	cases := map[string]struct {
		reason string
		change func(*testing.T, *midway)
		at     time.Time
	}{
		"KeyGone": {reason: "the Secret has the certificate still", change: func(_ *testing.T, m *midway) { m.secrets["db-peer-ca"].Data["tls.key"] = nil }},
		"KeyGoneReissued": {reason: "the same when the certificates are there, and kubelets have not written them", change: func(t *testing.T, m *midway) {
			t.Helper()
			reissue(t, m)
			m.secrets["db-peer-ca"].Data["tls.key"] = nil
		}},
		"SecretGone": {reason: "the Secrets with what was issued tell what is trusted", change: func(_ *testing.T, m *midway) { delete(m.secrets, "db-peer-ca") }},
		"Replaced": {reason: "by an authority that no member trusts", change: func(t *testing.T, m *midway) {
			t.Helper()
			m.secrets["db-peer-ca"].Data = secrets(t, managed())["db-peer-ca"].Data
		}},
		"PutBackOfBefore": {reason: "as it was before the rotation: what it would make distrusted issues by now", change: func(t *testing.T, m *midway) {
			t.Helper()
			reissue(t, m)
			data := m.secrets["db-peer-ca"].Data
			delete(data, "next.crt")
			data["tls.crt"], data["tls.key"], data["previous.crt"] = m.former.PEM(), nil, nil
		}},
		"RenewalDue": {reason: "and no certificate can be renewed", at: noon.Add(pki.LeafLifetime - 24*time.Hour), change: func(_ *testing.T, m *midway) { delete(m.secrets, "db-peer-ca") }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMidway(t)
			if !tc.at.IsZero() {
				m.at = tc.at
			}
			tc.change(t, m)
			cert := string(m.secrets["db-peer-tls"].Data["tls.crt"])
			m.c.Spec.TLS.Peer.RotateAuthority = "lost"
			for range 3 {
				m.look(t)
			}
			next := pki.Fingerprint(m.secrets["db-peer-ca"].Data["next.crt"])
			want := slices.Sorted(slices.Values(append(m.trusted(), next)))
			if diff := cmp.Diff(want, pki.Fingerprints(m.secrets["db-peer-tls"].Data["ca.crt"])); next == "" || diff != "" {
				t.Errorf("%s: what members are to trust, with the next authority %q (-want +got):\n%s", tc.reason, next, diff)
			}
			if diff := cmp.Diff(want, m.c.Status.TLS.Peer.Trusts); diff != "" {
				t.Errorf("%s: status.tls.peer.trusts (-want +got):\n%s", tc.reason, diff)
			}
			if string(m.secrets["db-peer-tls"].Data["tls.crt"]) != cert {
				t.Errorf("%s: a certificate was issued by an authority that members have yet to trust", tc.reason)
			}
		})
	}
}

// TestPutBackBare: a Secret that is put back with its certificate and key alone, as after a
// rotation or in the last step of one, takes nothing from what the status says of trust.
func TestPutBackBare(t *testing.T) {
	t.Parallel()
	m := newMidway(t)
	m.secrets["db-peer-ca"].Data["previous.crt"] = nil // step TrustNew
	m.look(t)
	for _, key := range []string{"next.crt", "next.key", "previous.crt", "rotation", "since"} {
		delete(m.secrets["db-peer-ca"].Data, key)
	}
	for range 2 {
		m.look(t)
		if diff := cmp.Diff([]string{m.young.Fingerprint()}, m.c.Status.TLS.Peer.Trusts); diff != "" {
			t.Errorf("status.tls.peer.trusts (-want +got):\n%s", diff)
		}
	}
}

// TestPutBackMidway: a Secret that is put back as it was in step Reissue, after that rotation was
// over, brings no trust in the former authority back. Members trust the one that issues: no Pod is
// recreated, and not all of them at once where the former one has expired since.
func TestPutBackMidway(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		step   *api.RotationStatus
		at     time.Time
	}{
		"Valid":    {reason: "it may have been stolen", at: noon.Add(time.Hour)},
		"Expired":  {reason: "it may have been rotated long ago", at: noon.AddDate(2, 0, 0)},
		"TrustNew": {reason: "the last Pod is being recreated", step: &api.RotationStatus{Step: api.RotationTrustNew}, at: noon.AddDate(2, 0, 0)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMidway(t)
			former, _, err := pki.NewAuthority("former", noon, 365*24*time.Hour)
			if err != nil {
				t.Fatal(err)
			}
			m.secrets["db-peer-ca"].Data["previous.crt"] = former
			m.secrets["db-peer-tls"].Data["ca.crt"] = m.young.PEM()
			plane := &m.c.Status.TLS.Peer
			plane.Trusts, plane.Rotation, m.at = []string{m.young.Fingerprint()}, tc.step, tc.at
			for range 3 {
				found := m.look(t)
				if why := found.expired["tls.peer"]; why != "" {
					t.Errorf("%s: all Pods are recreated at once: %s", tc.reason, why)
				}
				if diff := cmp.Diff([]string{m.young.Fingerprint()}, m.c.Status.TLS.Peer.Trusts); diff != "" {
					t.Errorf("%s: status.tls.peer.trusts (-want +got):\n%s", tc.reason, diff)
				}
			}
			if diff := cmp.Diff([]string{m.young.Fingerprint()}, pki.Fingerprints(m.secrets["db-peer-tls"].Data["ca.crt"])); diff != "" {
				t.Errorf("%s: ca.crt (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestDamagedPrevious: what issues is sound, so that nothing is lost and nothing begins. What
// members must trust is known from the Secrets with certificates.
func TestDamagedPrevious(t *testing.T) {
	t.Parallel()
	m := newMidway(t)
	m.look(t)
	issuing := string(m.secrets["db-peer-ca"].Data["tls.crt"])
	m.secrets["db-peer-ca"].Data["previous.crt"] = []byte("-----BEGIN CERTIFICATE-----\nMIIB")
	m.c.Spec.TLS.Peer.RotateAuthority = "b" // as the message for a lost authority would have it
	found := m.look(t)
	const want = "Secret db-peer-ca (spec.tls.peer): previous.crt is cut off or damaged: 0 of its 1 PEM blocks can be read. Its certificates were read from ca.crt of the other Secrets, and the rotation goes on. " +
		`To write previous.crt again, run: kubectl patch secret db-peer-ca --namespace=ns --type=merge --patch="{\"data\":{\"previous.crt\":\"$(kubectl get secret db-peer-tls --namespace=ns --output=jsonpath='{.data.ca\.crt}')\"}}"`
	got := text(found.blocked)
	if found.warning != nil {
		got = found.warning.message
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if data := m.secrets["db-peer-ca"].Data; string(data["tls.crt"]) != issuing || len(data["next.crt"]) > 0 {
		t.Error("another rotation has begun")
	}
	if diff := cmp.Diff(m.trusted(), m.c.Status.TLS.Peer.Trusts); diff != "" {
		t.Errorf("status.tls.peer.trusts (-want +got):\n%s", diff)
	}
	m.secrets["db-peer-ca"].Data["previous.crt"] = m.secrets["db-peer-tls"].Data["ca.crt"] // as the command writes it
	if found = m.look(t); found.warning != nil || found.blocked != nil {
		t.Errorf("what the message says does not help: %v, %v", found.warning, found.blocked)
	}
	if diff := cmp.Diff(m.trusted(), pki.Fingerprints(m.secrets["db-peer-tls"].Data["ca.crt"])); diff != "" {
		t.Errorf("ca.crt (-want +got):\n%s", diff)
	}
}

// TestExpiredAuthority: where an authority has expired while no operator ran, another one issues
// after three looks, without a word of a person, and what has expired is told by name.
func TestExpiredAuthority(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		change  func(*midway)
		begins  string // the first warning
		renewed bool
	}{
		"AtRest": {
			reason: "no rotation had begun", renewed: true,
			change: func(m *midway) {
				data := m.secrets["db-peer-ca"].Data
				data["tls.crt"], data["tls.key"], data["previous.crt"] = m.former.PEM(), []byte("lost as well"), nil
				m.c.Status.TLS.Peer.Authority = m.former.Fingerprint()
			},
			begins: "the certificate authority in Secret db-client-ca (spec.tls.client) expired at 2036-05-29 12:00:00 UTC, and so have all certificates that it issued: a new authority replaces it now, and the Pods that trust only the expired one are recreated at once (docs/tls.md#when-an-authority-has-expired)",
		},
		"Midway": {
			reason: "one had, and what came next has expired as well", renewed: true, change: func(*midway) {},
			begins: "the certificate authority in Secret db-client-ca (spec.tls.client) expired at 2036-05-29 12:00:00 UTC, and so have all certificates that it issued: ",
		},
		"Gone": {
			reason: "the Secrets of both authorities are gone as well", renewed: true,
			change: func(m *midway) {
				m.c.Status.TLS.Peer.Authority = m.former.Fingerprint()
				delete(m.secrets, "db-peer-ca")
				delete(m.secrets, "db-client-ca")
			},
			begins: "the certificate authority in Secret db-client-ca (spec.tls.client) expired at 2036-05-29 12:00:00 UTC, and so have all certificates that it issued, and the Secret is missing: a new authority replaces it now, and the Pods that trust only the expired one are recreated at once (docs/tls.md#when-an-authority-has-expired)",
		},
		"GoneSuspended": {
			reason: "a person works by hand",
			change: func(m *midway) { m.c.Spec.Suspend = true; delete(m.secrets, "db-client-ca") },
			begins: "the certificate authority in Secret db-client-ca (spec.tls.client) expired at 2036-05-29 12:00:00 UTC, and so have all certificates that it issued, and the Secret is missing: a new authority replaces it when spec.suspend is false",
		},
		"Suspended": {
			reason: "a person works by hand",
			change: func(m *midway) { m.c.Spec.Suspend = true },
			begins: "the certificate authority in Secret db-client-ca (spec.tls.client) expired at 2036-05-29 12:00:00 UTC, and so have all certificates that it issued: a new authority replaces it when spec.suspend is false",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMidway(t)
			m.at = noon.Add(pki.AuthorityLifetime + time.Hour)
			tc.change(m)
			found := m.look(t)
			for what, told := range map[string]*certificatesError{"warned of": found.warning, "told before all": found.authorityExpired} {
				if told == nil || told.reason != api.ReasonAuthorityLost || !strings.HasPrefix(told.message, "the certificate authority in Secret db-") {
					t.Errorf("%s: %s: %+v (blocked by %v)", tc.reason, what, told, found.blocked)
				}
			}
			if found.warning != nil && !strings.HasPrefix(found.warning.message, tc.begins) {
				t.Errorf("%s: warning %+v, want a beginning of %q", tc.reason, found.warning, tc.begins)
			}
			for range 3 {
				found = m.look(t)
			}
			renewed := found.blocked == nil && found.authorityExpired == nil && len(found.expired) == 2
			for _, name := range leaves {
				use := pki.Use{}
				if _, err := pki.Check(m.secrets[name].Data, files, use, m.at); err != nil {
					renewed = false
				}
			}
			if renewed != tc.renewed {
				t.Errorf("%s: renewed: %t, want %t (blocked by %v, Pods to recreate for %v)", tc.reason, renewed, tc.renewed, found.blocked, found.expired)
			}
			if why := found.expired["tls.peer"]; renewed && !strings.HasPrefix(why, "the certificate authority before the one in Secret db-peer-ca (spec.tls.peer) expired at 2036-05-29 12:00:00 UTC") {
				t.Errorf("%s: Pods are recreated since %q", tc.reason, why)
			}
		})
	}
}

// TestExpiredAuthorityRefused: where another authority cannot be written, that is told beside what
// has expired.
func TestExpiredAuthorityRefused(t *testing.T) {
	t.Parallel()
	c := managed()
	objects := []client.Object{withTLS(newPod("db-0"))}
	for _, secret := range secrets(t, c) {
		objects = append(objects, secret)
	}
	s := newStub(t, func(w write) error {
		if w.Kind == "Secret" {
			return dead
		}
		return nil
	}, objects...)
	found, err := s.secure(t.Context(), c, noon.Add(pki.AuthorityLifetime+time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	got := text(found.blocked)
	if !strings.HasPrefix(got, "the certificate authority in Secret db-client-ca (spec.tls.client) expired at 2036-05-29 12:00:00 UTC") || !strings.Contains(got, "That does not succeed: ") || found.authorityExpired != nil {
		t.Errorf("blocked by %q, told before all %v", got, found.authorityExpired)
	}
}
