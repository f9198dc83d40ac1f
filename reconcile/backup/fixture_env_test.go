//go:build env

package backup_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-logr/logr"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/hostlet"
	"quorate.dev/reconcile/backup"
	"quorate.dev/reconcile/index"
	"quorate.dev/snapshot"
)

// The API server of these tests is a real one. It runs no Job: the tests say what came of a Pod, in
// the words of a kubelet.

var apiServer *rest.Config

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	env, err := hostlet.StartEnv(context.Background(), "../../templates/install/crd") //nolint:forbidigo // TestMain has the context of no test
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	apiServer = env.Config
	ctrl.SetLogger(logr.Discard())
	code := m.Run()
	if err := env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

// stage is one test's world.
type stage struct {
	*testing.T
	client.WithWatch
	ns     string
	scheme *runtime.Scheme
}

func newStage(t *testing.T) *stage {
	t.Helper()
	t.Parallel()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, api.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	fast := rest.CopyConfig(apiServer)
	fast.QPS = -1
	c, err := client.NewWithWatch(fast, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "backup-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	return &stage{T: t, WithWatch: c, ns: ns.Name, scheme: scheme}
}

// operator is one that looks when it is told to, and has no cache that could be behind.
func (s *stage) operator(c client.Client) *backup.Reconciler {
	return &backup.Reconciler{
		Client: c, Reader: c, Recorder: events.NewFakeRecorder(100), AgentImage: "registry.example/quorate:v1", StallAfter: time.Minute,
	}
}

// formed creates an EtcdCluster that serves, as far as its status says.
func (s *stage) formed(name string) *api.EtcdCluster {
	s.Helper()
	c := &api.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns},
		Spec: api.EtcdClusterSpec{
			Version: "3.6.16", Storage: api.Storage{Size: resource.MustParse("1Gi")},
			TLS:    &api.TLS{Client: &api.ClientTLS{Mode: api.TLSDisabled}, Peer: &api.PeerTLS{Mode: api.TLSDisabled}},
			Backup: &api.Backup{Store: &api.BackupStore{Volume: &api.VolumeStore{ClaimName: "backups"}}},
		},
	}
	if err := s.Create(s.Context(), c); err != nil {
		s.Fatal(err)
	}
	c.Status.ClusterID, c.Status.Version = "cdf818194e3a8c32", "3.6.16"
	c.Status.Members = []api.MemberStatus{{Name: name + "-0", ID: "1", Role: api.RoleLeader, Health: api.HealthHealthy, Version: "3.6.16"}}
	if err := s.Status().Update(s.Context(), c); err != nil {
		s.Fatal(err)
	}
	return c
}

// backup creates an EtcdBackup.
func (s *stage) backup(name string, of string, policy api.RetentionPolicy) *api.EtcdBackup {
	s.Helper()
	b := &api.EtcdBackup{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns},
		Spec:       api.EtcdBackupSpec{ClusterRef: api.ClusterReference{Name: of}, DeletionPolicy: policy},
	}
	if err := s.Create(s.Context(), b); err != nil {
		s.Fatal(err)
	}
	return b
}

// look lets an operator take steps until it waits for something; an error of a step ends it, as a
// crash does.
func (s *stage) look(r *backup.Reconciler, b *api.EtcdBackup) error {
	s.Helper()
	const most = 20
	for range most {
		before := s.read(b)
		if _, err := r.Reconcile(s.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(b)}); err != nil {
			return err
		}
		if s.read(b) == before {
			return nil
		}
	}
	s.Fatalf("no end of changes: %s", s.read(b))
	return nil
}

// settle is a look that must not fail.
func (s *stage) settle(r *backup.Reconciler, b *api.EtcdBackup) {
	s.Helper()
	if err := s.look(r, b); err != nil {
		s.Fatal(err)
	}
}

// read the EtcdBackup again, and tell its state and that of its Jobs in one line; empty once it is
// gone.
func (s *stage) read(b *api.EtcdBackup) string {
	s.Helper()
	key := client.ObjectKeyFromObject(b)
	*b = api.EtcdBackup{ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: key.Namespace}}
	if err := s.Get(s.Context(), key, b); client.IgnoreNotFound(err) != nil {
		s.Fatal(err)
	}
	return fmt.Sprint(b.ResourceVersion, s.names(s.jobs(b)))
}

func (s *stage) jobs(b *api.EtcdBackup) []batchv1.Job {
	s.Helper()
	list := &batchv1.JobList{}
	if err := s.List(s.Context(), list, client.InNamespace(s.ns), client.MatchingLabels{api.LabelBackup: b.Name}); err != nil {
		s.Fatal(err)
	}
	return list.Items
}

func (s *stage) names(jobs []batchv1.Job) []string {
	var names []string
	for i := range jobs {
		if jobs[i].DeletionTimestamp == nil {
			names = append(names, jobs[i].Name)
		}
	}
	return names
}

// pod is the Pod of a Job, which the test makes as the controller of Jobs would.
func (s *stage) pod(name string) *corev1.Pod {
	s.Helper()
	job := &batchv1.Job{}
	if err := s.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, job); err != nil {
		s.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, GenerateName: name + "-", Labels: job.Spec.Template.Labels},
		Spec:       job.Spec.Template.Spec,
	}
	if err := ctrl.SetControllerReference(job, pod, s.scheme); err != nil {
		s.Fatal(err)
	}
	if err := s.Create(s.Context(), pod); err != nil {
		s.Fatal(err)
	}
	return pod
}

// says writes what the containers of a Pod have left; the rest of them have not started.
func (s *stage) says(pod *corev1.Pod, phase corev1.PodPhase, left map[string]string) {
	s.Helper()
	pod.Status.Phase = phase
	status := func(containers []corev1.Container) (all []corev1.ContainerStatus) {
		for _, c := range containers {
			state := corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}
			if message, ok := left[c.Name]; ok {
				state = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Message: message}}
				if phase == corev1.PodFailed {
					state.Terminated.ExitCode = 1
				}
			}
			all = append(all, corev1.ContainerStatus{Name: c.Name, State: state})
		}
		return all
	}
	pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses = status(pod.Spec.InitContainers), status(pod.Spec.Containers)
	if err := s.Status().Update(s.Context(), pod); err != nil {
		s.Fatal(err)
	}
}

// ended writes the status of a Job as its controller does.
func (s *stage) ended(name string, with batchv1.JobConditionType) {
	s.Helper()
	job := &batchv1.Job{}
	if err := s.Get(s.Context(), client.ObjectKey{Namespace: s.ns, Name: name}, job); err != nil {
		s.Fatal(err)
	}
	now := metav1.Now()
	before := batchv1.JobFailureTarget
	if with == batchv1.JobComplete {
		before, job.Status.CompletionTime, job.Status.Succeeded = batchv1.JobSuccessCriteriaMet, &now, 1
	} else {
		job.Status.Failed = 1
	}
	job.Status.StartTime = &now
	for _, kind := range []batchv1.JobConditionType{before, with} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now, LastProbeTime: now,
		})
	}
	if err := s.Status().Update(s.Context(), job); err != nil {
		s.Fatal(err)
	}
}

// manifests counts those that were made: each is taken a second after the one before, since the
// status has no part of a second.
var manifests atomic.Int64

// manifestOf is what the agent says of the snapshot that it has stored.
func manifestOf(t *testing.T, b *api.EtcdBackup, verified bool) string {
	t.Helper()
	taken := time.Now().UTC().Add(time.Duration(manifests.Add(1)) * time.Second)
	m := snapshot.Manifest{
		Format: snapshot.Format, Name: b.Status.Name, ClusterID: "cdf818194e3a8c32", Member: "db-0", EtcdVersion: "3.6.16", Revision: 42,
		Object: b.Status.Name + ".db.zst", Size: 24608, SHA256: "6b86", StoredSize: 1024, StartedAt: taken, TakenAt: taken,
	}
	said := map[string]any{"manifest": m}
	if verified {
		said["verification"] = snapshot.Verification{Format: snapshot.Format, Name: m.Name, Mode: snapshot.ModeRestore, At: time.Now().UTC(), SHA256: m.SHA256}
	}
	raw, err := json.Marshal(said)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// is reports whether the EtcdBackup has a condition, for this reason.
func is(b *api.EtcdBackup, kind, reason string) bool {
	c := meta.FindStatusCondition(b.Status.Conditions, kind)
	return c != nil && c.Status == metav1.ConditionTrue && c.Reason == reason && c.ObservedGeneration == b.Generation
}

// operate starts an operator with a manager and a cache that holds what that of the real one holds.
func (s *stage) operate() {
	s.Helper()
	ours, err := labels.NewRequirement(api.LabelBackup, selection.Exists, nil)
	if err != nil {
		s.Fatal(err)
	}
	mgr, err := ctrl.NewManager(hostlet.AsOperator(apiServer), ctrl.Options{
		Scheme: s.scheme,
		Cache: cache.Options{
			DefaultNamespaces: map[string]cache.Config{s.ns: {}},
			ByObject:          map[client.Object]cache.ByObject{&batchv1.Job{}: {Label: labels.NewSelector().Add(*ours)}},
		},
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		Controller:              config.Controller{SkipNameValidation: new(true)},
		GracefulShutdownTimeout: new(time.Second),
	})
	if err != nil {
		s.Fatal(err)
	}
	r := s.operator(mgr.GetClient())
	r.Reader, r.Recorder = mgr.GetAPIReader(), mgr.GetEventRecorder(api.Manager)
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
			s.Errorf("manager ended: %v", err)
		}
	}()
	s.Cleanup(func() { cancel(); <-done })
}
