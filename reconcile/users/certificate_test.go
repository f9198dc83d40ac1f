package users

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/pki"
)

// authority is a certificate authority, valid for ten years from now.
func authority(t *testing.T, name string) *pki.Authority {
	t.Helper()
	cert, key, err := pki.NewAuthority(name, time.Now(), pki.AuthorityLifetime)
	if err != nil {
		t.Fatal(err)
	}
	a, err := pki.ReadAuthority(map[string][]byte{api.SecretCert: cert, api.SecretKey: key}, files, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestCertificate: a user has a certificate of the authority that issues now, in a Secret of its
// own, and what blocks that is said.
func TestCertificate(t *testing.T) {
	t.Parallel()
	one, two := authority(t, "one"), authority(t, "two")
	foreign := holds(t, one, "app", 0)
	foreign.OwnerReferences = nil
	applied := &api.Applied{Generation: 2, ClusterID: "c0"}
	forbidden := func(name string) error {
		return apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, name, nil)
	}
	type facts struct {
		Reason  string // of Ready
		Stalled bool
		Says    bool // the message has the words
		Holds   string
		Issuer  *pki.Authority
		Trusts  []string
		SameKey bool
		Status  bool // the status says the same
	}
	day := 24 * time.Hour
	cases := map[string]struct {
		reason    string
		secret    *corev1.Secret
		authority *pki.Authority
		applied   *api.Applied
		has       *api.IssuedCertificate
		cluster   func(*api.EtcdCluster)
		refuses   string // a verb about Secrets that the API server forbids
		fails     bool   // etcd refuses what the spec asks for beside
		words     string
		want      facts
	}{
		"Issued": {
			reason: "there was none", authority: one,
			want: facts{Reason: api.ReasonApplied, Holds: "app", Issuer: one, Trusts: []string{one.Fingerprint()}, Status: true},
		},
		"Good": {
			reason: "it is as it must be", authority: one, applied: applied, secret: holds(t, one, "app", day),
			want: facts{Reason: api.ReasonApplied, Holds: "app", Issuer: one, Trusts: []string{one.Fingerprint()}, SameKey: true, Status: true},
		},
		"Renewed": {
			reason: "a third of its lifetime is left; clients that read key and certificate apart never see two that do not belong together",
			secret: holds(t, one, "app", 61*day), authority: one, applied: applied,
			want: facts{Reason: api.ReasonApplied, Holds: "app", Issuer: one, Trusts: []string{one.Fingerprint()}, SameKey: true, Status: true},
		},
		"TrustBoth": {
			reason: "the first step of a rotation", secret: holds(t, one, "app", day), authority: one.Beside(two.Certificate()), applied: applied,
			want: facts{Reason: api.ReasonApplied, Holds: "app", Issuer: one, Trusts: pki.Fingerprints(one.Beside(two.Certificate()).PEM()), SameKey: true, Status: true},
		},
		"Reissue": {
			reason: "the second", secret: holds(t, one, "app", day), authority: two.Beside(one.Certificate()), applied: applied,
			want: facts{Reason: api.ReasonApplied, Holds: "app", Issuer: two, Trusts: pki.Fingerprints(one.Beside(two.Certificate()).PEM()), SameKey: true, Status: true},
		},
		"OtherName": {
			reason: "somebody has put the certificate of another user there", secret: holds(t, one, "bob", day), authority: one, applied: applied, // and knows its key
			want: facts{Reason: api.ReasonApplied, Holds: "app", Issuer: one, Trusts: []string{one.Fingerprint()}, Status: true},
		},
		"Foreign": {
			reason: "its author knows the key", secret: foreign, authority: one, words: "kubectl delete secret app-etcd --namespace=ns",
			want: facts{Reason: api.ReasonCertificateBlocked, Stalled: true, Says: true, Holds: "app", Issuer: one, Trusts: []string{one.Fingerprint()}, SameKey: true},
		},
		"Unread": {
			reason: "a right is missing", authority: one, refuses: "get", words: "may not read Secret app-etcd",
			want: facts{Reason: api.ReasonCertificateBlocked, Stalled: true, Says: true},
		},
		"Unwritten": {
			reason: "a right is missing, or a policy is in the way", authority: one, refuses: "apply", words: "does not let the operator write Secret app-etcd",
			want: facts{Reason: api.ReasonCertificateBlocked, Stalled: true, Says: true},
		},
		"NoAuthority": {
			reason: "the operator has just started, or it is lost", words: "waiting for the certificate authority of EtcdCluster db",
			want: facts{Reason: api.ReasonWaiting, Says: true},
		},
		"NoAuthorityYet": {
			reason: "its certificate is good all the same", applied: applied, secret: holds(t, one, "app", day),
			has:  &api.IssuedCertificate{Authority: one.Fingerprint(), Trusts: []string{one.Fingerprint()}, Expires: metav1.NewTime(time.Now().Add(80 * day).Truncate(time.Second))},
			want: facts{Reason: api.ReasonApplied, Holds: "app", Issuer: one, Trusts: []string{one.Fingerprint()}, SameKey: true, Status: true},
		},
		"LostKey": {
			reason: "nothing can be issued, and there is none", authority: pki.Keyless(one.Certificate()), words: "The conditions of EtcdCluster db say what to do",
			want: facts{Reason: api.ReasonWaiting, Says: true},
		},
		"OwnAuthority": {
			reason: "Quorate has no authority", cluster: func(c *api.EtcdCluster) { c.Status.TLS.Client.Mode = api.TLSSecret }, authority: one, words: "have your own authority issue a client certificate with the common name app",
			want: facts{Reason: api.ReasonInvalidSpec, Stalled: true, Says: true},
		},
		"Suspended": {
			reason: "nothing is written then", cluster: func(c *api.EtcdCluster) { c.Spec.Suspend = true }, authority: one, applied: applied, words: "spec.suspend",
			want: facts{Reason: api.ReasonWaiting, Says: true},
		},
		"EtcdRefuses": {
			reason: "a rotation does not wait until etcd takes a role", secret: holds(t, one, "app", day), authority: two.Beside(one.Certificate()), applied: applied, fails: true,
			want: facts{Holds: "app", Issuer: two, Trusts: pki.Fingerprints(one.Beside(two.Certificate()).PEM()), SameKey: true, Status: true},
		},
		"Unavailable": {
			reason: "a certificate expires whether etcd can be asked or not", cluster: func(c *api.EtcdCluster) { c.Status.Conditions = nil }, secret: holds(t, one, "app", 61*day), authority: one, applied: applied, words: "not available",
			want: facts{Reason: api.ReasonWaiting, Says: true, Holds: "app", Issuer: one, Trusts: []string{one.Fingerprint()}, SameKey: true, Status: true},
		},
		"UnavailableFirst": {
			reason: "the user comes before its certificate", cluster: func(c *api.EtcdCluster) { c.Status.Conditions = nil }, authority: one, words: "not available",
			want: facts{Reason: api.ReasonWaiting, Says: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser()
			u.Spec.Certificate = &api.UserCertificate{SecretName: "app-etcd"}
			u.Status.Applied, u.Status.Certificate = tc.applied, tc.has
			w := certified{user: u, cluster: tc.cluster, secret: tc.secret}
			switch tc.refuses {
			case "get":
				w.hides = forbidden("app-etcd")
			case "apply":
				w.refuses = forbidden("app-etcd")
			}
			if tc.fails {
				u.Spec.Roles = []api.EtcdName{"a"}
			}
			w.shared = func(_ *Shared, f *etcd) {
				if tc.fails {
					f.refuses = membership.GrantRole
				}
				if tc.applied == nil {
					delete(f.users, "app")
				}
			}
			fake, err := w.look(t, tc.authority)
			if errors.Is(err, errRefused) != tc.fails || err != nil && !tc.fails {
				t.Fatal(err)
			}
			ready := ptr.Deref(meta.FindStatusCondition(u.Status.Conditions, api.ConditionReady), metav1.Condition{})
			got := facts{Reason: ready.Reason, Stalled: meta.IsStatusConditionTrue(u.Status.Conditions, api.ConditionStalled), Says: tc.words != "" && strings.Contains(ready.Message, tc.words)}
			secret := &corev1.Secret{}
			err = fake.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "app-etcd"}, secret)
			if client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			if err == nil {
				got.Holds, got.Trusts = pki.Subject(secret.Data[api.SecretCert]), pki.Fingerprints(secret.Data[api.SecretCA])
				issuer, expires := pki.Issuer(secret.Data, files)
				for _, a := range []*pki.Authority{one, two} {
					if a.Fingerprint() == issuer {
						got.Issuer = a
					}
				}
				got.SameKey = tc.secret != nil && bytes.Equal(secret.Data[api.SecretKey], tc.secret.Data[api.SecretKey])
				if time.Until(expires) < pki.LeafLifetime/3 {
					t.Errorf("%s: it expires at %s", tc.reason, expires)
				}
				if has := u.Status.Certificate; has != nil {
					got.Status = has.Authority == issuer && cmp.Equal(has.Trusts, got.Trusts) && (tc.authority == nil || has.Expires.Time.Equal(expires))
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.Comparer(func(a, b *pki.Authority) bool { return a == b })); diff != "" {
				t.Errorf("%s: %s: -want +got:\n%s", tc.reason, ready.Message, diff)
			}
		})
	}
}
