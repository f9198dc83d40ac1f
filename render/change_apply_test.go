package render

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// live puts the Pod of a member into an API server's storage, with a label of another client's.
func (p pods) live(t *testing.T, c *api.EtcdCluster, m Member) {
	t.Helper()
	pod, err := Pod(c, m)
	if err != nil {
		t.Fatal(err)
	}
	p.apply(t, pod, api.Manager)
	p.apply(t, corev1ac.Pod(m.Name, c.Namespace).WithLabels(map[string]string{"others": "stay"}), "somebody")
}

// TestPodImage changes the image of a live Pod there and back, and holds what is different then:
// nothing but what a Pod may be changed in.
func TestPodImage(t *testing.T) {
	t.Parallel()
	const elsewhere = "example.com:5000/etcd"
	five := map[string]string{
		api.AnnotationCheckAtStart: "--experimental-initial-corrupt-check=true", api.AnnotationCheckCompacted: "--experimental-compact-hash-check-enabled=true",
	}
	six := map[string]string{
		api.AnnotationCheckAtStart: "--feature-gates=InitialCorruptCheck=true,CompactHashCheck=true", api.AnnotationCheckCompacted: "--compact-hash-check-time=1m",
	}
	cases := map[string]struct {
		reason   string
		spec     func(*api.EtcdCluster) // since the Pod was made, which runs 3.6.16
		version  string
		image    string // empty: the one of the spec
		previous string
		want     map[string]string // of its annotations
		outdated []string
	}{
		"Minor": {
			reason: "the flags of its version go with it", version: "3.5.35", previous: "containerd://1 etcd:v3.6.16",
			want: five,
		},
		"Patch": {reason: "the same flags", version: "3.6.15", previous: "containerd://1 etcd:v3.6.16", want: six},
		"Repository": {
			reason: "it is made of what the spec says now", version: "3.6.16", previous: "containerd://1 etcd:v3.6.16",
			spec: func(c *api.EtcdCluster) { c.Spec.Image = &api.Image{Repository: elsewhere} }, want: six,
		},
		"ImageAndMore": {
			reason: "what the image has nothing to do with is as it was", version: "3.6.16", previous: "containerd://1 etcd:v3.6.16",
			spec: func(c *api.EtcdCluster) {
				c.Spec.Image = &api.Image{Repository: elsewhere}
				resourced("1", "", "", "")(c)
			},
			want: six, outdated: []string{"resources"},
		},
		"PutBackVersion": {
			reason: "the image that the spec asks for at that version", version: "3.6.16", image: "gcr.io/etcd-development/etcd:v3.6.16",
			want: six,
		},
		"PutBackRepository": {
			reason: "it is not what the spec asks for, and does not say so", version: "3.6.16", image: "gcr.io/etcd-development/etcd:v3.6.16",
			spec: func(c *api.EtcdCluster) { c.Spec.Image = &api.Image{Repository: elsewhere} },
			want: six, outdated: []string{"image"},
		},
	}
	for name, tc := range cases {
		for _, golden := range []string{"minimal", "memory"} {
			t.Run(name+"/"+golden, func(t *testing.T) {
				t.Parallel()
				pods, c := newPods(t), load(t, golden)
				c.Spec.Version = "3.6.16"
				m := firstMember(c)
				m.InitialCorruptCheck = true
				pods.live(t, c, m)
				want := pods.get(t, c.Namespace, m.Name)
				if tc.spec != nil {
					tc.spec(c)
				}
				m.Version, m.Ran, m.Previous = tc.version, "3.6.16", tc.previous
				image := tc.image
				if image == "" {
					image = Image(c, tc.version)
				}
				changed, err := PodImage(want, c, m, image)
				if err != nil {
					t.Fatal(err)
				}
				pods.apply(t, changed, api.Manager)

				got := pods.get(t, c.Namespace, m.Name)
				want.Spec.Containers[0].Image = image
				maps.Copy(want.Annotations, tc.want)
				if tc.previous != "" {
					want.Annotations[api.AnnotationPrevious] = tc.previous
				}
				want.Annotations[api.AnnotationRevision] = got.Annotations[api.AnnotationRevision]
				_, around, _ := strings.Cut(want.Annotations[api.AnnotationApplied], " ")
				want.Annotations[api.AnnotationApplied] = image + " " + around
				if diff := cmp.Diff(want, got, ignoreBookkeeping); diff != "" {
					t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
				}
				if diff := cmp.Diff(tc.outdated, Outdated(c, got)); diff != "" {
					t.Errorf("%s: parts that differ: -want, +got\n%s", tc.reason, diff)
				}
				if tc.image == "" && tc.outdated == nil {
					if change, parts, err := Needs(got, c, m); change != ChangeNone || err != nil {
						t.Errorf("%s: it needs %s (%v) still: %v", tc.reason, change, parts, err)
					}
				}
			})
		}
	}
}

// TestPodResources changes the resources of a live Pod, and nothing else of it.
func TestPodResources(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason        string
		before, after func(*api.EtcdCluster)
	}{
		"More":   {reason: "other values", before: resourced("1", "1Gi", "2", "2Gi"), after: resourced("2", "2Gi", "4", "4Gi")},
		"Others": {reason: "what is not asked for any more goes", before: resourced("1", "1Gi", "2", ""), after: resourced("1", "", "", "2Gi")},
		"None":   {reason: "all of it", before: resourced("1", "1Gi", "", ""), after: func(c *api.EtcdCluster) { c.Spec.Resources = nil }},
		"AndMore": {
			reason: "what else differs does so still", before: resourced("1", "1Gi", "", ""),
			after: func(c *api.EtcdCluster) {
				resourced("2", "1Gi", "", "")(c)
				c.Spec.Image = &api.Image{Repository: "example.com/etcd"}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pods, c := newPods(t), load(t, "minimal")
			tc.before(c)
			m := firstMember(c)
			pods.live(t, c, m)
			want := pods.get(t, c.Namespace, m.Name)
			tc.after(c)
			changed, err := PodResources(want, c)
			if err != nil {
				t.Fatal(err)
			}
			pods.apply(t, changed, api.Manager)

			got := pods.get(t, c.Namespace, m.Name)
			want.Spec.Containers[0].Resources = livePod(t, c, m).Spec.Containers[0].Resources
			want.Annotations[api.AnnotationRevision] = got.Annotations[api.AnnotationRevision]
			if diff := cmp.Diff(want, got, ignoreBookkeeping); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
			var outdated []string
			if c.Spec.Image != nil {
				outdated = []string{"image"}
			}
			if diff := cmp.Diff(outdated, Outdated(c, got)); diff != "" {
				t.Errorf("%s: parts that differ: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCleared: an API server that has forgotten what Quorate has applied of a Pod lets it change
// what it is to change all the same, and the rest stays as it is.
func TestCleared(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		before func(*api.EtcdCluster)
		change func(*testing.T, *corev1.Pod, *api.EtcdCluster, Member) *corev1ac.PodApplyConfiguration
		want   func(*corev1.Pod)
	}{
		"Image": {
			reason: "with the annotations that go with it", before: func(*api.EtcdCluster) {},
			change: func(t *testing.T, live *corev1.Pod, c *api.EtcdCluster, m Member) *corev1ac.PodApplyConfiguration {
				m.Version = "3.7.3"
				pod, err := PodImage(live, c, m, Image(c, m.Version))
				if err != nil {
					t.Fatal(err)
				}
				return pod
			},
			want: func(pod *corev1.Pod) {
				pod.Spec.Containers[0].Image = "gcr.io/etcd-development/etcd:v3.7.3"
				pod.Annotations[api.AnnotationApplied] = strings.Replace(pod.Annotations[api.AnnotationApplied], "v3.6.16", "v3.7.3", 1)
			},
		},
		"Resources": {
			reason: "with the revision", before: resourced("1", "1Gi", "", ""),
			change: func(t *testing.T, live *corev1.Pod, c *api.EtcdCluster, _ Member) *corev1ac.PodApplyConfiguration {
				resourced("2", "1Gi", "", "")(c)
				pod, err := PodResources(live, c)
				if err != nil {
					t.Fatal(err)
				}
				return pod
			},
			want: func(pod *corev1.Pod) {
				pod.Spec.Containers[0].Resources.Requests[corev1.ResourceCPU] = resource.MustParse("2")
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pods, c := newPods(t), load(t, "minimal")
			c.Spec.Version = "3.6.16"
			tc.before(c)
			m := firstMember(c)
			pod, err := Pod(c, m)
			if err != nil {
				t.Fatal(err)
			}
			pods.apply(t, pod, "before-it-was-cleared")
			want := pods.get(t, c.Namespace, m.Name)
			pods.apply(t, tc.change(t, want.DeepCopy(), c, m), api.Manager)
			got := pods.get(t, c.Namespace, m.Name)
			tc.want(want)
			want.Annotations[api.AnnotationRevision] = got.Annotations[api.AnnotationRevision]
			if diff := cmp.Diff(want, got, ignoreBookkeeping); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
			if outdated := Outdated(c, got); outdated != nil {
				t.Errorf("%s: it is not what the spec asks for: %v", tc.reason, outdated)
			}
		})
	}
}
