package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// TestDifferences applies the Pod of a golden case, and compares it with what is to be applied
// then.
func TestDifferences(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   func(*corev1ac.PodApplyConfiguration)
		want   []string
	}{
		"Same": {reason: "what was applied is found again", args: func(*corev1ac.PodApplyConfiguration) {}},
		"Annotations": {
			reason: "new, gone, and another",
			args: func(p *corev1ac.PodApplyConfiguration) {
				p.Annotations["new"], p.Annotations[api.AnnotationInitialClusterState] = "1", "existing"
				delete(p.Annotations, "example.com/contact")
			},
			want: []string{
				"metadata.annotations[etcd.quorate.dev/initial-cluster-state]: new -> existing",
				"metadata.annotations[example.com/contact]: - oncall@example.com",
				"metadata.annotations.new: + 1",
			},
		},
		"OthersStay": {
			reason: "what another client wrote is no difference",
			args:   func(p *corev1ac.PodApplyConfiguration) { delete(p.Labels, "others") },
		},
		"Values": {
			reason: "of a list of values what is new in it, and what is not there any more",
			args: func(p *corev1ac.PodApplyConfiguration) {
				args := p.Spec.Containers[0].Args
				args[0], args[1] = args[1], "--data-dir=/elsewhere"
				p.Spec.Containers[0].Args = args
			},
			want: []string{
				"spec.containers.etcd.args: - --name=full-0",
				"spec.containers.etcd.args: + --data-dir=/elsewhere",
			},
		},
		"Named": {
			reason: "an item of a list goes by its name, wherever it stands",
			args: func(p *corev1ac.PodApplyConfiguration) {
				env := p.Spec.Containers[0].Env
				p.Spec.Containers[0].Env = append([]corev1ac.EnvVarApplyConfiguration{*corev1ac.EnvVar().WithName("A").WithValue("1")}, env[1:]...)
				p.Spec.Containers[0].Ports[0].WithContainerPort(1)
			},
			want: []string{
				`spec.containers.etcd.env.A: + {"name":"A","value":"1"}`,
				`spec.containers.etcd.env.INITIAL_CLUSTER: - {"name":"INITIAL_CLUSTER","valueFrom":{"fieldRef":{"apiVersion":"v1","fieldPath":"metadata.annotations['etcd.quorate.dev/initial-cluster']"}}}`,
				`spec.containers.etcd.ports.client.containerPort: 2379 -> 1`,
			},
		},
		"Quantities": {
			reason: "one that is written otherwise is the same",
			args: func(p *corev1ac.PodApplyConfiguration) {
				p.Spec.Containers[0].Resources.WithRequests(corev1.ResourceList{"cpu": resource.MustParse("0.5"), "memory": resource.MustParse("1024Mi")})
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pods, c := newPods(t), load(t, "everything")
			m := firstMember(c)
			m.InitialClusterState = StateNew
			pods.live(t, c, m)
			want, err := Pod(c, m)
			if err != nil {
				t.Fatal(err)
			}
			tc.args(want)
			differences, err := Differences(pods.get(t, c.Namespace, m.Name), want)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range differences {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
	t.Run("Order", func(t *testing.T) {
		t.Parallel()
		got := compare("args", []any{"--a=1", "--a=2"}, []any{"--a=2", "--a=1"})
		want := []Difference{{Path: "args", From: `["--a=1","--a=2"]`, To: `["--a=2","--a=1"]`}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("of two flags the last one counts: -want, +got\n%s", diff)
		}
	})
	t.Run("Unknown", func(t *testing.T) {
		t.Parallel()
		if _, err := Differences(&corev1.Secret{}, corev1ac.Secret("a", "b")); err == nil {
			t.Error("Quorate applies no Secret")
		}
	})
}
