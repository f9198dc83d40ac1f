package node

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kind/pkg/cmd/kind/version"
)

// The library that makes clusters and the files that go into a node are of one version.
func TestOneKindVersion(t *testing.T) {
	t.Parallel()
	if want := "v" + strings.TrimPrefix(version.Version(), "v"); kindVersion != want {
		t.Errorf("nodes are built with kind %s, clusters are made with %s", kindVersion, want)
	}
}

// Nodes that have an image of the same ID are not loaded again.
func TestImagesAreReproducible(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"etcd", "etcdctl", "etcdutl"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var first, second bytes.Buffer
	for _, w := range []*bytes.Buffer{&first, &second} {
		if err := etcdImage(dir, "etcd:test").writeTo(w, t.TempDir()); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same programs gave two different images")
	}
}

func TestNewImageNames(t *testing.T) {
	t.Parallel()
	listed := []string{
		"registry.example.org/kube-apiserver:v1", "registry.example.org/kube-controller-manager:v1",
		"registry.example.org/kube-scheduler:v1", "registry.example.org/kube-proxy:v1",
		"registry.example.org/coredns/coredns:v2", "registry.example.org/pause:3.10.2", "registry.example.org/etcd:v3",
		"docker.io/kindest/local-path-provisioner:v4", "docker.io/kindest/local-path-helper:v5",
	}
	cases := map[string]struct {
		reason  string
		refs    []string
		want    string // of the sandbox image
		wantErr bool
	}{
		"SandboxOfContainerd": {
			reason: "Pods are started with the image that containerd is configured for, not with the one that kubeadm lists",
			refs:   listed,
			want:   "registry.example.org/pause:3.10",
		},
		"OneIsMissing": {
			reason:  "a new version that renames an image is noticed before a cluster hangs",
			refs:    listed[1:],
			wantErr: true,
		},
		"NoTag": {
			reason:  "an image without a tag could not be found by its name",
			refs:    append([]string{"registry.example.org/kube-apiserver"}, listed[1:]...),
			wantErr: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := newImageNames(tc.refs, "registry.example.org/pause:3.10")
			if (err != nil) != tc.wantErr {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got[sandboxImage]); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
