package backup

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "quorate.dev/api/v1alpha1"
)

// TestUnlabelledJob: the Job of an attempt has lost its label, and the cache, which has only Jobs
// with it, does not show it. The label is given back, and nothing turns in circles.
func TestUnlabelledJob(t *testing.T) {
	t.Parallel()
	const (
		stripped = "something takes the label etcd.quorate.dev/backup from Job nightly, by which Quorate finds it: have that (a policy, a webhook, a controller) leave the label"
		refused  = `the API server refuses to give Job nightly its label etcd.quorate.dev/backup back: jobs.batch "nightly" is forbidden: no labels`
	)
	type outcome struct {
		Label           string
		Stalled         bool
		Reason, Message string
		Again           time.Duration
	}
	cases := map[string]struct {
		reason  string
		job     func(*batchv1.Job)
		patched func(*batchv1.Job) error // after the patch, or instead of it
		want    outcome
	}{
		"GivenBack": {
			reason: "It is ours by its owner",
			job:    func(*batchv1.Job) {},
			want:   outcome{Label: "nightly", Reason: api.ReasonSaving, Message: "taking a snapshot of EtcdCluster db", Again: whileRunning},
		},
		"NotInTheCacheYet": {
			reason: "It has its label, and the watch tells of it",
			job:    func(job *batchv1.Job) { job.Labels = map[string]string{api.LabelBackup: "nightly"} },
			want:   outcome{Label: "nightly", Reason: api.ReasonSaving, Message: "taking a snapshot of EtcdCluster db", Again: whileRunning},
		},
		"TakenAgain": {
			reason:  "A webhook takes the label out of every request",
			job:     func(*batchv1.Job) {},
			patched: func(job *batchv1.Job) error { job.Labels = nil; return nil },
			want:    outcome{Stalled: true, Reason: api.ReasonRefused, Message: stripped, Again: time.Minute},
		},
		"Refused": {
			reason: "A policy refuses it",
			job:    func(*batchv1.Job) {},
			patched: func(*batchv1.Job) error {
				return apierrors.NewForbidden(batchv1.Resource("jobs"), "nightly", errors.New("no labels"))
			},
			want: outcome{Stalled: true, Reason: api.ReasonRefused, Message: refused, Again: time.Minute},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := runtime.NewScheme()
			for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, batchv1.AddToScheme, api.AddToScheme} {
				if err := add(scheme); err != nil {
					t.Fatal(err)
				}
			}
			o := fresh()
			begun(&o)
			o.Backup.CreationTimestamp = metav1.Now()
			o.Cluster.Status.Version = "3.6.16"
			o.Cluster.Spec.TLS = &api.TLS{Client: &api.ClientTLS{Mode: api.TLSDisabled}, Peer: &api.PeerTLS{Mode: api.TLSDisabled}}
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "nightly", Namespace: "team-a", UID: "j"}}
			job.OwnerReferences = []metav1.OwnerReference{{APIVersion: api.SchemeGroupVersion.String(), Kind: api.EtcdBackupKind.Kind, Name: "nightly", UID: o.Backup.UID, Controller: new(true)}}
			tc.job(job)
			server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(o.Backup, o.Cluster, job).Build()
			written := api.EtcdBackup{}
			cached := interceptor.NewClient(server, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, to client.Object, opts ...client.GetOption) error {
					if _, is := to.(*batchv1.Job); is {
						return apierrors.NewNotFound(batchv1.Resource("jobs"), key.Name)
					}
					return c.Get(ctx, key, to, opts...)
				},
				Apply: func(context.Context, client.WithWatch, runtime.ApplyConfiguration, ...client.ApplyOption) error {
					return apierrors.NewConflict(batchv1.Resource("jobs"), "nightly", nil)
				},
				Patch: func(ctx context.Context, c client.WithWatch, to client.Object, patch client.Patch, _ ...client.PatchOption) error {
					if tc.patched == nil {
						return c.Patch(ctx, to, patch)
					}
					return tc.patched(to.(*batchv1.Job))
				},
				SubResourceApply: func(_ context.Context, _ client.Client, _ string, to runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
					decode(t, to, &written)
					return nil
				},
			})
			r := &Reconciler{Client: cached, Reader: server, Recorder: events.NewFakeRecorder(100), AgentImage: "quorate:test", StallAfter: time.Minute}
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(o.Backup)})
			if err != nil {
				t.Fatal(err)
			}
			if err := server.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
				t.Fatal(err)
			}
			got := outcome{Label: job.Labels[api.LabelBackup], Again: result.RequeueAfter}
			got.Stalled = meta.IsStatusConditionTrue(written.Status.Conditions, api.ConditionStalled)
			if ready := meta.FindStatusCondition(written.Status.Conditions, api.ConditionReady); ready != nil {
				got.Reason, got.Message = ready.Reason, ready.Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
