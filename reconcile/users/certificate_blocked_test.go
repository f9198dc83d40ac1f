package users

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "quorate.dev/api/v1alpha1"
	apiac "quorate.dev/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/reconcile/pki"
)

// holds is a Secret of EtcdUser app with a certificate of that name, which was issued so long ago.
func holds(t *testing.T, a *pki.Authority, name string, ago time.Duration) *corev1.Secret {
	t.Helper()
	cert, key, err := a.Issue(name, pki.Use{Client: true}, nil, time.Now().Add(-ago), pki.LeafLifetime)
	if err != nil {
		t.Fatal(err)
	}
	s := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "app-etcd", Namespace: "ns"}, Type: corev1.SecretTypeTLS}
	s.OwnerReferences = []metav1.OwnerReference{{APIVersion: api.SchemeGroupVersion.String(), Kind: "EtcdUser", Name: "app", UID: "u", Controller: new(true)}}
	s.Data = map[string][]byte{api.SecretCert: cert, api.SecretKey: key, api.SecretCA: a.PEM()}
	return s
}

// certified is a world with one EtcdUser that has, or is to have, a certificate.
type certified struct {
	user    *api.EtcdUser
	cluster func(*api.EtcdCluster)
	secret  *corev1.Secret // nil: there is none
	shared  func(*Shared, *etcd)
	refuses error // what the API server says to a Secret that is applied
	hides   error // what it says where a Secret is read
}

// look has the user looked at once, and returns the API server afterwards.
func (w certified) look(t *testing.T, authority *pki.Authority) (client.WithWatch, error) {
	t.Helper()
	fresh := w.user.DeepCopy()
	fresh.Status = api.EtcdUserStatus{}
	objects := []client.Object{fresh}
	if w.secret != nil {
		objects = append(objects, w.secret.DeepCopy())
	}
	f := &etcd{users: map[string][]string{"app": {}}}
	s := newShared(t, f, "", objects...)
	s.Authority = func(*api.EtcdCluster) *pki.Authority { return authority }
	if err := apply.Status(t.Context(), s.Client, w.user.Status, apiac.EtcdUser(w.user.Name, w.user.Namespace).WithStatus); err != nil { // as an earlier look has
		t.Fatal(err)
	}
	c := &api.EtcdCluster{}
	if err := s.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "db"}, c); err != nil {
		t.Fatal(err)
	}
	c.Status.TLS = &api.TLSStatus{Client: api.TLSPlaneStatus{Mode: api.TLSManaged}}
	if w.cluster != nil {
		w.cluster(c)
	}
	if err := s.Client.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	server, _ := s.Client.(client.WithWatch)
	s.Client = interceptor.NewClient(server, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if _, secret := o.(*corev1.Secret); secret && w.hides != nil {
				return w.hides
			}
			return c.Get(ctx, key, o, opts...)
		},
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			if named, ok := o.(interface{ GetKind() *string }); ok && *named.GetKind() == "Secret" && w.refuses != nil {
				return w.refuses
			}
			return c.Apply(ctx, o, opts...)
		},
	})
	s.Reader = s.Client
	if w.shared != nil {
		w.shared(&s, f)
	}
	_, err := (&UserReconciler{s}).Reconcile(t.Context(), requestOf(w.user))
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(w.user), w.user); err != nil {
		t.Fatal(err)
	}
	return server, err
}

// TestCertificateBlocked: what blocks a certificate is told, whatever else is wrong with the
// user, and what to do is no harm to anything else. What is wrong beside it blocks no certificate.
func TestCertificateBlocked(t *testing.T) {
	t.Parallel()
	one, two := authority(t, "one"), authority(t, "two")
	next := two.Beside(one.Certificate())
	const day = 24 * time.Hour
	policy := apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "app-etcd", nil)
	policy.ErrStatus.Message = "ValidatingAdmissionPolicy 'team' denied request: every Secret needs the label team"
	owned := func(change func(*corev1.Secret)) *corev1.Secret {
		s := holds(t, one, "app", 61*day)
		change(s)
		return s
	}
	type facts struct {
		Reason         string // of Ready
		Ready, Stalled bool
		Says, Advises  bool   // the message has the words, and those that it is not to have
		Issuer, Status string // of the certificate in the Secret, and in the status; empty: there is none
	}
	cases := map[string]struct {
		reason    string
		world     certified
		user      func(*api.EtcdUser)
		authority *pki.Authority
		words     string
		without   string // words that the message does not have
		want      facts
	}{
		"Drifted": {
			reason: "that the user is left as it was changed in etcd is a policy, and no word about its certificate",
			user:   func(u *api.EtcdUser) { u.Spec.Drift, u.Spec.Roles = api.DriftReport, []api.EtcdName{"a"} },
			world:  certified{secret: holds(t, one, "app", 0), refuses: apierrors.NewInternalError(errors.New("failed calling webhook"))}, authority: next, words: "failed calling webhook",
			want: facts{Reason: api.ReasonDrifted, Stalled: true, Says: true, Issuer: "one", Status: "one"},
		},
		"DriftedBlocked": {
			reason: "a rotation waits for the one, and not for the other",
			user:   func(u *api.EtcdUser) { u.Spec.Drift, u.Spec.Roles = api.DriftReport, []api.EtcdName{"a"} },
			world:  certified{secret: holds(t, one, "app", 0), refuses: policy}, authority: next, words: "every Secret needs the label team",
			want: facts{Reason: api.ReasonCertificateBlocked, Stalled: true, Says: true, Issuer: "one", Status: "one"},
		},
		"EtcdRefuses": {
			reason: "the user was Ready until then",
			user: func(u *api.EtcdUser) {
				u.Spec.Roles = []api.EtcdName{"a"}
				u.Status.ObservedGeneration, u.Status.Conditions = 2, conditions(nil, 2, said{ready: true, reason: api.ReasonApplied, message: "fine"})
			},
			world:     certified{secret: holds(t, one, "app", 0), refuses: policy, shared: func(_ *Shared, f *etcd) { f.refuses = membership.GrantRole }},
			authority: next, words: "every Secret needs the label team",
			want: facts{Reason: api.ReasonCertificateBlocked, Stalled: true, Says: true, Issuer: "one", Status: "one"},
		},
		"NoPassword": {
			reason: "its password cannot be read, and its certificate expires meanwhile",
			user:   func(u *api.EtcdUser) { u.Spec.PasswordSecretRef = &api.SecretReference{Name: "p"} },
			world: certified{secret: holds(t, one, "app", 0), shared: func(s *Shared, _ *etcd) {
				s.Password = func(context.Context, client.Reader, string, string) (string, string, string, error) {
					return "", "", "", errors.New("cannot decrypt")
				}
			}},
			authority: next, want: facts{Issuer: "two", Status: "two"},
		},
		"EarlierUser": {
			reason: "the garbage collector deletes it in a moment", authority: one, words: "earlier Secret app-etcd",
			world: certified{secret: owned(func(s *corev1.Secret) { s.OwnerReferences[0].UID = "earlier" })},
			want:  facts{Reason: api.ReasonWaiting, Says: true, Issuer: "one", Status: "one"},
		},
		"ClustersOwn": {
			reason: "a Secret that a cluster needs is not to be deleted", authority: one, words: "another secretName", without: "kubectl delete",
			world: certified{secret: owned(func(s *corev1.Secret) {
				s.OwnerReferences[0].Kind, s.OwnerReferences[0].Name, s.OwnerReferences[0].UID = "EtcdCluster", "other", "o"
			})},
			want: facts{Reason: api.ReasonCertificateBlocked, Stalled: true, Says: true, Issuer: "one", Status: "one"},
		},
		"Immutable": {
			reason: "it can only be created again", authority: one, words: "kubectl delete secret app-etcd --namespace=ns",
			world: certified{secret: owned(func(s *corev1.Secret) { s.Immutable = new(true) }), refuses: policy},
			want:  facts{Reason: api.ReasonCertificateBlocked, Stalled: true, Says: true, Issuer: "one", Status: "one"},
		},
		"Policy": {
			reason: "what is deleted could not be created again", authority: one, words: "every Secret needs the label team", without: "kubectl delete",
			world: certified{secret: owned(func(*corev1.Secret) {}), refuses: policy},
			want:  facts{Reason: api.ReasonCertificateBlocked, Stalled: true, Says: true, Issuer: "one", Status: "one"},
		},
		"SuspendedExpired": {
			reason: "an application that cannot connect finds out why", authority: one, words: "expired at",
			world: certified{secret: holds(t, one, "app", 91*day), cluster: func(c *api.EtcdCluster) { c.Spec.Suspend = true }},
			user: func(u *api.EtcdUser) {
				u.Status.ObservedGeneration, u.Status.Conditions = 2, conditions(nil, 2, said{ready: true, reason: api.ReasonApplied, message: "fine"})
			},
			want: facts{Reason: api.ReasonWaiting, Says: true, Issuer: "one", Status: "one"},
		},
		"WrongClock": {
			reason: "what is issued by a wrong clock is not valid yet", authority: next, words: "clock of the operator",
			world: certified{secret: holds(t, one, "app", 0), shared: func(s *Shared, _ *etcd) { s.Skew = func(time.Time) time.Duration { return 365 * day } }},
			want:  facts{Reason: api.ReasonWaiting, Says: true, Issuer: "one", Status: "one"},
		},
		"LostAndGone": {
			reason: "nothing can be issued, and a rotation does not wait for it", authority: pki.Keyless(one.Certificate()), words: "cannot issue a certificate now",
			want: facts{Reason: api.ReasonWaiting, Says: true},
		},
		"Lost": {
			reason: "what is there can be used still", authority: pki.Keyless(one.Certificate()),
			world: certified{secret: holds(t, one, "app", 80*day)},
			want:  facts{Reason: api.ReasonApplied, Ready: true, Issuer: "one", Status: "one"},
		},
		"Restored": {
			reason: "etcd does not have the user that was restored yet, and cannot be asked", authority: next,
			user: func(u *api.EtcdUser) { u.Status.Applied.ClusterID = "before" },
			world: certified{secret: holds(t, one, "app", 0), shared: func(s *Shared, _ *etcd) {
				s.Connect = func(context.Context, *api.EtcdCluster) (membership.Auth, error) { return nil, errRefused }
			}},
			want: facts{Reason: api.ReasonWaiting, Issuer: "two", Status: "two"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			u := newUser()
			u.Spec.Certificate = &api.UserCertificate{SecretName: "app-etcd"}
			u.Status.Applied, u.Status.Certificate = &api.Applied{Generation: 2, ClusterID: "c0"}, certificateStatus(holds(t, one, "app", 0).Data)
			if tc.world.secret != nil {
				u.Status.Certificate = certificateStatus(tc.world.secret.Data)
			}
			if tc.user != nil {
				tc.user(u)
			}
			tc.world.user = u
			server, err := tc.world.look(t, tc.authority)
			ready := ptr.Deref(meta.FindStatusCondition(u.Status.Conditions, api.ConditionReady), metav1.Condition{})
			got := facts{
				Reason: ready.Reason, Ready: ready.Status == metav1.ConditionTrue, Stalled: meta.IsStatusConditionTrue(u.Status.Conditions, api.ConditionStalled),
				Says: tc.words != "" && strings.Contains(ready.Message, tc.words), Advises: tc.without != "" && strings.Contains(ready.Message, tc.without),
			}
			secret := &corev1.Secret{}
			if err := server.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: "app-etcd"}, secret); client.IgnoreNotFound(err) != nil {
				t.Fatal(err)
			}
			issuer, _ := pki.Issuer(secret.Data, files)
			names := map[string]string{one.Fingerprint(): "one", two.Fingerprint(): "two"}
			got.Issuer, got.Status = names[issuer], names[ptr.Deref(u.Status.Certificate, api.IssuedCertificate{}).Authority]
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %q, %v: -want +got:\n%s", tc.reason, ready.Message, err, diff)
			}
		})
	}
}

// TestCertificateOthersKeys: what others write into the Secret beside the certificate stays theirs
// when the certificate is renewed, and goes when they take it back.
func TestCertificateOthersKeys(t *testing.T) {
	t.Parallel()
	one := authority(t, "one")
	u := newUser()
	u.Spec.Certificate = &api.UserCertificate{SecretName: "app-etcd"}
	u.Status.Applied = &api.Applied{Generation: 2, ClusterID: "c0"}
	before := holds(t, one, "app", 61*24*time.Hour)
	helm := func(data map[string][]byte) *corev1ac.SecretApplyConfiguration {
		return corev1ac.Secret("app-etcd", "ns").WithData(data)
	}
	w := certified{user: u, secret: before, shared: func(s *Shared, _ *etcd) {
		if err := s.Client.Apply(t.Context(), helm(map[string][]byte{"keystore.p12": []byte("x")}), client.FieldOwner("helm")); err != nil {
			t.Fatal(err)
		}
	}}
	server, err := w.look(t, one)
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Apply(t.Context(), helm(nil).WithLabels(map[string]string{"a": "b"}), client.FieldOwner("helm")); err != nil {
		t.Fatal(err)
	}
	after := &corev1.Secret{}
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(before), after); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(before.Data[api.SecretCert], after.Data[api.SecretCert]) {
		t.Error("the certificate was not renewed")
	}
	if theirs, there := after.Data["keystore.p12"]; there {
		t.Errorf("what Helm has taken back stays: %q", theirs)
	}
}
