package hostlet

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestExpand(t *testing.T) {
	t.Parallel()
	env := []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "old"}, {Name: "B", Value: "$(A)"}}
	cases := map[string]struct {
		reason string
		in     string
		want   string
	}{
		"Known":       {reason: "a reference is its value, inside a word too", in: "x$(A)y$(A)", want: "x1y1"},
		"Last":        {reason: "the last definition wins and is not expanded again", in: "$(B)", want: "$(A)"},
		"Unknown":     {reason: "an unknown reference stays", in: "$(C)", want: "$(C)"},
		"Escaped":     {reason: "a doubled dollar is a dollar", in: "$$(A) $$$(A)", want: "$(A) $1"},
		"NoReference": {reason: "shell syntax means nothing", in: "$A ${A} $( A) $(", want: "$A ${A} $( A) $("},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, expand(tc.in, env)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Name: "a", Namespace: "ns", UID: "u",
		Annotations: map[string]string{"x/y": "noted"}, Labels: map[string]string{"l": "labelled"},
	}}
	from := func(path string) *corev1.EnvVarSource {
		return &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}
	}
	type want struct {
		env []corev1.EnvVar
		err string
	}
	cases := map[string]struct {
		reason string
		env    []corev1.EnvVar
		want   want
	}{
		"Fields": {
			reason: "fields are the Pod's, the address that of this machine",
			env: []corev1.EnvVar{
				{Name: "N", ValueFrom: from("metadata.name")}, {Name: "NS", ValueFrom: from("metadata.namespace")},
				{Name: "U", ValueFrom: from("metadata.uid")}, {Name: "IP", ValueFrom: from("status.podIP")},
				{Name: "A", ValueFrom: from("metadata.annotations['x/y']")}, {Name: "L", ValueFrom: from("metadata.labels['l']")},
				{Name: "NONE", ValueFrom: from("metadata.annotations['z']")},
			},
			want: want{env: []corev1.EnvVar{
				{Name: "N", Value: "a"}, {Name: "NS", Value: "ns"}, {Name: "U", Value: "u"}, {Name: "IP", Value: "127.0.0.9"},
				{Name: "A", Value: "noted"}, {Name: "L", Value: "labelled"}, {Name: "NONE"},
			}},
		},
		"Order": {
			reason: "a value sees what is defined before it, not after",
			env:    []corev1.EnvVar{{Name: "A", Value: "$(B)"}, {Name: "B", Value: "b"}, {Name: "C", Value: "$(B)c"}},
			want:   want{env: []corev1.EnvVar{{Name: "A", Value: "$(B)"}, {Name: "B", Value: "b"}, {Name: "C", Value: "bc"}}},
		},
		"Secret": {
			reason: "what is not supported is said, not left empty",
			env:    []corev1.EnvVar{{Name: "S", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{Key: "k"}}}},
			want:   want{err: "variable S: only fieldRef is supported in valueFrom"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var got want
			env, err := environment(pod, &corev1.Container{Env: tc.env}, "127.0.0.9")
			got.env = env
			if err != nil {
				got.err = err.Error()
			}
			if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(want{})); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestInMounts(t *testing.T) {
	t.Parallel()
	mounts := []mount{{path: "/var/lib/etcd", dir: "/tmp/v"}, {path: "/var/lib/etcd/wal", dir: "/tmp/w"}}
	cases := map[string]struct {
		reason string
		in     string
		want   string
	}{
		"Below":   {reason: "a path below a mount point", in: "--data-dir=/var/lib/etcd/data", want: "--data-dir=/tmp/v/data"},
		"Itself":  {reason: "the mount point", in: "/var/lib/etcd", want: "/tmp/v"},
		"Nested":  {reason: "the innermost mount point counts", in: "--wal-dir=/var/lib/etcd/wal", want: "--wal-dir=/tmp/w"},
		"Prefix":  {reason: "a longer name is another directory", in: "/var/lib/etcd2", want: "/var/lib/etcd2"},
		"Foreign": {reason: "part of another path is no mount point", in: "/mnt/var/lib/etcd", want: "/mnt/var/lib/etcd"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, inMounts(tc.in, mounts)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSeldom(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason    string
		heartbeat time.Duration
		argv      []string
		want      []string
	}{
		"Asked":     {reason: "nothing decides against it", heartbeat: 200 * time.Millisecond, argv: []string{"etcd", "--name=m-0"}, want: []string{"--heartbeat-interval=200"}},
		"NotAsked":  {reason: "etcd's own default", argv: []string{"etcd"}},
		"Heartbeat": {reason: "what the Pod says is tested", heartbeat: 200 * time.Millisecond, argv: []string{"etcd", "--heartbeat-interval=50"}},
		"Election":  {reason: "five must fit into it", heartbeat: 200 * time.Millisecond, argv: []string{"etcd", "--election-timeout=500"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, seldom(tc.heartbeat, tc.argv)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestImageVersion(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		image  string
		want   string
	}{
		"Tag":       {reason: "with v", image: "gcr.io/etcd-development/etcd:v3.6.16", want: "3.6.16"},
		"TagDigest": {reason: "a digest does not hide the tag", image: "localhost:5000/etcd:3.6.16@sha256:abc", want: "3.6.16"},
		"Digest":    {reason: "a digest alone is that of a released version", image: "localhost:5000/etcd@" + Digest("3.6.16"), want: "3.6.16"},
		"Unknown":   {reason: "or of nothing that there is", image: "localhost:5000/etcd@sha256:abc"},
		"Latest":    {reason: "a tag that is no version", image: "etcd:latest"},
		"NoTag":     {reason: "a port is no tag", image: "localhost:5000/etcd"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := imageVersion(tc.image)
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("%s: got %q, %v, want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}
