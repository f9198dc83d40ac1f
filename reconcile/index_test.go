package reconcile

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/index"
	"quorate.dev/render"
)

// crowded is the cache of an operator that looks after so many clusters of three members in one
// namespace, which are called db0, db1 and so on. There is no API server.
func crowded(tb testing.TB, clusters int) cache.Cache {
	tb.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme} {
		if err := add(scheme); err != nil {
			tb.Fatal(err)
		}
	}
	pods, claims := fcache.NewFakeControllerSource(), fcache.NewFakeControllerSource()
	cluster := newCluster()
	for n := range clusters {
		cluster.Name = fmt.Sprintf("db%d", n)
		for m := range 3 {
			name := cluster.MemberName(m)
			of := metav1.ObjectMeta{Namespace: "ns", Name: name, Labels: render.Selector(cluster)}
			pods.Add(&corev1.Pod{ObjectMeta: of})
			claims.Add(&corev1.PersistentVolumeClaim{ObjectMeta: of})
		}
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, kind := range []schema.GroupVersionKind{
		corev1.SchemeGroupVersion.WithKind("Pod"), corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"),
		api.SchemeGroupVersion.WithKind("EtcdBackup"), api.SchemeGroupVersion.WithKind("EtcdRestore"),
		api.SchemeGroupVersion.WithKind("EtcdRole"), api.SchemeGroupVersion.WithKind("EtcdUser"),
	} {
		mapper.Add(kind, meta.RESTScopeNamespace)
	}
	c, err := cache.New(&rest.Config{}, cache.Options{
		Scheme: scheme, Mapper: mapper,
		NewInformer: func(_ toolscache.ListerWatcher, o runtime.Object, resync time.Duration, indexers toolscache.Indexers) toolscache.SharedIndexInformer {
			source := fcache.NewFakeControllerSource()
			switch o.(type) {
			case *corev1.Pod:
				source = pods
			case *corev1.PersistentVolumeClaim:
				source = claims
			}
			return toolscache.NewSharedIndexInformer(source, o, resync, indexers)
		},
	})
	if err != nil {
		tb.Fatal(err)
	}
	if err := index.Add(tb.Context(), c); err != nil {
		tb.Fatal(err)
	}
	go func() { _ = c.Start(tb.Context()) }() // it ends with the test
	if !c.WaitForCacheSync(tb.Context()) {
		tb.Fatal("the cache does not fill")
	}
	return c
}

// visits counts the objects that a cache goes through for its lists.
type visits struct {
	client.Reader
	count atomic.Int64
}

func (v *visits) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	o := (&client.ListOptions{}).ApplyOptions(opts)
	if o.LabelSelector == nil {
		o.LabelSelector = labels.Everything()
	}
	o.LabelSelector = counted{o.LabelSelector, &v.count}
	return v.Reader.List(ctx, list, o)
}

// counted is a selector that is asked about each object once.
type counted struct {
	labels.Selector
	count *atomic.Int64
}

func (c counted) Matches(l labels.Labels) bool {
	c.count.Add(1)
	return c.Selector.Matches(l)
}

// TestLookVisits: a look goes through the objects of its own cluster, however many other clusters
// are in the namespace. Otherwise what n clusters cost grows with the square of n.
func TestLookVisits(t *testing.T) {
	t.Parallel()
	const own = 6 // three Pods and three claims
	seen := &visits{Reader: crowded(t, 1000)}
	c := newCluster()
	c.Name = "db500"
	r := &Reconciler{Reader: seen}
	found, err := r.objects(t.Context(), c, cached{seen, c.Name})
	if err != nil {
		t.Fatal(err)
	}
	if len(found.pods) != 3 || len(found.claims) != 3 {
		t.Errorf("want three Pods and three claims, got %d and %d", len(found.pods), len(found.claims))
	}
	if got := seen.count.Load(); got != own {
		t.Errorf("want a look that goes through %d objects, got %d", own, got)
	}
}

// BenchmarkLook is what it costs to find the objects of one cluster, among so many in one
// namespace.
func BenchmarkLook(b *testing.B) {
	for _, clusters := range []int{1, 1000} {
		b.Run(fmt.Sprintf("%d", clusters), func(b *testing.B) {
			all, c, r := crowded(b, clusters), newCluster(), &Reconciler{}
			c.Name = "db0"
			r.Reader = all
			for b.Loop() {
				if _, err := r.objects(b.Context(), c, cached{all, c.Name}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
