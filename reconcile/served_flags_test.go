package reconcile

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// TestServedFlags: a value that this release refuses is none that stalls a cluster whose members
// have served with it, wherever that is written.
func TestServedFlags(t *testing.T) {
	t.Parallel()
	useless := func(w *world, value string) *api.EtcdCluster {
		c := w.cluster.DeepCopy()
		c.Spec.Options = &api.Options{Flags: map[string]string{"max-concurrent-streams": value}}
		return c
	}
	claims := func(c *api.EtcdCluster) map[string]*corev1.PersistentVolumeClaim {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "db-0", Annotations: map[string]string{api.AnnotationServed: render.Served(c, "")}}}
		return map[string]*corev1.PersistentVolumeClaim{"db-0": claim}
	}
	pods := func(args ...string) map[string]*corev1.Pod {
		return map[string]*corev1.Pod{"db-0": {Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: render.Container, Args: args}}}}}
	}
	answered := membership.Observed{Instances: []membership.Instance{{Name: "db-0", Volume: membership.Volume{UID: "v", ClusterID: 1, MemberID: 2}}}}
	begun := membership.Observed{Instances: []membership.Instance{{Name: "db-0", Volume: membership.Volume{UID: "v"}}}}
	cases := map[string]struct {
		reason string
		memory bool
		seen   func(w *world) observed
		valid  bool
	}{
		"Never":  {reason: "no member has served with it", seen: func(*world) observed { return observed{} }},
		"Other":  {reason: "it was another value", seen: func(w *world) observed { return observed{claims: claims(useless(w, "2"))} }},
		"Served": {reason: "its volume says so", seen: func(w *world) observed { return observed{claims: claims(useless(w, "1"))} }, valid: true},
		"Former": {
			reason: "those of before have served with it: they were stopped for members that are like them", valid: true,
			seen: func(w *world) observed { return observed{former: objectsOfFormer{claims: claims(useless(w, "1"))}} },
		},
		"Memory": {
			reason: "the Pods of its members tell it", memory: true, valid: true,
			seen: func(*world) observed { return observed{Observed: answered, pods: pods("--max-concurrent-streams=1")} },
		},
		"MemoryOther": {
			reason: "they have another value", memory: true,
			seen: func(*world) observed { return observed{Observed: answered, pods: pods("--max-concurrent-streams=10")} },
		},
		"MemoryBegun": {
			reason: "the member has not answered yet", memory: true,
			seen: func(*world) observed { return observed{Observed: begun, pods: pods("--max-concurrent-streams=1")} },
		},
		"Volumes": {
			reason: "a Pod alone does not show that it has served with it for long enough",
			seen:   func(*world) observed { return observed{Observed: answered, pods: pods("--max-concurrent-streams=1")} },
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			c := useless(&w, "1")
			if tc.memory {
				c.Spec.Storage.Medium = api.MediumMemory
			}
			if err := valid(c, tc.seen(&w)); (err == nil) != tc.valid {
				t.Errorf("%s: %v", tc.reason, err)
			}
		})
	}
}
