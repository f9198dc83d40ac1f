package render

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "quorate.dev/api/v1alpha1"
)

// livePod is the Pod of a member as it was made.
func livePod(t *testing.T, c *api.EtcdCluster, m Member) *corev1.Pod {
	t.Helper()
	ac, err := Pod(c, m)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	typed(t, ac, pod)
	return pod
}

// resourced sets requests and limits of cpu and memory; what is empty is left out.
func resourced(cpu, memory, cpuLimit, memoryLimit string) func(*api.EtcdCluster) {
	list := func(cpu, memory string) corev1.ResourceList {
		l := corev1.ResourceList{}
		for name, q := range map[corev1.ResourceName]string{corev1.ResourceCPU: cpu, corev1.ResourceMemory: memory} {
			if q != "" {
				l[name] = resource.MustParse(q)
			}
		}
		return l
	}
	return func(c *api.EtcdCluster) {
		c.Spec.Resources = &api.Resources{Requests: list(cpu, memory), Limits: list(cpuLimit, memoryLimit)}
	}
}

// legacy makes a Pod one of Quorate's first days, in which what differs between versions of etcd
// were arguments, and which did not say what was asked for.
func legacy(pod *corev1.Pod) {
	delete(pod.Annotations, api.AnnotationApplied)
	etcd := &pod.Spec.Containers[0]
	for n, arg := range etcd.Args {
		switch arg {
		case "$(CHECK_AT_START)":
			etcd.Args[n] = "--feature-gates=InitialCorruptCheck=$(INITIAL_CORRUPT_CHECK),CompactHashCheck=true"
		case "$(CHECK_COMPACTED)":
			etcd.Args[n] = "--compact-hash-check-time=1m"
		}
	}
	etcd.Env = append(etcd.Env[:2], corev1.EnvVar{Name: "INITIAL_CORRUPT_CHECK"})
}

func infeasible(pod *corev1.Pod) {
	pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
		Type: corev1.PodResizePending, Status: corev1.ConditionTrue, Reason: corev1.PodReasonInfeasible,
	})
}

// TestNeeds holds what it takes to make a live Pod what the spec asks for.
func TestNeeds(t *testing.T) {
	t.Parallel()
	options := func(flags map[string]string) func(*api.EtcdCluster) {
		return func(c *api.EtcdCluster) { c.Spec.Options = &api.Options{Flags: flags} }
	}
	type result struct {
		Change Change
		Parts  []string
	}
	cases := map[string]struct {
		reason   string
		before   func(*api.EtcdCluster) // when the Pod was made, beside the minimal spec
		after    func(*api.EtcdCluster) // since then
		pod      func(*corev1.Pod)      // what became of it
		from, to string                 // versions; empty: 3.6.16
		has      string                 // what the volume has; empty: what the spec says
		want     result
	}{
		"Same":      {reason: "nothing differs", want: result{}},
		"SizeAlone": {reason: "the volume has yet to grow", after: func(c *api.EtcdCluster) { c.Spec.Storage.Size = resource.MustParse("9Gi") }, has: "1Gi", want: result{}},
		"Leaves": {
			reason: "a volume that its member is to leave for a smaller one keeps its limit, for its database may be too large for the other",
			after: func(c *api.EtcdCluster) {
				c.Spec.Storage.Size, c.Spec.Storage.ChangePolicy = resource.MustParse("512Mi"), api.ChangeReplace
			}, has: "1Gi", want: result{},
		},
		"Grown": {reason: "the limit of the database goes with a small volume", after: func(c *api.EtcdCluster) { c.Spec.Storage.Size = resource.MustParse("9Gi") }, has: "9Gi", want: result{ChangePod, []string{"storage.size"}}},

		// the version
		"Patch":        {reason: "another image in the same Pod", to: "3.6.15", want: result{ChangeImage, []string{"version"}}},
		"MinorUp":      {reason: "what depends on the version is not in the arguments", to: "3.7.3", want: result{ChangeImage, []string{"version"}}},
		"MinorDown":    {reason: "whichever way", to: "3.5.35", want: result{ChangeImage, []string{"version"}}},
		"FromFive":     {reason: "from whichever", from: "3.5.35", to: "3.6.16", want: result{ChangeImage, []string{"version"}}},
		"VersionWithV": {reason: "a v is no version", to: "v3.6.16", want: result{}},
		"FlagRenamed": {
			reason: "a flag has another name on the version that comes, and arguments never change", from: "3.5.35", to: "3.6.16",
			before: options(map[string]string{"corrupt-check-time": "1h"}), want: result{ChangePod, []string{"version"}},
		},
		"FlagAdded": {
			reason: "a flag that the earlier version does not have", from: "3.5.35", to: "3.7.3",
			before: options(map[string]string{"warning-unary-request-duration": "1s"}), want: result{ChangePod, []string{"version"}},
		},
		"FlagSteady": {
			reason: "a flag of one name on all", from: "3.5.35", to: "3.7.3",
			before: options(map[string]string{"max-request-bytes": "3145728"}), want: result{ChangeImage, []string{"version"}},
		},

		// the image
		"Repository": {
			reason: "the same version from elsewhere",
			after:  func(c *api.EtcdCluster) { c.Spec.Image = &api.Image{Repository: "example.com:5000/etcd"} },
			want:   result{ChangeImage, []string{"image"}},
		},
		"Digest": {
			reason: "pinned",
			after: func(c *api.EtcdCluster) {
				c.Spec.Image = &api.Image{Digests: []api.ImageDigest{{Version: c.Spec.Version, Digest: "sha256:" + strings.Repeat("0", 64)}}}
			},
			want: result{ChangeImage, []string{"image"}},
		},
		"RepositoryAndVersion": {
			reason: "both at once", to: "3.7.3",
			after: func(c *api.EtcdCluster) { c.Spec.Image = &api.Image{Repository: "example.com:5000/etcd"} },
			want:  result{ChangeImage, []string{"image", "version"}},
		},
		"PullPolicy": {
			reason: "a Pod keeps its own",
			after:  func(c *api.EtcdCluster) { c.Spec.Image = &api.Image{PullPolicy: corev1.PullAlways} },
			want:   result{ChangePod, []string{"image"}},
		},
		"PullSecrets": {
			reason: "and these",
			after: func(c *api.EtcdCluster) {
				c.Spec.Image = &api.Image{PullSecrets: []api.SecretReference{{Name: "secret"}}}
			},
			want: result{ChangePod, []string{"image"}},
		},
		"PullSecretsSame": {
			reason: "they need no change where only the repository does",
			before: func(c *api.EtcdCluster) {
				c.Spec.Image = &api.Image{PullSecrets: []api.SecretReference{{Name: "secret"}}}
			},
			after: func(c *api.EtcdCluster) { c.Spec.Image.Repository = "example.com/etcd" },
			want:  result{ChangeImage, []string{"image"}},
		},
		"ImageByHand": {
			reason: "another client has changed it",
			pod:    func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "example.com/etcd:v3.6.16" },
			want:   result{ChangeImage, []string{"image"}},
		},
		"ImageByHandUnversioned": {
			reason: "to one that does not say what it is",
			pod:    func(pod *corev1.Pod) { pod.Spec.Containers[0].Image = "etcd:latest" },
			want:   result{ChangeImage, []string{"version"}},
		},
		"NoEtcd": {
			reason: "it is no Pod of ours",
			pod:    func(pod *corev1.Pod) { pod.Spec.Containers[0].Name = "other" },
			want:   result{ChangePod, []string{"image"}},
		},

		// what a Pod keeps for ever
		"Options":    {reason: "arguments", after: options(map[string]string{"pre-vote": "false"}), want: result{ChangePod, []string{"options"}}},
		"Scheduling": {reason: "its place", after: func(c *api.EtcdCluster) { c.Spec.Scheduling = &api.Scheduling{PriorityClassName: "high"} }, want: result{ChangePod, []string{"scheduling"}}},
		"Memory": {
			reason: "the limit of its tmpfs", before: func(c *api.EtcdCluster) { c.Spec.Storage.Medium = api.MediumMemory },
			after: func(c *api.EtcdCluster) { c.Spec.Storage.Size = resource.MustParse("9Gi") }, want: result{ChangePod, []string{"storage"}},
		},
		"Everything": {
			reason: "the largest counts, and all are told", to: "3.7.3", before: resourced("1", "1Gi", "", ""),
			after: func(c *api.EtcdCluster) {
				resourced("2", "1Gi", "", "")(c)
				options(map[string]string{"pre-vote": "false"})(c)
				c.Spec.Image = &api.Image{Repository: "example.com/etcd"}
			},
			want: result{ChangePod, []string{"image", "options", "resources", "version"}},
		},
		"NoRevision": {
			reason: "a Pod that does not say what it was made of",
			pod:    func(pod *corev1.Pod) { delete(pod.Annotations, api.AnnotationRevision) },
			want:   result{ChangePod, []string{"image", "options", "resources", "scheduling", "storage"}},
		},

		// resources
		"More":         {reason: "while it runs", before: resourced("1", "1Gi", "2", "2Gi"), after: resourced("2", "2Gi", "4", "4Gi"), want: result{ChangeResources, []string{"resources"}}},
		"LessRequest":  {reason: "what is asked for can go down", before: resourced("1", "2Gi", "", ""), after: resourced("500m", "1Gi", "", ""), want: result{ChangeResources, []string{"resources"}}},
		"LessCPULimit": {reason: "the kernel only slows a process down", before: resourced("1", "", "2", ""), after: resourced("1", "", "1500m", ""), want: result{ChangeResources, []string{"resources"}}},
		"LessMemoryLimit": {
			reason: "its processes may be above it already", before: resourced("", "1Gi", "", "4Gi"), after: resourced("", "1Gi", "", "2Gi"),
			want: result{ChangePod, []string{"resources"}},
		},
		"First":    {reason: "requests where there were none are another class of Pod", after: resourced("1", "", "", ""), want: result{ChangePod, []string{"resources"}}},
		"NoMore":   {reason: "and the other way round", before: resourced("1", "", "", ""), after: func(c *api.EtcdCluster) { c.Spec.Resources = nil }, want: result{ChangePod, []string{"resources"}}},
		"NewKind":  {reason: "memory beside cpu", before: resourced("1", "", "", ""), after: resourced("1", "1Gi", "", ""), want: result{ChangePod, []string{"resources"}}},
		"OtherOne": {reason: "memory instead of cpu", before: resourced("1", "", "", ""), after: resourced("", "1Gi", "", ""), want: result{ChangePod, []string{"resources"}}},
		"Guaranteed": {
			reason: "as much as the limit is another class of Pod", before: resourced("1", "1Gi", "2", "2Gi"), after: resourced("2", "2Gi", "2", "2Gi"),
			want: result{ChangePod, []string{"resources"}},
		},
		"StillGuaranteed": {
			reason: "the same class", before: resourced("1", "1Gi", "1", "1Gi"), after: resourced("2", "2Gi", "2", "2Gi"),
			want: result{ChangeResources, []string{"resources"}},
		},
		"EphemeralStorage": {
			reason: "only cpu and memory can be changed",
			before: func(c *api.EtcdCluster) {
				c.Spec.Resources = &api.Resources{Requests: corev1.ResourceList{"ephemeral-storage": resource.MustParse("1Gi")}}
			},
			after: func(c *api.EtcdCluster) {
				c.Spec.Resources = &api.Resources{Requests: corev1.ResourceList{"ephemeral-storage": resource.MustParse("2Gi")}}
			},
			want: result{ChangePod, []string{"resources"}},
		},
		"Infeasible": {
			reason: "it was changed to what its node does not have, and is recreated where there is some",
			before: resourced("64", "1Gi", "", ""), pod: infeasible, want: result{ChangePod, []string{"resources"}},
		},
		"InfeasibleAndLess": {
			reason: "its node would have what is asked for now; it is not asked again", before: resourced("64", "1Gi", "", ""),
			after: resourced("1", "1Gi", "", ""), pod: infeasible, want: result{ChangePod, []string{"resources"}},
		},
		"ResourcesAndVersion": {
			reason: "the image first, whose change restarts the container; the rest is seen then", to: "3.7.3",
			before: resourced("1", "1Gi", "", ""), after: resourced("2", "1Gi", "", ""), want: result{ChangeImage, []string{"resources", "version"}},
		},

		// legacy
		"Legacy":        {reason: "what has run for long runs on", pod: legacy, want: result{}},
		"LegacyVersion": {reason: "its arguments are those of its version", pod: legacy, to: "3.7.3", want: result{ChangePod, []string{"version"}}},
		"LegacyResources": {
			reason: "which do not stand in arguments", pod: legacy,
			before: resourced("1", "1Gi", "", ""), after: resourced("2", "1Gi", "", ""), want: result{ChangeResources, []string{"resources"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, "minimal")
			c.Spec.Version = "3.6.16"
			if tc.before != nil {
				tc.before(c)
			}
			m := firstMember(c)
			if tc.from != "" {
				m.Version = tc.from
			}
			pod := livePod(t, c, m)
			if tc.pod != nil {
				tc.pod(pod)
			}
			if tc.to != "" {
				c.Spec.Version = tc.to
			}
			if tc.after != nil {
				tc.after(c)
			}
			m.Version = c.Spec.Version
			if tc.has != "" {
				m.Capacity = new(resource.MustParse(tc.has))
			}
			var got result
			var err error
			if got.Change, got.Parts, err = Needs(pod, c, m); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestNeedsInvalid: what cannot be rendered needs nothing, and is told by name.
func TestNeedsInvalid(t *testing.T) {
	t.Parallel()
	c := load(t, "minimal")
	pod := livePod(t, c, firstMember(c))
	c.Spec.Options = &api.Options{Flags: map[string]string{"frobnicate": "1"}}
	if change, parts, err := Needs(pod, c, firstMember(c)); err == nil || !strings.Contains(err.Error(), "frobnicate") || change != ChangeNone || parts != nil {
		t.Errorf("%q %v %v", change, parts, err)
	}
}
