package membership

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"net"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// TestDialTLS: a member is asked at its address, and its certificate checked for its name.
func TestDialTLS(t *testing.T) {
	t.Parallel()
	certificate, roots := certificateOf(t, "*.db.ns.svc")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}})))
	h := &hostile{status: told(func(*etcdserverpb.StatusResponse) {})}
	etcdserverpb.RegisterMaintenanceServer(server, h)
	etcdserverpb.RegisterClusterServer(server, h)
	go func() { _ = server.Serve(listener) }() // until it is stopped
	t.Cleanup(server.Stop)
	host, port := at(t, listener)

	cases := map[string]struct {
		reason string
		name   string
		fails  bool
	}{
		"Member": {reason: "the certificate has the name, and no address", name: "db-0.db.ns.svc"},
		"Other":  {reason: "the member of another cluster answers there", name: "db-0.other.ns.svc", fails: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, err := DialTLS(host, port, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: tc.name})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }() // it was only read from
			if _, err := c.Status(t.Context()); (err != nil) != tc.fails {
				t.Errorf("%s: status: %v", tc.reason, err)
			}
			if _, err := c.Members(t.Context()); (err != nil) != tc.fails {
				t.Errorf("%s: members: %v", tc.reason, err)
			}
		})
	}
}

// certificateOf is a certificate for that name, and what trusts it.
func certificateOf(t *testing.T, name string) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, roots
}
