//go:build env

package reconcile_test

import (
	"context"
	"crypto/tls"
	"slices"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/history"
	"quorate.dev/e2e/share"
	"quorate.dev/reconcile/pki"
	"quorate.dev/render"
)

// clientPort sets what the spec says of the clients' port, with the addresses that stand for the
// names of members.
func (s *stage) clientPort(c *api.EtcdCluster, port api.ClientTLS) {
	s.Helper()
	if port.Mode == api.TLSManaged {
		for _, address := range s.addresses(c) {
			port.AltNames = append(port.AltNames, api.AltName(address))
		}
	}
	if c.Spec.TLS == nil {
		c.Spec.TLS = &api.TLS{}
	}
	c.Spec.TLS.Client = &port
}

// switches changes the clients' port of a living cluster, and waits until all Pods are so.
func (s *stage) switches(c *api.EtcdCluster, port api.ClientTLS) {
	s.Helper()
	s.change(c, func() { s.clientPort(c, port) })
	s.switched(c)
}

func (s *stage) switched(c *api.EtcdCluster) {
	s.Helper()
	s.await(c, "ready with "+string(c.Spec.TLS.Client.Mode), func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) })
	for _, pod := range s.pods(c) {
		if outdated := render.Outdated(c, &pod); len(outdated) > 0 {
			s.Errorf("%s is not as the spec says: %v", pod.Name, outdated)
		}
	}
}

// get reads a key from one Pod.
func (s *stage) get(pod corev1.Pod, scheme string, config *tls.Config) error {
	s.Helper()
	etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{scheme + "://" + pod.Status.PodIP + ":2379"}, Logger: zap.NewNop(), TLS: config})
	if err != nil {
		return err
	}
	defer func() { _ = etcd.Close() }() // it was only read from
	ctx, cancel := context.WithTimeout(s.Context(), 3*time.Second)
	defer cancel()
	_, err = etcd.Get(ctx, "key")
	return err
}

// TestSwitch: clients go from plain text to TLS and back, member by member, and each one is served
// all the time by way of spec.tls.client.plaintext.
func TestSwitch(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, version string }{
		"35": {reason: "one port serves both in etcd 3.5", version: etcd35},
		"36": {reason: "the same in 3.6", version: etcd36},
		"37": {reason: "the same in 3.7", version: etcd37},
	}
	for name, tc := range share.Of(t, cases, 1) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.version = tc.version
			s.operate()
			c := s.cluster("db", 3)
			s.create(c)
			s.put(s.ready(c), "key", "value")
			who := identityOf(c)
			if got := c.Status.Endpoints[0]; !strings.HasPrefix(got, "http://") {
				t.Errorf("status.endpoints before: %s", got)
			}

			plain := s.load(c, light)
			s.switches(c, api.ClientTLS{Mode: api.TLSManaged, Plaintext: api.PlaintextAllowed})
			plain.await(10)
			encrypted := s.load(c, light)
			anonymous := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.clientTLS(c).RootCAs}
			for _, pod := range s.pods(c) {
				if err := s.get(pod, "http", nil); err != nil {
					t.Errorf("%s refuses a client without TLS: %v", pod.Name, err)
				}
				if err := s.get(pod, "https", s.clientTLS(c)); err != nil {
					t.Errorf("%s refuses a client with TLS: %v", pod.Name, err)
				}
				if s.get(pod, "https", anonymous) == nil {
					t.Errorf("%s lets a client with TLS in that has no certificate", pod.Name)
				}
			}
			encrypted.await(10)
			unharmed(t, "clients without TLS, while TLS is added", plain)
			if got := c.Status.Endpoints[0]; !strings.HasPrefix(got, "https://") {
				t.Errorf("status.endpoints with TLS: %s", got)
			}

			s.switches(c, api.ClientTLS{Mode: api.TLSManaged})
			encrypted.await(10)
			for _, pod := range s.pods(c) {
				if s.get(pod, "http", nil) == nil {
					t.Errorf("%s lets a client in without TLS", pod.Name)
				}
			}

			authority := c.Status.TLS.Client.Authority
			s.switches(c, api.ClientTLS{Mode: api.TLSManaged, Plaintext: api.PlaintextAllowed})
			encrypted.await(10)
			unharmed(t, "clients with TLS, while plain text is refused and allowed", encrypted)
			plain = s.load(render.WithClientPort(c, api.ClientTLS{Mode: api.TLSDisabled}), light)
			s.switches(c, api.ClientTLS{Mode: api.TLSDisabled})
			plain.await(10)
			unharmed(t, "clients without TLS, while TLS is removed", plain)

			s.switches(c, api.ClientTLS{Mode: api.TLSManaged})
			if c.Status.TLS.Client.Authority != authority {
				t.Errorf("the authority was %s, is %s", authority, c.Status.TLS.Client.Authority)
			}
			s.same(c, who)
			s.want(s.etcd(c), "key", "value")
		})
	}
}

// unharmed ends a load, and fails the test where its clients were refused by a part of the members.
func unharmed(t *testing.T, what string, l *load) {
	t.Helper()
	result := l.check()
	t.Logf("%s: %d of %d writes acknowledged, %.3f of them while members answered, longest pause %s", what, result.Acknowledged, result.Attempted, result.Answered, result.Longest)
	if result.Answered < 0.8 { // a request may be under way at a member that is stopped
		t.Errorf("%s: %.3f of the writes were acknowledged while members answered", what, result.Answered)
	}
}

// TestSwitchOwn: from Quorate's certificates to others' and back, with an authority of each. A
// client that has both trusts, and members that trust both, go on. The operator asks each member
// with the certificate that it takes.
func TestSwitchOwn(t *testing.T) {
	s := newStage(t)
	crash := s.operate()
	c := s.cluster("db", 3)
	s.clientPort(c, api.ClientTLS{Mode: api.TLSManaged})
	s.create(c)
	s.put(s.ready(c), "key", "value")
	who := identityOf(c)
	own := ownPort("server", "operator")

	s.change(c, func() { s.clientPort(c, own) })
	s.stalledWith(c, api.ReasonCertificates, "Secret server (spec.tls.client.secretRef): it does not exist")
	if names := s.serving(c, api.TLSSecret); len(names) > 0 {
		t.Errorf("%v have been changed to a Secret that does not exist", names)
	}
	victim := s.pods(c)[0]
	s.must(s.Delete(t.Context(), &victim))
	s.await(c, "with three members again", func() bool {
		pods := s.pods(c)
		return c.Status.ReadyReplicas == 3 && len(pods) == 3 && !slices.ContainsFunc(pods, func(p corev1.Pod) bool { return p.UID == victim.UID })
	})

	ours := s.authority()
	hosts := append(s.addresses(c), "*.db."+s.ns+".svc", "db-client."+s.ns+".svc", "127.0.0.1")
	both := s.issue(ours, pki.Use{Hosts: hosts, Server: true, Client: true}, 30*24*time.Hour)
	both[api.SecretCA] = slices.Concat(ours.PEM(), s.secret("db-client-ca").Data[api.SecretCert])
	s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "operator", Namespace: s.ns}, Type: corev1.SecretTypeTLS, Data: s.issue(ours, pki.Use{Client: true}, 30*24*time.Hour)})
	config := s.clientTLS(managedPort(c))
	config.RootCAs.AppendCertsFromPEM(ours.PEM())
	l := s.load(managedPort(c), light, func(h *history.Config) { h.Dial = dialer(config) })
	crash()
	f := newFault("delete.Pod.db-2#1", after)
	f.arm()
	crash = s.operate(f.between)
	s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "server", Namespace: s.ns}, Type: corev1.SecretTypeTLS, Data: both})
	s.meets(f)
	crash()
	s.operate()
	s.switched(c)
	l.await(10)

	s.switches(c, api.ClientTLS{Mode: api.TLSManaged})
	l.await(10)
	unharmed(t, "clients of mode Managed, which trust both authorities", l)
	s.same(c, who)
	s.want(s.etcd(c), "key", "value")
}

// ownPort is the clients' port with Secrets that others write.
func ownPort(server, operator string) api.ClientTLS {
	return api.ClientTLS{Mode: api.TLSSecret, SecretRef: &api.SecretReference{Name: server}, OperatorSecretRef: &api.SecretReference{Name: operator}}
}

// managedPort is the cluster as clients of mode Managed know it.
func managedPort(c *api.EtcdCluster) *api.EtcdCluster {
	return render.WithClientPort(c, api.ClientTLS{Mode: api.TLSManaged})
}

// serving are the members whose Pods serve clients in a mode.
func (s *stage) serving(c *api.EtcdCluster, mode api.TLSMode) (names []string) {
	s.Helper()
	for _, pod := range s.pods(c) {
		if render.ClientPort(c, &pod).Mode == mode {
			names = append(names, pod.Name)
		}
	}
	return names
}

// TestSwitchSetBack: the mode is set back when one member has changed: the others are not touched,
// and it is said beforehand that there is a gap.
func TestSwitchSetBack(t *testing.T) {
	s := newStage(t)
	s.operate()
	c := s.cluster("db", 3)
	s.create(c)
	s.put(s.ready(c), "key", "value")
	who := identityOf(c)
	before, _ := s.lives(c)
	s.change(c, func() { s.clientPort(c, api.ClientTLS{Mode: api.TLSManaged}) })
	told := ""
	s.await(c, "with one member that serves TLS", func() bool {
		if r := condition(c, api.ConditionReconciling); r != nil && strings.Contains(r.Message, "spec.tls.client.plaintext") {
			told = r.Message
		}
		return len(s.serving(c, api.TLSManaged)) > 0
	})
	s.change(c, func() { s.clientPort(c, api.ClientTLS{Mode: api.TLSDisabled}) })
	s.switched(c)
	if told == "" {
		t.Error("the gap was not foretold")
	}
	now, _ := s.lives(c)
	stayed := 0
	for name, uid := range before {
		if now[name] == uid {
			stayed++
		}
	}
	if stayed == 0 {
		t.Errorf("each Pod was recreated: %v, then %v", before, now)
	}
	s.same(c, who)
	s.want(s.etcd(c), "key", "value")
}

func condition(c *api.EtcdCluster, kind string) *metav1.Condition {
	n := slices.IndexFunc(c.Status.Conditions, func(has metav1.Condition) bool { return has.Type == kind })
	if n < 0 {
		return nil
	}
	return &c.Status.Conditions[n]
}
