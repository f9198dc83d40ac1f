//go:build env

package reconcile_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/hostlet"
	"quorate.dev/reconcile/backup"
	"quorate.dev/reconcile/index"
	"quorate.dev/snapshot"
)

// byHash has EtcdBackups verified by their hashes: no etcd runs here beside an agent in its Pod, to
// serve what was restored.
type byHash struct{ client.Client }

func (h byHash) Get(ctx context.Context, key client.ObjectKey, object client.Object, opts ...client.GetOption) error {
	err := h.Client.Get(ctx, key, object, opts...)
	if b, ok := object.(*api.EtcdBackup); ok && err == nil {
		b.Spec.Verify = api.VerifyHash
	}
	return err
}

// backUp starts what carries out EtcdBackups. The agents in their Jobs are processes of this
// machine.
func (s *stage) backUp() {
	s.Helper()
	cfg := hostlet.AsOperator(apiServer)
	cfg.QPS = -1
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme: s.scheme, Cache: s.cache(), Metrics: metricsserver.Options{BindAddress: "0"},
		Controller: config.Controller{SkipNameValidation: new(true)}, GracefulShutdownTimeout: new(time.Second),
		Logger: funcr.New(func(prefix, args string) { s.log(prefix + " " + args) }, funcr.Options{Verbosity: 1}),
	})
	if err != nil {
		s.Fatal(err)
	}
	r := &backup.Reconciler{
		Client: byHash{mgr.GetClient()}, Reader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder(api.Manager), AgentImage: agentImage, StallAfter: 2 * time.Second,
	}
	if err := index.Add(s.Context(), mgr.GetFieldIndexer()); err != nil {
		s.Fatal(err)
	}
	if err := r.SetupWithManager(mgr, 2); err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := mgr.Start(ctx); err != nil {
			s.log("manager of backups ended: " + err.Error())
		}
	}()
	s.Cleanup(func() { cancel(); s.over(done, "the operator of backups") })
}

// guarded is a cluster with a store on the claim of that name.
func (s *stage) guarded(replicas int32, version, claim string) *api.EtcdCluster {
	c := s.cluster("db", replicas)
	c.Spec.Version = version
	c.Spec.Backup = &api.Backup{Store: &api.BackupStore{Volume: &api.VolumeStore{ClaimName: claim}}}
	return c
}

// backups of the stage: the version of etcd that each was taken from, by name; empty where it is
// not verified.
func (s *stage) backups() (versions map[string]string, newest metav1.Time) {
	s.Helper()
	list := &api.EtcdBackupList{}
	s.must(s.List(s.Context(), list, client.InNamespace(s.ns)))
	versions = map[string]string{}
	for i := range list.Items {
		b := &list.Items[i]
		versions[b.Name] = ""
		if b.Status.VerifiedAt == nil {
			continue
		}
		versions[b.Name] = b.Status.EtcdVersion
		if newest.Before(b.Status.VerifiedAt) {
			newest = *b.Status.VerifiedAt
		}
	}
	return versions, newest
}

// TestSnapshotFirst: the version of a cluster under load goes up and down, and before each change a
// snapshot of it is stored and verified: one, though the operator dies while it is taken.
func TestSnapshotFirst(t *testing.T) {
	s := newStage(t, agents)
	s.inStore(func(context.Context, snapshot.Store) error { return nil })
	s.backUp()
	crash := s.operate()
	c := s.guarded(3, etcd36, backups)
	load := s.laden(c)
	kept := data{}
	s.write(c, kept)
	want := map[string]string{}
	for _, step := range []struct{ from, to string }{{etcd36, etcd37}, {etcd37, etcd36}} {
		s.change(c, func() { c.Spec.Version = step.to })
		s.await(c, "with a snapshot that is being taken", func() bool {
			reconciling := meta.FindStatusCondition(c.Status.Conditions, api.ConditionReconciling)
			return reconciling != nil && reconciling.Reason == api.ReasonBackingUp && reconciling.ObservedGeneration == c.Generation
		})
		crash()
		crash = s.operate()
		want[c.BackupBeforeChangeName()] = step.from
		s.runs(c, step.to)
		got, verified := s.backups()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("snapshots before %s: -want +got:\n%s", step.to, diff)
		}
		for _, pod := range s.pods(c) {
			for _, status := range pod.Status.ContainerStatuses {
				if running := status.State.Running; running != nil && running.StartedAt.Before(&verified) {
					t.Errorf("%s runs %s since %s, and its snapshot was verified at %s", pod.Name, status.Image, running.StartedAt, verified)
				}
			}
		}
		s.write(c, kept)
	}
	load.check()
	s.settled(c, kept)
	if err := s.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	s.gone(c)
	if got, _ := s.backups(); !maps.Equal(got, want) {
		t.Errorf("when the cluster is gone its snapshots are %v, want %v", got, want)
	}
}

// TestSnapshotFirstRefused: a store that takes nothing keeps every member as it is, and the status
// says so. What a person does then lets the change begin.
func TestSnapshotFirstRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		mend   func(*stage, *api.EtcdCluster)
		want   string // the version of etcd that the snapshot was taken from; empty: none is verified
	}{
		"Disabled": {
			reason: "the change is not to wait for a snapshot",
			mend: func(s *stage, c *api.EtcdCluster) {
				s.change(c, func() { c.Spec.Backup.BeforeChange = api.BeforeChangeDisabled })
			},
		},
		"Mended": {
			reason: "the EtcdBackup goes on by itself", want: etcd36,
			mend: func(s *stage, _ *api.EtcdCluster) {
				s.inStore(func(context.Context, snapshot.Store) error { return nil })
			},
		},
		"GivenUp": {
			reason: "another one is made when it is deleted", want: etcd36,
			mend: func(s *stage, c *api.EtcdCluster) {
				b := &api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: c.BackupBeforeChangeName(), Namespace: s.ns}}
				s.must(s.Get(s.Context(), client.ObjectKeyFromObject(b), b))
				before := b.DeepCopy()
				b.Status.Failure = &api.BackupFailure{Reason: "AccessDenied", Message: "no snapshot was taken: access denied"}
				s.must(s.Status().Patch(s.Context(), b, client.MergeFrom(before)))
				s.stalledWith(c, api.ReasonBackupFailed, "EtcdBackup "+b.Name+" has failed: no snapshot was taken: access denied. No member is changed. Mend that and delete this EtcdBackup")
				s.inStore(func(context.Context, snapshot.Store) error { return nil })
				job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: b.Name, Namespace: s.ns}}
				s.must(s.Delete(s.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground))) // there is no garbage collector here
				s.must(s.Delete(s.Context(), b))
			},
		},
		"TakenBack": {
			reason: "the spec is set back, and nothing is waited for",
			mend:   func(s *stage, c *api.EtcdCluster) { s.change(c, func() { c.Spec.Version = etcd36 }) },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t, agents)
			s.backUp()
			s.operate()
			c := s.guarded(1, etcd36, backups) // there is no such claim
			s.create(c)
			s.ready(c)
			kept := data{}
			s.write(c, kept)
			pods, restarts := s.lives(c)
			s.change(c, func() { c.Spec.Version = etcd37 })
			first := c.BackupBeforeChangeName()
			s.stalledWith(c, api.ReasonBackupFailed, "EtcdBackup "+first+" cannot go on: ")
			if now, again := s.lives(c); !maps.Equal(pods, now) || !maps.Equal(restarts, again) {
				t.Errorf("%s: a member was touched: %v %v, then %v %v", tc.reason, pods, restarts, now, again)
			}
			s.write(c, kept)
			tc.mend(s, c)
			s.runs(c, c.Spec.Version)
			got, _ := s.backups()
			want := map[string]string{first: tc.want}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: EtcdBackups: -want +got:\n%s", tc.reason, diff)
			}
			s.settled(c, kept)
		})
	}
}
