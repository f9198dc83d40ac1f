//go:build env

package reconcile_test

import (
	"context"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"quorate.dev/membership"
	"quorate.dev/reconcile"
)

// blindness is one disturbance of what an operator asks for: throughout a life, one in so many of these calls fails, at random.
// None of them changes anything; what is shown is that nobody takes "I could not see it" for "it is not there".
type blindness struct {
	life  string
	call  string // of calls; allCalls for each of them
	oneOf int

	mu     sync.Mutex
	random *rand.Rand
	failed int
}

// calls that only read, of the cache and the API server alike, and of members.
var calls = []string{
	"Get.EtcdCluster", "Get.Pod", "Get.PersistentVolumeClaim", "Get.Service", "Get.PodDisruptionBudget", "List.PodList", "List.PersistentVolumeClaimList",
	"Status", "Members", "Scrape",
}

const allCalls = "AllCalls"

// blindnesses of a life: each of one kind of calls, and one of all.
func blindnesses(life string) []*blindness {
	all := []*blindness{newBlindness(life, allCalls)}
	for _, call := range calls {
		all = append(all, newBlindness(life, call))
	}
	return all
}

// newBlindness lets as many calls fail as lets a pass come to its end half of the times, which makes six of one kind, and some
// twenty of all: the pause between two passes that fail grows to half a minute.
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
	s := newStageAlone(t)
	s.operate(b.between)
	c, writes := lives[b.life].play(s, newFault("", ""))
	if diff := cmp.Diff(want, s.picture(c)); diff != "" {
		t.Errorf("%s: the end is not that of an undisturbed run: -want +got:\n%s", lives[b.life].reason, diff)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return ending{met: b.failed > 0, unread: b.failed, writes: writes}
}

// between puts itself between an operator and the world.
func (b *blindness) between(r *reconcile.Reconciler) {
	r.Client, r.Reader = &blindClient{r.Client, blindReader{r.Client, b}}, blindReader{r.Reader, b}
	dial, scrape := r.Dial, r.Scrape
	r.Dial = func(host string, port int) (membership.Client, error) {
		c, err := dial(host, port)
		return &blindEtcd{c, b}, err
	}
	r.Scrape = func(ctx context.Context, host string, port int) (membership.Endpoint, error) {
		if b.fails("Scrape") {
			return membership.Endpoint{}, errUnanswered
		}
		return scrape(ctx, host, port)
	}
}

func (b *blindness) fails(call string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	fails := (b.call == allCalls || b.call == call) && b.random.IntN(b.oneOf) == 0
	if fails {
		b.failed++
	}
	return fails
}

var errUnanswered = fmt.Errorf("injected: %w", context.DeadlineExceeded)

// blindReader is a reader whose calls may fail.
type blindReader struct {
	client.Reader
	b *blindness
}

func (r blindReader) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if r.b.fails("Get." + kindOf(o)) {
		return apierrors.NewTimeoutError("injected", 1)
	}
	return r.Reader.Get(ctx, key, o, opts...)
}

func (r blindReader) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if r.b.fails("List." + kindOf(list)) {
		return apierrors.NewTimeoutError("injected", 1)
	}
	return r.Reader.List(ctx, list, opts...)
}

// kindOf an object is the name of its type.
func kindOf(o any) string {
	name := fmt.Sprintf("%T", o)
	return name[strings.LastIndex(name, ".")+1:]
}

// blindClient reads as a blindReader does.
type blindClient struct {
	client.Client
	reader blindReader
}

func (c *blindClient) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	return c.reader.Get(ctx, key, o, opts...)
}

func (c *blindClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	return c.reader.List(ctx, list, opts...)
}

// blindEtcd is a client of etcd whose questions may stay without an answer.
type blindEtcd struct {
	membership.Client
	b *blindness
}

func (c *blindEtcd) Status(ctx context.Context) (membership.Endpoint, error) {
	if c.b.fails("Status") {
		return membership.Endpoint{}, errUnanswered
	}
	return c.Client.Status(ctx)
}

func (c *blindEtcd) Members(ctx context.Context) ([]membership.Member, error) {
	if c.b.fails("Members") {
		return nil, errUnanswered
	}
	return c.Client.Members(ctx)
}
