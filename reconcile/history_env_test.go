//go:build env

package reconcile_test

import (
	"crypto/tls"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/history"
)

const loadTimeout = 2 * time.Second // of one request of a load

// load is clients that read and write while a test changes the cluster.
type load struct {
	*stage
	cluster *api.EtcdCluster
	history *history.Load
}

// load starts clients, which are at work when it returns. They go wherever the Service for clients
// would send them.
func (s *stage) load(c *api.EtcdCluster, with ...func(*history.Config)) *load {
	s.Helper()
	for _, pod := range s.pods(c) {
		s.awaitPod(&pod, "ready", func() bool { return history.Ready(&pod) })
	}
	config := history.Config{
		Dial:     dialer(s.clientTLS(c)),
		Pods:     history.Pods{Client: s.WithWatch, Select: []client.ListOption{client.InNamespace(s.ns), client.MatchingLabels{api.LabelCluster: c.Name}}, Endpoint: endpoint(c)},
		Clients:  3,
		Pace:     120 * time.Millisecond, // what is tested is not how much etcd can bear
		Timeout:  loadTimeout,
		Keys:     4,
		Floor:    2,
		Patience: patience,
	}
	for _, set := range with {
		set(&config)
	}
	return &load{s, c, history.Start(s.T, config)}
}

// light is a load that many tests at once can have. No client watches, since etcd that is asked to
// end waits for those that do.
func light(c *history.Config) {
	c.Clients, c.Pace, c.Floor, c.Unwatched = 2, 200*time.Millisecond, 1, true
}

// await that many acknowledged writes from now on.
func (l *load) await(writes int64) {
	l.Helper()
	l.history.Await(writes)
}

// check ends the load, and fails the test unless its clients saw what one single store would have
// shown them.
func (l *load) check() history.Result {
	l.Helper()
	return l.history.Check(l.T)
}

// restored tells the clients that the cluster was restored since it was asked for, and waits until
// they have written to it. It returns the revision of what was restored.
func (l *load) restored(asked time.Time) int64 {
	l.Helper()
	revision := l.history.Restored(asked, bumped)
	l.await(5)
	return revision
}

func dialer(config *tls.Config) func(endpoints ...string) (*clientv3.Client, error) {
	return func(endpoints ...string) (*clientv3.Client, error) {
		return clientv3.New(clientv3.Config{
			Endpoints: endpoints, DialTimeout: loadTimeout, Logger: zap.NewNop(), TLS: config,
			DialKeepAliveTime: 5 * time.Second, DialKeepAliveTimeout: loadTimeout, // of a member that is silent nothing else tells
		})
	}
}

// endpoint is where clients reach a Pod of the cluster.
func endpoint(c *api.EtcdCluster) func(pod *corev1.Pod) string {
	scheme := "http"
	if c.ClientTLS() {
		scheme = "https"
	}
	return func(pod *corev1.Pod) string { return scheme + "://" + pod.Status.PodIP + ":2379" }
}
