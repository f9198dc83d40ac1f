//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"
	"sigs.k8s.io/yaml"

	api "quorate.dev/api/v1alpha1"
	awaiting "quorate.dev/e2e/await"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/node"
)

// patience bounds every wait: far more than any of them takes on a busy machine of two cores. A
// benchmark with more data than the stories have raises it.
var patience = 5 * time.Minute

// The cluster under test, as an administrator sees it.
var (
	kube       client.WithWatch
	restConfig *rest.Config
)

func connect(config *envconf.Config) error {
	scheme := runtime.NewScheme()
	kinds := runtime.SchemeBuilder{clientgoscheme.AddToScheme, apiextensionsv1.AddToScheme, api.AddToScheme}
	if err := kinds.AddToScheme(scheme); err != nil {
		return err
	}
	var err error
	if restConfig, err = clientcmd.BuildConfigFromFlags("", config.KubeconfigFile()); err != nil {
		return err
	}
	restConfig.QPS = -1
	kube, err = client.NewWithWatch(restConfig, client.Options{Scheme: scheme})
	return err
}

// stage is where one story plays: a namespace of its own, in which Pod Security "restricted" is
// enforced.
type stage struct {
	*testing.T
	client.WithWatch
	ns string
}

type stageKey struct{}

// stages counts those that were opened: a run without one has shown nothing.
var stages atomic.Int64

// openStage gives each test its stage. It goes when the test has passed, and says all there is to
// say when it has failed.
func openStage(ctx context.Context, _ *envconf.Config, t *testing.T) (context.Context, error) {
	if ctx.Value(stageKey{}) != nil {
		return ctx, nil // the test goes on where it was
	}
	return context.WithValue(ctx, stageKey{}, newStage(t)), nil
}

func newStage(t *testing.T) *stage {
	t.Helper()
	stages.Add(1)
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{
		GenerateName: namespaceName(t.Name()) + "-",
		Labels:       map[string]string{"pod-security.kubernetes.io/enforce": "restricted", stageLabel: ""},
	}}
	if err := kube.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	s := &stage{T: t, WithWatch: kube, ns: ns.Name}
	t.Cleanup(func() {
		ctx := context.WithoutCancel(t.Context())
		if t.Failed() {
			s.dump(ctx)
			return
		}
		if err := kube.Delete(ctx, ns); err != nil {
			t.Error(err)
		}
	})
	return s
}

// stageLabel marks the namespaces of stages, and what belongs to no namespace.
const stageLabel = "e2e.quorate.dev/stage"

// clearStages removes what failed tests of an earlier run have left, for the machine to have its
// cores back.
func clearStages(ctx context.Context, _ *envconf.Config) (context.Context, error) {
	if err := kube.DeleteAllOf(ctx, &storagev1.StorageClass{}, client.HasLabels{stageLabel}); err != nil {
		return ctx, err
	}
	left := &corev1.NamespaceList{}
	if err := kube.List(ctx, left, client.HasLabels{stageLabel}); err != nil {
		return ctx, err
	}
	for i := range left.Items {
		if err := kube.Delete(ctx, &left.Items[i]); client.IgnoreNotFound(err) != nil {
			return ctx, err
		}
	}
	for i := range left.Items {
		ns := &left.Items[i]
		if err := await(ctx, ns, "gone", func() bool { return ns.UID == "" }); err != nil {
			return ctx, err
		}
	}
	return ctx, nil
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

func namespaceName(test string) string {
	const most = 40
	name := strings.Trim(notInNames.ReplaceAllString(strings.ToLower(strings.TrimPrefix(test, "Test")), "-"), "-")
	return strings.Trim(name[:min(len(name), most)], "-")
}

// step is one step of a story, on the stage of its test.
func step(do func(s *stage)) features.Func {
	return func(ctx context.Context, t *testing.T, _ *envconf.Config) context.Context {
		t.Helper()
		s := *ctx.Value(stageKey{}).(*stage)
		s.T = t
		do(&s)
		return ctx
	}
}

// cluster is an EtcdCluster to change and create: small volumes, little of the machine, no TLS.
func (s *stage) cluster(name string, replicas int32) *api.EtcdCluster {
	return &api.EtcdCluster{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns},
		Spec: api.EtcdClusterSpec{
			Replicas: &replicas,
			Version:  node.Etcd36,
			Storage:  api.Storage{Size: resource.MustParse("256Mi")},
			TLS:      &api.TLS{Client: &api.ClientTLS{Mode: api.TLSDisabled}, Peer: &api.PeerTLS{Mode: api.TLSDisabled}},
		},
	}
}

func (s *stage) create(o client.Object) {
	s.Helper()
	if err := s.Create(s.Context(), o); err != nil {
		s.Fatal(err)
	}
}

// sample creates the objects of a sample of the documents.
func (s *stage) sample(file string) {
	s.Helper()
	sample, err := os.ReadFile("../templates/samples/" + file)
	if err != nil {
		s.Fatal(err)
	}
	for document := range strings.SplitSeq(string(sample), "\n---\n") {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(document), &object.Object); err != nil {
			s.Fatal(err)
		}
		object.SetNamespace(s.ns)
		s.create(object)
	}
}

// change an object as mutate says, whatever its resource version.
func (s *stage) change(o client.Object, mutate func()) {
	s.Helper()
	before := o.DeepCopyObject().(client.Object)
	mutate()
	if err := s.Patch(s.Context(), o, client.MergeFrom(before)); err != nil {
		s.Fatal(err)
	}
}

// await waits by watch until done says so; o is read afresh at every change, and has no UID while
// it does not exist.
func (s *stage) await(o client.Object, wanted string, done func() bool) {
	s.Helper()
	if err := await(s.Context(), o, wanted, done); err != nil {
		s.Fatal(err)
	}
}

// gone waits until the object, as it is known here, is no more.
func (s *stage) gone(o client.Object) {
	s.Helper()
	uid := o.GetUID()
	s.await(o, "gone", func() bool { return o.GetUID() == "" || uid != "" && o.GetUID() != uid })
}

// ready waits for the cluster to be Ready for its newest generation.
func (s *stage) ready(c *api.EtcdCluster) {
	s.Helper()
	s.await(c, "ready", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) })
}

// stalled waits for the cluster to be stalled for that reason, and returns the message.
func (s *stage) stalled(c *api.EtcdCluster, reason string) string {
	s.Helper()
	var message string
	s.await(c, "stalled with reason "+reason, func() bool {
		condition := meta.FindStatusCondition(c.Status.Conditions, api.ConditionStalled)
		if condition == nil || condition.Reason != reason || condition.ObservedGeneration != c.Generation {
			return false
		}
		message = condition.Message
		return true
	})
	return message
}

// is reports whether the condition has the value and speaks of the newest spec.
func is(c *api.EtcdCluster, kind string, value metav1.ConditionStatus) bool {
	condition := meta.FindStatusCondition(c.Status.Conditions, kind)
	return condition != nil && condition.Status == value && condition.ObservedGeneration == c.Generation
}

func (s *stage) deletePod(name string, options ...client.DeleteOption) {
	s.Helper()
	if err := s.Delete(s.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: s.ns}}, options...); err != nil {
		s.Fatal(err)
	}
}

// pods of the cluster that are not on their way out.
func (s *stage) pods(c *api.EtcdCluster) []corev1.Pod {
	s.Helper()
	list := &corev1.PodList{}
	s.list(list, c)
	pods := list.Items[:0]
	for _, pod := range list.Items {
		if pod.DeletionTimestamp.IsZero() {
			pods = append(pods, pod)
		}
	}
	return pods
}

func (s *stage) claims(c *api.EtcdCluster) []corev1.PersistentVolumeClaim {
	s.Helper()
	list := &corev1.PersistentVolumeClaimList{}
	s.list(list, c)
	return list.Items
}

func (s *stage) list(list client.ObjectList, c *api.EtcdCluster) {
	s.Helper()
	if err := s.List(s.Context(), list, client.InNamespace(s.ns), client.MatchingLabels{api.LabelCluster: c.Name}); err != nil {
		s.Fatal(err)
	}
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

// await is stage.await where there is no stage.
func await(ctx context.Context, o client.Object, wanted string, done func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		ok, err := awaiting.Change(ctx, kube, o, done)
		if ok {
			return nil
		}
		if ctx.Err() == nil && err == nil {
			continue // the server ended the watch, as it does every now and then
		}
		seen := fmt.Sprintf("%T of UID %q", o, o.GetUID())
		if c, is := o.(*api.EtcdCluster); is {
			seen = contract.Describe(c)
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return fmt.Errorf("wait for %T %s to be %s: %w; last seen: %s", o, client.ObjectKeyFromObject(o), wanted, err, seen)
	}
}
