package snapshot

import (
	"context"
	"net"
	"testing"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
)

// fake is a member that answers what it is told to, over gRPC.
type fake struct {
	etcdserverpb.UnimplementedMaintenanceServer
	etcdserverpb.UnimplementedKVServer
	etcdserverpb.UnimplementedClusterServer

	status  *etcdserverpb.StatusResponse
	stream  []byte
	fails   error         // at the end of the stream
	stalls  chan struct{} // nil: it does not. Until it is closed, the end of the stream does not come
	noReads error
	// elsewhere is the ID of another member, which answers after the stream.
	elsewhere uint64
	sent      chan struct{} // closed when the stream is sent
}

// newFake is a member of cluster aaaa at revision 40, with the snapshot of a database.
func newFake(id uint64, stream []byte) *fake {
	return &fake{
		status: &etcdserverpb.StatusResponse{
			Header:  &etcdserverpb.ResponseHeader{ClusterId: 0xaaaa, MemberId: id, Revision: 40},
			Version: "3.6.16", Leader: 1, DbSize: int64(len(stream)),
		},
		stream: stream,
	}
}

// serve until the test ends, and return the URL.
func (f *fake) serve(t *testing.T, options ...grpc.ServerOption) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := grpc.NewServer(options...)
	etcdserverpb.RegisterMaintenanceServer(s, f)
	etcdserverpb.RegisterKVServer(s, f)
	etcdserverpb.RegisterClusterServer(s, f)
	ended := make(chan struct{})
	go func() {
		_ = s.Serve(l) // it ends with Stop
		close(ended)
	}()
	t.Cleanup(func() {
		s.Stop()
		<-ended
	})
	return "http://" + l.Addr().String()
}

func (f *fake) Status(context.Context, *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	return f.status, nil
}

func (f *fake) Snapshot(_ *etcdserverpb.SnapshotRequest, to grpc.ServerStreamingServer[etcdserverpb.SnapshotResponse]) error {
	const message = 32 << 10 // as etcd sends them
	for rest := f.stream; len(rest) > 0; {
		n := min(message, len(rest))
		if err := to.Send(&etcdserverpb.SnapshotResponse{Blob: rest[:n], RemainingBytes: uint64(len(rest) - n)}); err != nil {
			return err
		}
		rest = rest[n:]
	}
	if f.stalls != nil {
		<-f.stalls
	}
	if f.sent != nil {
		close(f.sent)
	}
	if f.elsewhere != 0 {
		f.status.Header.MemberId = f.elsewhere
	}
	return f.fails
}

func (f *fake) Range(context.Context, *etcdserverpb.RangeRequest) (*etcdserverpb.RangeResponse, error) {
	return &etcdserverpb.RangeResponse{Header: f.status.Header}, f.noReads
}

func (f *fake) MemberList(context.Context, *etcdserverpb.MemberListRequest) (*etcdserverpb.MemberListResponse, error) {
	return &etcdserverpb.MemberListResponse{Header: f.status.Header, Members: []*etcdserverpb.Member{{ID: f.status.Header.MemberId, Name: "db-1"}}}, nil
}
