package pki

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"
	"time"
)

// intermediate is an authority that another one has signed, and what is to be sent with what it
// issues.
func intermediate(t *testing.T, root *Authority) (*Authority, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "between"}, NotBefore: noon.Add(-time.Hour), NotAfter: noon.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	// The authorities of this package sign no others: this one is signed by one that may.
	parent := *root.certificate
	parent.MaxPathLenZero = false
	parent.MaxPathLen = -1
	der, err := x509.CreateCertificate(rand.Reader, template, &parent, key.Public(), root.key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &Authority{certificate: c, key: key, trusted: []*x509.Certificate{c}}, encoded(blockCertificate, der)
}

// longRoot is an authority that may sign others.
func longRoot(t *testing.T) *Authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "root"}, NotBefore: noon.Add(-time.Hour), NotAfter: noon.AddDate(1, 0, 0),
		KeyUsage: x509.KeyUsageCertSign, BasicConstraintsValid: true, IsCA: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &Authority{certificate: c, key: key, trusted: []*x509.Certificate{c}}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	ours, others := authority(t, noon), authority(t, noon)
	good := issued(t, ours, use, noon)
	root := longRoot(t)
	between, sent := intermediate(t, root)
	chained := issued(t, between, use, noon)
	chained["tls.crt"], chained["ca.crt"] = joined(chained["tls.crt"], sent), root.PEM()
	leaf, _ := pem.Decode(chained["tls.crt"])

	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		files  map[string][]byte
		use    Use
		at     time.Time
		want   string // begins the error; empty: it can be used
	}{
		"Good":  {reason: "as it is issued", files: good, use: use, at: noon},
		"Chain": {reason: "intermediates are sent along", files: chained, use: use, at: noon},
		"Comments": {
			reason: "openssl writes text around PEM",
			files:  with(good, "tls.crt", joined([]byte("subject=db\n"), good["tls.crt"], []byte("\n# the end\n"))), use: use, at: noon,
		},
		"SeveralAuthorities": {
			reason: "a bundle while authorities change",
			files:  with(good, "ca.crt", joined(others.PEM(), ours.PEM())), use: use, at: noon,
		},
		"NoCertificate": {reason: "a Secret of another kind", files: with(good, "tls.crt", nil), use: use, at: noon, want: "tls.crt is missing or empty"},
		"NoKey":         {reason: "half of a pair", files: with(good, "tls.key", []byte("\n")), use: use, at: noon, want: "tls.key is missing or empty"},
		"NoAuthority":   {reason: "some issuers write no ca.crt", files: with(good, "ca.crt", nil), use: use, at: noon, want: "ca.crt is missing or empty"},
		"Nothing":       {reason: "no Secret data at all", use: use, at: noon, want: "tls.crt is missing or empty"},
		"WrongAuthority": {
			reason: "ca.crt is that of another cluster",
			files:  with(good, "ca.crt", others.PEM()), use: use, at: noon, want: "tls.crt was not issued by an authority in ca.crt",
		},
		"ChainWithoutIntermediate": {
			reason: "the intermediate is left out",
			files:  with(chained, "tls.crt", pem.EncodeToMemory(leaf)), use: use, at: noon, want: "tls.crt was not issued by an authority in ca.crt",
		},
		"Expired":     {reason: "its lifetime is over", files: good, use: use, at: noon.Add(LeafLifetime + time.Second), want: "tls.crt expired at 2026-08-30 12:00:00 UTC"},
		"NotYetValid": {reason: "a clock is wrong", files: good, use: use, at: noon.Add(-2 * clockSkew), want: "tls.crt is not valid before 2026-05-31 12:00:00 UTC"},
		"MissingName": {
			reason: "a client that goes by that name would refuse it",
			files:  issued(t, ours, Use{Hosts: []string{"db-client.ns.svc"}, Server: true, Client: true}, noon), use: use, at: noon,
			want: "tls.crt is not valid for *.db.ns.svc: its subject alternative names lack it",
		},
		"NamesOfMembers": {
			reason: "ordinals are never used again: a list of members is out of date with the next one",
			files:  issued(t, ours, Use{Hosts: []string{"db-0.db.ns.svc", "db-1.db.ns.svc", "db-client.ns.svc"}, Server: true, Client: true}, noon), use: use, at: noon,
			want: "tls.crt is not valid for *.db.ns.svc",
		},
		"MissingAddress": {
			reason: "addresses are names too",
			files:  issued(t, ours, Use{Hosts: use.Hosts[:3], Server: true, Client: true}, noon), use: use, at: noon, want: "tls.crt is not valid for ::1",
		},
		"NoServer": {
			reason: "a client's certificate in the place of a server's",
			files:  issued(t, ours, Use{Hosts: use.Hosts, Client: true}, noon), use: use, at: noon, want: "tls.crt is not for server authentication",
		},
		"NoClient": {
			reason: "cert-manager issues servers' certificates unless it is told otherwise",
			files:  issued(t, ours, Use{Hosts: use.Hosts, Server: true}, noon), use: use, at: noon, want: "tls.crt is not for client authentication",
		},
		"CutOff": {
			reason: "a file that was copied by halves",
			files:  with(good, "tls.crt", good["tls.crt"][:len(good["tls.crt"])/2]), use: use, at: noon, want: "tls.crt is cut off or damaged: 0 of its 1 PEM blocks can be read",
		},
		"SecondCutOff": {
			reason: "the same of the last of several",
			files:  with(good, "ca.crt", joined(ours.PEM(), others.PEM()[:100])), use: use, at: noon, want: "ca.crt is cut off or damaged: 1 of its 2 PEM blocks can be read",
		},
		"KeyCutOff": {
			reason: "the same of a key",
			files:  with(good, "tls.key", good["tls.key"][:40]), use: use, at: noon, want: "tls.key is cut off or damaged: 0 of its 1 PEM blocks can be read",
		},
		"Damaged": {
			reason: "PEM around something else",
			files:  with(good, "tls.crt", encoded(blockCertificate, []byte("no certificate"))), use: use, at: noon, want: "certificate 1 of tls.crt cannot be read",
		},
		"NoPEM": {reason: "base64 of base64", files: with(good, "tls.crt", []byte("bm90IFBFTQ==")), use: use, at: noon, want: "tls.crt is not in PEM"},
		"OtherKey": {
			reason: "one of two files was replaced",
			files:  with(good, "tls.key", issued(t, ours, use, noon)["tls.key"]), use: use, at: noon, want: "tls.key does not belong to the certificate in tls.crt",
		},
		"RSAKey": {
			reason: "a key of another kind belongs to no other",
			files:  with(good, "tls.key", encoded("RSA PRIVATE KEY", x509.MarshalPKCS1PrivateKey(rsaKey))), use: use, at: noon, want: "tls.key does not belong to the certificate in tls.crt",
		},
		"EncryptedKey": {
			reason: "etcd asks for no password",
			files:  with(good, "tls.key", encoded("ENCRYPTED PRIVATE KEY", []byte("x"))), use: use, at: noon, want: "tls.key is encrypted",
		},
		"CertificateAsKey": {reason: "the files are mixed up", files: with(good, "tls.key", good["tls.crt"]), use: use, at: noon, want: "tls.key has no private key"},
		"KeyInCertificate": {
			reason: "a file with both, as some servers want it",
			files:  with(good, "tls.crt", joined(good["tls.crt"], good["tls.key"])), use: use, at: noon, want: "tls.crt has a block of type PRIVATE KEY",
		},
		"WrongOrder": {
			reason: "the authority before the leaf",
			files:  with(chained, "tls.crt", joined(sent, pem.EncodeToMemory(leaf))), use: use, at: noon, want: "tls.crt is in the wrong order",
		},
		"TooLarge": {
			reason: "four megabytes are not read",
			files:  with(good, "tls.crt", bytes.Repeat(good["tls.crt"], 4<<20/len(good["tls.crt"]))), use: use, at: noon, want: "tls.crt is too large",
		},
		"TooMany": {
			reason: "nor are hundreds of certificates",
			files:  with(good, "ca.crt", bytes.Repeat(ours.PEM(), 17)), use: use, at: noon, want: "ca.crt has 17 certificates; the limit is 16",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ends, err := Check(tc.files, names, tc.use, tc.at)
			if got := text(err); !strings.HasPrefix(got, tc.want) || (tc.want == "") != (err == nil) {
				t.Errorf("%s: -want, +got\n-%s\n+%s", tc.reason, tc.want, got)
			}
			if err == nil && !ends.Equal(noon.Add(LeafLifetime)) {
				t.Errorf("%s: it ends at %s", tc.reason, ends)
			}
			if strings.Contains(text(err), "\n") {
				t.Errorf("%s: a condition's message is one line: %q", tc.reason, err)
			}
			if _, again := Check(tc.files, names, tc.use, tc.at); text(again) != text(err) {
				t.Errorf("%s: the words change: %q, then %q", tc.reason, text(err), text(again))
			}
		})
	}
}

// TestCheckTellsNoKey: nothing of a key comes into words that people see.
func TestCheckTellsNoKey(t *testing.T) {
	t.Parallel()
	const canary = "MIIcanary"
	good := issued(t, authority(t, noon), use, noon)
	for _, key := range []string{canary, "-----BEGIN PRIVATE KEY-----\n" + canary, "-----BEGIN PRIVATE KEY-----\nTUlJY2FuYXJ5\n-----END PRIVATE KEY-----\n"} {
		if _, err := Check(with(good, "tls.key", []byte(key)), names, use, noon); err == nil || strings.Contains(err.Error(), "canary") || strings.Contains(err.Error(), "TUlJ") {
			t.Errorf("a key that cannot be read: %v", err)
		}
	}
}

func FuzzCheck(f *testing.F) {
	f.Add([]byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), []byte("x"), []byte{})
	f.Fuzz(func(_ *testing.T, cert, key, ca []byte) {
		_, _ = Check(map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": ca}, names, use, noon) // it does not panic
	})
}

// TestCheckOfAuthorities: a certificate is good for no longer, and for nothing else, than those of
// its authorities.
func TestCheckOfAuthorities(t *testing.T) {
	t.Parallel()
	root := longRoot(t)
	between, sent := intermediate(t, root)
	cert, key, err := (&Authority{certificate: endless(between), key: between.key, trusted: between.trusted}).Issue("db", use, nil, noon.AddDate(1, 0, -1), LeafLifetime)
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{"tls.crt": joined(cert, sent), "tls.key": key, "ca.crt": root.PEM()} // the leaf would be valid for longer
	ends, err := Check(files, names, use, noon.AddDate(1, 0, -1))
	if err != nil || !ends.Equal(between.Ends()) {
		t.Errorf("it ends at %s, its authority at %s: %v", ends, between.Ends(), err)
	}

	limited, err := x509.ParseCertificate(limitedTo(t, root, x509.ExtKeyUsageServerAuth))
	if err != nil {
		t.Fatal(err)
	}
	servers := &Authority{certificate: limited, key: root.key, trusted: []*x509.Certificate{limited}}
	if _, err := Check(issued(t, servers, use, noon), names, use, noon); !strings.HasPrefix(text(err), "an authority of tls.crt is not for client authentication") {
		t.Errorf("its authority issues for servers alone: %v", err)
	}
}

// endless is the certificate of an authority that issues as if it had no end.
func endless(a *Authority) *x509.Certificate {
	c := *a.certificate
	c.NotAfter = c.NotAfter.AddDate(10, 0, 0)
	return &c
}

// limitedTo is the certificate of an authority for one usage.
func limitedTo(t *testing.T, a *Authority, usage x509.ExtKeyUsage) []byte {
	t.Helper()
	template := *a.certificate
	template.ExtKeyUsage = []x509.ExtKeyUsage{usage}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, a.key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}
