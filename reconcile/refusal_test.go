package reconcile_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"quorate.dev/membership"
)

// mode is how an effect is disturbed.
type mode string

const (
	before    mode = "Before"    // the operator dies, and there is no effect
	after     mode = "After"     // the operator dies, and there is one
	replyLost mode = "ReplyLost" // there is one, and the operator lives on and does not know
)

// deaths are the modes of a crash at the effect. The reply of an agent is lost with it.
func deaths(effect string) []mode {
	if ofAgent(effect) {
		return []mode{before, after}
	}
	return []mode{before, after, replyLost}
}

// What a server answers to a write that has no effect, as it is on the wire. What the operator gets
// is made of it by the real client: nothing here says how a client classifies an answer.
var (
	kubernetesAnswers = map[mode]*apierrors.StatusError{
		"Conflict":        apierrors.NewConflict(schema.GroupResource{}, "injected", errors.New("injected")),
		"TooManyRequests": apierrors.NewTooManyRequests("injected", 1),
		"InternalError":   apierrors.NewInternalError(errors.New("injected")),
		"Timeout":         apierrors.NewTimeoutError("injected", 1),
	}
	etcdAnswers = map[mode]error{
		"Unhealthy":       rpctypes.ErrGRPCUnhealthy,
		"TooManyLearners": rpctypes.ErrGRPCTooManyLearners,
		"LearnerNotReady": rpctypes.ErrGRPCLearnerNotReady,
		"EtcdTimeout":     rpctypes.ErrGRPCTimeout,
		"LeaderChanged":   rpctypes.ErrGRPCLeaderChanged,
		"NoLeader":        rpctypes.ErrGRPCNoLeader,
	}
)

// etcdVerbs are the calls that change etcd. The client of etcd tries some of them again by itself
// while etcd is unavailable, up to CallTimeout (client/v3/retry.go): the operator never gets such
// an answer, but the end of its patience.
var (
	etcdVerbs     = []string{"AddLearner", "Promote", "Remove", "MoveLeader", "Disarm", "Downgrade", "CancelDowngrade"}
	triedByItself = []string{"MoveLeader", "Disarm"}
)

// refusals are the modes in which the effect can be refused.
func refusals(effect string) []mode {
	if ofAgent(effect) {
		return nil
	}
	if slices.Contains(etcdVerbs, verbOf(effect)) {
		return slices.Sorted(maps.Keys(etcdAnswers))
	}
	return slices.Sorted(maps.Keys(kubernetesAnswers))
}

// class is what the operator makes of a refusal. It treats all refusals of one class alike.
type class string

const (
	looksAgain class = "LooksAgain" // soon, and without an error: the cache was behind
	waits      class = "Waits"      // etcd has said that it did nothing, and is asked again
	unanswered class = "Unanswered" // the same, but etcd may still do it: no other operation begins meanwhile
	fails      class = "Fails"      // the pass fails, and what became of the request is not known
)

// classOf is the class of each refusal of the effect. TestRefusals compares it with what the
// operator makes of the error.
func classOf(effect string, m mode) class {
	verb := verbOf(effect)
	switch {
	case m == "Conflict":
		return looksAgain
	case kubernetesAnswers[m] != nil:
		return fails
	case slices.Contains(triedByItself, verb) && m != "TooManyLearners" && m != "LearnerNotReady":
		return fails
	case m == "EtcdTimeout":
		return unanswered
	default:
		return waits
	}
}

// distinctRefusals are one refusal of the effect for each class. Which one it is depends on the
// effect, so that among many effects there are all refusals.
func distinctRefusals(effect string) []mode {
	classes := map[class][]mode{}
	for _, m := range refusals(effect) {
		classes[classOf(effect, m)] = append(classes[classOf(effect, m)], m)
	}
	hash := fnv.New32()
	_, _ = hash.Write([]byte(effect)) // never fails
	var distinct []mode
	for _, c := range slices.Sorted(maps.Keys(classes)) {
		distinct = append(distinct, classes[c][int(hash.Sum32()%uint32(len(classes[c])))])
	}
	return distinct
}

// agentVerb begins the names of what agents do: agent.<container>.<Job or member>.
const agentVerb = "agent"

func ofAgent(effect string) bool { return verbOf(effect) == agentVerb }

func verbOf(effect string) string {
	if end := strings.IndexAny(effect, ".#"); end >= 0 {
		return effect[:end]
	}
	return effect
}

type roundTrip func(*http.Request) (*http.Response, error)

func (do roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return do(r) }

// refusedByKubernetes makes the call of a real client of an API server that answers so, or whose
// answer is lost. An answer that says when to come again is tried ten times by the client, and then
// returned: here it does not say so.
func refusedByKubernetes(c client.Client, m mode, call func(client.Client) error) error {
	answer := func(r *http.Request) (*http.Response, error) {
		if r.Body != nil {
			_ = r.Body.Close() // it was only read from
		}
		if m == replyLost {
			return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		}
		said := kubernetesAnswers[m].Status()
		said.Kind, said.APIVersion = "Status", "v1"
		raw, err := json.Marshal(said)
		return &http.Response{
			Status: http.StatusText(int(said.Code)), StatusCode: int(said.Code), Header: http.Header{"Content-Type": {"application/json"}},
			Proto: r.Proto, ProtoMajor: r.ProtoMajor, ProtoMinor: r.ProtoMinor, Request: r, Body: io.NopCloser(bytes.NewReader(raw)),
		}, err
	}
	refusing, err := client.New(&rest.Config{Host: "http://injected.invalid"}, client.Options{
		HTTPClient: &http.Client{Transport: roundTrip(answer)}, Scheme: c.Scheme(), Mapper: c.RESTMapper(),
	})
	if err != nil {
		return err
	}
	return call(refusing)
}

// refusedByEtcd makes the call of a real client of a member that answers so, or not at all.
func refusedByEtcd(ctx context.Context, m mode, call func(context.Context, membership.Client) error) error {
	port, err := refusingEtcds[m]()
	if err != nil {
		return err
	}
	c, err := membership.Dial("127.0.0.1", port)
	if err != nil {
		return err
	}
	if m == replyLost { // the same error as after membership.CallTimeout
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
		defer cancel()
	}
	return errors.Join(call(ctx, c), c.Close())
}

// refusingEtcds are the ports of servers that answer every call in one way. They end with the
// process.
var refusingEtcds = func() map[mode]func() (int, error) {
	servers := map[mode]func() (int, error){}
	for _, m := range append(slices.Collect(maps.Keys(etcdAnswers)), replyLost) {
		servers[m] = sync.OnceValues(func() (int, error) { return refusingEtcd(m) })
	}
	return servers
}()

func refusingEtcd(m mode) (port int, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("serve %s: %w", m, err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		if m != replyLost {
			return etcdAnswers[m]
		}
		<-stream.Context().Done() // which knows the client's time, and may end a little before that
		<-time.After(time.Second)
		return status.FromContextError(stream.Context().Err()).Err()
	}))
	go func() { _ = server.Serve(l) }() // to the end of the process
	return l.Addr().(*net.TCPAddr).Port, nil
}
