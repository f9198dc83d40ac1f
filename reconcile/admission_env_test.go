//go:build env

package reconcile_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/hostlet"
	"quorate.dev/e2e/share"
	"quorate.dev/render"
)

const (
	avoided  = "gcr.io/"
	mirrored = "mirror.example.com/"
	gated    = "example.com/admitted"
)

// policy is what a policy of the API server makes of our objects, and what that costs.
type policy struct {
	reason    string
	on        []admissionregistrationv1.OperationType
	only      string // the condition under which it acts; empty is always
	apply     string // the configuration that it applies, or
	patch     string // the JSON patch that it makes, as expressions
	defaults  bool   // the spec asks for no resources at first
	acted     func(pod *corev1.Pod, etcd *corev1.Container) bool
	avoids    string // what no image may begin with
	recreated bool   // a Pod has to be, for another version
}

var (
	onCreate = []admissionregistrationv1.OperationType{admissionregistrationv1.Create}
	onBoth   = []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update}
)

func policies() map[string]policy {
	// The expressions of a configuration for some containers, which says something of each, called
	// c.
	containers := func(which, says string) string {
		return `Object{spec: Object.spec{containers: object.spec.containers.filter(c, ` + which + `).map(c, Object.spec.containers{name: c.name, ` + says + `})}}`
	}
	rewrite := containers(`c.image.startsWith("`+avoided+`")`, fmt.Sprintf(`image: "%s" + c.image.substring(%d)`, mirrored, len(avoided)))
	rewritten := func(_ *corev1.Pod, etcd *corev1.Container) bool { return strings.HasPrefix(etcd.Image, mirrored) }
	var digests []string
	for _, version := range []string{etcd35, etcd36, etcd37} {
		digests = append(digests, fmt.Sprintf("%q: %q", "v"+version, hostlet.Digest(version)))
	}
	return map[string]policy{
		"Registry":         {reason: "a change of the image is rewritten as well", on: onBoth, apply: rewrite, acted: rewritten, avoids: avoided},
		"RegistryOnCreate": {reason: "a change of the image would not be seen", on: onCreate, apply: rewrite, acted: rewritten, avoids: avoided, recreated: true},
		"Digest": {
			reason: "which image it is tells the digest alone", on: onBoth,
			apply: containers(`!c.image.contains("@")`, `image: c.image.split(":")[0] + "@" + {`+strings.Join(digests, ", ")+`}[c.image.split(":")[1]]`),
			acted: func(_ *corev1.Pod, etcd *corev1.Container) bool { return !strings.Contains(etcd.Image, ":v") },
		},
		"Sidecar": {
			reason: "etcd is not the first container", on: onCreate,
			patch: `[JSONPatch{op: "add", path: "/spec/containers/0", value: Object.spec.containers{name: "proxy", image: "example.com/proxy:v9.9.9"}}]`,
			acted: func(pod *corev1.Pod, _ *corev1.Container) bool { return pod.Spec.Containers[0].Name == "proxy" },
		},
		"InitContainers": {
			reason: "one that ends before etcd starts, and one that runs beside it", on: onCreate,
			patch: `[JSONPatch{op: "add", path: "/spec/initContainers", value: [` +
				`Object.spec.initContainers{name: "setup", image: "example.com/setup:v9.9.9"}, ` +
				`Object.spec.initContainers{name: "proxy", image: "example.com/proxy:v9.9.9", restartPolicy: "Always"}]}]`,
			acted: func(pod *corev1.Pod, _ *corev1.Container) bool { return len(pod.Spec.InitContainers) == 2 },
		},
		"Volume": {
			reason: "etcd has another volume", on: onCreate,
			apply: `Object{spec: Object.spec{volumes: [Object.spec.volumes{name: "cache", emptyDir: Object.spec.volumes.emptyDir{}}], containers: [` +
				`Object.spec.containers{name: "etcd", volumeMounts: [Object.spec.containers.volumeMounts{name: "cache", mountPath: "/cache"}]}]}}`,
			acted: func(_ *corev1.Pod, etcd *corev1.Container) bool {
				return slices.ContainsFunc(etcd.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "cache" })
			},
		},
		"Tolerations": {
			reason: "they can be added to a Pod that runs, too", on: onBoth,
			only: `!has(object.spec.tolerations) || !object.spec.tolerations.exists(t, has(t.key) && t.key == "` + injected + `")`,
			patch: `[has(object.spec.tolerations) ` +
				`? JSONPatch{op: "add", path: "/spec/tolerations/-", value: Object.spec.tolerations{key: "` + injected + `", operator: "Exists"}} ` +
				`: JSONPatch{op: "add", path: "/spec/tolerations", value: [Object.spec.tolerations{key: "` + injected + `", operator: "Exists"}]}]`,
			acted: func(pod *corev1.Pod, _ *corev1.Container) bool {
				return slices.ContainsFunc(pod.Spec.Tolerations, func(t corev1.Toleration) bool { return t.Key == injected })
			},
		},
		"ReadinessGate": {
			reason: "another controller says when clients may come", on: onCreate,
			patch: `[JSONPatch{op: "add", path: "/spec/readinessGates", value: [Object.spec.readinessGates{conditionType: "` + gated + `"}]}]`,
			acted: func(pod *corev1.Pod, _ *corev1.Container) bool { return len(pod.Spec.ReadinessGates) == 1 },
		},
		"Resources": {
			reason: "as a LimitRange does", on: onCreate, defaults: true,
			apply: containers(`!has(c.resources) || !has(c.resources.limits)`, `resources: Object.spec.containers.resources{limits: {"memory": "4Gi"}}`),
			acted: func(_ *corev1.Pod, etcd *corev1.Container) bool {
				return etcd.Resources.Limits.Memory().String() == "4Gi"
			},
		},
		"Metadata": {
			reason: "whose Pods, claims, Services and budgets these are", on: onBoth,
			apply: `Object{metadata: Object.metadata{labels: {"` + injected + `": "true"}, annotations: {"` + injected + `": "true"}}}`,
			acted: func(pod *corev1.Pod, _ *corev1.Container) bool { return pod.Labels[injected] == "true" },
		},
		"PullSecrets": {
			reason: "as the ServiceAccount's come to a Pod that names none", on: onCreate,
			only:  `!has(object.spec.imagePullSecrets)`,
			patch: `[JSONPatch{op: "add", path: "/spec/imagePullSecrets", value: [Object.spec.imagePullSecrets{name: "registry"}]}]`,
			acted: func(pod *corev1.Pod, _ *corev1.Container) bool { return len(pod.Spec.ImagePullSecrets) == 1 },
		},
		"AlwaysPullImages": {
			reason: "as the plugin of that name does", on: onBoth,
			apply: containers("true", `imagePullPolicy: "Always"`),
			acted: func(_ *corev1.Pod, etcd *corev1.Container) bool { return etcd.ImagePullPolicy == corev1.PullAlways },
		},
	}
}

// TestAdmitted: whatever a policy makes of what is applied, the cluster becomes Ready, grows,
// changes its version and its resources, and gets back a Pod that was deleted; at rest nothing is
// written. A Pod is changed in place where the policy sees that.
func TestAdmitted(t *testing.T) {
	t.Parallel()
	for name, tc := range share.Of(t, policies(), 3) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.wire = &wire{}
			s.admit(tc)
			s.operate()
			c := s.cluster("db", 1)
			if !tc.defaults {
				c.Spec.Resources = &api.Resources{Requests: hostlet.CPU(1)}
			}
			load := s.laden(c)
			s.resize(c, 3)
			members := s.sized(c, 3)
			who := identityOf(c)
			before, _ := s.lives(c)

			s.change(c, func() { c.Spec.Version = etcd37 })
			s.runs(c, etcd37)
			after, restarts := s.lives(c)
			for _, member := range members {
				if recreated := after[member] != before[member]; recreated != tc.recreated || !recreated && restarts[member] != 1 {
					t.Errorf("%s: for another version the Pod of %s was recreated: %t, want %t; its container was restarted %d times", tc.reason, member, recreated, tc.recreated, restarts[member])
				}
			}

			s.change(c, func() { c.Spec.Resources = &api.Resources{Requests: hostlet.CPU(2)} })
			s.ready(c)
			resized, _ := s.lives(c)
			if !tc.defaults && !maps.Equal(resized, after) {
				t.Errorf("%s: for more cpu Pods were recreated: %v, then %v", tc.reason, after, resized)
			}
			s.deletePod("db-1")
			s.awaitRecreated("db-1", resized["db-1"])
			s.awaitMembers(c, members...)
			s.same(c, who)

			for _, pod := range s.pods(c) {
				etcd := containerOf(&pod)
				if !tc.acted(&pod, etcd) {
					t.Errorf("void: %s: the policy has not acted on %s: %v", tc.reason, pod.Name, pod.Spec)
				}
				s.recorded(tc, &pod)
				if cpu := etcd.Resources.Requests.Cpu(); cpu.Cmp(resource.MustParse("2")) != 0 {
					t.Errorf("%s: %s asks for %s cpu", tc.reason, pod.Name, cpu)
				}
			}
			s.rests(c)
			load.check()
			s.clean(c, members...)
		})
	}
}

// TestAdmittedImages: a member is rolled back to what was asked for before, and not to what a
// policy has made of it. Where the policy makes the same of what is asked for now, nothing is
// restarted, and none is waited for.
func TestAdmittedImages(t *testing.T) {
	t.Parallel()
	putBack := func(s *stage, c *api.EtcdCluster) {
		s.change(c, func() { c.Spec.Version = "3.6.99" })
		if message := s.stalled(c, api.ReasonChangeFailed); !strings.Contains(message, "cannot pull the image "+mirrored) {
			s.Errorf("the message does not say what was tried: %s", message)
		}
		s.whole(c)
		for _, pod := range s.pods(c) {
			asked, _, _ := strings.Cut(pod.Annotations[api.AnnotationApplied], " ")
			if want := "gcr.io/etcd-development/etcd:v" + etcd36; asked != want {
				s.Errorf("in %s %s was asked for, want %s", pod.Name, asked, want)
			}
		}
		s.change(c, func() { c.Spec.Version = etcd37 })
		s.runs(c, etcd37)
	}
	cases := map[string]struct {
		policy string
		change func(*stage, *api.EtcdCluster)
	}{
		"PutBack":          {policy: "Registry", change: putBack},
		"PutBackRecreated": {policy: "RegistryOnCreate", change: putBack},
		"SameForBoth": {policy: "Registry", change: func(s *stage, c *api.EtcdCluster) {
			before, _ := s.lives(c)
			s.change(c, func() { c.Spec.Image = &api.Image{Repository: mirrored + "etcd-development/etcd"} })
			s.ready(c)
			s.unrestarted(c)
			if after, _ := s.lives(c); !maps.Equal(before, after) {
				s.Errorf("Pods were recreated: %v, then %v", before, after)
			}
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.wire = &wire{}
			s.admit(policies()[tc.policy])
			s.operate()
			c := s.cluster("db", 3)
			load := s.laden(c)
			who := identityOf(c)
			tc.change(s, c)
			s.same(c, who)
			s.rests(c)
			load.check()
		})
	}
}

// recorded fails unless the API server takes nothing that the policy has added for a field that we
// apply, while a field that we apply has the value that the policy has given it.
func (s *stage) recorded(p policy, pod *corev1.Pod) {
	s.Helper()
	ours, err := corev1ac.ExtractPod(pod, api.Manager)
	s.must(err)
	raw, err := json.Marshal(ours)
	s.must(err)
	for _, added := range []string{`"proxy"`, `"setup"`, `"cache"`, `"registry"`, injected, gated, `"4Gi"`} {
		if strings.Contains(string(raw), added) {
			s.Errorf("%s: of %s the API server takes %s for ours: %s", p.reason, pod.Name, added, raw)
		}
	}
	if image := *ours.Spec.Containers[0].Image; image != containerOf(pod).Image {
		s.Errorf("%s: %s runs %s, and the API server has %s for ours", p.reason, pod.Name, containerOf(pod).Image, image)
	}
}

func containerOf(pod *corev1.Pod) *corev1.Container {
	n := slices.IndexFunc(pod.Spec.Containers, func(c corev1.Container) bool { return c.Name == render.Container })
	return &pod.Spec.Containers[n]
}

// admit lets a policy act on this stage. Every Pod is looked at whenever it changes, and every
// readiness gate is opened.
func (s *stage) admit(p policy) {
	s.Helper()
	mutation := admissionregistrationv1.Mutation{
		PatchType: admissionregistrationv1.PatchTypeJSONPatch, JSONPatch: &admissionregistrationv1.JSONPatch{Expression: p.patch},
	}
	resources := []string{"pods"}
	if p.patch == "" {
		mutation = admissionregistrationv1.Mutation{
			PatchType: admissionregistrationv1.PatchTypeApplyConfiguration, ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: p.apply},
		}
	}
	if !strings.Contains(p.apply+p.patch, "spec") {
		resources = []string{"pods", "persistentvolumeclaims", "services", "poddisruptionbudgets"}
	}
	s.enforce(p.on, resources, p.only, mutation, func() (bool, error) {
		pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{GenerateName: "try-", Namespace: s.ns}}
		pod.Spec.Containers = []corev1.Container{{Name: render.Container, Image: "gcr.io/etcd-development/etcd:v" + etcd36}}
		err := s.Create(s.Context(), pod, client.DryRunAll)
		return err == nil && p.acted(pod, containerOf(pod)), err
	})
	s.eachPod(func(ctx context.Context, pod *corev1.Pod) {
		if image := containerOf(pod).Image; p.avoids != "" && strings.HasPrefix(image, p.avoids) {
			s.Errorf("%s: %s has the image %s", p.reason, pod.Name, image)
		}
		if len(pod.Spec.ReadinessGates) == 0 || slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == gated }) {
			return
		}
		opened := pod.DeepCopy()
		opened.Status.Conditions = append(opened.Status.Conditions, corev1.PodCondition{Type: gated, Status: corev1.ConditionTrue, LastTransitionTime: metav1.Now()})
		if err := client.IgnoreNotFound(s.Status().Patch(ctx, opened, client.StrategicMergeFrom(pod))); err != nil && ctx.Err() == nil {
			s.Errorf("open the readiness gate of %s: %v", pod.Name, err)
		}
	})
}

// eachPod calls do with each state of each Pod of this stage, until its end.
func (s *stage) eachPod(do func(context.Context, *corev1.Pod)) {
	s.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.Context()))
	w, err := s.Watch(ctx, &corev1.PodList{}, client.InNamespace(s.ns))
	s.must(err)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for event := range w.ResultChan() {
			if pod, ok := event.Object.(*corev1.Pod); ok {
				do(ctx, pod)
			} else if ctx.Err() == nil {
				s.Errorf("the watch of Pods says %v", event.Object)
			}
		}
		if ctx.Err() == nil {
			s.Errorf("the watch of Pods has ended")
		}
	}()
	s.Cleanup(func() { cancel(); w.Stop(); s.over(done, "the watch of Pods") })
}

// enforce a policy on this stage, and wait until it acts.
func (s *stage) enforce(on []admissionregistrationv1.OperationType, resources []string, only string, mutation admissionregistrationv1.Mutation, acts func() (bool, error)) {
	s.Helper()
	p := &admissionregistrationv1.MutatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: s.ns},
		Spec: admissionregistrationv1.MutatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{
				NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: s.ns}},
				ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: on,
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{"", "policy"}, APIVersions: []string{"v1"}, Resources: resources},
				}}},
			},
			Mutations:          []admissionregistrationv1.Mutation{mutation},
			FailurePolicy:      new(admissionregistrationv1.Fail),
			ReinvocationPolicy: admissionregistrationv1.NeverReinvocationPolicy,
		},
	}
	if only != "" {
		p.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{Name: "only", Expression: only}}
	}
	s.create(p)
	s.create(&admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: s.ns},
		Spec:       admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: s.ns},
	})
	pace := time.NewTicker(100 * time.Millisecond)
	defer pace.Stop()
	late := time.After(patience)
	for { // no watch tells when it is in force
		ok, err := acts()
		if ok {
			return
		}
		select {
		case <-pace.C:
		case <-late:
			s.Fatalf("the policy has no effect; what it is tried on: %v", err)
		}
	}
}
