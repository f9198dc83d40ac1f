package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
	"time"
)

func TestStale(t *testing.T) {
	t.Parallel()
	ours, others := authority(t, noon), authority(t, noon)
	good := issued(t, ours, use, noon)
	renewal := noon.Add(LeafLifetime * 2 / 3)
	more := use
	more.Hosts = append([]string{"etcd.example.com"}, use.Hosts...)
	cases := map[string]struct {
		reason string
		files  map[string][]byte
		use    Use
		at     time.Time
		want   string
	}{
		"Fresh":       {reason: "it was just issued", files: good, use: use, at: noon},
		"BeforeThat":  {reason: "two thirds of its life are not over", files: good, use: use, at: renewal.Add(-time.Second)},
		"Due":         {reason: "well before its end", files: good, use: use, at: renewal, want: "tls.crt expires soon"},
		"Expired":     {reason: "the operator was away", files: good, use: use, at: noon.Add(2 * LeafLifetime), want: "tls.crt expired"},
		"MoreNames":   {reason: "altNames were added", files: good, use: more, at: noon, want: "tls.crt is not valid for etcd.example.com"},
		"FewerNames":  {reason: "altNames were taken away", files: issued(t, ours, more, noon), use: use, at: noon, want: "tls.crt has other names"},
		"Missing":     {reason: "there is none yet", use: use, at: noon, want: "tls.crt is missing"},
		"OtherIssuer": {reason: "all of it was replaced", files: issued(t, others, use, noon), use: use, at: noon, want: "ca.crt does not have exactly the authorities that are to be trusted now"},
		"OtherCA":     {reason: "a part of it was replaced", files: with(good, "ca.crt", others.PEM()), use: use, at: noon, want: "tls.crt was not issued"},
		"MoreCA":      {reason: "another one is trusted as well", files: with(good, "ca.crt", joined(ours.PEM(), others.PEM())), use: use, at: noon, want: "ca.crt does not have exactly the authorities that are to be trusted now"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			again, err := ours.Stale(tc.files, names, tc.use, tc.at, LeafLifetime)
			if got := text(err); !strings.HasPrefix(got, tc.want) || (tc.want == "") != (err == nil) {
				t.Errorf("%s: -want, +got\n-%s\n+%s", tc.reason, tc.want, got)
			}
			if err == nil && !again.Equal(renewal) {
				t.Errorf("%s: it is looked at again at %s, want %s", tc.reason, again, renewal)
			}
		})
	}
}

// TestBeside: in a rotation two authorities are trusted, in the same file whichever of them issues,
// and what the other one has issued is stale.
func TestBeside(t *testing.T) {
	t.Parallel()
	former, next := authority(t, noon), authority(t, noon)
	old, young := former.Beside(next.Certificate()), next.Beside(former.Certificate())
	if !bytes.Equal(old.PEM(), young.PEM()) || len(Fingerprints(old.PEM())) != 2 {
		t.Errorf("what is trusted depends on which one issues:\n%s\n%s", old.PEM(), young.PEM())
	}
	if itself := former.Beside(former.Certificate()); !bytes.Equal(itself.PEM(), former.PEM()) {
		t.Errorf("an authority beside itself is trusted twice:\n%s", itself.PEM())
	}
	files := issued(t, old, use, noon)
	if _, err := old.Stale(files, names, use, noon, LeafLifetime); err != nil {
		t.Errorf("what was just issued is stale: %v", err)
	}
	if _, err := Check(files, names, use, noon); err != nil {
		t.Errorf("what was just issued cannot be used: %v", err)
	}
	if _, err := young.Stale(files, names, use, noon, LeafLifetime); text(err) != "tls.crt was not issued by the authority that issues now" {
		t.Errorf("what the former authority has issued: %v", err)
	}
	if _, err := former.Stale(files, names, use, noon, LeafLifetime); text(err) != "ca.crt does not have exactly the authorities that are to be trusted now" {
		t.Errorf("another one is trusted as well: %v", err)
	}
	if !bytes.Equal(Encode(Find(old.PEM(), former.Fingerprint())), former.PEM()) || len(Find(old.PEM(), authority(t, noon).Fingerprint())) > 0 {
		t.Error("a certificate is not found by its fingerprint, or another one is")
	}
	third := authority(t, noon)
	if all := third.Beside(next.Certificate(), former.Certificate()).Beside(next.Certificate()); !bytes.Equal(all.PEM(), old.Beside(third.Certificate()).PEM()) || len(Fingerprints(all.PEM())) != 3 {
		t.Errorf("three of which one was named twice:\n%s", all.PEM())
	}
}

// TestKeyless: an authority without its key is trusted, and issues nothing. What can be used is
// good, since nothing better is to be had.
func TestKeyless(t *testing.T) {
	t.Parallel()
	a := authority(t, noon)
	files := issued(t, a, use, noon)
	lost := Keyless(a.Certificate())
	if _, err := lost.Stale(files, names, use, noon, LeafLifetime); err != nil {
		t.Errorf("what it has issued is stale: %v", err)
	}
	if ends, err := lost.Stale(files, names, use, noon.Add(LeafLifetime-time.Hour), LeafLifetime); err != nil || !ends.Equal(noon.Add(LeafLifetime)) {
		t.Errorf("what expires soon, and cannot be renewed: good until %s, %v", ends, err)
	}
	former := authority(t, noon)
	both := lost.Beside(former.Certificate())
	if _, err := both.Stale(with(issued(t, former, use, noon), "ca.crt", both.PEM()), names, use, noon, LeafLifetime); err != nil {
		t.Errorf("what the one before it has issued, which is trusted: %v", err)
	}
	if _, err := both.Stale(files, names, use, noon, LeafLifetime); err == nil {
		t.Error("the one before it is not trusted in a file, and that is good")
	}
	if _, _, err := lost.Issue("db", use, nil, noon, LeafLifetime); err == nil {
		t.Error("it issues")
	}
}

// TestReadCertificates: what is to be trusted is read to its end, or refused.
func TestReadCertificates(t *testing.T) {
	t.Parallel()
	a := authority(t, noon)
	cases := map[string]struct {
		reason string
		file   []byte
		most   int
		want   string
	}{
		"One":     {reason: "as a rotation writes it", file: a.PEM(), most: 1},
		"Several": {reason: "after one was lost midway", file: joined(a.PEM(), authority(t, noon).PEM()), most: 2},
		"Missing": {reason: "nothing", most: 1, want: "ca.crt is missing or empty"},
		"Many":    {reason: "it would be trusted, and told in the status", file: joined(a.PEM(), a.PEM()), most: 1, want: "ca.crt has 2 certificates; the limit is 1"},
		"Leaf":    {reason: "no authority", file: joined(a.PEM(), issued(t, a, use, noon)["tls.crt"]), most: 2, want: "ca.crt: it is not the certificate of an authority"},
		"Cut":     {reason: "a half was written", file: a.PEM()[:100], most: 1, want: "ca.crt is cut off or damaged: 0 of its 1 PEM blocks can be read"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := ReadCertificates("ca.crt", tc.file, tc.most); text(err) != tc.want {
				t.Errorf("%s: -want, +got\n-%s\n+%s", tc.reason, tc.want, text(err))
			}
		})
	}
}

// TestStaleAtEndOfAuthority: near the end of the authority a new certificate is no better, and none
// is issued again and again.
func TestStaleAtEndOfAuthority(t *testing.T) {
	t.Parallel()
	a := authority(t, noon)
	at := a.Ends().Add(-time.Hour)
	files := issued(t, a, use, at)
	now := at.Add(time.Minute)
	again, err := a.Stale(files, names, use, now, LeafLifetime)
	if err != nil {
		t.Errorf("%v", err)
	}
	if !again.After(now) {
		t.Errorf("it is looked at again and again: at %s, which is over", again)
	}
	if ends, err := Check(files, names, use, at); err != nil || ends.After(a.Ends()) {
		t.Errorf("it ends at %s, its authority at %s: %v", ends, a.Ends(), err)
	}
}

// TestIssueKeepsKey: a reader of one file of before and one of after a renewal has a pair all the
// same.
func TestIssueKeepsKey(t *testing.T) {
	t.Parallel()
	a := authority(t, noon)
	before := issued(t, a, use, noon)
	cert, key, err := a.Issue("db", use, before["tls.key"], noon.Add(LeafLifetime/2), LeafLifetime)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(key, before["tls.key"]) {
		t.Error("the key is another one")
	}
	for _, mixed := range [][2][]byte{{before["tls.crt"], key}, {cert, before["tls.key"]}} {
		if _, err := tls.X509KeyPair(mixed[0], mixed[1]); err != nil {
			t.Errorf("%v", err)
		}
	}
	for name, earlier := range map[string][]byte{"none": nil, "damaged": []byte("-----BEGIN PRIVATE KEY-----\n")} {
		if _, key, err := a.Issue("db", use, earlier, noon, LeafLifetime); err != nil || len(key) == 0 || bytes.Equal(key, before["tls.key"]) {
			t.Errorf("an earlier key that is %s: %v", name, err)
		}
	}
}

func TestReadAuthority(t *testing.T) {
	t.Parallel()
	cert, key, err := NewAuthority("ns/db", noon, AuthorityLifetime)
	if err != nil {
		t.Fatal(err)
	}
	good := map[string][]byte{"tls.crt": cert, "tls.key": key}
	leaf := issued(t, authority(t, noon), use, noon)
	cases := map[string]struct {
		reason string
		files  map[string][]byte
		at     time.Time
		want   string
	}{
		"Good":     {reason: "as it was made", files: good, at: noon},
		"KeyLost":  {reason: "the certificate alone signs nothing", files: with(good, "tls.key", nil), at: noon, want: "tls.key is missing or empty"},
		"OtherKey": {reason: "a half was replaced", files: with(good, "tls.key", leaf["tls.key"]), at: noon, want: "tls.key does not belong to the certificate in tls.crt"},
		"Leaf":     {reason: "no authority", files: leaf, at: noon, want: "tls.crt: it is not the certificate of an authority"},
		"Expired":  {reason: "ten years are over", files: good, at: noon.Add(AuthorityLifetime + time.Second), want: "tls.crt expired"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := ReadAuthority(tc.files, names, tc.at); !strings.HasPrefix(text(err), tc.want) || (tc.want == "") != (err == nil) {
				t.Errorf("%s: -want, +got\n-%s\n+%s", tc.reason, tc.want, text(err))
			}
		})
	}
}

// TestHandshake connects as members and clients do.
func TestHandshake(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ours, others := authority(t, now), authority(t, now)
	server := issued(t, ours, use, now)
	client := issued(t, ours, Use{Client: true}, now)
	cases := map[string]struct {
		reason string
		client map[string][]byte
		host   string
		ok     bool
	}{
		"Member":       {reason: "the operator dials an address, and checks the member's name", client: client, host: "db-7.db.ns.svc", ok: true},
		"Service":      {reason: "a client", client: client, host: "db-client.ns.svc", ok: true},
		"Address":      {reason: "a Job beside it", client: client, host: "127.0.0.1", ok: true},
		"OtherCluster": {reason: "a member of another cluster at that address", client: client, host: "web-0.web.ns.svc"},
		"Stranger":     {reason: "the certificate of another cluster", client: issued(t, others, Use{Client: true}, now), host: "db-client.ns.svc"},
		"OtherTrusted": {reason: "another cluster's, which trusts this one", client: with(issued(t, others, Use{Client: true}, now), "ca.crt", joined(ours.PEM(), others.PEM())), host: "db-client.ns.svc"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config, err := Config(tc.client, names, now)
			if err != nil {
				t.Fatal(err)
			}
			config.ServerName = tc.host
			if err := handshake(t, server, config); (err == nil) != tc.ok {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// handshake is the first error of either side.
func handshake(t *testing.T, files map[string][]byte, config *tls.Config) error {
	t.Helper()
	pair, err := tls.X509KeyPair(files["tls.crt"], files["tls.key"])
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(files["ca.crt"])
	near, far := net.Pipe()
	defer func() { _ = near.Close() }() // the handshake is what counts
	server := tls.Server(far, &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: trusted})
	refused := make(chan error, 1)
	go func() {
		refused <- server.HandshakeContext(t.Context())
		_ = far.Close() // nothing goes on
	}()
	client := tls.Client(near, config)
	if err := client.HandshakeContext(t.Context()); err != nil {
		_ = near.Close() // so that the other side ends
		return errors.Join(err, <-refused)
	}
	go func() { _, _ = client.Read(make([]byte, 1)) }() // a server's refusal is written to the side that reads
	return <-refused
}

// TestConfigResumesNothing: each connection shows the certificate that a member presents now, also
// to a configuration that has connected before.
func TestConfigResumesNothing(t *testing.T) {
	t.Parallel()
	now := time.Now()
	ours, others := authority(t, now), authority(t, now)
	config, err := Config(issued(t, ours, Use{Client: true}, now), names, now)
	if err != nil {
		t.Fatal(err)
	}
	config.ServerName = "db-0.db.ns.svc"
	pair := func(of *Authority) tls.Certificate {
		files := issued(t, of, use, now)
		pair, err := tls.X509KeyPair(files["tls.crt"], files["tls.key"])
		if err != nil {
			t.Fatal(err)
		}
		return pair
	}
	presented := pair(ours)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		return &presented, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	connect := func() error {
		answered := make(chan struct{})
		go func() {
			defer close(answered)
			if conn, err := listener.Accept(); err == nil {
				_, _ = conn.Write([]byte("answer")) // after the handshake, and with it the ticket of a session
				_ = conn.Close()
			}
		}()
		defer func() { <-answered }()
		conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", listener.Addr().String())
		if err != nil {
			return err
		}
		_, err = conn.Read(make([]byte, 6))
		return errors.Join(err, conn.Close())
	}
	if err := connect(); err != nil {
		t.Fatal(err)
	}
	presented = pair(others)
	if err := connect(); err == nil {
		t.Error("a certificate of another authority is not noticed")
	}
}

// TestSame: connections stay as long as the configuration is the same.
func TestSame(t *testing.T) {
	now := time.Now()
	ours, others := authority(t, now), authority(t, now)
	first := issued(t, ours, Use{Client: true}, now)
	config := func(files map[string][]byte) *tls.Config {
		c, err := Config(files, names, now)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	cases := map[string]struct {
		reason string
		args   [2]*tls.Config
		want   bool
	}{
		"ReadAgain": {reason: "the Secrets are read every few minutes", args: [2]*tls.Config{config(first), config(first)}, want: true},
		"Renewed":   {reason: "another certificate for the same key", args: [2]*tls.Config{config(first), config(issued(t, ours, Use{Client: true}, now))}},
		"Trusts":    {reason: "the first step of a rotation", args: [2]*tls.Config{config(first), config(with(first, "ca.crt", joined(ours.PEM(), others.PEM())))}},
		"Lost":      {reason: "there is none any more", args: [2]*tls.Config{config(first), nil}},
		"New":       {reason: "there was none", args: [2]*tls.Config{nil, config(first)}},
		"None":      {reason: "there is none", want: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Same(tc.args[0], tc.args[1]); got != tc.want {
				t.Errorf("%s: %t", tc.reason, got)
			}
		})
	}
}
