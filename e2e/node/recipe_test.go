package node

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kind/pkg/apis/config/defaults"
)

func TestModuleFile(t *testing.T) {
	t.Parallel()
	type args struct{ requires, replaces []module }
	cases := map[string]struct {
		reason string
		args   args
		want   string
	}{
		"RequirementsOnly": {
			reason: "a module without local replacements is required as it is",
			args: args{requires: []module{
				{"go.etcd.io/etcd/server/v3", "v3.6.16"},
				{"go.etcd.io/etcd/etcdctl/v3", "v3.6.16"},
			}},
			want: `module quorate.dev/e2e/node/build

go 1.26.0

require go.etcd.io/etcd/server/v3 v3.6.16

require go.etcd.io/etcd/etcdctl/v3 v3.6.16
`,
		},
		"StagingModules": {
			reason: "a folder that the module zip does not hold is replaced by the published module",
			args: args{
				requires: []module{{"k8s.io/kubernetes", "v1.37.1"}},
				replaces: []module{{"k8s.io/api", "v0.37.1"}, {"k8s.io/kubelet", "v0.37.1"}},
			},
			want: `module quorate.dev/e2e/node/build

go 1.26.0

require k8s.io/kubernetes v1.37.1

replace (
	k8s.io/api => k8s.io/api v0.37.1
	k8s.io/kubelet => k8s.io/kubelet v0.37.1
)
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := string(moduleFile(tc.args.requires, tc.args.replaces))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestLocalReplaces(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		modJSON string
		want    []string
		wantErr bool
	}{
		"FoldersOnly": {
			reason: "a replacement by another module keeps its meaning in the module that is required",
			modJSON: `{"Replace": [
				{"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
				{"Old": {"Path": "example.org/fork"}, "New": {"Path": "example.org/forked", "Version": "v1.0.0"}},
				{"Old": {"Path": "k8s.io/kubelet"}, "New": {"Path": "./staging/src/k8s.io/kubelet"}}]}`,
			want: []string{"k8s.io/api", "k8s.io/kubelet"},
		},
		"NoReplacements": {
			reason:  "most modules replace nothing",
			modJSON: `{"Module": {"Path": "go.etcd.io/etcd/server/v3"}}`,
		},
		"NotJSON": {
			reason:  "output that is not understood is an error, not an empty list",
			modJSON: `module k8s.io/kubernetes`,
			wantErr: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := localReplaces([]byte(tc.modJSON))
			if (err != nil) != tc.wantErr {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPrograms(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		recipe recipe
		want   []string
	}{
		"MajorVersionSuffix": {
			reason: "Go names a program after the folder above its major version, and etcd's server is called etcd",
			recipe: etcd(Etcd36),
			want:   []string{"etcd", "etcdctl", "etcdutl"},
		},
		"Kubernetes": {
			reason: "programs of Kubernetes keep their names",
			recipe: apiserver(),
			want:   []string{"kube-apiserver", "kubectl"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, tc.recipe.programs()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// A cluster must not depend on whether a registry answered: what is pulled and what is built are of
// one minor, and so are Kubernetes and its staging modules.
func TestOneKubernetesMinor(t *testing.T) {
	t.Parallel()
	_, tag, _ := strings.Cut(defaults.Image, ":v")
	if minor := Kubernetes[:strings.LastIndex(Kubernetes, ".")+1]; !strings.HasPrefix(tag, minor) {
		t.Errorf("kind pulls %s, but %s is built", defaults.Image, Kubernetes)
	}
	if want := "v0" + strings.TrimPrefix(Kubernetes, "1"); kubernetesStaging != want {
		t.Errorf("staging modules %s, want %s", kubernetesStaging, want)
	}
}
