package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/applyconfigurations"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/kubernetes/scheme"
	clienttesting "k8s.io/client-go/testing"
	podsecurity "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"

	api "quorate.dev/api/v1alpha1"
)

// TestRestricted evaluates every golden Pod, and the one that has its volume made, as a namespace
// that enforces the restricted Pod Security Standard does.
func TestRestricted(t *testing.T) {
	t.Parallel()
	evaluator, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	restricted := podsecurity.LevelVersion{Level: podsecurity.LevelRestricted, Version: podsecurity.LatestVersion()}
	for _, name := range cases(t) {
		c := load(t, name)
		provisioner, err := Provisioner(c, spareMember(c))
		if err != nil {
			t.Fatal(err)
		}
		for what, ac := range map[string]*corev1ac.PodApplyConfiguration{"member": firstPod(t, c), "provisioner": provisioner} {
			pod := &corev1.Pod{}
			typed(t, ac, pod)
			result := policy.AggregateCheckResults(evaluator.EvaluatePod(restricted, &pod.ObjectMeta, &pod.Spec))
			if !result.Allowed {
				t.Errorf("%s of %s: %s", what, name, result.ForbiddenDetail())
			}
		}
	}
}

func TestPodMetadata(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   func(c *api.EtcdCluster, m *Member) // since the Pod was applied
		want   func(pod *corev1.Pod)               // what differs then; nil: nothing is to be applied
	}{
		"Same": {
			reason: "Nothing to write",
			args:   func(*api.EtcdCluster, *Member) {},
		},
		"SpecChanged": {
			reason: "The spec of a running Pod and its revision stay as they are",
			args: func(c *api.EtcdCluster, _ *Member) {
				c.Spec.Version, c.Spec.Image, c.Spec.Options = "3.7.2", nil, nil
			},
		},
		"Fenced": {
			reason: "After the cluster has formed, the Pod of the first start is told to resume",
			args: func(c *api.EtcdCluster, m *Member) {
				m.InitialCluster, m.InitialClusterState = Resume(c, m.Name), StateExisting
			},
			want: func(pod *corev1.Pod) {
				pod.Annotations[api.AnnotationInitialCluster] = pod.Name + "=http://" + pod.Name + "." + pod.Spec.Subdomain + "." + pod.Namespace + ".svc:2380"
				pod.Annotations[api.AnnotationInitialClusterState] = "existing"
			},
		},
		"Metadata": {
			reason: "What the user added is set, what they took away is gone, and others' labels stay",
			args: func(c *api.EtcdCluster, _ *Member) {
				c.Spec.AdditionalMetadata = &api.Metadata{Labels: map[string]string{"tier": "gold"}, Annotations: map[string]string{"note": "x"}}
			},
			want: func(pod *corev1.Pod) {
				delete(pod.Labels, "team")
				delete(pod.Annotations, "example.com/contact")
				pod.Labels["tier"], pod.Annotations["note"] = "gold", "x"
			},
		},
		"PodMetadata": {
			reason: "Of spec.pod the metadata alone comes to a Pod that runs",
			args: func(c *api.EtcdCluster, _ *Member) {
				c.Spec.Pod = &api.Pod{
					Metadata:           &api.Metadata{Labels: map[string]string{"tier": "gold"}, Annotations: map[string]string{"note": "x"}},
					ServiceAccountName: "members", SecurityContext: &api.PodSecurityContext{},
				}
			},
			want: func(pod *corev1.Pod) { pod.Labels["tier"], pod.Annotations["note"] = "gold", "x" },
		},
	}
	for name, tc := range cases {
		for _, golden := range []string{"everything", "scheduling", "memory"} {
			t.Run(name+"/"+golden, func(t *testing.T) {
				t.Parallel()
				pods, c := newPods(t), load(t, golden)
				m := firstMember(c)
				m.InitialCluster, m.InitialClusterState = Bootstrap(c, []string{m.Name}), StateNew
				pod, err := Pod(c, m)
				if err != nil {
					t.Fatal(err)
				}
				pods.apply(t, pod, api.Manager)
				pods.apply(t, corev1ac.Pod(m.Name, c.Namespace).WithLabels(map[string]string{"others": "stay"}), "somebody")
				want := pods.get(t, c.Namespace, m.Name)
				tc.args(c, &m)
				if tc.want != nil {
					tc.want(want)
				}

				applied := pods.refresh(t, c, m)
				if applied != (tc.want != nil) {
					t.Errorf("%s: applied: %t", tc.reason, applied)
				}
				if diff := cmp.Diff(want, pods.get(t, c.Namespace, m.Name), ignoreBookkeeping); diff != "" {
					t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
				}
				if pods.refresh(t, c, m) {
					t.Errorf("%s: applied again and again", tc.reason)
				}
			})
		}
	}
}

var ignoreBookkeeping = cmp.Options{
	cmpopts.IgnoreFields(metav1.ObjectMeta{}, "ManagedFields", "ResourceVersion"),
	cmpopts.IgnoreFields(corev1.Pod{}, "TypeMeta"),
}

// pods is an API server's storage of Pods, with field management and nothing else.
type pods struct{ clienttesting.ObjectTracker }

func newPods(t *testing.T) pods {
	t.Helper()
	return pods{clienttesting.NewFieldManagedObjectTracker(
		scheme.Scheme, scheme.Codecs.UniversalDecoder(), applyconfigurations.NewTypeConverter(scheme.Scheme))}
}

func (p pods) apply(t *testing.T, pod *corev1ac.PodApplyConfiguration, manager string) {
	t.Helper()
	applyTo(t, p, "pods", pod, manager)
}

// applyTo applies an object to an API server's storage.
func applyTo(t *testing.T, storage clienttesting.ObjectTracker, resource string, object runtime.ApplyConfiguration, manager string) {
	t.Helper()
	raw, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	if err := obj.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	force := true
	options := metav1.PatchOptions{FieldManager: manager, Force: &force}
	if err := storage.Apply(corev1.SchemeGroupVersion.WithResource(resource), obj, obj.GetNamespace(), options); err != nil {
		t.Fatal(err)
	}
}

// refresh applies the metadata of a member's Pod where it differs, and tells whether it did.
func (p pods) refresh(t *testing.T, c *api.EtcdCluster, m Member) bool {
	t.Helper()
	ac, err := PodMetadata(p.get(t, c.Namespace, m.Name), c, m)
	if err != nil {
		t.Fatal(err)
	}
	if ac != nil {
		p.apply(t, ac, api.Manager)
	}
	return ac != nil
}

func (p pods) get(t *testing.T, namespace, name string) *corev1.Pod {
	t.Helper()
	obj, err := p.Get(corev1.SchemeGroupVersion.WithResource("pods"), namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	pod, ok := obj.(*corev1.Pod)
	if !ok {
		t.Fatalf("a %T is no Pod", obj)
	}
	return pod
}

// firstPod is the Pod of a golden case.
func firstPod(t *testing.T, c *api.EtcdCluster) *corev1ac.PodApplyConfiguration {
	t.Helper()
	pod, err := Pod(c, firstMember(c))
	if err != nil {
		t.Fatal(err)
	}
	return pod
}

// typed decodes an apply-configuration into the type of its kind, and fails on a field that the
// kind does not have.
func typed(t *testing.T, ac runtime.ApplyConfiguration, into runtime.Object) {
	t.Helper()
	raw, err := json.Marshal(ac)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(raw, into); err != nil {
		t.Fatal(err)
	}
}
