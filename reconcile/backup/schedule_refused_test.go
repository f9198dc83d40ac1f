package backup

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "quorate.dev/api/v1alpha1"
)

// TestScheduleRefused: at 09:30 the EtcdBackup of 09:00 is to be made, and nightly-1 and nightly-0
// are to go. What the API server refuses keeps nothing else from being done, and is told.
func TestScheduleRefused(t *testing.T) {
	t.Parallel()
	const (
		due     = "nightly-29926620"
		hold    = `the API server refuses to delete EtcdBackup nightly-1, which spec.retention does not keep: etcdbackups.etcd.quorate.dev "nightly-1" is forbidden: legal hold; change the policy or the rights that refuse it, or let spec.retention keep more. New EtcdBackups are made all the same`
		quota   = `the API server refuses to create EtcdBackup nightly-29926620: etcdbackups.etcd.quorate.dev "nightly-29926620" is forbidden: exceeded quota; change the quota, the policy or the rights that refuse it. It is tried again every minute`
		invalid = `the API server refuses to create EtcdBackup nightly-29926620: EtcdBackup.etcd.quorate.dev "nightly-29926620" is invalid; change the quota, the policy or the rights that refuse it. It is tried again every minute`
		makes   = "an EtcdBackup is made when it is time"
	)
	resource := schema.GroupResource{Group: api.GroupName, Resource: "etcdbackups"}
	forbidden := func(name, why string) error { return apierrors.NewForbidden(resource, name, errors.New(why)) }
	type outcome struct {
		Created, Deleted []string
		Stalled          bool
		Reason, Message  string
		Last             *metav1.Time // status.lastScheduleTime
		Again            time.Duration
		Failed           bool // so that the next try is later and later
	}
	cases := map[string]struct {
		reason string
		args   map[string]error // by what is asked for
		want   outcome
	}{
		"Nothing": {
			reason: "All is done",
			want:   outcome{Created: []string{due}, Deleted: []string{"nightly-1", "nightly-0"}, Reason: api.ReasonScheduled, Message: makes, Last: instant(clock(9, 0)), Again: 30 * time.Minute},
		},
		"Deletion": {
			reason: "A policy keeps one of them: the other one goes, and the next one is made",
			args:   map[string]error{"delete nightly-1": forbidden("nightly-1", "legal hold")},
			want: outcome{
				Created: []string{due}, Deleted: []string{"nightly-0"}, Stalled: true, Reason: api.ReasonRefused, Message: hold,
				Last: instant(clock(9, 0)), Again: time.Minute,
			},
		},
		"DeletionFails": {
			reason: "What may mend itself is tried again, and is not for a person",
			args:   map[string]error{"delete nightly-1": apierrors.NewServiceUnavailable("no leader")},
			want:   outcome{Created: []string{due}, Deleted: []string{"nightly-0"}, Reason: api.ReasonScheduled, Message: makes, Last: instant(clock(9, 0)), Failed: true},
		},
		"DeletionConflict": {
			reason: "The cache is behind, and soon catches up",
			args:   map[string]error{"delete nightly-1": apierrors.NewConflict(resource, "nightly-1", nil)},
			want:   outcome{Created: []string{due}, Deleted: []string{"nightly-0"}, Reason: api.ReasonScheduled, Message: makes, Last: instant(clock(9, 0)), Again: afterConflict},
		},
		"Creation": {
			reason: "A quota is full: that is told, and the time is not written down as one that was made",
			args:   map[string]error{"create " + due: forbidden(due, "exceeded quota")},
			want:   outcome{Deleted: []string{"nightly-1", "nightly-0"}, Stalled: true, Reason: api.ReasonRefused, Message: quota, Again: time.Minute},
		},
		"CreationInvalid": {
			reason: "A policy may say so too",
			args:   map[string]error{"create " + due: apierrors.NewInvalid(api.EtcdBackupKind.GroupKind(), due, nil)},
			want:   outcome{Deleted: []string{"nightly-1", "nightly-0"}, Stalled: true, Reason: api.ReasonRefused, Message: invalid, Again: time.Minute},
		},
		"CreationFails": {
			reason: "It is tried again, later and later",
			args:   map[string]error{"create " + due: apierrors.NewServiceUnavailable("no leader")},
			want:   outcome{Deleted: []string{"nightly-1", "nightly-0"}, Reason: api.ReasonScheduled, Message: makes, Failed: true},
		},
		"Both": {
			reason: "That none is made is worse than that one stays",
			args:   map[string]error{"create " + due: forbidden(due, "exceeded quota"), "delete nightly-1": forbidden("nightly-1", "legal hold")},
			want:   outcome{Deleted: []string{"nightly-0"}, Stalled: true, Reason: api.ReasonRefused, Message: quota, Again: time.Minute},
		},
		"Restores": {
			reason: "What restores need cannot be read: nothing is deleted, and the next one is made",
			args:   map[string]error{"list": forbidden("", "no right")},
			want:   outcome{Created: []string{due}, Reason: api.ReasonScheduled, Message: makes, Last: instant(clock(9, 0)), Failed: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scheme := runtime.NewScheme()
			if err := api.AddToScheme(scheme); err != nil {
				t.Fatal(err)
			}
			s := nightly().Schedule
			s.Spec.Retention = &api.BackupRetention{Last: 2}
			objects := []client.Object{s}
			for n := range 4 {
				b := good(fmt.Sprintf("nightly-%d", n), clock(4+n, 0))
				b.Namespace, b.Labels = "team-a", map[string]string{api.LabelSchedule: "nightly"}
				objects = append(objects, &b)
			}
			got, written := outcome{}, api.EtcdBackupSchedule{}
			c := fake.NewClientBuilder().WithScheme(scheme).WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
				List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
					if _, restores := list.(*api.EtcdRestoreList); restores && tc.args["list"] != nil {
						return tc.args["list"]
					}
					return c.List(ctx, list, opts...)
				},
				Delete: func(_ context.Context, _ client.WithWatch, o client.Object, _ ...client.DeleteOption) error {
					if err := tc.args["delete "+o.GetName()]; err != nil {
						return err
					}
					got.Deleted = append(got.Deleted, o.GetName())
					return nil
				},
				Apply: func(_ context.Context, _ client.WithWatch, o runtime.ApplyConfiguration, _ ...client.ApplyOption) error {
					b := api.EtcdBackup{}
					decode(t, o, &b)
					if err := tc.args["create "+b.Name]; err != nil {
						return err
					}
					got.Created = append(got.Created, b.Name)
					return nil
				},
				SubResourceApply: func(_ context.Context, _ client.Client, _ string, o runtime.ApplyConfiguration, _ ...client.SubResourceApplyOption) error {
					written = api.EtcdBackupSchedule{}
					decode(t, o, &written)
					return nil
				},
			}).Build()
			r := &Scheduler{Client: c, Reader: c, Recorder: events.NewFakeRecorder(100), Now: func() time.Time { return clock(9, 30) }}
			result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(s)})
			got.Again, got.Failed, got.Last = result.RequeueAfter, err != nil, written.Status.LastScheduleTime
			if got.Last != nil {
				got.Last = instant(got.Last.UTC())
			}
			got.Stalled = meta.IsStatusConditionTrue(written.Status.Conditions, api.ConditionStalled)
			if n := slices.IndexFunc(written.Status.Conditions, func(c metav1.Condition) bool { return c.Type == api.ConditionReady }); n >= 0 {
				got.Reason, got.Message = written.Status.Conditions[n].Reason, written.Status.Conditions[n].Message
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (error: %v): -want +got:\n%s", tc.reason, err, diff)
			}
		})
	}
}

// decode an apply configuration into the object that it is of.
func decode(t *testing.T, o runtime.ApplyConfiguration, into any) {
	t.Helper()
	raw, err := json.Marshal(o)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		t.Error(err)
	}
}
