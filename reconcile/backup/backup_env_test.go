//go:build env

package backup_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/backup"
)

// TestTaken: one is stored, verified, and then left alone.
func TestTaken(t *testing.T) {
	s := newStage(t)
	r := s.operator(s)
	b := s.backup("nightly", "db", api.RetentionRetain)
	s.settle(r, b)
	if !is(b, api.ConditionReconciling, api.ReasonClusterNotFound) {
		s.Fatalf("before its cluster: %+v", b.Status.Conditions)
	}
	s.formed("db")
	s.settle(r, b)
	if diff := cmp.Diff([]string{"nightly"}, s.names(s.jobs(b))); diff != "" {
		s.Fatalf("Jobs: -want +got:\n%s", diff)
	}
	pod := s.pod("nightly")
	s.says(pod, corev1.PodPending, map[string]string{"save": manifestOf(t, b, false)})
	s.settle(r, b)
	if !is(b, api.ConditionReconciling, api.ReasonVerifying) || b.Status.Revision != 42 {
		s.Fatalf("after it was stored: %+v", b.Status)
	}
	s.says(pod, corev1.PodSucceeded, map[string]string{
		"save": manifestOf(t, b, false), "fetch": "{}", "restore": "{}", "etcd": "", "verify": manifestOf(t, b, true),
	})
	s.ended("nightly", batchv1.JobComplete)
	s.settle(r, b)
	if !is(b, api.ConditionReady, api.ReasonVerified) || b.Status.VerifiedAt == nil {
		s.Fatalf("at the end: %+v", b.Status)
	}
	if want := "persistentvolumeclaim://backups/" + b.Status.Name + ".db.zst"; b.Status.Location != want {
		s.Errorf("location: want %s, got %s", want, b.Status.Location)
	}
	if left := s.names(s.jobs(b)); len(left) > 0 {
		s.Errorf("its Job stays: %v", left)
	}
	before := b.ResourceVersion
	s.settle(r, b)
	if b.ResourceVersion != before {
		s.Errorf("at rest it was written: %+v", b.Status)
	}
}

// TestRefused: what another attempt would only repeat is given up, and the Job stays for its log.
func TestRefused(t *testing.T) {
	s := newStage(t)
	r := s.operator(s)
	s.formed("db")
	b := s.backup("nightly", "db", api.RetentionRetain)
	s.settle(r, b)
	s.says(s.pod("nightly"), corev1.PodFailed, map[string]string{"save": `{"error": {"reason": "AccessDenied", "message": "the store refuses s3:PutObject"}}`})
	s.ended("nightly", batchv1.JobFailed)
	s.settle(r, b)
	if !is(b, api.ConditionStalled, "AccessDenied") || b.Status.Failure == nil {
		s.Fatalf("refused: %+v", b.Status)
	}
	job := s.jobs(b)[0]
	if err := s.Delete(s.Context(), &job, client.PropagationPolicy("Background")); err != nil {
		s.Fatal(err)
	}
	s.settle(r, b)
	if left := s.names(s.jobs(b)); len(left) > 0 {
		s.Errorf("it is taken again: %v", left)
	}
}

// TestForeignJob: what has another owner is left alone.
func TestForeignJob(t *testing.T) {
	s := newStage(t)
	r := s.operator(interceptor.NewClient(s.WithWatch, interceptor.Funcs{Get: cached}))
	r.Reader = s
	s.formed("db")
	job := &batchv1.Job{}
	job.Name, job.Namespace = "nightly", s.ns
	job.Spec.Template.Spec = corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "a", Image: "a"}}}
	if err := s.Create(s.Context(), job); err != nil {
		s.Fatal(err)
	}
	b := s.backup("nightly", "db", api.RetentionRetain)
	s.settle(r, b)
	if !is(b, api.ConditionStalled, api.ReasonForeignObject) {
		s.Errorf("a Job is in the way: %+v", b.Status.Conditions)
	}
	after := &batchv1.Job{}
	if err := s.Get(s.Context(), client.ObjectKeyFromObject(job), after); err != nil || after.ResourceVersion != job.ResourceVersion {
		s.Errorf("it was touched: %v", err)
	}
}

// cached reads as from the operator's cache, which holds no Job without our label.
func cached(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if err := c.Get(ctx, key, o, opts...); err != nil {
		return err
	}
	if _, ok := o.(*batchv1.Job); ok && o.GetLabels()[api.LabelBackup] == "" {
		return apierrors.NewNotFound(batchv1.Resource("jobs"), key.Name)
	}
	return nil
}

// TestEncryptionNotCached: the cluster asks for encryption, and the cache does not have that yet.
// Nothing is begun in plain.
func TestEncryptionNotCached(t *testing.T) {
	s := newStage(t)
	c := s.formed("db")
	cached, behind := c.DeepCopy(), true
	r := s.operator(interceptor.NewClient(s.WithWatch, interceptor.Funcs{
		Get: func(ctx context.Context, live client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
			if cluster, ok := o.(*api.EtcdCluster); ok && behind {
				cached.DeepCopyInto(cluster)
				return nil
			}
			return live.Get(ctx, key, o, opts...)
		},
	}))
	r.Reader = s
	before := c.DeepCopy()
	c.Spec.Backup.Encryption = &api.BackupEncryption{Recipients: []api.AgeRecipient{"age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"}}
	if err := s.Patch(s.Context(), c, client.MergeFrom(before)); err != nil {
		s.Fatal(err)
	}
	b := s.backup("nightly", "db", api.RetentionRetain)
	s.settle(r, b)
	if b.Status.Attempt != 0 || len(s.jobs(b)) > 0 {
		s.Fatalf("it was begun: %+v", b.Status)
	}
	behind = false
	s.settle(r, b)
	if diff := cmp.Diff(c.Spec.Backup.Encryption, b.Status.Encryption); diff != "" || len(s.jobs(b)) != 1 {
		s.Errorf("%d Jobs; encryption: -want +got:\n%s", len(s.jobs(b)), diff)
	}
}

// TestDeletion deletes an EtcdBackup with deletionPolicy Delete at each moment.
func TestDeletion(t *testing.T) {
	t.Parallel()
	begin := func(s *stage, r *backup.Reconciler, b *api.EtcdBackup) {
		s.formed("db")
		s.settle(r, b)
	}
	fails := func(s *stage, r *backup.Reconciler, b *api.EtcdBackup, left map[string]string) {
		begin(s, r, b)
		s.says(s.pod("nightly"), corev1.PodFailed, left)
		s.ended("nightly", batchv1.JobFailed)
		s.settle(r, b)
	}
	cases := map[string]struct {
		reason string
		args   func(s *stage, r *backup.Reconciler, b *api.EtcdBackup)
		log    []string // Jobs of attempts that have failed, which stay until it is gone
		stored bool
	}{
		"Fresh": {
			reason: "Nothing is stored, and it goes at once",
			args:   func(*stage, *backup.Reconciler, *api.EtcdBackup) {},
		},
		"WaitingForCluster": {
			reason: "Nothing is stored",
			args:   func(s *stage, r *backup.Reconciler, b *api.EtcdBackup) { s.settle(r, b) },
		},
		"Running": {
			reason: "What stores is stopped, and what it has stored is deleted",
			args:   begin,
			stored: true,
		},
		"Stored": {
			reason: "It is being verified: that is stopped, and what is stored is deleted",
			args: func(s *stage, r *backup.Reconciler, b *api.EtcdBackup) {
				begin(s, r, b)
				pod := s.pod("nightly")
				s.says(pod, corev1.PodPending, map[string]string{"save": manifestOf(s.T, b, false)})
				s.settle(r, b)
				s.says(pod, corev1.PodFailed, map[string]string{"save": "", "fetch": ""}) // as it is when it was killed
			},
			stored: true,
		},
		"BetweenAttempts": {
			reason: "The next attempt is not made, and what the first may have left is deleted",
			args: func(s *stage, r *backup.Reconciler, b *api.EtcdBackup) {
				fails(s, r, b, map[string]string{"save": `{"error": {"reason": "Unreachable", "message": "no member answers"}}`})
			},
			log: []string{"nightly"}, stored: true,
		},
		"GivenUp": {
			reason: "So it is where there will be no other",
			args: func(s *stage, r *backup.Reconciler, b *api.EtcdBackup) {
				fails(s, r, b, map[string]string{"save": `{"error": {"reason": "StoreFull", "message": "no space"}}`})
			},
			log: []string{"nightly"}, stored: true,
		},
		"NoCluster": {
			reason: "Its cluster was deleted before it: what is stored is deleted all the same",
			args: func(s *stage, r *backup.Reconciler, b *api.EtcdBackup) {
				begin(s, r, b)
				s.discardCluster("db")
			},
			stored: true,
		},
		"Verified": {
			reason: "What is stored is deleted",
			args: func(s *stage, r *backup.Reconciler, b *api.EtcdBackup) {
				s.formed("db")
				s.settle(r, b)
				s.says(s.pod("nightly"), corev1.PodSucceeded, map[string]string{
					"save": manifestOf(s.T, b, false), "fetch": "{}", "restore": "{}", "etcd": "", "verify": manifestOf(s.T, b, true),
				})
				s.ended("nightly", batchv1.JobComplete)
				s.settle(r, b)
			},
			stored: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			r := s.operator(s)
			b := s.backup("nightly", "db", api.RetentionDelete)
			tc.args(s, r, b)
			if err := s.Delete(s.Context(), b); err != nil {
				s.Fatal(err)
			}
			s.settle(r, b)
			if tc.stored {
				if diff := cmp.Diff(append(tc.log, "nightly-delete"), s.names(s.jobs(b))); diff != "" {
					s.Fatalf("%s: Jobs: -want +got:\n%s", tc.reason, diff)
				}
				s.says(s.pod("nightly-delete"), corev1.PodSucceeded, map[string]string{"delete": "{}"})
				s.ended("nightly-delete", batchv1.JobComplete)
				s.settle(r, b)
			}
			if b.UID != "" {
				s.Errorf("%s: it is still there: %v %+v", tc.reason, b.Finalizers, b.Status.Conditions)
			}
		})
	}
}

// discardCluster deletes an EtcdCluster that nothing looks after.
func (s *stage) discardCluster(name string) {
	s.Helper()
	if err := s.Delete(s.Context(), &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}); err != nil {
		s.Fatal(err)
	}
}

// TestWayOut: a store that cannot be reached holds an EtcdBackup until a user sets Retain.
func TestWayOut(t *testing.T) {
	s := newStage(t)
	r := s.operator(s)
	s.formed("db")
	b := s.backup("nightly", "db", api.RetentionDelete)
	s.settle(r, b)
	if err := s.Delete(s.Context(), b); err != nil {
		s.Fatal(err)
	}
	s.settle(r, b)
	s.says(s.pod("nightly-delete"), corev1.PodFailed, map[string]string{"delete": `{"error": {"reason": "Unreachable", "message": "no such host"}}`})
	s.ended("nightly-delete", batchv1.JobFailed)
	s.settle(r, b)
	if !is(b, api.ConditionStalled, api.ReasonDeletionFailed) {
		s.Fatalf("the store is away: %+v", b.Status.Conditions)
	}
	before := b.DeepCopy()
	b.Spec.DeletionPolicy = api.RetentionRetain
	if err := s.Patch(s.Context(), b, client.MergeFrom(before)); err != nil {
		s.Fatal(err)
	}
	s.settle(r, b)
	if b.UID != "" {
		s.Errorf("it is still there: %v", b.Finalizers)
	}
}

// TestNamespaceGoing: no Job can be created in a namespace that is being deleted, and it does not
// wait for us.
func TestNamespaceGoing(t *testing.T) {
	s := newStage(t)
	r := s.operator(s)
	s.formed("db")
	b := s.backup("nightly", "db", api.RetentionDelete)
	s.settle(r, b)
	ns := &corev1.Namespace{}
	ns.Name = s.ns
	for _, o := range []client.Object{ns, b} { // the controller of namespaces deletes what is in one
		if err := s.Delete(s.Context(), o); err != nil {
			s.Fatal(err)
		}
	}
	s.settle(r, b)
	if b.UID != "" {
		s.Errorf("it is still there: %v %+v", b.Finalizers, b.Status.Conditions)
	}
}

// errCrash ends an operator.
var errCrash = errors.New("the operator has died")

// TestCrash: an operator that dies before or after any of its writes leaves one that is taken once,
// and is Ready in the end.
func TestCrash(t *testing.T) {
	s := newStage(t)
	s.formed("db")
	const most = 12 // writes; the loop ends with the run that needs no more
	for _, done := range []bool{false, true} {
		for n := 1; ; n++ {
			if n > most {
				s.Fatalf("more than %d writes", most)
			}
			b := s.backup("b", "db", api.RetentionDelete)
			crashed := s.takeWithCrash(b, n, done)
			if !is(b, api.ConditionReady, api.ReasonVerified) || b.Status.Attempt != 1 {
				s.Errorf("write %d, done %t: %+v", n, done, b.Status)
			}
			s.discard(b)
			if !crashed {
				break
			}
		}
	}
}

// takeWithCrash takes a backup with an operator that dies at its nth write, and then with another
// one. A Pod of the first Job that is created says at once that all is well; a second Job would be
// one too many.
func (s *stage) takeWithCrash(b *api.EtcdBackup, n int, done bool) (crashed bool) {
	s.Helper()
	writes := 0
	dies := func(write func() error) error {
		if writes++; writes != n {
			return write()
		}
		crashed = true
		if done {
			if err := write(); err != nil {
				return err
			}
		}
		return errCrash
	}
	dying := s.operator(interceptor.NewClient(s.WithWatch, interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			return dies(func() error { return c.Apply(ctx, o, opts...) })
		},
		SubResourceApply: func(ctx context.Context, c client.Client, sub string, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
			return dies(func() error { return c.SubResource(sub).Apply(ctx, o, opts...) })
		},
		Patch: func(ctx context.Context, c client.WithWatch, o client.Object, p client.Patch, opts ...client.PatchOption) error {
			return dies(func() error { return c.Patch(ctx, o, p, opts...) })
		},
		Delete: func(ctx context.Context, c client.WithWatch, o client.Object, opts ...client.DeleteOption) error {
			return dies(func() error { return c.Delete(ctx, o, opts...) })
		},
	}))
	r, made := dying, 0
	const most = 30
	for range most {
		if err := s.look(r, b); errors.Is(err, errCrash) {
			r = s.operator(s)
			continue
		} else if err != nil {
			s.Fatal(err)
		}
		jobs := s.names(s.jobs(b))
		switch {
		case is(b, api.ConditionReady, api.ReasonVerified) && len(jobs) == 0:
			return crashed
		case len(jobs) > 0 && made == 0:
			made++
			s.says(s.pod(jobs[0]), corev1.PodSucceeded, map[string]string{
				"save": manifestOf(s.T, b, false), "fetch": "{}", "restore": "{}", "etcd": "", "verify": manifestOf(s.T, b, true),
			})
			s.ended(jobs[0], batchv1.JobComplete)
		}
	}
	s.Fatalf("write %d: not Ready: %+v, Jobs %v", n, b.Status, s.names(s.jobs(b)))
	return crashed
}

// discard an EtcdBackup and what was made for it, without an operator.
func (s *stage) discard(b *api.EtcdBackup) {
	s.Helper()
	before := b.DeepCopy()
	b.Finalizers = nil
	if err := s.Patch(s.Context(), b, client.MergeFrom(before)); err != nil {
		s.Fatal(err)
	}
	if err := s.Delete(s.Context(), b); client.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	}
	now := int64(0)
	if err := s.DeleteAllOf(s.Context(), &corev1.Pod{}, client.InNamespace(s.ns), client.GracePeriodSeconds(now)); err != nil {
		s.Fatal(err)
	}
}

// TestWatched: an operator with its cache is woken by the cluster, and by the end of the Job.
func TestWatched(t *testing.T) {
	s := newStage(t)
	s.operate()
	b := s.backup("nightly", "db", api.RetentionRetain)
	s.await(b, "waiting", func() bool { return is(b, api.ConditionReconciling, api.ReasonClusterNotFound) })
	s.formed("db")
	s.await(b, "begun", func() bool { return is(b, api.ConditionReconciling, api.ReasonSaving) && len(s.jobs(b)) == 1 })
	s.says(s.pod("nightly"), corev1.PodSucceeded, map[string]string{
		"save": manifestOf(t, b, false), "fetch": "{}", "restore": "{}", "etcd": "", "verify": manifestOf(t, b, true),
	})
	s.ended("nightly", batchv1.JobComplete)
	s.await(b, "verified, without its Job", func() bool {
		return is(b, api.ConditionReady, api.ReasonVerified) && len(s.names(s.jobs(b))) == 0
	})
}

// await waits until the EtcdBackup is as wanted.
func (s *stage) await(b *api.EtcdBackup, wanted string, done func() bool) {
	s.Helper()
	const patience = time.Minute
	tick, over := time.NewTicker(50*time.Millisecond), time.After(patience)
	defer tick.Stop()
	for s.read(b); !done(); s.read(b) {
		select {
		case <-tick.C:
		case <-over:
			s.Fatalf("waited %s for it to be %s: %+v", patience, wanted, b.Status)
		}
	}
}
