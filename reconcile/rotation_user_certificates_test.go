package reconcile

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/pki"
)

// TestRotationUsers: a rotation waits until the Secret with the certificate of an EtcdUser is of
// each of its steps, for as long as that can come about, and no longer. It comes to its end.
func TestRotationUsers(t *testing.T) {
	t.Parallel()
	stalled := func(reason string) func(*walk) {
		return func(w *walk) {
			w.user.Status.Conditions = []metav1.Condition{{Type: api.ConditionStalled, Status: metav1.ConditionTrue, Reason: reason}}
		}
	}
	late := func(w *walk) bool { return w.now.Minute()%10 == 9 }
	lost := func(w *walk) { w.secrets["db-client-ca"].Data[api.SecretKey] = nil }
	cases := map[string]struct {
		reason string
		begin  func(*walk)
		writes func(*walk) bool // whether the Secret of the user is written now; nil: always
		want   bool             // the user's certificate is of the new authority, and trusts nothing else
	}{
		"Well":    {reason: "it is written, some time later", writes: late, want: true},
		"Drifted": {reason: "that etcd has the user otherwise is no reason to leave its certificate", begin: stalled(api.ReasonDrifted), writes: late, want: true},
		"Blocked": {
			reason: "a person has to act, and it would wait for ever",
			begin:  stalled(api.ReasonCertificateBlocked), writes: func(*walk) bool { return false },
		},
		"Lost": {reason: "the authority issues nothing", begin: lost, want: true},
		"LostMidway": {
			reason: "and the certificate is of the one before, and no other one can be had",
			begin:  func(w *walk) { w.reissues(); lost(w) }, want: true,
		},
		"LostAndGone": {
			reason: "the certificate cannot be issued before the rotation goes on",
			begin:  func(w *walk) { lost(w); delete(w.secrets, "app-etcd") }, want: true,
		},
		"TrustNewLate": {
			reason: "an application does not trust the former authority for ever",
			writes: func(w *walk) bool {
				data, rotation := w.secrets["db-client-ca"].Data, w.c.Status.TLS.Client.Rotation
				return len(data[api.SecretPreviousCert]) > 0 || len(data[api.SecretNextCert]) > 0 || rotation != nil && rotation.Step == api.RotationTrustNew && rotation.Message == "waiting for the certificates of these EtcdUsers to be written (their conditions say what is missing): app"
			},
			want: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWalk(t, 0)
			w.c.Spec.TLS.Client.RotationWait = new(api.Duration("0s"))
			if tc.begin != nil {
				tc.begin(w)
			}
			w.c.Spec.TLS.Client.RotateAuthority = "b"
			over := func() bool {
				return w.c.Status.TLS.Client.RotateAuthority == "b" && w.c.Status.TLS.Client.Rotation == nil
			}
			for n := 0; !over(); n++ {
				if n > 60 {
					t.Fatalf("%s: the rotation comes to no end: %+v", tc.reason, w.c.Status.TLS.Client.Rotation)
				}
				w.operate(100)
				if tc.writes == nil || tc.writes(w) {
					w.issue()
				}
				for name, m := range w.members {
					w.start(name)
					for secret := range m.files {
						m.files[secret] = w.secrets[secret].Data
					}
				}
				w.now = w.now.Add(time.Minute)
			}
			has := w.user.Status.Certificate
			issues := w.c.Status.TLS.Client.Authority
			if got := has != nil && has.Authority == issues && slices.Equal(has.Trusts, []string{issues}); got != tc.want {
				t.Errorf("%s: the certificate is as it must be: want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// reissues brings the clients' port to where step Reissue has just begun: the Secrets trust both
// authorities, and the certificates are of the former one.
func (w *walk) reissues() {
	w.Helper()
	cert, key, err := pki.NewAuthority("young", w.now, pki.AuthorityLifetime)
	if err != nil {
		w.Fatal(err)
	}
	data := w.secrets["db-client-ca"].Data
	former := w.issues
	data[api.SecretPreviousCert], data[api.SecretCert], data[api.SecretKey], data[api.SecretRotation] = data[api.SecretCert], cert, key, []byte("a")
	young, err := pki.ReadAuthority(data, files, w.now)
	if err != nil {
		w.Fatal(err)
	}
	trusted := young.Beside(former.Certificate()).PEM()
	for _, name := range []string{"db-client-tls", "db-server-tls", "db-operator-tls", "app-etcd"} {
		w.secrets[name].Data[api.SecretCA] = trusted
	}
	p := &w.c.Status.TLS.Client
	p.Authority, p.Trusts, p.RotateAuthority = young.Fingerprint(), pki.Fingerprints(trusted), "a"
	w.user.Status.Certificate.Trusts = pki.Fingerprints(trusted)
	for name := range w.members {
		w.start(name)
	}
}
