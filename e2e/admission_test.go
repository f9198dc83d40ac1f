//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/features"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/history"
	"quorate.dev/e2e/node"
	"quorate.dev/e2e/share"
	"quorate.dev/render"
)

// mirrored is the registry that a policy puts in the place of another one.
const mirrored = "mirror.example.com/"

// policy is what a policy of the API server makes of Pods.
type policy struct {
	name      string
	on        []admissionregistrationv1.OperationType
	mutation  admissionregistrationv1.Mutation
	acted     func(pod *corev1.Pod) bool
	recreated bool // Pods are, for other cpu
}

func policies() []policy {
	create, update := admissionregistrationv1.Create, admissionregistrationv1.Update
	applies := func(containers string) admissionregistrationv1.Mutation {
		return admissionregistrationv1.Mutation{
			PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
			ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: "Object{spec: Object.spec{containers: object.spec.containers." + containers + "}}"},
		}
	}
	// A proxy of etcd's own, of an image that is there. It is the first container, and has all that
	// the namespace asks for.
	sidecar := `[JSONPatch{op: "add", path: "/spec/containers/0", value: Object.spec.containers{name: "sidecar", ` +
		`image: "` + render.Image(&api.EtcdCluster{}, node.Etcd36) + `", ` +
		`command: ["/usr/local/bin/etcd", "gateway", "start", "--listen-addr=127.0.0.1:23790", "--endpoints=127.0.0.1:2379"], ` +
		`securityContext: Object.spec.containers.securityContext{allowPrivilegeEscalation: false, ` +
		`capabilities: Object.spec.containers.securityContext.capabilities{drop: ["ALL"]}}}}]`
	return []policy{
		{
			name: "another registry", on: []admissionregistrationv1.OperationType{create, update},
			mutation: applies(fmt.Sprintf(`filter(c, c.image.startsWith("gcr.io/")).map(c, Object.spec.containers{name: c.name, image: %q + c.image.substring(7)})`, mirrored)),
			acted:    func(pod *corev1.Pod) bool { return strings.HasPrefix(containerOf(pod).Image, mirrored) },
		},
		{
			name: "a sidecar", on: []admissionregistrationv1.OperationType{create},
			mutation: admissionregistrationv1.Mutation{
				PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{Expression: sidecar},
			},
			acted: func(pod *corev1.Pod) bool { return pod.Spec.Containers[0].Name == "sidecar" },
		},
		{
			name: "a limit of memory", on: []admissionregistrationv1.OperationType{create},
			mutation: applies(`filter(c, !has(c.resources) || !has(c.resources.limits)).map(c, Object.spec.containers{name: c.name, resources: Object.spec.containers.resources{limits: {"memory": "1Gi"}}})`),
			acted: func(pod *corev1.Pod) bool {
				return containerOf(pod).Resources.Limits.Memory().String() == "1Gi"
			},
			recreated: true,
		},
	}
}

// TestAdmitted: whatever a policy makes of the Pods that are applied, the cluster becomes Ready,
// changes its version in place and its resources, and gets back a Pod that was deleted, under
// writes.
func TestAdmitted(t *testing.T) {
	t.Parallel()
	var stories []features.Feature
	for _, p := range share.List(t, policies(), 1, func(p policy) string { return p.name }) {
		stories = append(stories, p.story())
	}
	testenv.TestInParallel(t, stories...)
}

func (p policy) story() features.Feature {
	var c *api.EtcdCluster
	var clients *history.Load
	name := "db-" + strings.ReplaceAll(p.name, " ", "-")
	deleted := name + "-1"
	return features.New("under a policy: "+p.name).
		Setup(step(func(s *stage) {
			s.mirror()
			s.enforce(p, name)
			c = s.cluster(name, 3)
			c.Spec.Resources = &api.Resources{Requests: cpuAndMemory("20m", "64Mi")}
			contract.Watch(s, c)
			s.create(c)
			s.ready(c)
			clients = s.load(c, storyFloor)
		})).
		Assess("its version changes in place", step(func(s *stage) {
			before := etcds(s.pods(c))
			s.change(c, func() { c.Spec.Version = node.Etcd37 })
			s.ready(c)
			for name, was := range before {
				was.restarts++
				before[name] = was
			}
			if diff := cmp.Diff(before, etcds(s.pods(c)), cmp.AllowUnexported(life{})); diff != "" {
				s.Errorf("-want +got:\n%s", diff)
			}
		})).
		Assess("its resources change", step(func(s *stage) {
			before := etcds(s.pods(c))
			s.change(c, func() { c.Spec.Resources.Requests = cpuAndMemory("25m", "64Mi") })
			s.ready(c)
			if after := etcds(s.pods(c)); !p.recreated && !maps.Equal(before, after) {
				s.Errorf("Pods were recreated, or containers restarted: %v, then %v", before, after)
			}
		})).
		Assess("a deleted Pod comes back", step(func(s *stage) {
			who, was := identityOf(c), etcds(s.pods(c))[deleted]
			s.deletePod(deleted)
			s.notReady(c)
			s.ready(c)
			if now := etcds(s.pods(c))[deleted]; now.uid == was.uid {
				s.Errorf("%s is the Pod that it was", deleted)
			}
			if diff := cmp.Diff(who, identityOf(c)); diff != "" {
				s.Errorf("identity changed: -want +got:\n%s", diff)
			}
		})).
		Assess("all that clients were told is as one store would have told it", step(func(s *stage) {
			for _, pod := range s.pods(c) {
				if !p.acted(&pod) {
					s.Errorf("void: the policy has not acted on %s: %v", pod.Name, pod.Spec)
				}
			}
			s.checkLoad(clients, changesPause)
		})).
		Feature()
}

// mirror gives the nodes the images of etcd under the name that a policy makes of theirs.
func (s *stage) mirror() {
	s.Helper()
	for _, version := range []string{node.Etcd36, node.Etcd37} {
		image := render.Image(&api.EtcdCluster{}, version)
		mirror := mirrored + strings.TrimPrefix(image, "gcr.io/")
		if _, err := run(s.Context(), "docker", "tag", image, mirror); err != nil {
			s.Fatal(err)
		}
		if err := node.Load(s.Context(), clusterName, mirror); err != nil {
			s.Fatal(err)
		}
	}
}

// enforce the policy on the Pods of one cluster of this stage, and wait until it acts.
func (s *stage) enforce(p policy, cluster string) {
	s.Helper()
	meta := metav1.ObjectMeta{Name: s.ns + "-" + cluster, Labels: map[string]string{stageLabel: ""}}
	rule := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: meta,
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.ns}},
				ObjectSelector:    &metav1.LabelSelector{MatchLabels: map[string]string{api.LabelCluster: cluster}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: p.on,
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"pods"}},
				}}},
			},
			Mutations:          []admissionregistrationv1.Mutation{p.mutation},
			FailurePolicy:      new(admissionregistrationv1.Fail),
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
		},
	}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: meta, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: meta.Name},
	}
	for _, o := range []client.Object{rule, binding} {
		s.create(o)
		s.Cleanup(func() { _ = kube.Delete(context.WithoutCancel(s.Context()), o) }) // it acts on Pods of this stage alone
	}
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	late := time.After(patience)
	for { // no watch tells when it is in force
		pod := restrictedPod("try", "etcdctl", "version")
		pod.Namespace, pod.Labels = s.ns, map[string]string{api.LabelCluster: cluster}
		pod.Spec.Containers[0].Name = render.Container
		err := s.Create(s.Context(), pod, client.DryRunAll)
		if err == nil && p.acted(pod) {
			return
		}
		select {
		case <-pace.C:
		case <-late:
			s.Fatalf("the policy has no effect; what it is tried on: %v", err)
		}
	}
}

func containerOf(pod *corev1.Pod) *corev1.Container {
	for n := range pod.Spec.Containers {
		if pod.Spec.Containers[n].Name == render.Container {
			return &pod.Spec.Containers[n]
		}
	}
	return &corev1.Container{}
}

// etcds are the processes of the Pods, whatever runs beside them.
func etcds(pods []corev1.Pod) map[string]life {
	all := map[string]life{}
	for _, pod := range pods {
		for _, status := range pod.Status.ContainerStatuses {
			if status.Name == render.Container {
				all[pod.Name] = life{string(pod.UID), status.RestartCount}
			}
		}
	}
	return all
}
