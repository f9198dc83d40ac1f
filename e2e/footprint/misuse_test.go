//go:build e2e

package footprint

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	api "quorate.dev/api/v1alpha1"
)

// What the image of a tenant answers: anything. Of each member it is the next one of a list with
// each question, so that all of it comes within some looks. In between it answers as etcd does:
// otherwise no look would come to the second question.

// tenants is how the names of clusters begin that become hostile.
const tenants = "tenant"

// hostileImage is the annotation of a Pod whose cluster has an image that answers what it likes
// ("true"), or etcd again ("false").
const hostileImage = "test/hostile-image"

// next is which answer to a kind of question is next, of so many.
func (m *standIn) next(asked string, of int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	n := m.turn[asked]
	m.turn[asked]++
	return (n + int(m.id(m.name)%uint64(of))) % of
}

// misuse is what becomes of a connection: it may be accepted and never answered, answered a byte
// a second, or with what is no HTTP/2.
func (m *standIn) misuse(c net.Conn) net.Conn {
	switch m.next("connection", 8) {
	case 1:
		return mute{c}
	case 3:
		return trickle{c}
	case 5:
		return garbled{c}
	default:
		return c
	}
}

type mute struct{ net.Conn }

func (mute) Write(p []byte) (int, error) { return len(p), nil }

type trickle struct{ net.Conn }

func (c trickle) Write(p []byte) (int, error) {
	for n := range p {
		<-time.After(time.Second) // that is what it does
		if _, err := c.Conn.Write(p[n : n+1]); err != nil {
			return n, err
		}
	}
	return len(p), nil
}

type garbled struct{ net.Conn }

func (c garbled) Write(p []byte) (int, error) {
	return c.Conn.Write(bytes.Repeat([]byte{0xff}, len(p)))
}

// encoded is an answer as it is sent.
type encoded []byte

// codec is that of gRPC, and sends what is encoded as it is.
type codec struct{ encoding.CodecV2 }

func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if raw, is := v.(encoded); is {
		return mem.BufferSlice{mem.SliceBuffer(raw)}, nil
	}
	return c.CodecV2.Marshal(v)
}

// unfolded is the size of a compressed answer after it is decompressed.
const unfolded = 1 << 30

// bomb is a gzip of a mebibyte that becomes a gibibyte: a gzip may have many parts.
var bomb = sync.OnceValue(func() []byte {
	const part = 64 << 20
	var once bytes.Buffer
	w := gzip.NewWriter(&once)
	_, _ = w.Write(make([]byte, part)) // a buffer takes all
	_ = w.Close()
	return bytes.Repeat(once.Bytes(), unfolded/part)
})

// bombs is a compressor that sends the bomb in the place of any answer.
type bombs struct{ io.Writer }

func (bombs) Name() string                                 { return "gzip" }
func (bombs) Decompress(io.Reader) (io.Reader, error)      { return nil, io.ErrUnexpectedEOF }
func (bombs) Compress(w io.Writer) (io.WriteCloser, error) { return bombs{w}, nil }
func (bombs) Write(p []byte) (int, error)                  { return len(p), nil }
func (b bombs) Close() error                               { _, err := b.Writer.Write(bomb()); return err }

// hostility are the options of the server of stand-ins, some of which may become hostile.
func (s *standIns) hostility() []grpc.ServerOption {
	encoding.RegisterCompressor(bombs{})
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(codec{encoding.GetCodecV2("proto")}),
		grpc.UnaryInterceptor(func(ctx context.Context, request any, of *grpc.UnaryServerInfo, honest grpc.UnaryHandler) (any, error) {
			m, err := s.asked(ctx)
			if err != nil || !m.hostile.Load() {
				return honest(ctx, request)
			}
			return m.lie(ctx, path.Base(of.FullMethod), func() (any, error) { return honest(ctx, request) })
		}),
	}
}

// lie is the answer of a hostile member.
func (m *standIn) lie(ctx context.Context, call string, honest func() (any, error)) (any, error) {
	lies := map[string][]func() (any, error){
		"Status":     {honest, m.explodes(ctx), honest, m.garbage, honest, m.hangs(ctx), honest, m.fails, honest, m.extremes, honest, m.large, m.accuses, honest},
		"MemberList": {m.many, honest, m.long, m.hangs(ctx), m.explodes(ctx), m.garbage, honest},
		"HashKV":     {m.hangs(ctx)},
	}[call]
	if len(lies) == 0 {
		return honest()
	}
	return lies[m.next(call, len(lies))]()
}

func (m *standIn) explodes(ctx context.Context) func() (any, error) {
	return func() (any, error) { return encoded{0}, grpc.SetSendCompressor(ctx, bombs{}.Name()) } // gRPC compresses nothing that is empty
}

func (m *standIn) hangs(ctx context.Context) func() (any, error) {
	return func() (any, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
}

func (m *standIn) garbage() (any, error) {
	return encoded(bytes.Repeat([]byte{0xf7, 0x0a, 0xff}, 1000)), nil
}

var eightMebibytes = strings.Repeat("x", 8<<20)

func (m *standIn) large() (any, error) {
	return &etcdserverpb.StatusResponse{Header: m.header(), Version: eightMebibytes}, nil
}

func (m *standIn) fails() (any, error) {
	return nil, status.Error(codes.Internal, strings.Repeat("no ", 1<<20))
}

// extremes differ with each answer, so that the status of the EtcdCluster would.
func (m *standIn) extremes() (any, error) {
	n := m.next("extremes", 10_000)
	return &etcdserverpb.StatusResponse{
		Header:  &etcdserverpb.ResponseHeader{ClusterId: m.id(m.cluster), MemberId: m.id(m.name), Revision: math.MinInt64, RaftTerm: math.MaxUint64},
		Version: fmt.Sprintf("9999.9999.%d", n), DbSize: math.MaxInt64, DbSizeInUse: math.MinInt64, Leader: m.id(m.name),
		RaftIndex: math.MaxUint64, RaftTerm: uint64(n), RaftAppliedIndex: math.MaxUint64, StorageVersion: strings.Repeat("3", 1<<10),
		DowngradeInfo: &etcdserverpb.DowngradeInfo{Enabled: true, TargetVersion: strings.Repeat("0", 1<<10)},
	}, nil
}

func (m *standIn) accuses() (any, error) {
	s := &etcdserverpb.StatusResponse{Header: m.header(), Version: "3.6.16", Leader: m.id(m.name)}
	for n := range 5000 {
		s.Errors = append(s.Errors, fmt.Sprintf("memberID:%d alarm:CORRUPT ", n))
	}
	return s, nil
}

// many members have short names: the whole list is smaller than what the operator takes.
func (m *standIn) many() (any, error) {
	list := &etcdserverpb.MemberListResponse{Header: m.header()}
	for n := range uint64(4000) {
		list.Members = append(list.Members, &etcdserverpb.Member{ID: n + 1, Name: strconv.FormatUint(n, 36), PeerURLs: []string{"http://a"}})
	}
	return list, nil
}

func (m *standIn) long() (any, error) {
	url := "http://" + strings.Repeat("y", 40_000)
	return &etcdserverpb.MemberListResponse{Header: m.header(), Members: []*etcdserverpb.Member{
		{ID: 1, Name: strings.Repeat("z", 40_000), PeerURLs: []string{url, url}}, {ID: 2, PeerURLs: []string{url}}, {ID: m.id(m.name)},
	}}, nil
}

// listenForMetrics has a member answer at its metrics port as well.
func (s *standIns) listenForMetrics(ip string) error {
	listener, err := (&net.ListenConfig{}).Listen(s.ctx, "tcp", net.JoinHostPort(ip, strconv.Itoa(api.PortMetrics)))
	if err != nil {
		return err
	}
	s.all.Go(func() { _ = s.metrics.Serve(listener) }) // it ends with Close
	return nil
}

// serveMetrics is what a member answers at its metrics port, whatever it is asked for there.
func (s *standIns) serveMetrics(w http.ResponseWriter, r *http.Request) {
	at, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	m, err := s.member(at)
	if err != nil || !m.hostile.Load() {
		http.NotFound(w, r)
		return
	}
	line := "etcd_server_has_leader{a=\"" + strings.Repeat("b", 1000) + "\"} 1\n"
	switch m.next("metrics", 8) {
	case 0:
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb()) // a reader may hang up
	case 1:
		endless(w, line)
	case 2:
		endless(w, strings.Repeat("x", 64<<10))
	case 3:
		_, _ = io.WriteString(w, strings.Repeat(line, (4<<20)/len(line)))
	case 4:
		w.Header().Set("X", strings.Repeat("x", 1<<20))
		w.WriteHeader(http.StatusOK)
	case 5:
		for _, err := w.Write([]byte("#")); err == nil; _, err = w.Write([]byte("#")) {
			_ = http.NewResponseController(w).Flush() // a reader may hang up
			<-time.After(time.Second)                 // that is what it does
		}
	case 6:
		<-r.Context().Done()
	case 7:
		http.Redirect(w, r, "http://"+r.Host+"/version", http.StatusTemporaryRedirect)
	}
}

// endless writes a text until the reader hangs up.
func endless(w io.Writer, text string) {
	for {
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
	}
}
