//go:build env

package reconcile_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"quorate.dev/membership"
	"quorate.dev/reconcile"
)

// blindness is one disturbance of what an operator asks for: throughout a life, one in so many of
// these calls fails, at random. None of them changes anything; what is shown is that the operator
// does not take "I could not see it" for "it is not there".
type blindness struct {
	life  string
	call  string // of calls; allCalls for each of them
	oneOf int

	mu     sync.Mutex
	random *rand.Rand
	failed int
	others []string // that were made and are none of those that are disturbed
}

// calls that only read, of the cache and the API server alike, and of members.
var calls = []string{
	"Get.EtcdCluster", "Get.Pod", "Get.PersistentVolumeClaim", "Get.Service", "Get.PodDisruptionBudget",
	"List.EtcdClusterList", "List.EtcdRestoreList", "List.PodList", "List.PersistentVolumeClaimList", "List.EndpointSliceList",
	"Status", "Members", "Hash", "Scrape",
}

// ofSomeLives are calls that only these lives make.
var ofSomeLives = map[string][]string{
	"rotate":  {"Get.Secret", "List.EtcdRoleList", "List.EtcdUserList"},
	"switch":  {"Get.Secret"},
	"restore": {"Get.Job"},
	"inplace": {"Get.Job", "Get.EtcdRestore"},
	"survive": {"Get.Job", "Get.EtcdRestore"},
}

// callsOf a life are all that it may make.
func callsOf(life string) []string { return slices.Concat(calls, ofSomeLives[life]) }

const allCalls = "AllCalls"

// blindnesses of a life: each of one kind of calls, and one of all.
func blindnesses(life string) []*blindness {
	all := []*blindness{newBlindness(life, allCalls)}
	for _, call := range callsOf(life) {
		all = append(all, newBlindness(life, call))
	}
	return all
}

// newBlindness lets as many calls fail as lets a pass come to its end half of the times, which
// makes six of one kind, and some twenty of all: the pause between two passes that fail grows to
// half a minute.
func newBlindness(life, call string) *blindness {
	oneOf := 8
	if call == allCalls {
		oneOf = 30
	}
	seed := fnv.New64()
	_, _ = seed.Write([]byte(life + call)) // never fails
	return &blindness{life: life, call: call, oneOf: oneOf, random: rand.New(rand.NewPCG(seed.Sum64(), 0))}
}

func (b *blindness) String() string { return "blind/" + b.life + "/" + b.call }

// run fails unless the end is that of the undisturbed run, and no client was told what is not so.
func (b *blindness) run(t *testing.T, want []string) ending {
	s := newStageAlone(t, agents)
	s.backsUp = lives[b.life].backsUp
	s.operate(b.between)
	c, writes := lives[b.life].play(s, newFault("", ""))
	if diff := cmp.Diff(want, s.picture(c)); diff != "" {
		t.Errorf("%s: the end is not that of an undisturbed run: -want +got:\n%s", lives[b.life].reason, diff)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.others) > 0 {
		t.Errorf("%v are made, and are not among the calls that fail one kind at a time", b.others)
	}
	return ending{met: b.failed > 0, unread: b.failed, writes: writes}
}

// between puts itself between an operator and the world.
func (b *blindness) between(r *reconcile.Reconciler) {
	c := r.Client
	r.Client, r.Reader = &blindClient{blindReader{c, c, b}, c, c, c}, blindReader{r.Reader, c, b}
	dial, scrape := r.Dial, r.Scrape
	r.Dial = func(host string, port int) (membership.Client, error) {
		c, err := dial(host, port)
		return &blindEtcd{c, c, c, b}, err
	}
	r.Scrape = func(ctx context.Context, host string, port int) (membership.Endpoint, error) {
		if b.fails("Scrape") {
			host, port = deaf, 1
		}
		return scrape(ctx, host, port)
	}
}

func (b *blindness) fails(call string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !slices.Contains(callsOf(b.life), call) && !slices.Contains(b.others, call) {
		b.others = append(b.others, call)
	}
	fails := (b.call == allCalls || b.call == call) && b.random.IntN(b.oneOf) == 0
	if fails {
		b.failed++
	}
	return fails
}

// deaf is a host that refuses every connection to port 1.
const deaf = "127.0.0.1"

// The clients here embed the writes, each by its own interface, and nothing else: a read that an
// interface gets later is missing, and does not compile. The errors are those of real clients.

// blindReader is a reader whose calls may fail.
type blindReader struct {
	real client.Reader
	like client.Client
	b    *blindness
}

func (r blindReader) unread(call func(client.Client) error) error {
	return refusedByKubernetes(r.like, "Timeout", call)
}

func (r blindReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if r.b.fails("Get." + kindOf(o)) {
		return r.unread(func(c client.Client) error { return c.Get(ctx, key, o, opts...) })
	}
	return r.real.Get(ctx, key, o, opts...)
}

func (r blindReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if r.b.fails("List." + kindOf(list)) {
		return r.unread(func(c client.Client) error { return c.List(ctx, list, opts...) })
	}
	return r.real.List(ctx, list, opts...)
}

// kindOf an object is the name of its type.
func kindOf(o any) string {
	name := fmt.Sprintf("%T", o)
	return name[strings.LastIndex(name, ".")+1:]
}

// blindClient reads as a blindReader does.
type blindClient struct {
	blindReader
	client.Writer
	client.StatusClient
	of client.Client
}

var _ client.Client = (*blindClient)(nil)

func (c *blindClient) SubResource(name string) client.SubResourceClient {
	sub := c.of.SubResource(name)
	return &blindSubResource{sub, sub, name, c.blindReader}
}

func (c *blindClient) Scheme() *runtime.Scheme     { return c.of.Scheme() }
func (c *blindClient) RESTMapper() meta.RESTMapper { return c.of.RESTMapper() }

func (c *blindClient) GroupVersionKindFor(o runtime.Object) (schema.GroupVersionKind, error) {
	return c.of.GroupVersionKindFor(o)
}

func (c *blindClient) IsObjectNamespaced(o runtime.Object) (bool, error) {
	return c.of.IsObjectNamespaced(o)
}

type blindSubResource struct {
	client.SubResourceWriter
	real client.SubResourceReader
	name string
	r    blindReader
}

func (c *blindSubResource) Get(ctx context.Context, o, sub client.Object, opts ...client.SubResourceGetOption) error {
	if c.r.b.fails("Get." + kindOf(o) + "/" + c.name) {
		return c.r.unread(func(to client.Client) error { return to.SubResource(c.name).Get(ctx, o, sub, opts...) })
	}
	return c.real.Get(ctx, o, sub, opts...)
}

// blindEtcd is a client of etcd whose questions may stay without an answer.
type blindEtcd struct {
	membership.Changer
	membership.Downgrader
	real membership.Client
	b    *blindness
}

var _ membership.Client = (*blindEtcd)(nil)

func (c *blindEtcd) Close() error { return c.real.Close() }

func (c *blindEtcd) Status(ctx context.Context) (says membership.Endpoint, err error) {
	if !c.b.fails("Status") {
		return c.real.Status(ctx)
	}
	err = refusedByEtcd(ctx, replyLost, func(ctx context.Context, silent membership.Client) error {
		says, err = silent.Status(ctx)
		return err
	})
	return says, err
}

func (c *blindEtcd) Members(ctx context.Context) (members []membership.Member, err error) {
	if !c.b.fails("Members") {
		return c.real.Members(ctx)
	}
	err = refusedByEtcd(ctx, replyLost, func(ctx context.Context, silent membership.Client) error {
		members, err = silent.Members(ctx)
		return err
	})
	return members, err
}

func (c *blindEtcd) Hash(ctx context.Context, revision int64) (hash membership.Hash, err error) {
	if !c.b.fails("Hash") {
		return c.real.Hash(ctx, revision)
	}
	err = refusedByEtcd(ctx, replyLost, func(ctx context.Context, silent membership.Client) error {
		hash, err = silent.Hash(ctx, revision)
		return err
	})
	return hash, err
}
