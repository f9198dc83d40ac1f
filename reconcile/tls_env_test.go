//go:build env

package reconcile_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"maps"
	"slices"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/share"
	"quorate.dev/reconcile"
	"quorate.dev/reconcile/pki"
	"quorate.dev/snapshot"
)

// TestTLS plays lives of clusters with TLS on both ports, under clients whose history is checked.
// Flag -tls has every other test do the same.
func TestTLS(t *testing.T) {
	t.Parallel()
	played := map[string]life{
		"grow": lives["grow"], "heal": lives["heal"], "upgrade": lives["upgrade"], "inplace": lives["inplace"],
		// No client goes on there: the new EtcdCluster has another authority.
		"retain": {reason: lives["retain"].reason, forgets: true, run: lives["retain"].run},
	}
	for name, life := range share.Of(t, played, 2) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, agents)
			s.secured = true
			s.operate()
			c, writes := life.play(s, newFault("", ""))
			t.Logf("%d of %d writes acknowledged, longest pause %s", writes.Acknowledged, writes.Attempted, writes.Longest)
			if c.Status.TLS.Client.Mode != api.TLSManaged || c.Status.TLS.Client.Authority == "" || c.Status.TLS.Peer.Authority == "" {
				t.Errorf("status.tls: %+v", c.Status.TLS)
			}
		})
	}
}

// TestTLSRefuses: without a certificate of the cluster's own authority a client gets nothing, at
// either port.
func TestTLSRefuses(t *testing.T) {
	s := newStage(t)
	s.secured = true
	s.operate()
	c, other := s.cluster("db", 1), s.cluster("web", 1)
	s.create(c)
	s.create(other)
	s.put(s.ready(c), "key", "value")
	s.ready(other)
	address := s.pods(c)[0].Status.PodIP

	good := s.clientTLS(c)
	anonymous := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: good.RootCAs}
	stranger := s.clientTLS(other)
	stranger.RootCAs = good.RootCAs
	get := func(scheme string, config *tls.Config) error {
		etcd, err := clientv3.New(clientv3.Config{Endpoints: []string{scheme + "://" + address + ":2379"}, Logger: zap.NewNop(), TLS: config})
		if err != nil {
			return err
		}
		defer func() { _ = etcd.Close() }() // it was only read from
		ctx, cancel := context.WithTimeout(s.Context(), 3*time.Second)
		defer cancel()
		_, err = etcd.Get(ctx, "key")
		return err
	}
	if err := get("https", good); err != nil {
		t.Fatalf("a client with its certificate: %v", err)
	}
	for name, err := range map[string]error{
		"plain text":                        get("http", nil),
		"no certificate":                    get("https", anonymous),
		"another cluster's certificate":     get("https", stranger),
		"a client's certificate at a peer":  s.handshake(address+":2380", good),
		"no certificate at a peer":          s.handshake(address+":2380", anonymous),
		"another cluster's peer at a peer":  s.handshake(address+":2380", s.peerTLS(other)),
		"a member's certificate at clients": s.handshake(address+":2379", s.peerTLS(c)),
	} {
		if err == nil {
			t.Errorf("%s is let in", name)
		}
	}
	if err := s.handshake(address+":2380", s.peerTLS(c)); err != nil {
		t.Errorf("a member is refused by another one: %v", err)
	}
}

// peerTLS is how a member of a cluster connects to another one. Whom it connects to is not what is
// tested.
func (s *stage) peerTLS(c *api.EtcdCluster) *tls.Config {
	s.Helper()
	data := s.secret(c.PeerSecret()).Data
	pair, err := tls.X509KeyPair(data[api.SecretPeerCert], data[api.SecretPeerKey])
	if err != nil {
		s.Fatal(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, InsecureSkipVerify: true}
}

// handshake connects, and reads: a server refuses a certificate after the client has found the
// handshake done.
func (s *stage) handshake(address string, config *tls.Config) error {
	s.Helper()
	config = config.Clone()
	config.InsecureSkipVerify = true
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	conn, err := (&tls.Dialer{Config: config}).DialContext(ctx, "tcp", address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // it was only read from
	if _, err := conn.Write([]byte("GET /version HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")); err != nil {
		return err
	}
	_, err = conn.Read(make([]byte, 1))
	return err
}

// served is the serial number of the certificate that a Pod shows at a port.
func (s *stage) served(address string, config *tls.Config) string {
	s.Helper()
	serial, err := s.presented(address, config)
	if err != nil {
		s.Fatal(err)
	}
	return serial
}

// presented is served where a handshake may fail: etcd reads certificate and key one after the
// other, so the two do not match while another key is being written.
func (s *stage) presented(address string, config *tls.Config) (serial string, err error) {
	config = config.Clone()
	config.InsecureSkipVerify = true
	config.VerifyConnection = func(state tls.ConnectionState) error {
		serial = state.PeerCertificates[0].SerialNumber.String()
		return nil
	}
	err = s.handshake(address, config)
	return serial, err
}

func (s *stage) serial(secret string) string {
	s.Helper()
	block, _ := pem.Decode(s.secret(secret).Data[api.SecretCert])
	c, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		s.Fatal(err)
	}
	return c.SerialNumber.String()
}

// awaitSecret waits until a Secret is as wanted.
func (s *stage) awaitSecret(name, wanted string, done func(*corev1.Secret) bool) {
	s.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}
	s.awaitObject(secret, wanted, func() bool { return secret.UID != "" && done(secret) })
}

// TestCertificatesRenew: leaves of seconds are renewed again and again under load, by one operator
// and the next. No write fails, no process is started again, and what members show is what was
// renewed.
func TestCertificatesRenew(t *testing.T) {
	s := newStage(t)
	s.secured = true
	short := func(r *reconcile.Reconciler) {
		r.Certificates.Lifetime, r.Certificates.Every = 30*time.Second, time.Second
	}
	crash := s.operate(short)
	c := s.cluster("db", 3)
	s.create(c)
	s.ready(c)
	l := s.load(c)
	before, _ := s.lives(c)
	for round := range 2 {
		old := map[string]string{}
		for _, name := range []string{"db-server-tls", "db-peer-tls", "db-client-tls", "db-operator-tls"} {
			old[name] = string(s.secret(name).Data[api.SecretCert])
		}
		for name := range old {
			s.awaitSecret(name, "renewed", func(secret *corev1.Secret) bool { return string(secret.Data[api.SecretCert]) != old[name] })
		}
		l.await(20)
		if round == 0 {
			crash()
			crash = s.operate(short)
		}
	}
	for _, pod := range s.pods(c) {
		ctx, cancel := context.WithTimeout(s.Context(), patience)
		defer cancel()
		for s.served(pod.Status.PodIP+":2379", s.clientTLS(c)) != s.serial("db-server-tls") || s.served(pod.Status.PodIP+":2380", s.peerTLS(c)) != s.serial("db-peer-tls") {
			if ctx.Err() != nil {
				t.Fatalf("%s shows another certificate than its Secret has", pod.Name)
			}
		}
	}
	result := l.check()
	if result.Failed > 0 {
		t.Errorf("%d of %d writes failed", result.Failed, result.Attempted)
	}
	after, restarts := s.lives(c)
	if !maps.Equal(before, after) || slices.ContainsFunc(slices.Collect(maps.Values(restarts)), func(n int32) bool { return n > 0 }) {
		t.Errorf("Pods were %v, are %v, with restarts %v", before, after, restarts)
	}
	s.ready(c)
}

// TestCertificatesMended: what a person deletes or replaces is put back, and a lost authority is
// told, with the way to another one.
func TestCertificatesMended(t *testing.T) {
	s := newStage(t)
	s.secured = true
	s.operate()
	c := s.cluster("db", 1)
	s.create(c)
	s.put(s.ready(c), "key", "value")

	for _, name := range []string{"db-server-tls", "db-client-tls"} {
		secret := s.secret(name)
		if err := s.Delete(s.Context(), secret); err != nil {
			t.Fatal(err)
		}
		s.awaitSecret(name, "created again", func(again *corev1.Secret) bool { return again.UID != secret.UID })
	}
	secret := s.secret("db-peer-tls")
	s.change(secret, func() { secret.Data[api.SecretKey] = s.secret("db-client-tls").Data[api.SecretKey] })
	s.awaitSecret("db-peer-tls", "mended", func(again *corev1.Secret) bool {
		_, err := tls.X509KeyPair(again.Data[api.SecretCert], again.Data[api.SecretKey])
		return err == nil
	})
	s.want(s.ready(c), "key", "value")

	trusted := c.Status.TLS.Client.Authority
	if err := s.Delete(s.Context(), s.secret("db-client-ca")); err != nil {
		t.Fatal(err)
	}
	s.stalledWith(c, api.ReasonAuthorityLost, "Secret db-client-ca", "is missing", "the cluster serves until", "rotateAuthority")
	if !is(c, api.ConditionAvailable, metav1.ConditionTrue) || !is(c, api.ConditionDegraded, metav1.ConditionTrue) {
		t.Errorf("a cluster whose authority is lost: %+v", c.Status.Conditions)
	}
	s.want(s.etcd(c), "key", "value")
	s.change(c, func() { c.Spec.Replicas = new(int32(0)) })
	s.await(c, "hibernated", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) && len(s.pods(c)) == 0 })
	s.change(c, func() { c.Spec.Replicas = new(int32(1)) })
	s.want(s.ready(c), "key", "value")
	if c.Status.TLS.Client.Authority == trusted {
		t.Error("the lost authority is trusted still")
	}
}

// TestOwnSecrets: with mode Secret the cluster waits for what others write, says by name what is
// wrong with it, and goes on serving.
func TestOwnSecrets(t *testing.T) {
	s := newStage(t)
	s.operate()
	c := s.cluster("db", 1)
	hosts := append(s.addresses(c), "*.db."+s.ns+".svc", "db-client."+s.ns+".svc", "db."+s.ns+".svc", "127.0.0.1")
	c.Spec.TLS = &api.TLS{
		Client: &api.ClientTLS{Mode: api.TLSSecret, SecretRef: &api.SecretReference{Name: "server"}, OperatorSecretRef: &api.SecretReference{Name: "operator"}},
		Peer:   &api.PeerTLS{Mode: api.TLSSecret, SecretRef: &api.SecretReference{Name: "peers"}},
	}
	s.create(c)
	s.stalledWith(c, api.ReasonCertificates, "Secret server (spec.tls.client.secretRef): it does not exist")
	if pods := s.pods(c); len(pods) > 0 {
		t.Errorf("a Pod is made before its Secrets are there: %v", pods[0].Name)
	}

	ours, others := s.authority(), s.authority()
	all := pki.Use{Hosts: hosts, Server: true, Client: true}
	for name, use := range map[string]pki.Use{"server": all, "peers": all, "operator": {Client: true}} {
		s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}, Type: corev1.SecretTypeTLS, Data: s.issue(ours, use, 24*time.Hour*30)})
	}
	s.await(c, "ready", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) })
	if c.Status.TLS.Client.Mode != api.TLSSecret || c.Status.TLS.Client.Authority != "" {
		t.Errorf("status.tls: %+v", c.Status.TLS)
	}

	server := s.secret("server")
	good := server.Data
	s.change(server, func() { server.Data = s.issue(others, all, 24*time.Hour*30) })
	s.stalledWith(c, api.ReasonCertificates, "Secret operator (spec.tls.client.operatorSecretRef): members would refuse it")
	s.change(server, func() {
		server.Data = s.issue(ours, pki.Use{Hosts: hosts[1:2], Server: true, Client: true}, 24*time.Hour*30)
	})
	s.stalledWith(c, api.ReasonCertificates, "Secret server (spec.tls.client.secretRef): tls.crt is not valid for *.db."+s.ns+".svc")
	s.change(server, func() { server.Data = good })
	s.await(c, "ready again", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) })
	_, restarts := s.lives(c)
	if restarts["db-0"] != 0 {
		t.Errorf("the member was started again: %v", restarts)
	}
}

func (s *stage) authority() *pki.Authority {
	s.Helper()
	cert, key, err := pki.NewAuthority("people", time.Now(), pki.AuthorityLifetime)
	if err != nil {
		s.Fatal(err)
	}
	a, err := pki.ReadAuthority(map[string][]byte{api.SecretCert: cert, api.SecretKey: key}, pki.Names{Cert: api.SecretCert, Key: api.SecretKey}, time.Now())
	if err != nil {
		s.Fatal(err)
	}
	return a
}

func (s *stage) issue(a *pki.Authority, use pki.Use, lifetime time.Duration) map[string][]byte {
	s.Helper()
	cert, key, err := a.Issue("people", use, nil, time.Now(), lifetime)
	if err != nil {
		s.Fatal(err)
	}
	return map[string][]byte{api.SecretCert: cert, api.SecretKey: key, api.SecretCA: a.PEM()}
}

// TestTLSBackup: the Job that takes a snapshot before the version changes connects with the
// operator's certificate, and a cluster with TLS starts from what it has stored.
func TestTLSBackup(t *testing.T) {
	s := newStage(t, agents)
	s.secured = true
	s.inStore(func(context.Context, snapshot.Store) error { return nil })
	s.backUp()
	s.operate()
	c := s.guarded(1, etcd36, backups)
	s.create(c)
	s.put(s.ready(c), "key", "value")
	s.change(c, func() { c.Spec.Version = etcd37 })
	s.runs(c, etcd37)
	versions, _ := s.backups()
	if versions[c.BackupBeforeChangeName()] != etcd36 {
		t.Errorf("snapshots %v, want one of %s", versions, etcd36)
	}
	again := s.fromSnapshot("again", 3)
	s.create(again)
	s.want(s.ready(again), "key", "value")
}
