package pki

import (
	"bytes"
	"maps"
	"testing"
	"time"
)

// noon is some time; nothing here knows which one it is.
var noon = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)

var (
	names = Names{Cert: "tls.crt", Key: "tls.key", CA: "ca.crt"}
	use   = Use{Hosts: []string{"*.db.ns.svc", "db-client.ns.svc", "127.0.0.1", "::1"}, Server: true, Client: true}
)

func authority(t *testing.T, at time.Time) *Authority {
	t.Helper()
	cert, key, err := NewAuthority("ns/db", at, AuthorityLifetime)
	if err != nil {
		t.Fatal(err)
	}
	a, err := ReadAuthority(map[string][]byte{"tls.crt": cert, "tls.key": key}, names, at)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// issued is a Secret with what an authority has issued.
func issued(t *testing.T, a *Authority, use Use, at time.Time) map[string][]byte {
	t.Helper()
	cert, key, err := a.Issue("db", use, nil, at, LeafLifetime)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"tls.crt": cert, "tls.key": key, "ca.crt": a.PEM()}
}

// with is a copy in which one file is another one.
func with(files map[string][]byte, name string, content []byte) map[string][]byte {
	files = maps.Clone(files)
	files[name] = content
	return files
}

func joined(parts ...[]byte) []byte { return bytes.Join(parts, nil) }

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
