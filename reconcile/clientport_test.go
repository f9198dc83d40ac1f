package reconcile

import (
	"crypto/tls"
	"errors"
	"maps"
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

// The clients' ports of these tests.
var (
	portPlain   = api.ClientTLS{Mode: api.TLSDisabled}
	portManaged = api.ClientTLS{Mode: api.TLSManaged}
	portBoth    = api.ClientTLS{Mode: api.TLSManaged, Plaintext: api.PlaintextAllowed}
	portRenamed = api.ClientTLS{Mode: api.TLSSecret, SecretRef: portOwn.SecretRef, OperatorSecretRef: &api.SecretReference{Name: "renamed"}}
	portOwn     = api.ClientTLS{Mode: api.TLSSecret, SecretRef: &api.SecretReference{Name: "server"}, OperatorSecretRef: &api.SecretReference{Name: "operator"}}
)

// ported is newCluster with a clients' port, and plain text among members.
func ported(port api.ClientTLS) *api.EtcdCluster {
	c := newCluster()
	c.Spec.TLS = &api.TLS{Client: port.DeepCopy()}
	return c
}

// podWith is the Pod of a member as it is made with a clients' port.
func podWith(t *testing.T, name string, port api.ClientTLS) *corev1.Pod {
	t.Helper()
	made, err := render.Pod(ported(port), render.Member{Name: name, Version: "3.6.16"})
	if err != nil {
		t.Fatal(err)
	}
	pod := ownedBy("cluster", newPod(name))
	maps.Copy(pod.Annotations, made.Annotations)
	pod.Spec.Containers = []corev1.Container{{Name: render.Container, Args: made.Spec.Containers[0].Args}}
	for _, v := range made.Spec.Volumes {
		if v.Secret != nil {
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: *v.Name, VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: *v.Secret.SecretName}}})
		}
	}
	pod.Status.PodIP = name
	return pod
}

// anotherAuthority is one with its key, as a Secret holds it.
func anotherAuthority(t *testing.T) map[string][]byte {
	t.Helper()
	cert, key, err := pki.NewAuthority("others", noon, pki.AuthorityLifetime)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{api.SecretCert: cert, api.SecretKey: key}
}

// ownedByOthers are the Secrets of portOwn.
func ownedByOthers(t *testing.T) map[string]*corev1.Secret {
	t.Helper()
	a, err := pki.ReadAuthority(anotherAuthority(t), files, noon)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]*corev1.Secret{}
	for name, use := range map[string]pki.Use{"server": {Hosts: render.RequiredServerHosts(newCluster()), Server: true, Client: true}, "operator": {Client: true}} {
		cert, key, err := a.Issue(name, use, nil, noon, pki.LeafLifetime)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = &corev1.Secret{ObjectMeta: child(name, "secret"), Data: map[string][]byte{api.SecretCert: cert, api.SecretKey: key, api.SecretCA: a.PEM()}}
	}
	return all
}

// TestSwitchCertificates holds what is done with Secrets while Pods of two modes run.
func TestSwitchCertificates(t *testing.T) {
	t.Parallel()
	clientLeaves := []string{"db-client-tls", "db-operator-tls", "db-server-tls"}
	all := append([]string{"db-client-ca"}, clientLeaves...)
	type want struct {
		Written []string
		Blocked string   // begins the message
		Unasked string   // begins the message
		Configs []string // the Secrets with which members are asked
	}
	cases := map[string]struct {
		reason string
		was    api.ClientTLS // before the mode was changed
		now    api.ClientTLS
		pods   []api.ClientTLS
		at     time.Duration // after noon
		change func(secrets map[string]*corev1.Secret)
		want   want
	}{
		"On": {
			reason: "Pods run, and none of them trusts another authority", was: portPlain, now: portManaged, pods: []api.ClientTLS{portPlain},
			want: want{Written: all},
		},
		"Begun": {
			reason: "one Pod is changed", was: portManaged, now: portManaged, pods: []api.ClientTLS{portPlain, portManaged},
			want: want{Configs: []string{"db-operator-tls"}},
		},
		"Off": {
			reason: "a Pod has yet to be changed", was: portManaged, now: portPlain, pods: []api.ClientTLS{portManaged, portPlain},
			want: want{Configs: []string{"db-operator-tls"}},
		},
		"OffForLong": {
			reason: "that takes so long that certificates are renewed, for the names that they have", was: portManaged, now: portPlain, pods: []api.ClientTLS{portManaged}, at: pki.LeafLifetime * 2 / 3,
			want: want{Written: clientLeaves, Configs: []string{"db-operator-tls"}},
		},
		"OffRotating": {
			reason: "a rotation that had begun waits, and what both authorities issue stays trusted", was: portManaged, now: portPlain, pods: []api.ClientTLS{portManaged},
			change: func(secrets map[string]*corev1.Secret) {
				data, next := secrets["db-client-ca"].Data, anotherAuthority(t)
				data[api.SecretNextCert], data[api.SecretNextKey] = next[api.SecretCert], next[api.SecretKey]
			},
			want: want{Written: clientLeaves, Configs: []string{"db-operator-tls"}},
		},
		"OffUnknown": {
			reason: "what is wrong with them is no reason to keep Pods from being changed", was: portManaged, now: portPlain, pods: []api.ClientTLS{portManaged},
			change: func(secrets map[string]*corev1.Secret) { clear(secrets) },
			want:   want{Unasked: "members that serve clients by an earlier spec.tls.client cannot be asked, and so not be changed ("},
		},
		"OffDone": {
			reason: "the Secrets stay, and are not looked at", was: portManaged, now: portPlain, pods: []api.ClientTLS{portPlain}, at: pki.LeafLifetime * 2 / 3,
		},
		"Back": {
			reason: "the authority issues again", was: portManaged, now: portManaged, pods: []api.ClientTLS{portPlain},
			want: want{Configs: []string{"db-operator-tls"}},
		},
		"BackLate": {
			reason: "after its certificates have expired", was: portManaged, now: portManaged, pods: []api.ClientTLS{portPlain}, at: 2 * pki.LeafLifetime,
			want: want{Written: clientLeaves},
		},
		"BackLost": {
			reason: "no Pod trusts the authority that is gone", was: portManaged, now: portManaged, pods: []api.ClientTLS{portPlain},
			change: func(secrets map[string]*corev1.Secret) { delete(secrets, "db-client-ca") },
			want:   want{Written: all, Configs: []string{"db-operator-tls"}},
		},
		"ToOwn": {
			reason: "each Pod is asked with the certificate that it takes", was: portManaged, now: portOwn, pods: []api.ClientTLS{portManaged, portOwn},
			want: want{Configs: []string{"db-operator-tls", "operator"}},
		},
		"ToOwnMissing": {
			reason: "what runs goes on", was: portManaged, now: portOwn, pods: []api.ClientTLS{portManaged},
			change: func(secrets map[string]*corev1.Secret) { delete(secrets, "server") },
			want:   want{Blocked: "Secret server (spec.tls.client.secretRef): it does not exist", Configs: []string{"db-operator-tls", "operator"}},
		},
		"FromOwn": {
			reason: "the name of others' Secret is on the Pod", was: portManaged, now: portManaged, pods: []api.ClientTLS{portOwn, portManaged},
			want: want{Configs: []string{"db-operator-tls", "operator"}},
		},
		"FromOwnGone": {
			reason: "it was deleted too early", was: portManaged, now: portManaged, pods: []api.ClientTLS{portOwn, portManaged},
			change: func(secrets map[string]*corev1.Secret) { delete(secrets, "operator") },
			want: want{
				Unasked: "members that serve clients by an earlier spec.tls.client cannot be asked, and so not be changed (there is no Secret operator): restore Secret operator as it was", Configs: []string{"db-operator-tls"},
			},
		},
		"Renamed": {
			reason: "the Secret of before is not needed", was: portOwn, now: portRenamed, pods: []api.ClientTLS{portOwn, portOwn},
			change: func(secrets map[string]*corev1.Secret) {
				secrets["renamed"] = secrets["operator"].DeepCopy()
				secrets["renamed"].Name = "renamed"
				delete(secrets, "operator")
			},
			want: want{Configs: []string{"renamed"}},
		},
		"RenamedMissing": {
			reason: "members are asked as before until it is there", was: portOwn, now: portRenamed, pods: []api.ClientTLS{portOwn, portOwn},
			want: want{Blocked: "Secret renamed (spec.tls.client.operatorSecretRef): it does not exist", Configs: []string{"operator"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := ported(tc.was)
			there := map[string]*corev1.Secret{}
			if tc.was.Mode == api.TLSManaged {
				c.Spec.TLS.Client.AltNames = []api.AltName{"etcd.example.com"}
				there = secrets(t, c)
				c.Spec.TLS.Client.AltNames = nil
			}
			maps.Copy(there, ownedByOthers(t))
			altNames := c.Spec.TLS.Client.AltNames
			c.Spec.TLS.Client = tc.now.DeepCopy()
			if tc.now.Mode == api.TLSManaged && tc.was.Mode == api.TLSManaged {
				altNames = []api.AltName{"etcd.example.com"}
			}
			c.Spec.TLS.Client.AltNames = altNames
			if tc.change != nil {
				tc.change(there)
			}
			var objects []client.Object
			for _, name := range slices.Sorted(maps.Keys(there)) {
				objects = append(objects, there[name])
			}
			for n, port := range tc.pods {
				objects = append(objects, podWith(t, c.MemberName(n), port))
			}
			s := newStub(t, nil, objects...)
			found, err := s.secure(t.Context(), c, noon.Add(tc.at))
			if err != nil {
				t.Fatal(err)
			}
			got := want{Blocked: text(found.blocked), Configs: slices.Sorted(maps.Keys(found.configs))}
			if silent := found.silent(); silent != nil {
				got.Unasked = silent.message
			}
			for _, write := range s.sorted() {
				got.Written = append(got.Written, write.Name)
				if hosts := pki.Hosts(s.secrets[write.Name][api.SecretCert]); write.Name == "db-server-tls" && tc.was.Mode == api.TLSManaged && !slices.Contains(hosts, "etcd.example.com") {
					t.Errorf("%s: the names in the members' certificate are %v", tc.reason, hosts)
				}
			}
			same := cmp.Comparer(func(a, b string) bool {
				return a == b || a != "" && strings.HasPrefix(b, a) || b != "" && strings.HasPrefix(a, b)
			})
			if diff := cmp.Diff(tc.want, got, same); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOthersSecretIsKept: where spec.tls.client names a Secret that Quorate wrote while the mode
// was Managed, others write it from then on, although Pods of mode Managed are left.
func TestOthersSecretIsKept(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"db-server-tls", "db-client-tls"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := ported(portManaged)
			there, own := secrets(t, c), ownedByOthers(t)
			there[name] = there[name].DeepCopy()
			there[name].Data = own["server"].Data // the owner stays
			c.Spec.TLS.Client = &api.ClientTLS{Mode: api.TLSSecret, SecretRef: &api.SecretReference{Name: name}, OperatorSecretRef: &api.SecretReference{Name: "operator"}}
			objects := []client.Object{podWith(t, "db-0", portManaged), own["operator"]}
			for _, s := range there {
				objects = append(objects, s)
			}
			s := newStub(t, nil, objects...)
			if _, err := s.secure(t.Context(), c, noon); err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(s.writes, func(w write) bool { return w.Name == name }) {
				t.Errorf("Secret %s was written: %v", name, s.sorted())
			}
		})
	}
}

// TestDialAsServed: each member is asked as its own Pod serves clients, whatever the spec says.
func TestDialAsServed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason   string
		now, has api.ClientTLS
		want     string
	}{
		"Plain":   {reason: "TLS is on its way", now: portManaged, has: portPlain, want: "http db-0"},
		"Managed": {reason: "TLS goes", now: portPlain, has: portManaged, want: "https db-0.db.ns.svc by db-operator-tls"},
		"Both":    {reason: "with TLS where there is", now: portManaged, has: portBoth, want: "https db-0.db.ns.svc by db-operator-tls"},
		"Own":     {reason: "with others' certificate", now: portManaged, has: portOwn, want: "https db-0.db.ns.svc by operator"},
		"Renamed": {reason: "the spec names another certificate", now: portOwn, has: portRenamed, want: "https db-0.db.ns.svc by operator"},
		"Missing": {reason: "and it is not there yet", now: portRenamed, has: portOwn, want: "https db-0.db.ns.svc by operator"},
		"Unknown": {reason: "there is none", now: portPlain, has: api.ClientTLS{Mode: api.TLSSecret, SecretRef: portOwn.SecretRef, OperatorSecretRef: &api.SecretReference{Name: "gone"}}, want: "dial etcd db-0: there is no client certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got string
			r := &Reconciler{
				Dial: func(host string, _ int) (membership.Client, error) { got = "http " + host; return nil, nil },
				DialTLS: func(_ string, _ int, config *tls.Config) (membership.Client, error) {
					got = "https " + config.ServerName + " by " + config.NextProtos[0]
					return nil, nil
				},
			}
			c := ported(tc.now)
			configs := map[string]*tls.Config{}
			for _, secret := range []string{"db-operator-tls", "operator"} {
				configs[secret] = &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{secret}}
			}
			r.keys.known.Store(client.ObjectKeyFromObject(c), &credentials{cluster: c.UID, configs: configs})
			if _, err := r.dial(c, podWith(t, "db-0", tc.has)); err != nil {
				got = err.Error()
			}
			if got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

// TestForetold: what clients find of a change is said before the first member is changed, and where
// they are led.
func TestForetold(t *testing.T) {
	t.Parallel()
	const changing = "changing db-0"
	for name, tc := range map[string]struct {
		reason string
		now    api.ClientTLS
		pods   []api.ClientTLS
		want   string // ends the message
		url    string
	}{
		"Rest":     {reason: "nothing changes", now: portManaged, pods: []api.ClientTLS{portManaged, portManaged}, want: changing, url: "https"},
		"OnFirst":  {reason: "clients without TLS go on", now: portBoth, pods: []api.ClientTLS{portPlain, portPlain}, want: changing, url: "http"},
		"OnMidway": {reason: "all serve clients without TLS", now: portBoth, pods: []api.ClientTLS{portPlain, portBoth}, want: changing, url: "http"},
		"OnSecond": {reason: "by then they have changed", now: portManaged, pods: []api.ClientTLS{portBoth, portManaged}, want: "; each changed member refuses clients without TLS", url: "https"},
		"OnAtOnce": {
			reason: "there is a gap", now: portManaged, pods: []api.ClientTLS{portPlain, portManaged}, url: "https",
			want: "To change without a gap, set spec.tls.client.plaintext to Allowed first (docs/tls.md#changing-the-mode)",
		},
		"OffFirst":  {reason: "clients with TLS go on", now: portBoth, pods: []api.ClientTLS{portManaged, portBoth}, want: changing, url: "https"},
		"OffSecond": {reason: "by then they have changed", now: portPlain, pods: []api.ClientTLS{portBoth, portPlain}, want: "; each changed member refuses clients with TLS", url: "http"},
		"OffAtOnce": {
			reason: "there is a gap", now: portPlain, pods: []api.ClientTLS{portManaged, portPlain}, url: "http",
			want: "revert spec.tls.client.mode, and set spec.tls.client.plaintext to Allowed first (docs/tls.md#changing-the-mode)",
		},
		"Own": {
			reason: "another authority", now: portOwn, pods: []api.ClientTLS{portManaged, portOwn}, url: "https",
			want: "; each changed member presents the certificate in Secret server, and accepts clients by the authorities in ca.crt there (docs/tls.md#changing-the-mode)",
		},
		"None": {reason: "as the spec says", now: portManaged, want: changing, url: "https"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := ported(tc.now), observed{pods: map[string]*corev1.Pod{}}
			for n, port := range tc.pods {
				seen.pods[c.MemberName(n)] = podWith(t, c.MemberName(n), port)
			}
			step := foretold(c, seen, membership.Step{Action: membership.Update, Reason: membership.Changing, Message: changing})
			if !strings.HasSuffix(step.Message, tc.want) || tc.want == changing && step.Message != changing {
				t.Errorf("%s: %s, want %s", tc.reason, step.Message, tc.want)
			}
			if got, want := clientURL(c, seen), tc.url+"://db-client.ns.svc:2379"; got != want {
				t.Errorf("%s: clients are told %s, want %s", tc.reason, got, want)
			}
		})
	}
}

// TestStartsServed: a Secret that is missing for the mode to come keeps no member down that has
// served with another one, and no Pod is changed to it.
func TestStartsServed(t *testing.T) {
	t.Parallel()
	missing := errors.New("the Secret is missing")
	for name, tc := range map[string]struct {
		reason string
		said   string // of what the member has served with
		found  *credentials
		action membership.Action
		want   bool
	}{
		"Before":  {reason: "with plain text it has served", said: firstServed, found: &credentials{blocked: missing, onlyClients: true}, action: membership.Start, want: true},
		"PutBack": {reason: "it goes back to that", said: firstServed, found: &credentials{blocked: missing, onlyClients: true}, action: membership.PutBack, want: true},
		"Update":  {reason: "it would be changed to what cannot start", said: firstServed, found: &credentials{blocked: missing, onlyClients: true}, action: membership.Update},
		"As":      {reason: "it needs the Secret", said: `{"version":"3.6.16","tls":{"mode":"Managed"}}`, found: &credentials{blocked: missing, onlyClients: true}, action: membership.Start},
		"Unsaid":  {reason: "it is made of the spec", found: &credentials{blocked: missing, onlyClients: true}, action: membership.Start},
		"Peers":   {reason: "a Secret of the peers' port is missing too", said: firstServed, found: &credentials{blocked: missing}, action: membership.Start},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := ported(portManaged), healthy()
			seen.credentials = tc.found
			for name, claim := range seen.claims {
				delete(claim.Annotations, api.AnnotationServed)
				if name == "db-1" && tc.said != "" {
					claim.Annotations[api.AnnotationServed] = tc.said
				}
			}
			if got := startsServed(c, seen, membership.Step{Action: tc.action, Members: []string{"db-1"}}); got != tc.want {
				t.Errorf("%s: %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// TestRotationWaitsForMode: a rotation that is under way is told of while nothing goes on with it.
func TestRotationWaitsForMode(t *testing.T) {
	t.Parallel()
	c := ported(portPlain)
	c.Status.TLS = &api.TLSStatus{Client: api.TLSPlaneStatus{Mode: api.TLSManaged, Authority: "a", Rotation: &api.RotationStatus{Step: api.RotationTrustBoth, Message: "waiting"}}}
	want := api.TLSPlaneStatus{
		Mode: api.TLSDisabled, Authority: "a",
		Rotation: &api.RotationStatus{Step: api.RotationTrustBoth, Message: "it goes on when spec.tls.client.mode is Managed again"},
	}
	if diff := cmp.Diff(want, tlsStatus(c, &credentials{}).Client); diff != "" {
		t.Errorf("-want, +got\n%s", diff)
	}
}
