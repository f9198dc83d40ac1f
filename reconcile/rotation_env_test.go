//go:build env

package reconcile_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/history"
	"quorate.dev/reconcile"
	"quorate.dev/reconcile/pki"
	"quorate.dev/snapshot"
)

// TestAuthorityRotates: both authorities are rotated under clients that write and read. Each
// operator dies at a write of the rotation, and the next goes on. A member is killed in one step,
// and two come in another. In the end nothing trusts the former authorities, and nothing that was
// acknowledged is lost.
func TestAuthorityRotates(t *testing.T) {
	s := newStage(t)
	s.secured = true
	c := s.cluster("db", 3)
	c.Spec.TLS.Client.RotationWait = new(api.Duration("0s"))
	contract.Watch(s, c)
	crash := s.operate()
	s.create(c)
	s.ready(c)
	was := c.Status.TLS.DeepCopy()
	application, peer := s.pair(s.secret(c.ApplicationSecret()).Data), s.peerTLS(c)
	l := s.load(c, func(config *history.Config) { config.Dial = dialer(s.rereading(c, c.ApplicationSecret())) })

	deaths := []struct {
		reason string
		effect string
		mode   mode
		then   func()
	}{
		{reason: "the next authority is there, and nothing trusts it", effect: "apply.Secret.db-client-ca#1", mode: after},
		{reason: "one Secret of several trusts both", effect: "apply.Secret.db-server-tls#1", mode: after},
		{reason: "the first Pod is deleted", effect: "delete.Pod.db-2#1", mode: after},
		{reason: "the new authority issues, and has issued nothing", effect: "apply.Secret.db-peer-ca#1", mode: after, then: func() {
			pods := s.pods(c)
			s.must(s.Delete(t.Context(), &pods[0]))
		}},
		{reason: "the former authority is trusted no more, and each Secret still has it", effect: "apply.Secret.db-peer-ca#1", mode: after, then: func() { s.resize(c, 5) }},
	}
	s.change(c, func() { c.Spec.TLS.Client.RotateAuthority, c.Spec.TLS.Peer.RotateAuthority = "stolen", "stolen" })
	crash()
	for _, d := range deaths {
		f := newFault(d.effect, d.mode)
		f.arm()
		crash = s.operate(f.between)
		t.Logf("%s: %s", d.effect, d.reason)
		s.meets(f)
		crash()
		if d.then != nil {
			d.then()
		}
		l.await(10)
	}
	s.operate()
	s.await(c, "rotated", func() bool {
		return is(c, api.ConditionReady, metav1.ConditionTrue) && len(c.Status.Members) == 5 && rotatedTo("stolen", c.Status.TLS.Client) && rotatedTo("stolen", c.Status.TLS.Peer)
	})
	l.await(10)
	l.check()

	if c.Status.TLS.Client.Authority == was.Client.Authority || c.Status.TLS.Peer.Authority == was.Peer.Authority {
		t.Errorf("the authorities are the same: %+v", c.Status.TLS)
	}
	for _, pod := range s.pods(c) {
		for port, former := range map[string]*tls.Config{"2379": application, "2380": peer} {
			if err := s.handshake(pod.Status.PodIP+":"+port, former); err == nil {
				t.Errorf("%s trusts a certificate of the former authority at port %s", pod.Name, port)
			}
		}
		if s.served(pod.Status.PodIP+":2379", s.clientTLS(c)) != s.serial("db-server-tls") || s.served(pod.Status.PodIP+":2380", s.peerTLS(c)) != s.serial("db-peer-tls") {
			t.Errorf("%s shows another certificate than its Secret has", pod.Name)
		}
	}
}

func rotatedTo(word string, s api.TLSPlaneStatus) bool {
	return s.RotateAuthority == word && s.Rotation == nil && slices.Equal(s.Trusts, []string{s.Authority})
}

// TestLostAuthorityRotates: an authority whose key is lost, and one that was replaced by another,
// give way to new ones where a person asks for that, and nothing pauses.
func TestLostAuthorityRotates(t *testing.T) {
	s := newStage(t)
	s.secured = true
	s.operate()
	c := s.cluster("db", 3)
	c.Spec.TLS.Client.RotationWait = new(api.Duration("0s"))
	s.create(c)
	s.ready(c)
	was := c.Status.TLS.DeepCopy()
	l := s.load(c, func(config *history.Config) { config.Dial = dialer(s.rereading(c, c.ApplicationSecret())) })
	s.must(s.Delete(t.Context(), s.secret("db-peer-ca")))
	foreign := s.secret("db-client-ca")
	s.change(foreign, func() { foreign.Data[api.SecretCert] = s.authority().PEM() })
	s.stalledWith(c, api.ReasonAuthorityLost, "Secret db-client-ca", "no certificate can be renewed", "rotateAuthority")
	s.change(c, func() { c.Spec.TLS.Client.RotateAuthority, c.Spec.TLS.Peer.RotateAuthority = "lost", "lost" })
	s.await(c, "rotated", func() bool {
		return is(c, api.ConditionReady, metav1.ConditionTrue) && rotatedTo("lost", c.Status.TLS.Client) && rotatedTo("lost", c.Status.TLS.Peer)
	})
	if c.Status.TLS.Client.Authority == was.Client.Authority || c.Status.TLS.Peer.Authority == was.Peer.Authority {
		t.Errorf("the authorities are the same: %+v", c.Status.TLS)
	}
	l.await(10)
	l.check()
}

// TestLostMidwayRotates: the authority that issues is lost in the second step, when certificates of
// the one before it are still in use. Nothing pauses, and in the end only the third is trusted.
func TestLostMidwayRotates(t *testing.T) {
	s := newStage(t)
	s.secured = true
	c := s.cluster("db", 3)
	c.Spec.TLS.Client.RotationWait = new(api.Duration("0s"))
	crash := s.operate()
	s.create(c)
	s.ready(c)
	was := c.Status.TLS.DeepCopy()
	l := s.load(c, func(config *history.Config) { config.Dial = dialer(s.rereading(c, c.ApplicationSecret())) })
	crash()
	f := newFault("apply.Secret.db-peer-ca#2", after) // the new authority issues, and has issued nothing
	f.arm()
	crash = s.operate(f.between)
	s.change(c, func() { c.Spec.TLS.Peer.RotateAuthority = "a" })
	s.meets(f)
	crash()
	lost := s.secret("db-peer-ca")
	second := pki.Fingerprint(lost.Data[api.SecretCert])
	s.must(s.Delete(t.Context(), lost))
	s.change(c, func() { c.Spec.TLS.Peer.RotateAuthority = "lost" })
	s.operate()
	s.await(c, "rotated", func() bool {
		return is(c, api.ConditionReady, metav1.ConditionTrue) && rotatedTo("lost", c.Status.TLS.Peer)
	})
	if is := c.Status.TLS.Peer.Authority; is == was.Peer.Authority || is == second {
		t.Errorf("the authority is %s, want another one than the first and the one that was lost", is)
	}
	l.await(10)
	l.check()
}

// TestExpiredAuthorityRotates: both authorities expire while no operator runs. The next operator
// brings the cluster back by itself, with its data.
func TestExpiredAuthorityRotates(t *testing.T) {
	s := newStage(t)
	s.secured = true
	crash := s.operate(func(r *reconcile.Reconciler) { r.Certificates.AuthorityLifetime = 40 * time.Second })
	c := s.cluster("db", 3)
	s.create(c)
	s.await(c, "available", func() bool { return is(c, api.ConditionAvailable, metav1.ConditionTrue) && c.Status.ReadyReplicas == 3 }) // not ready: the end is near
	s.put(s.etcd(c), "key", "value")
	was := c.Status.TLS.DeepCopy()
	before, _ := s.lives(c)
	crash()
	for _, name := range []string{"db-client-ca", "db-peer-ca"} {
		block, _ := pem.Decode(s.secret(name).Data[api.SecretCert])
		authority, err := x509.ParseCertificate(block.Bytes)
		s.must(err)
		select {
		case <-time.After(time.Until(authority.NotAfter) + time.Second):
		case <-t.Context().Done():
		}
	}
	s.operate()
	s.await(c, "back, with other authorities", func() bool {
		return is(c, api.ConditionReady, metav1.ConditionTrue) && c.Status.TLS.Client.Rotation == nil && c.Status.TLS.Peer.Rotation == nil &&
			c.Status.TLS.Client.Authority != was.Client.Authority && c.Status.TLS.Peer.Authority != was.Peer.Authority
	})
	s.want(s.etcd(c), "key", "value")
	after, _ := s.lives(c)
	if len(after) != len(before) {
		t.Errorf("Pods were %v, are %v", before, after)
	}
	for pod, uid := range after {
		if uid == before[pod] {
			t.Errorf("%s is the Pod that trusted what has expired", pod)
		}
	}
}

// TestBackupDuringRotation: an EtcdBackup that is created in any step of a rotation is verified,
// and so is one whose agent was killed in one step and comes again in the next.
func TestBackupDuringRotation(t *testing.T) {
	s := newStage(t, agents)
	s.secured = true
	s.inStore(func(context.Context, snapshot.Store) error { return nil })
	killed := make(chan struct{})
	s.dies = func(string, bool) bool {
		select {
		case <-killed:
			return false
		default:
			close(killed)
			return true
		}
	}
	s.backUp()
	c := s.guarded(1, etcd36, backups)
	c.Spec.TLS.Client.RotationWait = new(api.Duration("0s"))
	crash := s.operate()
	s.create(c)
	s.put(s.ready(c), "key", "value")
	crash()
	backup := func(name string) *api.EtcdBackup {
		b := &api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}
		b.Spec.ClusterRef.Name, b.Spec.Verify = c.Name, api.VerifyHash
		s.create(b)
		return b
	}
	verified := func(b *api.EtcdBackup) {
		s.awaitObject(b, "verified", func() bool { return b.Status.VerifiedAt != nil })
	}
	until := func(effect string) {
		f := newFault(effect, before)
		f.arm()
		crash := s.operate(f.between)
		s.meets(f)
		crash()
	}
	s.change(c, func() { c.Spec.TLS.Client.RotateAuthority, c.Spec.TLS.Peer.RotateAuthority = "a", "a" })
	until("apply.Secret.db-client-ca#2") // step TrustBoth, at its end
	first := backup("trustboth")
	select {
	case <-killed:
	case <-time.After(patience):
		t.Fatal("no agent has come to be killed")
	}
	until("apply.Secret.db-client-ca#2") // step Reissue, at its end
	second := backup("reissue")
	verified(first)
	verified(second)
	until("delete.Pod.db-0#1") // step TrustNew: the member trusts both still
	third := backup("trustnew")
	s.operate() // it may recreate the member amid that
	verified(third)
	s.await(c, "rotated", func() bool {
		return is(c, api.ConditionReady, metav1.ConditionTrue) && rotatedTo("a", c.Status.TLS.Client) && rotatedTo("a", c.Status.TLS.Peer)
	})
	fourth := backup("after")
	verified(fourth)
}

// rereading is how an application connects that reads all files of a Secret at each connection,
// those that it trusts too.
func (s *stage) rereading(c *api.EtcdCluster, name string) *tls.Config {
	s.Helper()
	config := s.clientTLSOf(c, name)
	if config == nil {
		return nil
	}
	key := client.ObjectKey{Namespace: s.ns, Name: name}
	config.RootCAs, config.InsecureSkipVerify = nil, true
	config.VerifyConnection = func(state tls.ConnectionState) error {
		ctx, cancel := context.WithTimeout(s.Context(), loadTimeout)
		defer cancel()
		secret := &corev1.Secret{}
		if err := s.Get(ctx, key, secret); err != nil {
			return err
		}
		roots := x509.NewCertPool()
		if !roots.AppendCertsFromPEM(secret.Data[api.SecretCA]) {
			return errors.New("ca.crt is empty")
		}
		if _, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, CurrentTime: time.Now()}); err != nil {
			return fmt.Errorf("verify the member: %w", err)
		}
		return nil
	}
	return config
}
