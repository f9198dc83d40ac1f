package membership

import (
	"context"
	"net"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// TestStatusOfStarting: a look at a member whose etcd is being started, and refuses connections, is
// answered soon after etcd listens. One of a few attempts has to be prompt: with gRPC's own delay
// of a second none is, and on a busy machine not each can be.
func TestStatusOfStarting(t *testing.T) {
	t.Parallel()
	const attempts, refuses, prompt = 8, 200 * time.Millisecond, 400 * time.Millisecond
	best := CallTimeout
	for range attempts {
		best = min(best, answeredAfter(t, refuses))
	}
	if best > prompt {
		t.Errorf("the best of %d looks was answered %s after etcd began to listen, want at most %s", attempts, best, prompt)
	}
}

// answeredAfter is how long after a member began to listen a look is answered that began while it
// refused connections.
func answeredAfter(t *testing.T, refuses time.Duration) time.Duration {
	t.Helper()
	reserved, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := reserved.Addr().(*net.TCPAddr)
	if err := reserved.Close(); err != nil {
		t.Fatal(err)
	}
	c, err := Dial(address.IP.String(), address.Port)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	server := grpc.NewServer()
	etcdserverpb.RegisterMaintenanceServer(server, startedMember{})
	defer server.Stop()
	var listened time.Time
	listening := make(chan error, 1)
	time.AfterFunc(refuses, func() {
		listener, err := net.Listen("tcp", address.String())
		listened = time.Now()
		listening <- err
		if err == nil {
			_ = server.Serve(listener) // until it is stopped
		}
	})
	_, asked := c.Status(t.Context())
	if err := <-listening; err != nil {
		t.Fatal(err)
	}
	if asked != nil {
		return CallTimeout
	}
	return time.Since(listened)
}

type startedMember struct {
	etcdserverpb.UnimplementedMaintenanceServer
}

func (startedMember) Status(context.Context, *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	return &etcdserverpb.StatusResponse{Header: &etcdserverpb.ResponseHeader{MemberId: 1}, Version: "3.6.16"}, nil
}
