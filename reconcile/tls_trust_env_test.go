//go:build env

package reconcile_test

import (
	"context"
	"crypto/tls"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/pki"
)

// TestTrustIsReadAtStart: each etcd shows another certificate as soon as its file has it, and
// trusts another authority only once it has started again (client/pkg/transport/listener.go:
// GetCertificate reads files, ClientCAs is read once). docs/tls.md builds on it.
func TestTrustIsReadAtStart(t *testing.T) {
	for _, version := range []string{etcd35, etcd36, etcd37} {
		t.Run(version, func(t *testing.T) {
			s := newStage(t)
			s.operate()
			c := s.cluster("db", 1)
			c.Spec.Version = version
			hosts := append(s.addresses(c), "*.db."+s.ns+".svc", "db-client."+s.ns+".svc", "db."+s.ns+".svc", "127.0.0.1")
			c.Spec.TLS = &api.TLS{
				Client: &api.ClientTLS{Mode: api.TLSSecret, SecretRef: &api.SecretReference{Name: "server"}, OperatorSecretRef: &api.SecretReference{Name: "operator"}},
				Peer:   &api.PeerTLS{Mode: api.TLSSecret, SecretRef: &api.SecretReference{Name: "peers"}},
			}
			ours, others := s.authority(), s.authority()
			both := pki.Use{Hosts: hosts, Server: true, Client: true}
			for name, use := range map[string]pki.Use{"server": both, "peers": both, "operator": {Client: true}} {
				s.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}, Type: corev1.SecretTypeTLS, Data: s.issue(ours, use, 30*24*time.Hour)})
			}
			s.create(c)
			s.await(c, "ready", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) })
			pod := s.pods(c)[0]
			stranger := s.pair(s.issue(others, pki.Use{Client: true}, time.Hour))

			for port, name := range map[string]string{"2379": "server", "2380": "peers"} {
				secret := s.secret(name)
				s.change(secret, func() {
					secret.Data = s.issue(ours, both, 30*24*time.Hour)
					secret.Data[api.SecretCA] = slices.Concat(ours.PEM(), others.PEM())
				})
				friend := s.pair(s.secret("operator").Data)
				ctx, cancel := context.WithTimeout(s.Context(), patience)
				defer cancel()
				for wanted := s.serial(name); ; {
					serial, err := s.presented(pod.Status.PodIP+":"+port, friend)
					if err == nil && serial == wanted {
						break
					}
					if ctx.Err() != nil {
						t.Fatalf("port %s presents certificate %s, want %s, which its Secret has (error: %v)", port, serial, wanted, err)
					}
				}
				if err := s.handshake(pod.Status.PodIP+":"+port, stranger); err == nil {
					t.Errorf("port %s trusts another authority without a restart", port)
				}
			}
			if err := s.Delete(s.Context(), &pod); err != nil {
				t.Fatal(err)
			}
			s.await(c, "ready with another Pod", func() bool {
				pods := s.pods(c)
				return is(c, api.ConditionReady, metav1.ConditionTrue) && len(pods) == 1 && pods[0].UID != pod.UID
			})
			for _, port := range []string{"2379", "2380"} {
				if err := s.handshake(s.pods(c)[0].Status.PodIP+":"+port, stranger); err != nil {
					t.Errorf("port %s does not trust the other authority after a restart: %v", port, err)
				}
			}
		})
	}
}

// pair is a client with a certificate. Whom it connects to is not what is tested.
func (s *stage) pair(data map[string][]byte) *tls.Config {
	s.Helper()
	pair, err := tls.X509KeyPair(data[api.SecretCert], data[api.SecretKey])
	if err != nil {
		s.Fatal(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}}
}
