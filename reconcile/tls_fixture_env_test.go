//go:build env

package reconcile_test

import (
	"crypto/tls"
	"crypto/x509"
	"flag"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

var withTLS = flag.Bool("tls", false, "every spec asks for TLS on both ports, whatever the test is about")

// secure has a cluster ask for TLS on both ports. There is no DNS: certificates have the addresses
// that stand for the names of members.
func (s *stage) secure(c *api.EtcdCluster) {
	c.Spec.TLS = &api.TLS{Client: &api.ClientTLS{Mode: api.TLSManaged}, Peer: &api.PeerTLS{Mode: api.TLSManaged}}
	for _, address := range s.addresses(c) {
		c.Spec.TLS.Client.AltNames = append(c.Spec.TLS.Client.AltNames, api.AltName(address))
	}
}

// withoutTLS has it ask for none: most tests are not about TLS.
func withoutTLS(c *api.EtcdCluster) {
	c.Spec.TLS = &api.TLS{Client: &api.ClientTLS{Mode: api.TLSDisabled}, Peer: &api.PeerTLS{Mode: api.TLSDisabled}}
}

// mostOrdinals is more than any of these clusters gets.
const mostOrdinals = 16

// addresses are those of the members that the cluster may get.
func (s *stage) addresses(c *api.EtcdCluster) []string {
	addresses := make([]string, 0, mostOrdinals)
	for n := range mostOrdinals {
		at, err := url.Parse(s.hostlet.Substitute(c.PeerURL(c.MemberName(n))))
		if err == nil {
			addresses = append(addresses, at.Hostname())
		}
	}
	return addresses
}

// dialTLS is membership.DialTLS, in the manner of dial.
func (s *stage) dialTLS(host string, port int, config *tls.Config) (membership.Client, error) {
	c, err := membership.DialTLS(host, port, config)
	return named{c, s.hostlet}, err
}

// secret of the stage, as it is now.
func (s *stage) secret(name string) *corev1.Secret {
	s.Helper()
	secret := &corev1.Secret{}
	if err := s.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, secret); err != nil {
		s.Fatal(err)
	}
	return secret
}

// clientTLS is how an application connects that has mounted its Secret: at each connection it reads
// its certificate each time. It is nil where clients need no TLS.
func (s *stage) clientTLS(c *api.EtcdCluster) *tls.Config {
	s.Helper()
	return s.clientTLSOf(c, c.ApplicationSecret())
}

// clientTLSOf is the same with the certificate in a Secret.
func (s *stage) clientTLSOf(c *api.EtcdCluster, name string) *tls.Config {
	s.Helper()
	if c.ClientTLSMode() != api.TLSManaged {
		return nil
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.secret(name).Data[api.SecretCA])
	key := client.ObjectKey{Namespace: s.ns, Name: name}
	return &tls.Config{
		MinVersion: tls.VersionTLS12, RootCAs: roots,
		GetClientCertificate: func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			secret := &corev1.Secret{}
			if err := s.Get(info.Context(), key, secret); err != nil {
				return nil, err
			}
			pair, err := tls.X509KeyPair(secret.Data[api.SecretCert], secret.Data[api.SecretKey])
			return &pair, err
		},
	}
}
