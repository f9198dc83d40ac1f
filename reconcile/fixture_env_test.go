//go:build env

package reconcile_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/selection"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/await"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/hostlet"
	"quorate.dev/membership"
	"quorate.dev/reconcile"
	"quorate.dev/reconcile/backup"
	"quorate.dev/reconcile/index"
	restorestatus "quorate.dev/reconcile/restore"
	"quorate.dev/reconcile/users"
)

// Each test has a namespace, an operator and a hostlet of its own in one real API server; every
// member is a real etcd.

var apiServer *rest.Config

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	env, err := hostlet.StartEnv(context.Background(), "../templates/install/crd") //nolint:forbidigo // TestMain has the context of no test
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	apiServer = env.Config
	ctrl.SetLogger(logr.Discard()) // what belongs to a test is logged with it
	code := m.Run()
	if built != "" {
		if err := os.RemoveAll(built); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	if err := env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return code
}

const (
	etcd35 = "3.5.35"
	etcd36 = "3.6.16"
	etcd37 = "3.7.3"
)

// patience bounds every wait: far more than any of them takes on a machine of two cores that is
// busy with other work as well.
const patience = 4 * time.Minute

// stage is one test's world.
type stage struct {
	*testing.T
	client.WithWatch
	hostlet *hostlet.Hostlet
	ns      string
	scheme  *runtime.Scheme
	version string // of etcd, for the clusters of this stage
	workers int    // of each operator; 0 is two
	wire    *wire  // between the operators and the API server; nil where no test looks at it
	secured bool   // the specs of this stage ask for TLS on both ports
	unasked bool   // they say nothing of TLS
	// account is the ServiceAccount whose rights the operators have, as <namespace>:<name>; empty:
	// all rights.
	account string
	loaded  bool  // clients write and read from when a cluster is born
	listens bool  // the clients watch, too
	clients *load // which these are
	backsUp bool  // the operators carry out EtcdBackups
	peopled bool  // the operators carry out EtcdRoles and EtcdUsers

	mu   sync.Mutex
	logs []string
	dies func(what string, ended bool) bool // whether an agent dies; nil: none does
}

func newStage(t *testing.T, with ...func(*hostlet.Options)) *stage {
	t.Helper()
	t.Parallel()
	return newStageAlone(t, with...)
}

// registry gives the directory with the binaries of an image of that version. By default released
// versions can be had.
type registry func(ctx context.Context, version string) (string, error)

func images(of registry) func(*hostlet.Options) {
	return func(o *hostlet.Options) { o.EtcdDir = of }
}

// patient is a kubelet that waits as long as real ones before it starts again what ran lately, of
// etcds with the heartbeats of real ones: where a time is measured, it is that of a real cluster.
func patient(o *hostlet.Options) {
	o.BackoffBase, o.BackoffMax, o.Heartbeat = 10*time.Second, 5*time.Minute, 0
}

// newStageAlone is a stage that runs before those of newStage.
func newStageAlone(t *testing.T, with ...func(*hostlet.Options)) *stage {
	t.Helper()
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
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	s := &stage{T: t, WithWatch: c, ns: ns.Name, version: etcd36, scheme: scheme, secured: *withTLS}
	// The test's context ends before its clean-up, and the processes must outlive what stops them
	// in order. Dozens of etcds are at rest, and most of what they cost then is heartbeats.
	// Elections take as long as ever.
	options := hostlet.Options{Dir: t.TempDir(), Namespace: ns.Name, EtcdDir: released(t), Heartbeat: 200 * time.Millisecond, Dies: s.agentDies, Logf: func(string, ...any) {}}
	for _, set := range with {
		set(&options)
	}
	h, err := hostlet.Start(context.WithoutCancel(t.Context()), fast, options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Stop)
	s.hostlet = h
	t.Cleanup(func() {
		if t.Failed() {
			s.dump()
		}
	})
	return s
}

// operate starts an operator; the function it returns ends it, as a crash would: nothing is
// finished, nothing is kept. between may put something between the operator and the world.
func (s *stage) operate(between ...func(*reconcile.Reconciler)) (crash func()) {
	s.Helper()
	cfg := hostlet.AsOperator(apiServer)
	cfg.QPS = -1
	if s.wire != nil {
		cfg.Wrap(s.wire.over)
	}
	if s.account != "" {
		cfg.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + s.account}
	}
	serverTime := &reconcile.ServerTime{}
	cfg.Wrap(serverTime.Over)
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                  s.scheme,
		Cache:                   s.cache(),
		Metrics:                 metricsserver.Options{BindAddress: "0"},
		Controller:              config.Controller{SkipNameValidation: new(true)},
		Logger:                  funcr.New(func(prefix, args string) { s.log(prefix + " " + args) }, funcr.Options{Verbosity: 1}),
		GracefulShutdownTimeout: new(time.Second),
	})
	if err != nil {
		s.Fatal(err)
	}
	r := &reconcile.Reconciler{
		Client: mgr.GetClient(), Reader: mgr.GetAPIReader(), Recorder: mgr.GetEventRecorder(api.Manager), Dial: s.dial, Scrape: membership.Scrape, StallAfter: 2 * time.Second,
		AgentImage: agentImage, ServerTime: serverTime, DialTLS: s.dialTLS, DialAuth: membership.DialAuth, Certificates: reconcile.Certificates{Hosts: s.addresses, Every: time.Second},
		ServiceAccount: s.account,
	}
	for _, put := range between {
		put(r)
	}
	if err := index.Add(s.Context(), mgr.GetFieldIndexer()); err != nil {
		s.Fatal(err)
	}
	if err := r.SetupWithManager(mgr, max(2, s.workers)); err != nil {
		s.Fatal(err)
	}
	beside := mgr.GetClient() // of which no read fails: it is a cache
	if disturbed, ok := r.Client.(*faulty); ok {
		beside = disturbed
	}
	restores := &restorestatus.Reconciler{Client: beside, Recorder: r.Recorder, StallAfter: r.StallAfter}
	if err := restores.SetupWithManager(mgr, 1); err != nil {
		s.Fatal(err)
	}
	if s.backsUp {
		backups := &backup.Reconciler{Client: beside, Reader: mgr.GetAPIReader(), Recorder: r.Recorder, AgentImage: agentImage, StallAfter: r.StallAfter}
		if err := backups.SetupWithManager(mgr, 1); err != nil {
			s.Fatal(err)
		}
	}
	if s.peopled {
		shared := users.Shared{Client: beside, Reader: mgr.GetAPIReader(), Recorder: r.Recorder, Connect: r.Auth, Password: reconcile.ReadPassword, Authority: r.ClientAuthority, StallAfter: r.StallAfter, Every: time.Second}
		s.must((&users.RoleReconciler{Shared: shared}).SetupWithManager(mgr, 2))
		s.must((&users.UserReconciler{Shared: shared}).SetupWithManager(mgr, 2))
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := mgr.Start(ctx); err != nil {
			s.log("manager ended: " + err.Error())
		}
	}()
	crash = sync.OnceFunc(func() { cancel(); s.over(done, "the operator") })
	s.Cleanup(crash)
	return crash
}

// cache holds what that of the real operator holds: of Pods and claims, what carries its label.
func (s *stage) cache() cache.Options {
	s.Helper()
	ours, err := labels.NewRequirement(api.LabelCluster, selection.Exists, nil)
	if err != nil {
		s.Fatal(err)
	}
	labelled := cache.ByObject{Label: labels.NewSelector().Add(*ours)}
	return cache.Options{
		DefaultNamespaces: map[string]cache.Config{s.ns: {}},
		ByObject:          map[client.Object]cache.ByObject{&corev1.Pod{}: labelled, &corev1.PersistentVolumeClaim{}: labelled},
	}
}

// dial is membership.Dial, with the addresses in etcd's member list turned back into names: there
// is no DNS here.
func (s *stage) dial(host string, port int) (membership.Client, error) {
	c, err := membership.Dial(host, port)
	return named{c, s.hostlet}, err
}

type named struct {
	membership.Client
	hostlet *hostlet.Hostlet
}

func (n named) Lasts() bool { return n.Client.(membership.Lasting).Lasts() }

func (n named) AddLearner(ctx context.Context, peerURL string) error {
	return n.Client.AddLearner(ctx, n.hostlet.Substitute(peerURL))
}

func (n named) Members(ctx context.Context) ([]membership.Member, error) {
	members, err := n.Client.Members(ctx)
	for _, m := range members {
		for i, url := range m.PeerURLs {
			m.PeerURLs[i] = n.hostlet.PeerURL(url)
		}
	}
	return members, err
}

// cluster is a small EtcdCluster to change and create.
func (s *stage) cluster(name string, replicas int32) *api.EtcdCluster {
	c := &api.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns},
		Spec: api.EtcdClusterSpec{
			Replicas: &replicas,
			Version:  s.version,
			Storage:  api.Storage{Size: resource.MustParse("1Gi")},
		},
	}
	switch {
	case s.secured:
		s.secure(c)
	case !s.unasked:
		withoutTLS(c)
	}
	return c
}

func (s *stage) create(o client.Object) {
	s.Helper()
	if err := s.Create(s.Context(), o); err != nil {
		s.Fatal(err)
	}
}

// change an object as mutate says, whatever its resource version.
func (s *stage) change(o client.Object, mutate func()) {
	s.Helper()
	before := o.DeepCopyObject().(client.Object)
	mutate()
	err := await.Answer(s.Context(), func() error { return s.Patch(s.Context(), o, client.MergeFrom(before)) })
	if err != nil {
		s.Fatal(err)
	}
}

// await waits by watch until the cluster's status is as wanted.
func (s *stage) await(c *api.EtcdCluster, wanted string, done func() bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	err := s.hostlet.WaitFor(ctx, s, c, wanted, func() (bool, string) { return c.UID != "" && done(), contract.Describe(c) })
	if err != nil {
		s.Fatal(err)
	}
}

// ready waits for the cluster to be Ready for its newest generation, and returns an etcd client for
// all its members.
func (s *stage) ready(c *api.EtcdCluster) *clientv3.Client {
	s.Helper()
	s.await(c, "ready", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) })
	return s.etcd(c)
}

// etcd is a client of all members that have a Pod.
func (s *stage) etcd(c *api.EtcdCluster) *clientv3.Client {
	s.Helper()
	var endpoints []string
	for _, pod := range s.pods(c) {
		endpoints = append(endpoints, endpoint(c)(&pod))
	}
	cli, err := clientv3.New(clientv3.Config{Endpoints: endpoints, DialTimeout: patience, Logger: zap.NewNop(), TLS: s.clientTLS(c)})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() { _ = cli.Close() }) // a test that fails here has failed before
	return cli
}

func (s *stage) put(c *clientv3.Client, key, value string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	if _, err := c.Put(ctx, key, value); err != nil {
		s.Fatalf("put %s at %v: %v", key, c.Endpoints(), err)
	}
}

// want fails unless the key has the value, read linearizably.
func (s *stage) want(c *clientv3.Client, key, value string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	r, err := c.Get(ctx, key)
	if err != nil {
		s.Fatalf("get %s: %v", key, err)
	}
	if len(r.Kvs) != 1 || string(r.Kvs[0].Value) != value {
		s.Fatalf("acknowledged write of %s=%s is lost: etcd has %v", key, value, r.Kvs)
	}
}

// pods of the cluster, by name.
func (s *stage) pods(c *api.EtcdCluster) []corev1.Pod {
	s.Helper()
	list := &corev1.PodList{}
	if err := s.List(s.Context(), list, client.InNamespace(s.ns), client.MatchingLabels{api.LabelCluster: c.Name}); err != nil {
		s.Fatal(err)
	}
	return list.Items
}

// claims of the cluster, by name.
func (s *stage) claims(c *api.EtcdCluster) []corev1.PersistentVolumeClaim {
	s.Helper()
	list := &corev1.PersistentVolumeClaimList{}
	if err := s.List(s.Context(), list, client.InNamespace(s.ns), client.MatchingLabels{api.LabelCluster: c.Name}); err != nil {
		s.Fatal(err)
	}
	return list.Items
}

// identity is what must stay the same through everything that is no change of membership.
type identity struct {
	Cluster string
	Members map[string]string
}

func identityOf(c *api.EtcdCluster) identity {
	id := identity{Cluster: c.Status.ClusterID, Members: map[string]string{}}
	for _, m := range c.Status.Members {
		id.Members[m.Name] = m.ID
	}
	return id
}

// is reports whether the condition has the value and speaks of the newest spec.
func is(c *api.EtcdCluster, kind string, value metav1.ConditionStatus) bool {
	condition := meta.FindStatusCondition(c.Status.Conditions, kind)
	return condition != nil && condition.Status == value && condition.ObservedGeneration == c.Generation
}

// stalled waits for the cluster to be stalled for that reason, and returns the message.
func (s *stage) stalled(c *api.EtcdCluster, reason string) string {
	s.Helper()
	s.await(c, "stalled with reason "+reason, func() bool {
		condition := meta.FindStatusCondition(c.Status.Conditions, api.ConditionStalled)
		return condition != nil && condition.Reason == reason && condition.ObservedGeneration == c.Generation
	})
	return meta.FindStatusCondition(c.Status.Conditions, api.ConditionStalled).Message
}

// stalledWith waits for the cluster to be stalled with a message that has all these words.
func (s *stage) stalledWith(c *api.EtcdCluster, reason string, words ...string) {
	s.Helper()
	s.await(c, "stalled with reason "+reason+": "+strings.Join(words, ", "), func() bool {
		stalled := meta.FindStatusCondition(c.Status.Conditions, api.ConditionStalled)
		return stalled != nil && stalled.Reason == reason && stalled.ObservedGeneration == c.Generation &&
			!slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(stalled.Message, word) })
	})
}

func (s *stage) log(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logs = append(s.logs, time.Now().Format("15:04:05.000 ")+line)
}

// dump prints what a person needs after a failure.
func (s *stage) dump() {
	ctx := context.WithoutCancel(s.Context())
	clusters := &api.EtcdClusterList{}
	if err := s.List(ctx, clusters, client.InNamespace(s.ns)); err == nil {
		for i := range clusters.Items {
			s.Logf("EtcdCluster %s: %s", clusters.Items[i].Name, contract.Describe(&clusters.Items[i]))
		}
	}
	events := &eventsv1.EventList{}
	if err := s.List(ctx, events, client.InNamespace(s.ns)); err == nil {
		for _, e := range events.Items {
			s.Logf("event %s %s: %s", e.Regarding.Name, e.Reason, e.Note)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	const most = 80
	s.Logf("operator's last lines:\n%s", strings.Join(s.logs[max(0, len(s.logs)-most):], "\n"))
}

// awaitObject waits by watch until an object is as wanted.
func (s *stage) awaitObject(o client.Object, wanted string, done func() bool) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	err := s.hostlet.WaitFor(ctx, s, o, wanted, func() (bool, string) { return done(), fmt.Sprintf("annotations %v", o.GetAnnotations()) })
	if err != nil {
		s.Fatal(err)
	}
}

// over waits for the end of something beside the test, which closes the channel.
func (s *stage) over(done <-chan struct{}, what string) {
	s.Helper()
	select {
	case <-done:
	case <-time.After(patience):
		s.Errorf("waited %s for the end of %s", patience, what)
	}
}

func (s *stage) awaitPod(pod *corev1.Pod, wanted string, done func() bool) {
	s.Helper()
	s.awaitObject(pod, wanted, func() bool { return pod.UID != "" && done() })
}

// gone waits until an object does not exist any more.
func (s *stage) gone(o client.Object) {
	s.Helper()
	s.awaitObject(o, "gone", func() bool { return o.GetUID() == "" })
}
