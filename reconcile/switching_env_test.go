//go:build env

package reconcile_test

import (
	"cmp"
	"context"
	"crypto/tls"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/history"
	"quorate.dev/e2e/hostlet"
	"quorate.dev/e2e/share"
	"quorate.dev/reconcile/pki"
	"quorate.dev/render"
	"quorate.dev/snapshot"
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

// TestSwitch: the mode of the clients' port is changed on a living cluster.
func TestSwitch(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		version string // of etcd; empty: 3.6
		with    []func(*hostlet.Options)
		run     func(*stage)
	}{
		"On35":    {reason: "clients go from plain text to TLS with etcd 3.5, and each one is served all the time", version: etcd35, run: switchOn},
		"On36":    {reason: "the same with etcd 3.6", run: switchOn},
		"On37":    {reason: "the same with etcd 3.7", version: etcd37, run: switchOn},
		"Off35":   {reason: "and back with etcd 3.5", version: etcd35, run: switchOff},
		"Off36":   {reason: "the same with etcd 3.6", run: switchOff},
		"Off37":   {reason: "the same with etcd 3.7", version: etcd37, run: switchOff},
		"Own":     {reason: "from Quorate's certificates to others', and back", run: switchOwn},
		"SetBack": {reason: "the mode is set back when one member has changed", run: switchSetBack},
		"Struck":  {reason: "one member's volume is lost and two more members are asked for, when one has changed", run: switchStruck},
		"Backup":  {reason: "a snapshot is taken when one member has changed, and when two have", with: []func(*hostlet.Options){agents}, run: switchBackup},
		"Asleep":  {reason: "while no member runs", run: switchAsleep},
	}
	for name, tc := range share.Of(t, cases, 2) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, tc.with...)
			s.version = cmp.Or(tc.version, etcd36)
			tc.run(s)
		})
	}
}

// plain is a cluster of three members without TLS, with a key.
func (s *stage) plain() *api.EtcdCluster {
	s.Helper()
	c := s.cluster("db", 3)
	s.create(c)
	s.put(s.ready(c), "key", "value")
	return c
}

// switchOn adds TLS, and then refuses clients without it.
func switchOn(s *stage) {
	s.operate()
	c := s.plain()
	was := identityOf(c)
	if got := c.Status.Endpoints[0]; !strings.HasPrefix(got, "http://") {
		s.Errorf("status.endpoints before: %s", got)
	}
	plain := s.load(c, light)
	s.switches(c, api.ClientTLS{Mode: api.TLSManaged, Plaintext: api.PlaintextAllowed})
	plain.await(10)
	s.servesBoth(c)
	encrypted := s.load(c, light)
	encrypted.await(10)
	unharmed(s, "clients without TLS, while TLS is added", plain)
	if got := c.Status.Endpoints[0]; !strings.HasPrefix(got, "https://") {
		s.Errorf("status.endpoints with TLS: %s", got)
	}
	s.switches(c, api.ClientTLS{Mode: api.TLSManaged})
	encrypted.await(10)
	unharmed(s, "clients with TLS, while plain text ends", encrypted)
	for _, pod := range s.pods(c) {
		if s.get(pod, "http", nil) == nil {
			s.Errorf("%s lets a client in without TLS", pod.Name)
		}
	}
	s.same(c, was)
	s.want(s.etcd(c), "key", "value")
}

// switchOff lets clients in without TLS, and then removes TLS. When it comes back its authority is
// the same.
func switchOff(s *stage) {
	s.operate()
	c := s.cluster("db", 3)
	s.clientPort(c, api.ClientTLS{Mode: api.TLSManaged})
	s.create(c)
	s.put(s.ready(c), "key", "value")
	was, authority := identityOf(c), c.Status.TLS.Client.Authority
	encrypted := s.load(c, light)
	s.switches(c, api.ClientTLS{Mode: api.TLSManaged, Plaintext: api.PlaintextAllowed})
	encrypted.await(10)
	s.servesBoth(c)
	plain := s.load(render.WithClientPort(c, api.ClientTLS{Mode: api.TLSDisabled}), light)
	plain.await(10)
	unharmed(s, "clients with TLS, while plain text is allowed", encrypted)
	s.switches(c, api.ClientTLS{Mode: api.TLSDisabled})
	plain.await(10)
	unharmed(s, "clients without TLS, while TLS is removed", plain)
	s.switches(c, api.ClientTLS{Mode: api.TLSManaged})
	if c.Status.TLS.Client.Authority != authority {
		s.Errorf("the authority was %s, is %s", authority, c.Status.TLS.Client.Authority)
	}
	s.same(c, was)
	s.want(s.etcd(c), "key", "value")
}

// servesBoth fails unless each member serves clients without TLS, and those with a certificate.
func (s *stage) servesBoth(c *api.EtcdCluster) {
	s.Helper()
	if ready := condition(c, api.ConditionReady); !strings.Contains(ready.Message, "open to clients without TLS") {
		s.Errorf("the status does not say that clients need no certificate: %s", ready.Message)
	}
	anonymous := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: s.clientTLS(c).RootCAs}
	for _, pod := range s.pods(c) {
		if err := s.get(pod, "http", nil); err != nil {
			s.Errorf("%s refuses a client without TLS: %v", pod.Name, err)
		}
		if err := s.get(pod, "https", s.clientTLS(c)); err != nil {
			s.Errorf("%s refuses a client with TLS: %v", pod.Name, err)
		}
		if s.get(pod, "https", anonymous) == nil {
			s.Errorf("%s lets a client with TLS in that has no certificate", pod.Name)
		}
	}
}

// unharmed ends a load, and fails the test where its clients were refused by a part of the members.
func unharmed(s *stage, what string, l *load) {
	s.Helper()
	result := l.check()
	s.Logf("%s: %d of %d writes acknowledged, %.3f of them while members answered, longest pause %s", what, result.Acknowledged, result.Attempted, result.Answered, result.Longest)
	if result.Answered < 0.95 { // a request may be under way at a member that is stopped
		s.Errorf("%s: %.3f of the writes were acknowledged while members answered", what, result.Answered)
	}
}

// switchOwn goes from Quorate's certificates to others', with an authority of each, and back. A
// client that trusts both goes on where members trust both. The operator asks each member with the
// certificate that it takes. It dies midway.
func switchOwn(s *stage) {
	crash := s.operate()
	c := s.cluster("db", 3)
	s.clientPort(c, api.ClientTLS{Mode: api.TLSManaged})
	s.create(c)
	s.put(s.ready(c), "key", "value")
	was := identityOf(c)
	own := ownPort("server", "operator")

	s.change(c, func() { s.clientPort(c, own) })
	s.stalledWith(c, api.ReasonCertificates, "Secret server (spec.tls.client.secretRef): it does not exist")
	if names := s.serving(c, api.TLSSecret); len(names) > 0 {
		s.Errorf("%v have been changed to a Secret that does not exist", names)
	}
	victim := s.pods(c)[0]
	s.must(s.Delete(s.Context(), &victim))
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
	unharmed(s, "clients of mode Managed, which trust both authorities", l)
	s.same(c, was)
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

// switchSetBack sets the mode back when one member has changed: another one is not touched at all.
// It is said beforehand that there is a gap.
func switchSetBack(s *stage) {
	s.operate()
	c := s.plain()
	was := identityOf(c)
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
		s.Error("the gap was not foretold")
	}
	now, _ := s.lives(c)
	stayed := 0
	for name, uid := range before {
		if now[name] == uid {
			stayed++
		}
	}
	if stayed == 0 {
		s.Errorf("each Pod was recreated: %v, then %v", before, now)
	}
	s.same(c, was)
	s.want(s.etcd(c), "key", "value")
}

// oneMore has an operator change one more member to TLS, and die.
func (s *stage) oneMore(c *api.EtcdCluster) {
	s.Helper()
	before := len(s.serving(c, api.TLSManaged))
	crash := s.operate()
	s.await(c, "with one more changed member", func() bool { return len(s.serving(c, api.TLSManaged)) > before })
	crash()
}

func switchStruck(s *stage) {
	crash := s.operate()
	c := s.plain()
	plain := s.load(c, light)
	crash()
	s.change(c, func() { s.clientPort(c, api.ClientTLS{Mode: api.TLSManaged, Plaintext: api.PlaintextAllowed}) })
	s.oneMore(c)
	victim := s.serving(c, api.TLSDisabled)[0]
	deleteVolume(s, c, victim)
	s.resize(c, 5)
	s.operate()
	s.await(c, "ready with five members", func() bool {
		return is(c, api.ConditionReady, metav1.ConditionTrue) && len(c.Status.Members) == 5
	})
	s.switched(c)
	plain.await(10)
	plain.check()
	s.servesBoth(c)
	s.want(s.etcd(c), "key", "value")
}

func switchBackup(s *stage) {
	s.inStore(func(context.Context, snapshot.Store) error { return nil })
	s.backUp()
	crash := s.operate()
	c := s.guarded(3, etcd36, backups)
	s.create(c)
	s.put(s.ready(c), "key", "value")
	crash()
	s.change(c, func() { s.clientPort(c, api.ClientTLS{Mode: api.TLSManaged}) })
	for changed := 1; changed < 3; changed++ {
		s.oneMore(c)
		b := &api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: "changed-" + strconv.Itoa(changed), Namespace: s.ns}}
		b.Spec.ClusterRef.Name, b.Spec.Verify = c.Name, api.VerifyHash
		s.create(b)
		s.awaitObject(b, "verified", func() bool { return b.Status.VerifiedAt != nil })
	}
	s.operate()
	s.switched(c)
	s.want(s.etcd(c), "key", "value")
}

// switchAsleep changes the mode of a cluster that is hibernated: it starts as it served, and is
// changed then.
func switchAsleep(s *stage) {
	s.operate()
	c := s.plain()
	was := identityOf(c)
	s.change(c, func() { c.Spec.Replicas = new(int32(0)) })
	s.await(c, "hibernated", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) && len(s.pods(c)) == 0 })
	s.change(c, func() {
		s.clientPort(c, api.ClientTLS{Mode: api.TLSManaged})
		c.Spec.Replicas = new(int32(3))
	})
	s.switched(c)
	s.same(c, was)
	s.want(s.etcd(c), "key", "value")
}

func condition(c *api.EtcdCluster, kind string) *metav1.Condition {
	n := slices.IndexFunc(c.Status.Conditions, func(has metav1.Condition) bool { return has.Type == kind })
	if n < 0 {
		return nil
	}
	return &c.Status.Conditions[n]
}
