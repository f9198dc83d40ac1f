//go:build env

package reconcile_test

import (
	"context"
	"fmt"
	"maps"
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/child"
	"quorate.dev/e2e/node"
)

// story is the namespace in which the objects of a tenant are.
const story = "story"

// tenant is a kube-apiserver whose etcd is a cluster of the stage, with an informer that watches
// ConfigMaps by it throughout.
type tenant struct {
	client.WithWatch
	server   *envtest.APIServer
	way      *way
	informed cache.Cache
	told     chan struct{} // something has come to the informer
	seen     *seen
}

// tenants starts one for each name, with a way of its own to the cluster.
func (s *stage) tenants(c *api.EtcdCluster, names ...string) map[string]*tenant {
	s.Helper()
	assets := os.Getenv("KUBEBUILDER_ASSETS")
	if assets == "" {
		var err error
		if assets, err = node.Assets(s.Context(), ""); err != nil {
			s.Fatal(err)
		}
	}
	all := map[string]*tenant{}
	var starts errgroup.Group
	shared := &seen{objects: map[int64]string{}, lists: map[int64]map[string]object{}}
	for _, name := range names {
		way := s.way(c)
		a := &tenant{way: way, told: make(chan struct{}, 1), seen: shared, server: &envtest.APIServer{
			Path: filepath.Join(assets, "kube-apiserver"), CertDir: s.TempDir(),
			EtcdURL: &url.URL{Scheme: "http", Host: way.address}, StartTimeout: patience,
			StopTimeout: time.Nanosecond, // it is killed: in order it waits for its watchers
		}}
		// As long as it may be for events, which are kept for an hour: whatever a restore takes
		// here, it is within it.
		a.server.Configure().Set("lease-reuse-duration-seconds", "180")
		log, err := os.Create(filepath.Join(a.server.CertDir, "log"))
		s.must(err)
		a.server.Err = log
		all[name] = a
		starts.Go(a.start)
		s.Cleanup(func() {
			a.kill()
			if tail, err := os.ReadFile(log.Name()); s.Failed() {
				s.Logf("kube-apiserver %s: %v: %s", name, err, tail[max(0, len(tail)-4000):])
			}
			_ = log.Close()
		})
	}
	if err := starts.Wait(); err != nil {
		s.Fatal(err)
	}
	for _, a := range all {
		s.connected(a)
	}
	s.must(all[names[0]].Create(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: story}}))
	for _, a := range all {
		s.inform(a)
	}
	return all
}

// start the API server.
func (a *tenant) start() error { return child.Do(a.server.Start, &a.server.Path) }

// kill the API server.
func (a *tenant) kill() { _ = a.server.Stop() } // it says that the time for an end in order was over

// killed is the API server killed, and its address free for another process.
func (s *stage) killed(a *tenant) {
	s.Helper()
	a.kill()
	address := net.JoinHostPort(a.server.Address, a.server.Port)
	for begun := time.Now(); ; <-time.After(10 * time.Millisecond) {
		free, err := new(net.ListenConfig).Listen(s.Context(), "tcp", address)
		if err == nil {
			s.must(free.Close())
			return
		}
		if time.Since(begun) > patience {
			s.Fatalf("waited %s for the end of the process at %s: %v", patience, address, err)
		}
	}
}

// connected has a client of the API server made.
func (s *stage) connected(a *tenant) {
	s.Helper()
	cfg, err := a.server.AddUser(envtest.User{Name: "story", Groups: []string{"system:masters"}}, &rest.Config{
		Host: a.server.SecureServing.URL("https", "/").Host, TLSClientConfig: rest.TLSClientConfig{CAData: a.server.CA}, QPS: -1,
	})
	s.must(err)
	a.WithWatch, err = client.NewWithWatch(cfg, client.Options{Scheme: s.scheme})
	s.must(err)
	a.informed, err = cache.New(cfg, cache.Options{Scheme: s.scheme, DefaultNamespaces: map[string]cache.Config{story: {}}})
	s.must(err)
}

// inform starts the informer, and notes what it is told.
func (s *stage) inform(a *tenant) {
	s.Helper()
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = a.informed.Start(ctx) // an informer that does not work is seen by what it lacks
	}()
	s.Cleanup(func() { cancel(); s.over(done, "an informer") })
	synced, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	informer, err := a.informed.GetInformer(synced, &corev1.ConfigMap{})
	s.must(err)
	note := func(o any, deleted string) {
		if c, ok := o.(*corev1.ConfigMap); ok { // and none that was found missing
			a.seen.object(revision(c.ResourceVersion), deleted+c.Name+"="+c.Data["value"])
		}
		select {
		case a.told <- struct{}{}:
		default:
		}
	}
	_, err = informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc: func(o any) { note(o, "") }, UpdateFunc: func(_, o any) { note(o, "") },
		DeleteFunc: func(o any) { note(o, "deleted ") },
	})
	s.must(err)
}

func revision(resourceVersion string) int64 {
	r, err := strconv.ParseInt(resourceVersion, 10, 64)
	if err != nil {
		return math.MinInt64 // which is below all others
	}
	return r
}

// object is a ConfigMap of the story.
type object struct {
	Revision int64
	Value    string
}

func objects(list *corev1.ConfigMapList) map[string]object {
	all := map[string]object{}
	for _, c := range list.Items {
		all[c.Name] = object{revision(c.ResourceVersion), c.Data["value"]}
	}
	return all
}

// informs waits until the informer has exactly these objects.
func (s *stage) informs(a *tenant, want map[string]object) {
	s.Helper()
	late := time.After(patience)
	for {
		list := &corev1.ConfigMapList{}
		s.must(a.informed.List(s.Context(), list))
		if maps.Equal(objects(list), want) {
			return
		}
		select {
		case <-a.told:
		case <-late:
			s.Fatalf("the informer has %v, want %v", objects(list), want)
		}
	}
}

// list is what the API server answers: with "" what is so now, with "0" what it has in its cache.
func (a *tenant) list(ctx context.Context, from string) (map[string]object, int64, error) {
	list := &corev1.ConfigMapList{}
	err := a.List(ctx, list, client.InNamespace(story), &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: from}})
	return objects(list), revision(list.ResourceVersion), err
}

// keepsReading lists over and over, as new clients would, until stop is called: each answer is
// noted, and none is older than the last.
func (s *stage) keepsReading(name string, a *tenant) (stop func()) {
	ctx, cancel := context.WithCancel(s.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		pace := time.NewTicker(100 * time.Millisecond)
		defer pace.Stop()
		last := map[string]int64{}
		for ctx.Err() == nil {
			for _, from := range []string{"", "0"} {
				ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
				all, at, err := a.list(ctx, from)
				cancel()
				if err != nil {
					continue // for a while there is no etcd, or no API server
				}
				if at < last[from] {
					s.Errorf("API server %s went back from revision %d to %d (from %q)", name, last[from], at, from)
				}
				last[from] = at
				a.seen.list(at, all)
			}
			select {
			case <-pace.C:
			case <-ctx.Done():
			}
		}
	}()
	stop = sync.OnceFunc(func() { cancel(); s.over(done, "a reader") })
	s.Cleanup(stop)
	return stop
}

// seen is what all clients together were served.
type seen struct {
	mu      sync.Mutex
	objects map[int64]string            // by the revision of the object
	lists   map[int64]map[string]object // by the revision of the list
	forks   []string
}

func (n *seen) object(at int64, what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if had, ok := n.objects[at]; ok && had != what {
		n.forks = append(n.forks, fmt.Sprintf("an object of revision %d was %s, and is %s", at, had, what))
	}
	n.objects[at] = what
}

func (n *seen) list(at int64, all map[string]object) {
	for name, o := range all {
		n.object(o.Revision, name+"="+o.Value)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if had, ok := n.lists[at]; ok && !maps.Equal(had, all) {
		n.forks = append(n.forks, fmt.Sprintf("the list of revision %d was %v, and is %v", at, had, all))
	}
	n.lists[at] = all
}
