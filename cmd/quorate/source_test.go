package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
)

// parsedSource is what a source is told by, without what cannot be compared.
type parsedSource struct {
	Endpoints          []string
	Encrypted          bool
	CAs, Certificates  bool
	Username, Password string
}

func TestSource(t *testing.T) {
	dir := t.TempDir()
	cert, key, empty := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem"), filepath.Join(dir, "empty.pem")
	writeCertificate(t, cert, key)
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		args   []string
		env    map[string]string
		want   parsedSource
		err    string
	}{
		"Default": {reason: "as etcdctl", want: parsedSource{Endpoints: []string{"http://127.0.0.1:2379"}}},
		"Several": {
			reason: "all are asked",
			args:   []string{"--endpoints=http://10.0.0.1:2379/,10.0.0.2:2379"},
			want:   parsedSource{Endpoints: []string{"http://10.0.0.1:2379", "http://10.0.0.2:2379"}},
		},
		"Encrypted": {
			reason: "https alone is checked with the system's CAs",
			args:   []string{"--endpoints=https://etcd.example:2379"},
			want:   parsedSource{Endpoints: []string{"https://etcd.example:2379"}, Encrypted: true},
		},
		"Certificates": {
			reason: "an endpoint without a scheme is https, where certificates are given",
			args:   []string{"--endpoints=10.0.0.1:2379", "--cacert=" + cert, "--cert=" + cert, "--key=" + key},
			want:   parsedSource{Endpoints: []string{"https://10.0.0.1:2379"}, Encrypted: true, CAs: true, Certificates: true},
		},
		"Variables": {
			reason: "those of etcdctl count",
			env:    map[string]string{"ETCDCTL_ENDPOINTS": "https://a:1,https://b:1", "ETCDCTL_CACERT": cert, "ETCDCTL_USER": "root", "ETCDCTL_PASSWORD": "secret"},
			want:   parsedSource{Endpoints: []string{"https://a:1", "https://b:1"}, Encrypted: true, CAs: true, Username: "root", Password: "secret"},
		},
		"FlagBeforeVariable": {
			reason: "what was written now is meant",
			args:   []string{"--endpoints=http://c:1"},
			env:    map[string]string{"ETCDCTL_ENDPOINTS": "http://a:1"},
			want:   parsedSource{Endpoints: []string{"http://c:1"}},
		},
		"User": {
			reason: "a password may have colons",
			args:   []string{"--user=root:a:b"},
			want:   parsedSource{Endpoints: []string{"http://127.0.0.1:2379"}, Username: "root", Password: "a:b"},
		},
		"UserAlone":        {reason: "nothing is asked for at a prompt", args: []string{"--user=root"}, err: "write --user root:PASSWORD, or set ETCDCTL_PASSWORD"},
		"NoEndpoint":       {reason: "say which", args: []string{"--endpoints="}, err: "--endpoints is empty"},
		"NoPort":           {reason: "etcd has no default port in URLs", args: []string{"--endpoints=10.0.0.1"}, err: `"10.0.0.1" is no client URL of a member: write it as http://10.0.0.1:2379`},
		"OtherScheme":      {reason: "what is known", args: []string{"--endpoints=tcp://10.0.0.1:2379"}, err: "is no client URL of a member"},
		"Path":             {reason: "a client URL has none", args: []string{"--endpoints=http://10.0.0.1:2379/v3"}, err: "is no client URL of a member"},
		"Mixed":            {reason: "one TLS configuration is for all", args: []string{"--endpoints=http://a:1,https://b:1"}, err: "some are http, some https"},
		"PlainWithCA":      {reason: "a client that wants TLS must not go without in silence", args: []string{"--endpoints=http://a:1", "--cacert=" + cert}, err: "write https://, or leave those flags away"},
		"CertificateAlone": {reason: "both or neither", args: []string{"--cert=" + cert}, err: "--cert without --key"},
		"KeyAlone":         {reason: "both or neither", args: []string{"--key=" + key}, err: "--key without --cert"},
		"NoCA":             {reason: "the file is named", args: []string{"--cacert=" + dir + "/none"}, err: "--cacert: open " + dir + "/none"},
		"EmptyCA":          {reason: "what should be in it", args: []string{"--cacert=" + empty}, err: "has no certificate"},
		"Swapped":          {reason: "the flags are named", args: []string{"--cert=" + key, "--key=" + cert}, err: "--cert and --key: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for k, v := range tc.env {
				t.Setenv(k, v)
			}
			var s sourceFlags
			f := pflag.NewFlagSet("", pflag.ContinueOnError)
			s.flags(f)
			if err := f.Parse(tc.args); err != nil {
				t.Fatal(err)
			}
			source, err := s.source(f)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.err, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got := parsedSource{Endpoints: source.Endpoints, Encrypted: source.TLS != nil, Username: source.Username, Password: source.Password}
			if source.TLS != nil {
				got.CAs, got.Certificates = source.TLS.RootCAs != nil, len(source.TLS.Certificates) > 0
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

// writeCertificate writes a certificate that is its own CA, and its key.
func writeCertificate(t *testing.T, certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
