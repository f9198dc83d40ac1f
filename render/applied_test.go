package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// What policies of the API server make of a Pod in the request in which Quorate applies it. The API
// server has noted by then which fields are Quorate's (metadata.managedFields): those that it has
// asked for, with whatever value, and none that a policy adds.
const (
	mirror = "mirror.example.com/etcd-development/etcd"
	pin    = "gcr.io/etcd-development/etcd@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

func imaged(image string) func(*corev1.Pod) {
	return func(pod *corev1.Pod) { etcdOf(pod).Image = image }
}

func alwaysPulled(pod *corev1.Pod) { etcdOf(pod).ImagePullPolicy = corev1.PullAlways }

func secretOfServiceAccount(pod *corev1.Pod) {
	pod.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "registry"}}
}

func sidecarFirst(pod *corev1.Pod) {
	pod.Spec.Containers = append([]corev1.Container{{Name: "proxy", Image: "example.com/proxy:v9.9.9"}}, pod.Spec.Containers...)
}

func earlier(policy func(*corev1.Pod)) func(*corev1.Pod) {
	return func(pod *corev1.Pod) {
		delete(pod.Annotations, api.AnnotationApplied)
		policy(pod)
	}
}

// TestNeedsOfAdmitted: a live Pod is judged by what was asked for in it, never by what a policy has
// made of that.
func TestNeedsOfAdmitted(t *testing.T) {
	t.Parallel()
	type result struct {
		Change Change
		Parts  []string
	}
	inPlace := result{ChangeImage, []string{"version"}}
	repository := func(c *api.EtcdCluster) { c.Spec.Image = &api.Image{Repository: "example.com/etcd"} }
	cases := map[string]struct {
		reason  string
		before  func(*api.EtcdCluster) // when the Pod was made
		policy  func(*corev1.Pod)
		after   func(*api.EtcdCluster) // since then
		want    result
		upgrade result // to 3.7.3 beside that
	}{
		"Registry":       {reason: "another registry is what was asked for", policy: imaged(mirror + ":v3.6.16"), upgrade: inPlace},
		"Digest":         {reason: "so is a digest in the place of the tag", policy: imaged(pin), upgrade: inPlace},
		"DigestBeside":   {reason: "and beside it", policy: imaged("gcr.io/etcd-development/etcd:v3.6.16@sha256:" + strings.Repeat("0", 64)), upgrade: inPlace},
		"AlwaysPulled":   {reason: "AlwaysPullImages changes the policy of every container", policy: alwaysPulled, upgrade: inPlace},
		"ServiceAccount": {reason: "secrets that come with the ServiceAccount", policy: secretOfServiceAccount, upgrade: inPlace},
		"Sidecar":        {reason: "etcd is not the first container", policy: sidecarFirst, upgrade: inPlace},
		"Args": {
			reason:  "a flag more, and another limit of the database",
			policy:  func(pod *corev1.Pod) { etcdOf(pod).Args = []string{"--quota-backend-bytes=1", "--log-level=warn"} },
			upgrade: inPlace,
		},
		"Resources": {
			reason: "defaults where the spec asks for none",
			policy: func(pod *corev1.Pod) {
				etcdOf(pod).Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("100m")}
			}, upgrade: inPlace,
		},
		"ResourcesChanged": {
			reason: "the Pod is recreated, for the policy to see what is asked for now", before: resourced("1", "", "", ""),
			policy: func(pod *corev1.Pod) {
				etcdOf(pod).Resources.Limits = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
			},
			after: resourced("2", "", "", ""), want: result{ChangePod, []string{"resources"}}, upgrade: result{ChangePod, []string{"resources", "version"}},
		},
		"RepositoryChanged": {
			reason: "the spec asks for another one", policy: imaged(mirror + ":v3.6.16"), after: repository,
			want: result{ChangeImage, []string{"image"}}, upgrade: result{ChangeImage, []string{"image", "version"}},
		},
		"RepositoryChangedToWhatRuns": {
			reason: "the spec asks for the one that the policy has made of it", policy: imaged(mirror + ":v3.6.16"),
			after: func(c *api.EtcdCluster) { c.Spec.Image = &api.Image{Repository: mirror} },
			want:  result{ChangeImage, []string{"image"}}, upgrade: result{ChangeImage, []string{"image", "version"}},
		},
		"PullPolicyChanged": {
			reason: "a Pod keeps its own, and the policy may not be there any more", policy: func(*corev1.Pod) {},
			after: func(c *api.EtcdCluster) { c.Spec.Image = &api.Image{PullPolicy: corev1.PullAlways} },
			want:  result{ChangePod, []string{"image"}}, upgrade: result{ChangePod, []string{"image", "version"}},
		},
		"PullPolicyChangedToWhatIs": {
			reason: "the Pod has it already", policy: alwaysPulled,
			after: func(c *api.EtcdCluster) { c.Spec.Image = &api.Image{PullPolicy: corev1.PullAlways} },
			want:  result{ChangeImage, []string{"image"}}, upgrade: result{ChangeImage, []string{"image", "version"}},
		},
		"PullSecretsChanged": {
			reason: "one that the spec names beside the ServiceAccount's is not in the Pod", policy: secretOfServiceAccount,
			after: func(c *api.EtcdCluster) {
				c.Spec.Image = &api.Image{PullSecrets: []api.SecretReference{{Name: "other"}}}
			},
			want: result{ChangePod, []string{"image"}}, upgrade: result{ChangePod, []string{"image", "version"}},
		},

		// Pods of earlier releases do not say what was asked for.
		"EarlierRegistry": {reason: "the same spec.image was asked for", policy: earlier(imaged(mirror + ":v3.6.16")), upgrade: inPlace},
		"EarlierRegistryChanged": {
			reason: "another spec.image was asked for", policy: earlier(imaged(mirror + ":v3.6.16")), after: repository,
			want: result{ChangeImage, []string{"image"}}, upgrade: result{ChangeImage, []string{"image", "version"}},
		},
		"EarlierSame":           {reason: "no policy, no record", policy: earlier(func(*corev1.Pod) {}), upgrade: inPlace},
		"EarlierAlwaysPulled":   {reason: "nothing is changed for it before the version is", policy: earlier(alwaysPulled), upgrade: result{ChangePod, []string{"version"}}},
		"EarlierServiceAccount": {reason: "the same", policy: earlier(secretOfServiceAccount), upgrade: result{ChangePod, []string{"version"}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pods, c := newPods(t), load(t, "minimal")
			c.Spec.Version = "3.6.16"
			if tc.before != nil {
				tc.before(c)
			}
			m := firstMember(c)
			pods.live(t, c, m)
			live := pods.get(t, c.Namespace, m.Name)
			tc.policy(live)
			if tc.after != nil {
				tc.after(c)
			}
			for version, want := range map[string]result{"3.6.16": tc.want, "3.7.3": tc.upgrade} {
				c.Spec.Version, m.Version = version, version
				change, parts, err := Needs(live, c, m)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want, result{change, parts}); diff != "" {
					t.Errorf("%s: at %s: -want, +got\n%s", tc.reason, version, diff)
				}
			}
		})
	}
}

// TestAppliedImage: what was asked for in a Pod, as long as no other client has set its image.
func TestAppliedImage(t *testing.T) {
	t.Parallel()
	const asked = "gcr.io/etcd-development/etcd:v3.6.16"
	byHand := func(image string) func(*testing.T, pods, *corev1.Pod) {
		return func(t *testing.T, p pods, live *corev1.Pod) {
			t.Helper()
			p.apply(t, corev1ac.Pod(live.Name, live.Namespace).WithSpec(corev1ac.PodSpec().WithContainers(corev1ac.Container().WithName(Container).WithImage(image))), "somebody")
		}
	}
	cases := map[string]struct {
		reason string
		digest string
		after  func(*api.EtcdCluster) // since the Pod was made
		others func(*testing.T, pods, *corev1.Pod)
		policy func(*corev1.Pod)
		want   string
	}{
		"Same":     {reason: "no policy", want: asked},
		"Registry": {reason: "a policy has rewritten it", policy: imaged(mirror + ":v3.6.16"), want: asked},
		"Digest":   {reason: "pinned", policy: imaged(pin), want: asked},
		"ByHand":   {reason: "another client has set it", others: byHand("example.com/etcd:v3.6.15"), want: "example.com/etcd:v3.6.15"},
		"ByHandRewritten": {
			reason: "and a policy has rewritten that", others: byHand("example.com/etcd:v3.6.15"), policy: imaged("mirror.example.com/etcd:v3.6.15"),
			want: "mirror.example.com/etcd:v3.6.15",
		},
		"Cleared": {
			reason: "the API server has forgotten whose it is", policy: func(pod *corev1.Pod) { pod.ManagedFields = nil; imaged(mirror + ":v3.6.16")(pod) },
			want: mirror + ":v3.6.16",
		},
		"Earlier": {reason: "without a record it is that of the spec of which the Pod was made", policy: earlier(imaged(mirror + ":v3.6.15")), want: "gcr.io/etcd-development/etcd:v3.6.15"},
		"EarlierOther": {
			reason: "and of another spec than this one", policy: earlier(imaged(mirror + ":v3.6.16")),
			after: func(c *api.EtcdCluster) { c.Spec.Image = &api.Image{Repository: "example.com/etcd"} }, want: mirror + ":v3.6.16",
		},
		"EarlierNoVersion": {reason: "where its version shows", policy: earlier(imaged(pin)), want: pin},
		"EarlierUnpinned": {
			reason: "a digest that it does not have was not asked for", digest: "sha256:" + strings.Repeat("0", 64),
			policy: earlier(imaged(asked)), want: asked,
		},
		"NoEtcd": {reason: "it is no Pod of ours", policy: func(pod *corev1.Pod) { pod.Spec.Containers[0].Name = "other" }},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pods, c := newPods(t), load(t, "minimal")
			c.Spec.Version = "3.6.16"
			if tc.digest != "" {
				c.Spec.Image = &api.Image{Digests: []api.ImageDigest{{Version: "3.6.16", Digest: tc.digest}}}
			}
			m := firstMember(c)
			pods.live(t, c, m)
			live := pods.get(t, c.Namespace, m.Name)
			if tc.others != nil {
				tc.others(t, pods, live)
				live = pods.get(t, c.Namespace, m.Name)
			}
			if tc.policy != nil {
				tc.policy(live)
			}
			if tc.after != nil {
				tc.after(c)
			}
			if diff := cmp.Diff(tc.want, AppliedImage(c, live)); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRecordStays: what was asked for in a Pod is written on it with its image, and by nothing
// else.
func TestRecordStays(t *testing.T) {
	t.Parallel()
	pods, c := newPods(t), load(t, "minimal")
	c.Spec.Version = "3.6.16"
	resourced("1", "1Gi", "", "")(c)
	m := firstMember(c)
	pods.live(t, c, m)
	record := func() string { return pods.get(t, c.Namespace, m.Name).Annotations[api.AnnotationApplied] }
	first := record()

	c.Spec.AdditionalMetadata = &api.Metadata{Labels: api.Labels{"team": "storage"}}
	c.Spec.Image = &api.Image{Repository: "example.com/etcd"}
	pods.refresh(t, c, m)
	resourced("2", "1Gi", "", "")(c)
	resized, err := PodResources(pods.get(t, c.Namespace, m.Name), c)
	if err != nil {
		t.Fatal(err)
	}
	pods.apply(t, resized, api.Manager)
	if diff := cmp.Diff(first, record()); diff != "" {
		t.Errorf("the record went with metadata and resources: -want, +got\n%s", diff)
	}

	m.Version = "3.7.3"
	changed, err := PodImage(pods.get(t, c.Namespace, m.Name), c, m, Image(c, m.Version))
	if err != nil {
		t.Fatal(err)
	}
	pods.apply(t, changed, api.Manager)
	want := strings.Replace(first, "gcr.io/etcd-development/etcd:v3.6.16", "example.com/etcd:v3.7.3", 1)
	if diff := cmp.Diff(want, record()); diff != "" {
		t.Errorf("after a change of the image: -want, +got\n%s", diff)
	}
}
