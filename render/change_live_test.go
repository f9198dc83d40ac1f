package render

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// TestResourced holds what the kubelet says of the resources of a container that runs.
func TestResourced(t *testing.T) {
	t.Parallel()
	given := func(name, cpu string) corev1.ContainerStatus {
		return corev1.ContainerStatus{Name: name, Resources: &corev1.ResourceRequirements{Requests: quantities("cpu", cpu)}}
	}
	cases := map[string]struct {
		reason string
		pod    func(*corev1.Pod)
		want   bool
	}{
		"Given":  {reason: "what was asked for", pod: func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{given("etcd", "1000m")} }, want: true},
		"NotYet": {reason: "what was asked for before", pod: func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{given("etcd", "2")} }},
		"Limited": {reason: "a limit that is none any more", pod: func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{given("etcd", "1")}
			p.Status.ContainerStatuses[0].Resources.Limits = quantities("cpu", "2")
		}},
		"Unsaid": {reason: "a kubelet that does not say waits for nothing", pod: func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "etcd"}} }, want: true},
		"Others": {reason: "another container", pod: func(p *corev1.Pod) { p.Status.ContainerStatuses = []corev1.ContainerStatus{given("proxy", "2")} }, want: true},
		"Infeasible": {reason: "it never will be", pod: func(p *corev1.Pod) {
			p.Status.ContainerStatuses = []corev1.ContainerStatus{given("etcd", "2")}
			infeasible(p)
		}, want: true},
		"Deferred": {
			reason: "it may be yet",
			pod: func(p *corev1.Pod) {
				p.Status.ContainerStatuses = []corev1.ContainerStatus{given("etcd", "2")}
				infeasible(p)
				p.Status.Conditions[0].Reason = corev1.PodReasonDeferred
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, "minimal")
			resourced("1", "", "", "")(c)
			pod := livePod(t, c, firstMember(c))
			tc.pod(pod)
			if got := Resourced(pod); got != tc.want {
				t.Errorf("%s: %t", tc.reason, got)
			}
		})
	}
}

// TestChecksAtStart reads from Pods of every age what they are told of the comparison at their
// start.
func TestChecksAtStart(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"3.5.35", "3.6.16", "3.7.3"} {
		for _, checked := range []bool{true, false} {
			c := load(t, "minimal")
			m := firstMember(c)
			m.Version, m.InitialCorruptCheck = version, checked
			if got := ChecksAtStart(livePod(t, c, m)); got != checked {
				t.Errorf("%s: a Pod that is told %t says %t", version, checked, got)
			}
		}
	}
	for value, want := range map[string]bool{"true": true, "false": false, "": false} {
		pod := &corev1.Pod{}
		pod.Annotations = map[string]string{api.AnnotationInitialCorruptCheck: value}
		if got := ChecksAtStart(pod); got != want {
			t.Errorf("a Pod of the first days that is told %q says %t", value, got)
		}
	}
}

// TestLegacyMetadata: a Pod of Quorate's first days goes on reading the annotation that its
// container was made with.
func TestLegacyMetadata(t *testing.T) {
	t.Parallel()
	for _, checked := range []bool{true, false} {
		c := load(t, "minimal")
		m := firstMember(c)
		pod := livePod(t, c, m)
		legacy(pod)
		m.InitialCorruptCheck = checked
		refreshed, err := PodMetadata(pod, c, m)
		if err != nil {
			t.Fatal(err)
		}
		if got, want := refreshed.Annotations[api.AnnotationInitialCorruptCheck], map[bool]string{true: "true", false: "false"}[checked]; got != want {
			t.Errorf("it is told %q, want %q", got, want)
		}
	}
}

func TestImageVersion(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, image, want string
	}{
		"Own":               {reason: "as Image writes it", image: "gcr.io/etcd-development/etcd:v3.6.16", want: "3.6.16"},
		"Digest":            {reason: "a digest does not hide the tag", image: "example.com/etcd:v3.6.16@sha256:0123", want: "3.6.16"},
		"Port":              {reason: "a registry's port is no tag", image: "example.com:5000/etcd:v3.5.35", want: "3.5.35"},
		"PortDigest":        {reason: "nor beside a digest", image: "example.com:5000/etcd:v3.5.35@sha256:0123", want: "3.5.35"},
		"PortUntagged":      {reason: "a port alone", image: "example.com:5000/etcd"},
		"PortDigestNoTag":   {reason: "the version is not told", image: "example.com:5000/etcd@sha256:0123"},
		"VersionAsName":     {reason: "a path is no tag", image: "example.com/v3.6.16"},
		"Latest":            {reason: "it says none", image: "etcd:latest"},
		"WithoutV":          {reason: "of the template {version}", image: "etcd:3.6.16", want: "3.6.16"},
		"Suffix":            {reason: "of the template v{version}-arm64", image: "etcd:v3.6.16-arm64", want: "3.6.16"},
		"Prefix":            {reason: "of the template r7-{version}.2", image: "etcd:r7-3.6.16.2", want: "3.6.16"},
		"Unsupported":       {reason: "Quorate runs no such etcd", image: "etcd:v4.0.0"},
		"TwoNumbersOfThree": {reason: "no release", image: "etcd:v3.6"},
		"Empty":             {reason: "nothing"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := ImageVersion(tc.image)
			if ok != (tc.want != "") || ok && got != tc.want {
				t.Errorf("%s: %q, %t, want %q", tc.reason, got, ok, tc.want)
			}
		})
	}
}
