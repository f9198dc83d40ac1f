//go:build env

package reconcile_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
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
	l := s.load(c, func(config *history.Config) { config.Dial = dialer(s.rereading(c)) })

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
	l := s.load(c, func(config *history.Config) { config.Dial = dialer(s.rereading(c)) })
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

// rereading is how an application connects that reads all files at each connection, those that it
// trusts too.
func (s *stage) rereading(c *api.EtcdCluster) *tls.Config {
	s.Helper()
	config := s.clientTLS(c)
	if config == nil {
		return nil
	}
	key := client.ObjectKey{Namespace: s.ns, Name: c.ApplicationSecret()}
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
