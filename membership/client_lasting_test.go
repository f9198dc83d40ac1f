package membership

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials"
)

// accepting counts the connections that it accepts, and can close them.
type accepting struct {
	net.Listener
	mu       sync.Mutex
	accepted []net.Conn
}

func accepts(t *testing.T) *accepting {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return &accepting{Listener: listener}
}

func (a *accepting) Accept() (net.Conn, error) {
	c, err := a.Listener.Accept()
	if err == nil {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.accepted = append(a.accepted, c)
	}
	return c, err
}

func (a *accepting) count() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.accepted)
}

func (a *accepting) closeAll() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.accepted {
		_ = c.Close() // as the end of a process does
	}
}

// hashed is a member whose hash can be asked for, too.
type hashed struct{ *hostile }

func (hashed) HashKV(context.Context, *etcdserverpb.HashKVRequest) (*etcdserverpb.HashKVResponse, error) {
	return &etcdserverpb.HashKVResponse{Header: &etcdserverpb.ResponseHeader{}, HashRevision: 7}, nil
}

func (h *hostile) serveAt(t *testing.T, listener net.Listener, options ...grpc.ServerOption) {
	t.Helper()
	server := grpc.NewServer(options...)
	etcdserverpb.RegisterMaintenanceServer(server, hashed{h})
	etcdserverpb.RegisterClusterServer(server, h)
	go func() { _ = server.Serve(listener) }() // ends with Stop
	t.Cleanup(server.Stop)
}

// TestClientConnectsOnce: all calls of a client share one connection, with TLS and without.
func TestClientConnectsOnce(t *testing.T) {
	certificate, roots := certificateOf(t, "*.db.ns.svc")
	cases := map[string]struct {
		options []grpc.ServerOption
		dial    Dialer
	}{
		"PlainText": {dial: Dial},
		"TLS": {
			options: []grpc.ServerOption{grpc.Creds(credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{certificate}}))},
			dial: func(host string, port int) (Client, error) {
				return DialTLS(host, port, &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: "db-0.db.ns.svc"})
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener := accepts(t)
			h := &hostile{status: told(func(*etcdserverpb.StatusResponse) {}), members: &etcdserverpb.MemberListResponse{}}
			h.serveAt(t, listener, tc.options...)
			c, err := tc.dial(at(t, listener))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = c.Close() }) // it was only read from
			for range 3 {
				if _, err := c.Status(t.Context()); err != nil {
					t.Error(err)
				}
				if _, err := c.Members(t.Context()); err != nil {
					t.Error(err)
				}
				if _, err := c.Hash(t.Context(), 0); err != nil {
					t.Error(err)
				}
			}
			if n := listener.count(); n != 1 {
				t.Errorf("nine calls took %d connections, want 1", n)
			}
		})
	}
}

// TestClientLasts: a connection is used again only while it is there, and nothing has failed on it.
func TestClientLasts(t *testing.T) {
	cases := map[string]struct {
		reason string
		ends   func(t *testing.T, c Lasting, h *hostile, listener *accepting)
		want   bool
	}{
		"Answers": {reason: "it serves the next look", ends: func(*testing.T, Lasting, *hostile, *accepting) {}, want: true},
		"Refuses": {reason: "an error may be due to the connection", ends: func(t *testing.T, c Lasting, h *hostile, _ *accepting) {
			h.fails = "no"
			if _, err := c.Members(t.Context()); err == nil {
				t.Error("void: it does not fail")
			}
		}},
		"Strange": {reason: "what it answers is no status", ends: func(t *testing.T, c Lasting, h *hostile, _ *accepting) {
			h.status.Version = "none"
			if _, err := c.Status(t.Context()); err == nil {
				t.Error("void: it does not fail")
			}
		}},
		"Ended": {reason: "the process has ended", ends: func(t *testing.T, c Lasting, _ *hostile, listener *accepting) {
			_ = listener.Close() // nothing is accepted any more
			listener.closeAll()
			ctx, cancel := context.WithTimeout(t.Context(), CallTimeout)
			defer cancel()
			if !c.(*client).etcd.ActiveConnection().WaitForStateChange(ctx, connectivity.Ready) {
				t.Error("waited in vain for the client to notice that its connection is closed")
			}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener := accepts(t)
			h := &hostile{status: told(func(*etcdserverpb.StatusResponse) {}), members: &etcdserverpb.MemberListResponse{}}
			h.serveAt(t, listener)
			dialed, err := Dial(at(t, listener))
			if err != nil {
				t.Fatal(err)
			}
			c := dialed.(Lasting)
			t.Cleanup(func() { _ = c.Close() }) // it was only read from
			if c.Lasts() {
				t.Error("it lasts before it was used")
			}
			if _, err := c.Status(t.Context()); err != nil {
				t.Fatal(err)
			}
			tc.ends(t, c, h, listener)
			if got := c.Lasts(); got != tc.want {
				t.Errorf("%s: it lasts: %t, want %t", tc.reason, got, tc.want)
			}
		})
	}
}
