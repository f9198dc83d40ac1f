package contract

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "quorate.dev/api/v1alpha1"
)

// failing is a stage that writes down what fails it.
type failing struct {
	testing.TB
	client.WithWatch
	mu     sync.Mutex
	errors []string
}

func (f *failing) Errorf(format string, args ...any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errors = append(f.errors, fmt.Sprintf(format, args...))
}

// TestAvailable: whatever happens between two marks is seen, however short it is, and whatever
// becomes of the watch.
func TestAvailable(t *testing.T) {
	t.Parallel()
	cluster := func(version string, available metav1.ConditionStatus) *api.EtcdCluster {
		return &api.EtcdCluster{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db", ResourceVersion: version},
			Status:     api.EtcdClusterStatus{Conditions: []metav1.Condition{{Type: api.ConditionAvailable, Status: available}}},
		}
	}
	event := func(version string, available metav1.ConditionStatus) watch.Event {
		return watch.Event{Type: watch.Modified, Object: cluster(version, available)}
	}
	expired := watch.Event{Type: watch.Error, Object: &metav1.Status{Status: metav1.StatusFailure, Message: "too old"}}
	cases := map[string]struct {
		reason  string
		first   metav1.ConditionStatus
		watches [][]watch.Event // each ends after its events, the last one with the test
		from    []string        // where they are to begin
		want    []string        // with which each failure is to begin
	}{
		"Always": {
			reason: "nothing else was seen", first: metav1.ConditionTrue,
			watches: [][]watch.Event{{event("6", metav1.ConditionTrue), event("9", metav1.ConditionTrue)}}, from: []string{"5"},
		},
		"Between": {
			reason: "for a moment it was not", first: metav1.ConditionTrue,
			watches: [][]watch.Event{{event("6", metav1.ConditionFalse), event("9", metav1.ConditionTrue)}}, from: []string{"5"},
			want: []string{"not available"},
		},
		"First": {
			reason: "when it began it was not", first: metav1.ConditionFalse,
			watches: [][]watch.Event{{event("9", metav1.ConditionTrue)}}, from: []string{"5"},
			want: []string{"not available"},
		},
		"Ended": {
			reason: "the server ends a watch, and another one goes on", first: metav1.ConditionTrue,
			watches: [][]watch.Event{{event("6", metav1.ConditionTrue)}, {event("7", metav1.ConditionFalse), event("9", metav1.ConditionTrue)}}, from: []string{"5", "6"},
			want: []string{"not available"},
		},
		"Missed": {
			reason: "nothing tells what has happened meanwhile", first: metav1.ConditionTrue,
			watches: [][]watch.Event{{event("6", metav1.ConditionTrue)}, {expired}}, from: []string{"5", "6"},
			want: []string{"the watch of ns/db has missed what has happened since resource version 6: too old"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := runtime.NewScheme()
			if err := api.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			var from []string
			server := fake.NewClientBuilder().WithScheme(scheme).WithInterceptorFuncs(interceptor.Funcs{
				List: func(_ context.Context, _ client.WithWatch, list client.ObjectList, _ ...client.ListOption) error {
					all := list.(*api.EtcdClusterList)
					all.ResourceVersion, all.Items = "5", []api.EtcdCluster{*cluster("4", tc.first)}
					return nil
				},
				Get: func(_ context.Context, _ client.WithWatch, _ client.ObjectKey, o client.Object, _ ...client.GetOption) error {
					cluster("9", metav1.ConditionTrue).DeepCopyInto(o.(*api.EtcdCluster))
					return nil
				},
				Watch: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, opts ...client.ListOption) (watch.Interface, error) {
					var options client.ListOptions
					options.ApplyOptions(opts)
					events := tc.watches[len(from)]
					from = append(from, options.Raw.ResourceVersion)
					w := watch.NewFakeWithChanSize(len(events), false)
					for _, e := range events {
						w.Action(e.Type, e.Object)
					}
					if len(from) < len(tc.watches) {
						w.Stop()
					} else {
						context.AfterFunc(ctx, w.Stop)
					}
					return w, nil
				},
			}).Build()
			f := &failing{TB: t, WithWatch: server}
			Available(f, cluster("", ""))()
			if diff := cmp.Diff(tc.from, from); diff != "" {
				t.Errorf("%s: watches begin at: -want +got:\n%s", tc.reason, diff)
			}
			if len(f.errors) != len(tc.want) {
				t.Fatalf("%s: failures are %v, want %v", tc.reason, f.errors, tc.want)
			}
			for n, want := range tc.want {
				if !strings.HasPrefix(f.errors[n], want) {
					t.Errorf("%s: failure %q, want %q", tc.reason, f.errors[n], want)
				}
			}
		})
	}
}
