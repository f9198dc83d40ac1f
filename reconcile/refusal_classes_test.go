package reconcile_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile"
)

var (
	waitsForEtcd = membership.Step{Action: membership.Wait, Reason: membership.ScalingDown}
	etcdAtRest   = membership.Step{Action: membership.Wait, Reason: membership.Healthy}
	notApplied   = membership.Step{Action: membership.Wait, Reason: membership.Reason(api.ReasonApplyFailed)}
)

// treatments are the classes of refusals, as the reconciler tells them apart.
var treatments = map[class]reconcile.Treatment{
	looksAgain: {Conflict: true, Unanswered: true},
	waits:      {Instead: waitsForEtcd, AtRest: etcdAtRest, Inconclusive: true},
	unanswered: {Instead: waitsForEtcd, AtRest: etcdAtRest, Inconclusive: true, Unanswered: true},
	fails:      {AtRest: notApplied, Inconclusive: true, Unanswered: true},
}

// kubernetesCalls are calls of each verb of the API server that an operator writes with.
var kubernetesCalls = map[string]func(context.Context, client.Client) error{
	"apply": func(ctx context.Context, c client.Client) error {
		return c.Apply(ctx, corev1ac.Pod("db-0", "ns"), client.FieldOwner("test"))
	},
	"status": func(ctx context.Context, c client.Client) error {
		return c.Status().Apply(ctx, corev1ac.Pod("db-0", "ns"), client.FieldOwner("test"))
	},
	"resize": func(ctx context.Context, c client.Client) error {
		return c.SubResource("resize").Apply(ctx, corev1ac.Pod("db-0", "ns"), client.FieldOwner("test"))
	},
	"delete": func(ctx context.Context, c client.Client) error {
		return c.Delete(ctx, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0", Namespace: "ns"}})
	},
}

// etcdCalls are calls of each verb that changes etcd.
var etcdCalls = map[string]func(context.Context, membership.Client) error{
	"AddLearner": func(ctx context.Context, c membership.Client) error { return c.AddLearner(ctx, "http://db-0:2380") },
	"Promote":    func(ctx context.Context, c membership.Client) error { return c.Promote(ctx, 1) },
	"Remove":     func(ctx context.Context, c membership.Client) error { return c.Remove(ctx, 1) },
	"MoveLeader": func(ctx context.Context, c membership.Client) error { return c.MoveLeader(ctx, 1) },
	"Disarm":     func(ctx context.Context, c membership.Client) error { return c.Disarm(ctx, membership.AlarmCorrupt, 1) },
	"Downgrade": func(ctx context.Context, c membership.Client) error {
		return c.Downgrade(ctx, membership.Version{Major: 3, Minor: 5})
	},
	"CancelDowngrade": func(ctx context.Context, c membership.Client) error { return c.CancelDowngrade(ctx) },
}

// TestRefusals: each refusal that is injected is in the class that the reconciler puts it in, after
// the real client has made its error of it. The reconciler tells the classes apart.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for one, a := range treatments {
		for other, b := range treatments {
			if one < other && cmp.Equal(a, b) {
				t.Errorf("the reconciler does not tell %s and %s apart: %+v", one, other, a)
			}
		}
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	like := fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithRESTMapper(mapper).Build()
	refused := map[string]func(context.Context, mode) error{}
	for verb, call := range kubernetesCalls {
		refused[verb] = func(ctx context.Context, m mode) error {
			return refusedByKubernetes(like, m, func(c client.Client) error { return call(ctx, c) })
		}
	}
	for verb, call := range etcdCalls {
		refused[verb] = func(ctx context.Context, m mode) error { return refusedByEtcd(ctx, m, call) }
	}
	var changes []string
	for _, of := range []reflect.Type{reflect.TypeFor[membership.Changer](), reflect.TypeFor[membership.Downgrader]()} {
		for method := range of.Methods() {
			changes = append(changes, method.Name)
		}
	}
	slices.Sort(changes)
	for what, verbs := range map[string][]string{"refused": slices.Clone(etcdVerbs), "called here": slices.Collect(maps.Keys(etcdCalls))} {
		if diff := cmp.Diff(changes, slices.Sorted(slices.Values(verbs))); diff != "" {
			t.Errorf("verbs that change etcd, and those that are %s: -want +got:\n%s", what, diff)
		}
	}
	for verb, refuse := range refused {
		for _, m := range append(refusals(verb), replyLost) {
			t.Run(verb+"/"+string(m), func(t *testing.T) {
				t.Parallel()
				want := fails // a reply that is lost
				if m != replyLost {
					want = classOf(verb, m)
				}
				ctx := t.Context()
				if want == fails { // the client gives up then, in place of after membership.CallTimeout
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, 500*time.Millisecond)
					defer cancel()
				}
				err := refuse(ctx, m)
				if answer := kubernetesAnswers[m]; answer != nil && apierrors.ReasonForError(err) != answer.ErrStatus.Reason {
					t.Errorf("got %v, want an error of the reason %s", err, answer.ErrStatus.Reason)
				}
				if answer := etcdAnswers[m]; answer != nil && want != fails && !errors.Is(err, rpctypes.Error(answer)) {
					t.Errorf("got %v, want the answer %v", err, answer)
				}
				if etcd := slices.Contains(etcdVerbs, verb); want == fails && etcd && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v, want the end of the time for the call", err)
				}
				if m == replyLost && !slices.Contains(etcdVerbs, verb) && !errors.Is(err, syscall.ECONNRESET) {
					t.Errorf("got %v, want the end of the connection", err)
				}
				if diff := cmp.Diff(treatments[want], reconcile.Treat(err)); diff != "" {
					t.Errorf("%v is not treated as of the class %s: -want +got:\n%s", err, want, diff)
				}
			})
		}
	}
}

// TestDistinctRefusals: one refusal stands for each class, and among the effects of a life there is
// each refusal.
func TestDistinctRefusals(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		verb   string
		want   []class
	}{
		"Kubernetes": {reason: "only a conflict is another thing than an error", verb: "apply.Pod", want: []class{fails, looksAgain}},
		"Etcd":       {reason: "what is refused is done or is not known to be", verb: "Promote.Member", want: []class{unanswered, waits}},
		"Again":      {reason: "the client tries by itself what etcd cannot do now, until it gives up", verb: "MoveLeader.Member", want: []class{fails, waits}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			met := map[mode]bool{}
			for n := range 100 {
				effect := tc.verb + ".db-" + string(rune('0'+n%10)) + "#" + string(rune('0'+n/10))
				var got []class
				for _, m := range distinctRefusals(effect) {
					met[m] = true
					got = append(got, classOf(effect, m))
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Fatalf("%s: classes of %s: -want +got:\n%s", tc.reason, effect, diff)
				}
			}
			for _, m := range refusals(tc.verb) {
				if !met[m] {
					t.Errorf("%s stands for its class in none of 100 effects", m)
				}
			}
			if slices.Contains(distinctRefusals(tc.verb), replyLost) {
				t.Error("a reply that is lost is no refusal")
			}
		})
	}
}
