package snapshot

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	cryptorand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// TestChoose: which member a snapshot is taken from.
func TestChoose(t *testing.T) {
	t.Parallel()
	at := func(id uint64, revision int64, change ...func(*member)) *member {
		m := &member{endpoint: "http://db-" + hexID(id), clusterID: 0xaa, id: id, leader: 1, revision: revision}
		for _, c := range change {
			c(m)
		}
		return m
	}
	learner := func(m *member) { m.learner = true }
	accuses := func(ids ...uint64) func(*member) { return func(m *member) { m.corrupt = ids } }
	other := func(m *member) { m.clusterID = 0xbb }
	for name, tc := range map[string]struct {
		reason  string
		members []*member
		cluster string
		silent  []error
		want    uint64
		err     error
		says    string
	}{
		"Highest":       {reason: "a lagging one has an old state", members: []*member{at(1, 5), at(2, 9), at(3, 7)}, want: 2},
		"Follower":      {reason: "the leader is spared where it has no more", members: []*member{at(1, 9), at(2, 9)}, want: 2},
		"Leader":        {reason: "the leader has more", members: []*member{at(1, 9), at(2, 8)}, want: 1},
		"Learner":       {reason: "a learner may be anywhere", members: []*member{at(1, 5), at(2, 9, learner)}, want: 1},
		"NoLeader":      {reason: "it is cut off from the others", members: []*member{at(1, 9), at(2, 9, func(m *member) { m.leader = 0 })}, want: 1},
		"NoMajority":    {reason: "all are cut off", members: []*member{at(1, 9, func(m *member) { m.leader = 0 })}, err: ErrNoMember, says: "without a majority"},
		"Corrupt":       {reason: "it is accused by another", members: []*member{at(1, 5, accuses(2)), at(2, 9)}, want: 1},
		"AllCorrupt":    {reason: "etcd cannot tell which", members: []*member{at(1, 5, accuses(0)), at(2, 9)}, err: ErrNoMember, says: "CORRUPT"},
		"Silent":        {reason: "no member answers", silent: []error{errors.New("http://db-1 is down")}, err: ErrNoMember, says: "db-1 is down"},
		"OtherCluster":  {reason: "not the one asked for", members: []*member{at(1, 5)}, cluster: "bb", err: ErrOtherCluster, says: "is a member of cluster aa"},
		"TwoClusters":   {reason: "endpoints of two", members: []*member{at(1, 5), at(2, 5, other)}, err: ErrOtherCluster, says: "of one cluster"},
		"TheOneOfThree": {reason: "two are down", members: []*member{at(3, 5)}, cluster: "aa", silent: []error{errors.New("down")}, want: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := choose(tc.members, tc.cluster, tc.silent)
			if tc.err != nil {
				if !errors.Is(err, tc.err) || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%s: want %v that says %q, got %v", tc.reason, tc.err, tc.says, err)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got.id); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCorrupt reads alarms as a status of etcd tells of them.
func TestCorrupt(t *testing.T) {
	t.Parallel()
	got := corrupt([]string{"etcdserver: no leader", "memberID:10501334649042878790 alarm:CORRUPT ", "alarm:CORRUPT ", "memberID:7 alarm:NOSPACE "})
	if diff := cmp.Diff([]uint64{10501334649042878790, 0}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestSaveTLS: over TLS, with a client certificate.
func TestSaveTLS(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.write(40, 300)
	server, client := certificates(t)
	f := newFake(1, d.snapshot())
	from := Source{Endpoints: []string{f.serve(t, grpc.Creds(credentials.NewTLS(server)))}}
	from.Endpoints[0] = strings.Replace(from.Endpoints[0], "http:", "https:", 1)
	for name, tc := range map[string]struct {
		reason string
		config *tls.Config
		fails  bool
	}{
		"Certificate":   {"it is known", client, false},
		"NoCertificate": {"etcd asks for one", &tls.Config{RootCAs: client.RootCAs}, true},
		"NoAuthority":   {"the server is not known", &tls.Config{Certificates: client.Certificates}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), askTimeout)
			defer cancel()
			from := Source{Endpoints: from.Endpoints, TLS: tc.config}
			if _, err := Save(ctx, from, newMemory(), SaveOptions{Name: "good", Keep: t.TempDir()}); (err != nil) != tc.fails {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}

// certificates are those of a server at 127.0.0.1 that asks for one, and of a client.
func certificates(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), cryptorand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(cryptorand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	own := []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}
	return &tls.Config{Certificates: own, ClientCAs: pool, ClientAuth: tls.RequireAndVerifyClientCert},
		&tls.Config{Certificates: own, RootCAs: pool}
}

// TestStreamStalls: a member whose disk hangs answers the pings of its connection, and sends
// nothing.
func TestStreamStalls(t *testing.T) {
	t.Parallel()
	f := newFake(1, make([]byte, 100<<10))
	f.stalls = make(chan struct{})
	m, err := Source{}.askOne(t.Context(), f.serve(t))
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	defer close(f.stalls)
	m.patience = 100 * time.Millisecond
	var got int64
	err = m.snapshot(t.Context(), func(block []byte, _ int64) error { got += int64(len(block)); return nil })
	const want = "its stream stalled: nothing came or went for 100ms; look at the disk of that member"
	if !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), want) {
		t.Errorf("want %q after %d bytes, got %v", want, got, err)
	}
}
