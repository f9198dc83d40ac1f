package backup

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/index"
)

// TestWaiting: a change of a cluster wakes the backups of that cluster that have not begun, which
// the cache finds by index.
func TestWaiting(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	of := func(namespace, name, cluster string, status api.EtcdBackupStatus) *api.EtcdBackup {
		return &api.EtcdBackup{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
			Spec:       api.EtcdBackupSpec{ClusterRef: api.ClusterReference{Name: cluster}}, Status: status,
		}
	}
	verified := api.EtcdBackupStatus{VerifiedAt: new(metav1.Now())}
	builder := fake.NewClientBuilder().WithScheme(scheme)
	for o, by := range index.Kinds() {
		if _, is := o.(*api.EtcdBackup); is {
			builder.WithIndex(o, index.OfCluster, by)
		}
	}
	c := builder.WithObjects(
		of("ns", "waits", "db", api.EtcdBackupStatus{}), of("ns", "over", "db", verified),
		of("ns", "others", "web", api.EtcdBackupStatus{}), of("elsewhere", "waits", "db", api.EtcdBackupStatus{}),
	).Build()
	r := &Reconciler{Client: c}
	got := r.waiting(t.Context(), &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "db"}})
	want := []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "waits"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
