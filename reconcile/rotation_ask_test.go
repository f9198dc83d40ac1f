package reconcile

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/pki"
)

// TestAskedOfTrustHoldsNoWorker: while members are asked whom they trust and do not answer, as
// behind a network policy that drops what comes to port 2380, another cluster has the worker.
func TestAskedOfTrustHoldsNoWorker(t *testing.T) {
	t.Parallel()
	c := managed()
	data := secrets(t, c)["db-peer-ca"].Data
	var err error
	if data[api.SecretNextCert], data[api.SecretNextKey], err = pki.NewAuthority("next", noon, pki.AuthorityLifetime); err != nil {
		t.Fatal(err)
	}
	h, err := readAuthoritySecret(&corev1.Secret{Data: data}, noon)
	if err != nil {
		t.Fatal(err)
	}
	s := newStub(t, nil)
	s.workers = newWorkers(1)
	asked, given := make(chan struct{}, 1), make(chan struct{})
	s.handshaker = func(context.Context, string, int, *tls.Config) (*x509.Certificate, error) {
		asked <- struct{}{}
		<-given
		return nil, context.DeadlineExceeded
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.workers.acquire(ctx, c.Namespace); err != nil { // that of the pass
		t.Fatal(err)
	}
	l := &inspection{r: s.Reconciler, c: c, now: noon, found: &credentials{}}
	over := make(chan struct{})
	go func() {
		defer close(over)
		l.ask(ctx, l.peerPlane(), h, map[string]*corev1.Pod{"db-0": withTLS(newPod("db-0"))}, []memberTrust{{Name: "db-0"}})
	}()
	<-asked
	if err := s.workers.acquire(ctx, c.Namespace); err != nil {
		t.Errorf("another cluster is not looked at: %v", err)
	} else {
		s.workers.release(c.Namespace)
	}
	close(given)
	<-over
	if busy := s.workers.shares.Taken(); busy != 1 {
		t.Errorf("%d workers are busy, and the pass has one", busy)
	}
}

// TestHandshakeSays: what a member has against a connection is told in the same words at each look.
// It is in the status, which would be written every few seconds.
func TestHandshakeSays(t *testing.T) {
	t.Parallel()
	cert, key, err := pki.NewAuthority("ns/db", time.Now(), pki.AuthorityLifetime)
	if err != nil {
		t.Fatal(err)
	}
	a, err := pki.ReadAuthority(map[string][]byte{api.SecretCert: cert, api.SecretKey: key}, files, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err = a.Issue("db", pki.Use{Hosts: []string{"db-0"}, Server: true}, nil, time.Now().Add(-2*pki.LeafLifetime), pki.LeafLifetime)
	if err != nil {
		t.Fatal(err)
	}
	expired, err := tls.X509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		answer func(net.Conn)
		want   string // ends the message
	}{
		"Reset": {
			reason: "the port of this side is another one each time",
			answer: func(conn net.Conn) {
				_, _ = conn.Read(make([]byte, 1))
				_ = conn.(*net.TCPConn).SetLinger(0)
			},
			want: ": connection reset by peer",
		},
		"Expired": {
			reason: "so is the time",
			answer: func(conn net.Conn) {
				_ = tls.Server(conn, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{expired}}).Handshake()
			},
			want: "x509: certificate has expired or is not yet valid",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			go func() {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				tc.answer(conn)
				_ = conn.Close()
			}()
			config, err := a.Client(api.Manager, a.PEM(), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			config.ServerName = "db-0"
			_, err = handshake(t.Context(), "127.0.0.1", l.Addr().(*net.TCPAddr).Port, config)
			if got := text(err); !strings.HasSuffix(got, tc.want) || strings.Contains(got, "->") {
				t.Errorf("%s: got %q, want an end of %q and no port of this side", tc.reason, got, tc.want)
			}
		})
	}
}

// TestWordOfSecret: a Secret that a person has edited says no word that the status cannot have: no
// status of the cluster could be written.
func TestWordOfSecret(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, word, want string }{
		"Longest": {reason: "the schema counts characters", word: strings.Repeat("ä", 64), want: strings.Repeat("ä", 64)},
		"TooLong": {reason: "it is none of spec.tls", word: strings.Repeat("a", 65)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data := secrets(t, managed())["db-peer-ca"].Data
			data[api.SecretRotation] = []byte(tc.word)
			h, err := readAuthoritySecret(&corev1.Secret{Data: data}, noon)
			if err != nil {
				t.Fatal(err)
			}
			if h.request != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, h.request, tc.want)
			}
		})
	}
}
