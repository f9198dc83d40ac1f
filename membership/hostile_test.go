package membership

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // as the operator has it, by way of the stores of snapshots
	"google.golang.org/grpc/status"
)

// hostile is an image that answers what it likes.
type hostile struct {
	etcdserverpb.UnimplementedMaintenanceServer
	etcdserverpb.UnimplementedClusterServer
	status     *etcdserverpb.StatusResponse
	members    *etcdserverpb.MemberListResponse
	fails      string // the text of its error; empty: it answers
	compresses bool
}

func (h *hostile) Status(ctx context.Context, _ *etcdserverpb.StatusRequest) (*etcdserverpb.StatusResponse, error) {
	return h.status, h.prepare(ctx)
}

func (h *hostile) MemberList(ctx context.Context, _ *etcdserverpb.MemberListRequest) (*etcdserverpb.MemberListResponse, error) {
	return h.members, h.prepare(ctx)
}

func (h *hostile) prepare(ctx context.Context) error {
	if h.fails != "" {
		return status.Error(codes.Internal, h.fails)
	}
	if h.compresses {
		return grpc.SetSendCompressor(ctx, "gzip")
	}
	return nil
}

// serve has it listen at an address of the host, and returns the address.
func (h *hostile) serve(t *testing.T, host string) (string, int) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	etcdserverpb.RegisterMaintenanceServer(server, h)
	etcdserverpb.RegisterClusterServer(server, h)
	go func() { _ = server.Serve(listener) }() // ends with Stop
	t.Cleanup(server.Stop)
	return at(t, listener)
}

func at(t *testing.T, listener net.Listener) (string, int) {
	t.Helper()
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("%s has no port", listener.Addr())
	}
	return address.IP.String(), address.Port
}

// told is a status as etcd tells it.
func told(change func(*etcdserverpb.StatusResponse)) *etcdserverpb.StatusResponse {
	s := &etcdserverpb.StatusResponse{
		Header: &etcdserverpb.ResponseHeader{ClusterId: 0xc0, MemberId: 0xa0, Revision: 7}, Version: "3.6.16", Leader: 0xa0,
	}
	change(s)
	return s
}

// TestHostileAnswers: what a member answers is bounded in size, count and length, and the error as
// well that says so.
func TestHostileAnswers(t *testing.T) {
	const mostError = 512
	large := strings.Repeat("x", 8<<20)
	many := func(n int) *etcdserverpb.MemberListResponse {
		r := &etcdserverpb.MemberListResponse{Header: &etcdserverpb.ResponseHeader{}}
		for id := range n {
			r.Members = append(r.Members, &etcdserverpb.Member{ID: uint64(id + 1), Name: fmt.Sprintf("m-%d", id), PeerURLs: []string{fmt.Sprintf("http://m-%d:2380", id)}})
		}
		return r
	}
	alarms := func(n int) (remarks []string) {
		for id := range n {
			remarks = append(remarks, fmt.Sprintf("memberID:%d alarm:NOSPACE ", id+1))
		}
		return remarks
	}
	type want struct {
		alarms, members int
		fails           string // what the error has in it
	}
	cases := map[string]struct {
		reason string
		args   hostile
		want   want
	}{
		"Etcd": {
			reason: "what etcd says is taken as it is",
			args:   hostile{status: told(func(s *etcdserverpb.StatusResponse) { s.Errors = alarms(9) }), members: many(9)},
			want:   want{alarms: 9, members: 9},
		},
		"Compressed": {
			reason: "a few bytes must not become gigabytes",
			args:   hostile{status: told(func(s *etcdserverpb.StatusResponse) { s.Errors = []string{large} }), compresses: true},
			want:   want{fails: "larger than max"},
		},
		"Large": {
			reason: "nor may many be sent",
			args:   hostile{status: told(func(s *etcdserverpb.StatusResponse) { s.Errors = []string{large} })},
			want:   want{fails: "larger than max"},
		},
		"LongVersion": {
			reason: "a version is shown in the status of the EtcdCluster",
			args:   hostile{status: told(func(s *etcdserverpb.StatusResponse) { s.Version = "3.6." + strings.Repeat("1", 100_000) })},
			want:   want{fails: "parse etcd version"},
		},
		"LargeVersion": {
			reason: "it is shown in no more characters than the schema allows",
			args:   hostile{status: told(func(s *etcdserverpb.StatusResponse) { s.Version = "3.6.9223372036854775807" })},
			want:   want{fails: "parse etcd version"},
		},
		"ManyAlarms": {
			reason: "each one is looked at with each member",
			args:   hostile{status: told(func(s *etcdserverpb.StatusResponse) { s.Errors = alarms(5000) }), members: many(1)},
			want:   want{alarms: mostAlarms, members: 1},
		},
		"ManyMembers": {
			reason: "a plan compares each with each: 4,000 took a worker 83 s",
			args:   hostile{status: told(func(*etcdserverpb.StatusResponse) {}), members: many(4000)},
			want:   want{fails: "it lists 4000"},
		},
		"LongError": {
			reason: "an error goes to the log, and its text is a header",
			args:   hostile{fails: strings.Repeat("no ", 100_000)},
			want:   want{fails: "rpc error"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client, err := Dial(tc.args.serve(t, "127.0.0.1"))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = client.Close() })
			endpoint, err := client.Status(t.Context())
			var members []Member
			if err == nil {
				members, err = client.Members(t.Context())
			}
			got := want{alarms: len(endpoint.Alarms), members: len(members)}
			if err != nil {
				got = want{fails: tc.want.fails}
				if tc.want.fails == "" || !strings.Contains(err.Error(), tc.want.fails) {
					got.fails = err.Error()
				}
				if len(err.Error()) > mostError {
					t.Errorf("the error has %d bytes", len(err.Error()))
				}
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestHostileMetrics: neither the size of the metrics nor the number of their lines costs much.
func TestHostileMetrics(t *testing.T) {
	cases := map[string]struct {
		reason  string
		metrics string
		want    Endpoint
		fails   string
	}{
		"ManyOthers": {
			reason: "what is not read is not parsed", metrics: strings.Repeat("a b\n", 1000) + metricsOf,
			want: Endpoint{Publishing: 0x8e9e05c52164694d, Version: etcd36, Applied: 16},
		},
		"ManyOfOurs": {
			reason: "the parser keeps each line", metrics: strings.Repeat("etcd_server_has_leader{a=\"b\"} 1\n", 10_000) + metricsOf,
			fails: "more than 65536 bytes",
		},
		"LongLine": {reason: "a line is kept as a whole", metrics: strings.Repeat("x", 1<<20), fails: "too long"},
		"Endless":  {reason: "what comes after the bound is not read", metrics: strings.Repeat("a 1\n", mostMetrics/4) + metricsOf, fails: `version ""`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := readMetrics(strings.NewReader(tc.metrics))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if (err == nil) != (tc.fails == "") || err != nil && !strings.Contains(err.Error(), tc.fails) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.fails, err)
			}
		})
	}
}

// toldTo is set for the process of TestNoProxy that asks: the host and ports of a member.
const toldTo = "QUORATE_TEST_ASK"

// TestNoProxy: whatever the environment says, the operator asks members themselves. Go reads the
// environment once for a process, so another one asks. No proxy is ever asked for a loopback
// address.
func TestNoProxy(t *testing.T) {
	if member := os.Getenv(toldTo); member != "" {
		asksMember(t, strings.Fields(member))
		return
	}
	host := notLoopback(t)
	h := &hostile{status: told(func(*etcdserverpb.StatusResponse) {})}
	_, port := h.serve(t, host)
	metrics, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &httptest.Server{Listener: metrics, Config: &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(metricsOf)) // a reader that hangs up has said why
	})}}
	server.Start()
	t.Cleanup(server.Close)
	_, metricsPort := at(t, metrics)

	proxy, asked := proxies(t)
	child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestNoProxy$", "-test.v")
	child.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d", toldTo, host, port, metricsPort), "NO_PROXY=", "no_proxy=")
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		child.Env = append(child.Env, name+"=http://"+proxy)
	}
	output, err := child.CombinedOutput()
	if err != nil {
		t.Errorf("the member cannot be asked: %v\n%s", err, output)
	}
	select {
	case request := <-asked:
		t.Errorf("the proxy was asked: %s", request)
	default:
	}
}

func asksMember(t *testing.T, member []string) {
	t.Helper()
	port, errPort := strconv.Atoi(member[1])
	metricsPort, errMetrics := strconv.Atoi(member[2])
	if errPort != nil || errMetrics != nil {
		t.Fatal(errPort, errMetrics)
	}
	client, err := Dial(member[0], port)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = client.Close() }() // it was only read from
	if _, err := client.Status(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := Scrape(t.Context(), member[0], metricsPort); err != nil {
		t.Error(err)
	}
}

// proxies listens as a proxy does, and tells what it is asked for.
func proxies(t *testing.T) (address string, asked <-chan string) {
	t.Helper()
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	requests := make(chan string, 100)
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return // closed
			}
			line, _ := bufio.NewReader(connection).ReadString('\n') // what came of it is told below
			requests <- fmt.Sprintf("%q", line)
			_ = connection.Close()
		}
	}()
	return listener.Addr().String(), requests
}

// notLoopback is another address of this machine.
func notLoopback(t *testing.T) string {
	t.Helper()
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range addresses {
		if n, ok := address.(*net.IPNet); ok && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	t.Skip("this machine has no other address than the loopback one")
	return ""
}
