package restore

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "quorate.dev/api/v1alpha1"
)

// look reconciles an EtcdRestore beside the cluster of that look, and writes its status into it.
func look(t *testing.T, recorder events.EventRecorder, e *api.EtcdRestore, o Observed) {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := api.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	objects := []client.Object{e.DeepCopy()}
	if o.Cluster != nil {
		objects = append(objects, o.Cluster.DeepCopy())
	}
	c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		SubResourceApply: func(_ context.Context, _ client.Client, _ string, o runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
			raw, err := json.Marshal(o)
			if err != nil {
				return err
			}
			written := &api.EtcdRestore{}
			err = json.Unmarshal(raw, written)
			e.Status = written.Status
			return err
		},
	}).Build()
	r := &Reconciler{Client: c, Recorder: recorder, StallAfter: time.Minute}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(e)}); err != nil {
		t.Fatal(err)
	}
}

// TestEvents: an EtcdRestore tells of each change of its reason, once, and as a warning where a
// person must act. A message that changes alone is no event.
func TestEvents(t *testing.T) {
	t.Parallel()
	recorder := events.NewFakeRecorder(10)
	e := fresh().Restore
	e.CreationTimestamp = metav1.Now() // it is looked at by the clock
	stages := []struct {
		reason string
		args   func(*Observed)
		want   string // empty: none
	}{
		{"it is applied before its cluster", func(o *Observed) { o.Cluster = nil }, "Normal ClusterNotFound there is no EtcdCluster db in this namespace: create it, or create another EtcdRestore with the right spec.clusterRef.name"},
		{"the cluster is there", func(*Observed) {}, "Normal Restoring waiting for EtcdCluster db to begin with it"},
		{"the message alone is another one", carried(api.RestorePending, ""), ""},
		{"a person must act", carried(api.RestoreBlocked, "no snapshot to restore: no such bucket"), "Warning RestoreFailed no snapshot to restore: no such bucket"},
		{"still", carried(api.RestoreBlocked, "no snapshot to restore: access denied"), ""},
		{"it goes on", carried(api.RestorePending, ""), "Normal Restoring looking for the snapshot; the cluster goes on meanwhile"},
		{"it begins", restoring(), ""},
		{"it has formed", formed(), ""},
		{"clients come", done, "Normal Restored the cluster was restored from snapshot db-monday; the volumes of its former members are kept: delete the PersistentVolumeClaims that have the annotation etcd.quorate.dev/set-aside once nothing on them is wanted"},
		{"the cluster goes later", func(o *Observed) { o.Cluster = nil }, ""},
	}
	for _, stage := range stages {
		o := fresh()
		stage.args(&o)
		for range 2 { // the second look tells nothing more
			look(t, recorder, e, o)
		}
		got := ""
		if len(recorder.Events) > 0 {
			got = <-recorder.Events
		}
		if diff := cmp.Diff(stage.want, got); diff != "" || len(recorder.Events) > 0 {
			t.Errorf("%s: %d more events; -want +got:\n%s", stage.reason, len(recorder.Events), diff)
		}
	}
}
