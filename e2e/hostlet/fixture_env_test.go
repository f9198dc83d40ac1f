//go:build env

package hostlet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"quorate.dev/e2e/node"
)

var apiServer *rest.Config

func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	if os.Getenv(asParent) != "" {
		return beParent(os.Getenv(asParent))
	}
	env, err := StartEnv(context.Background()) //nolint:forbidigo // here this binary's contexts begin
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	apiServer = env.Config
	code := m.Run()
	if err := env.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// stage is a namespace with a Hostlet of its own.
type stage struct {
	*testing.T
	client.WithWatch
	host *Hostlet
	ns   string
}

func newStage(t *testing.T) *stage {
	t.Helper()
	t.Parallel()
	c, err := client.NewWithWatch(apiServer, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "hostlet-"}}
	if err := c.Create(t.Context(), ns); err != nil {
		t.Fatal(err)
	}
	h, err := Start(t.Context(), apiServer, Options{Dir: t.TempDir(), Namespace: ns.Name, Logf: t.Logf})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Stop)
	return &stage{T: t, WithWatch: c, host: h, ns: ns.Name}
}

func (s *stage) create(objs ...client.Object) {
	s.Helper()
	for _, obj := range objs {
		obj.SetNamespace(s.ns)
		if err := s.Create(s.Context(), obj); err != nil {
			s.Fatal(err)
		}
	}
}

// change obj as mutate says, whatever its resource version.
func (s *stage) change(obj client.Object, mutate func()) {
	s.Helper()
	from := obj.DeepCopyObject().(client.Object)
	mutate()
	if err := s.Patch(s.Context(), obj, client.MergeFrom(from)); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) delete(obj client.Object, opts ...client.DeleteOption) {
	s.Helper()
	if err := s.Delete(s.Context(), obj, opts...); err != nil {
		s.Fatal(err)
	}
}

func (s *stage) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *stage) waitFor(obj client.Object, awaited string, done func() (bool, string)) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	s.must(s.host.WaitFor(ctx, s, obj, awaited, done))
}

func (s *stage) waitReady(pod *corev1.Pod, restarts int32) {
	s.Helper()
	s.waitContainer(pod, fmt.Sprintf("ready after %d restarts", restarts), func(c *corev1.ContainerStatus) bool {
		return c.Ready && c.RestartCount == restarts
	})
}

func (s *stage) waitContainer(pod *corev1.Pod, awaited string, done func(*corev1.ContainerStatus) bool) {
	s.Helper()
	s.waitFor(pod, awaited, func() (bool, string) {
		if len(pod.Status.ContainerStatuses) == 0 {
			return false, "no container status"
		}
		c := &pod.Status.ContainerStatuses[0]
		return done(c), fmt.Sprintf("ready %t, restarts %d, %s", c.Ready, c.RestartCount, state(c.State))
	})
}

func (s *stage) waitGone(objs ...client.Object) {
	s.Helper()
	for _, obj := range objs {
		s.waitFor(obj, "gone", func() (bool, string) { return obj.GetUID() == "", "still there" })
	}
}

// etcd is a client of the Pod's etcd.
func (s *stage) etcd(pod *corev1.Pod) *clientv3.Client {
	s.Helper()
	c, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"http://" + pod.Status.PodIP + ":2379"}, Context: s.Context(), Logger: zap.NewNop(),
	})
	s.must(err)
	s.Cleanup(func() { _ = c.Close() })
	return c
}

// value of a key as this member has it, linearizably.
func (s *stage) value(pod *corev1.Pod, key string) string {
	s.Helper()
	resp, err := s.etcd(pod).Get(s.Context(), key)
	s.must(err)
	if len(resp.Kvs) == 0 {
		return ""
	}
	return string(resp.Kvs[0].Value)
}

func (s *stage) put(pod *corev1.Pod, key, value string) {
	s.Helper()
	_, err := s.etcd(pod).Put(s.Context(), key, value)
	s.must(err)
}

func volumeOf(s *stage, pvc *corev1.PersistentVolumeClaim) string {
	return filepath.Join(s.host.volumeDir(pvc.UID), "data")
}

func claim(name string) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		},
	}
}

func image(version string) string { return "gcr.io/etcd-development/etcd:v" + version }

// etcdPod is a member of a cluster of the given names, as an operator would
// render it, on the claim of its own name.
func etcdPod(name, initialCluster string) *corev1.Pod {
	probe := func(path string) *corev1.Probe {
		return &corev1.Probe{
			ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromString("metrics")}},
			PeriodSeconds: 1,
		}
	}
	liveness := probe("/livez")
	liveness.FailureThreshold, liveness.TerminationGracePeriodSeconds = 2, new(int64(1))
	startup := probe("/readyz")
	startup.FailureThreshold = 30
	fieldRef := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"log-level": "info"}},
		Spec: corev1.PodSpec{
			Hostname:  name,
			Subdomain: "peers",
			Containers: []corev1.Container{{
				Name:    "etcd",
				Image:   image(node.Etcd36),
				Command: []string{"/usr/local/bin/etcd"},
				Args: []string{
					"--name=$(NAME)",
					"--data-dir=/var/lib/etcd/data",
					"--listen-peer-urls=http://0.0.0.0:2380",
					"--listen-client-urls=http://[::]:2379",
					"--listen-metrics-urls=http://$(IP):2381",
					"--advertise-client-urls=http://$(NAME).peers.$(NAMESPACE).svc:2379",
					"--initial-advertise-peer-urls=http://$(NAME).peers.$(NAMESPACE).svc:2380",
					"--initial-cluster=" + initialCluster,
					"--log-level=$(LEVEL)",
				},
				Env: []corev1.EnvVar{
					{Name: "NAME", ValueFrom: fieldRef("metadata.name")},
					{Name: "NAMESPACE", ValueFrom: fieldRef("metadata.namespace")},
					{Name: "IP", ValueFrom: fieldRef("status.podIP")},
					{Name: "LEVEL", ValueFrom: fieldRef("metadata.annotations['log-level']")},
				},
				Ports:          []corev1.ContainerPort{{Name: "metrics", ContainerPort: 2381}},
				VolumeMounts:   []corev1.VolumeMount{{Name: "data", MountPath: "/var/lib/etcd"}},
				Resources:      corev1.ResourceRequirements{Requests: CPU(1)},
				StartupProbe:   startup,
				ReadinessProbe: probe("/readyz"),
				LivenessProbe:  liveness,
			}},
			TerminationGracePeriodSeconds: new(int64(5)),
			Volumes: []corev1.Volume{{
				Name: "data",
				VolumeSource: corev1.VolumeSource{
					PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: name},
				},
			}},
		},
	}
}

// single is a cluster of one with its claim, ready.
func (s *stage) single() (*corev1.Pod, *corev1.PersistentVolumeClaim) {
	s.Helper()
	pod, pvc := etcdPod("a", "a=http://a.peers.$(NAMESPACE).svc:2380"), claim("a")
	s.create(pvc, pod)
	s.waitReady(pod, 0)
	s.must(s.Get(s.Context(), client.ObjectKeyFromObject(pvc), pvc))
	return pod, pvc
}
