package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestModuleFile(t *testing.T) {
	t.Parallel()
	type args struct {
		requires []module
		godebug  string
	}
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

require (
	go.etcd.io/etcd/server/v3 v3.6.16
	go.etcd.io/etcd/etcdctl/v3 v3.6.16
)
`,
		},
		"None": {
			reason: "a program of our own may require nothing",
			args:   args{godebug: "go1.26"}, // that of the module, so it need not be said
			want:   "module quorate.dev/e2e/node/build\n\ngo 1.26.0\n",
		},
		"EarlierGo": {
			reason: "a program that was released with an earlier Go behaves as it did then",
			args:   args{requires: []module{{"k8s.io/kubernetes", "v1.33.5"}}, godebug: "go1.24"},
			want: `module quorate.dev/e2e/node/build

go 1.26.0

godebug default=go1.24

require (
	k8s.io/kubernetes v1.33.5
)
`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := string(moduleFile(tc.args.requires, tc.args.godebug))
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestRequirements(t *testing.T) {
	t.Parallel()
	kubernetes := module{"k8s.io/kubernetes", "v1.37.2"}
	r := recipe{
		Requires: []module{kubernetes}, StagingVersion: "v0.37.2",
		AtLeast: []module{{"golang.org/x/net", "v0.61.0"}, {"k8s.io/api", "v0.37.1"}, {"filippo.io/age", "v1.3.1"}},
	}
	type args struct{ staging, required []string }
	cases := map[string]struct {
		reason string
		args   args
		want   []module
	}{
		"Staging": {
			reason: "a folder that the module zip does not hold is the published module, of the same release",
			args:   args{staging: []string{"k8s.io/api", "k8s.io/sample-cli-plugin"}, required: []string{"k8s.io/api"}},
			want:   []module{kubernetes, {"k8s.io/api", "v0.37.2"}},
		},
		"AtLeast": {
			reason: "a module that the programs do not need is not required for them",
			args:   args{required: []string{"go.uber.org/zap", "golang.org/x/net"}},
			want:   []module{kubernetes, {"golang.org/x/net", "v0.61.0"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, r.requirements(tc.args.staging, tc.args.required)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestInherited(t *testing.T) {
	t.Parallel()
	type want struct {
		Staging, Required []string
		Godebug           string
		Err               bool
	}
	cases := map[string]struct {
		reason  string
		modJSON string
		want    want
	}{
		"FoldersOnly": {
			reason: "a replacement by another module keeps its meaning in the module that is required",
			modJSON: `{"Replace": [
				{"Old": {"Path": "k8s.io/api"}, "New": {"Path": "./staging/src/k8s.io/api"}},
				{"Old": {"Path": "example.org/fork"}, "New": {"Path": "example.org/forked", "Version": "v1.0.0"}},
				{"Old": {"Path": "k8s.io/kubelet"}, "New": {"Path": "./staging/src/k8s.io/kubelet"}}]}`,
			want: want{Staging: []string{"k8s.io/api", "k8s.io/kubelet"}},
		},
		"Godebug": {
			reason:  "settings of a module that is required count for nothing unless the main module has them",
			modJSON: `{"Godebug": [{"Key": "panicnil", "Value": "1"}, {"Key": "default", "Value": "go1.24"}]}`,
			want:    want{Godebug: "go1.24"},
		},
		"Required": {
			reason:  "least versions are for modules that are required, directly or not",
			modJSON: `{"Require": [{"Path": "go.uber.org/zap", "Version": "v1.27.1"}, {"Path": "golang.org/x/net", "Version": "v0.57.0", "Indirect": true}]}`,
			want:    want{Required: []string{"go.uber.org/zap", "golang.org/x/net"}},
		},
		"NoReplacements": {
			reason:  "most modules replace nothing",
			modJSON: `{"Module": {"Path": "go.etcd.io/etcd/server/v3"}}`,
		},
		"NotJSON": {
			reason:  "output that is not understood is an error, not an empty list",
			modJSON: `module k8s.io/kubernetes`,
			want:    want{Err: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			staging, required, godebug, err := inherited([]byte(tc.modJSON))
			got := want{staging, required, godebug, err != nil}
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
			recipe: newest.apiserver(),
			want:   []string{"kube-apiserver", "kubectl"},
		},
		"Store": {
			reason: "a store is the program of its repository's name",
			recipe: fakeGCSServer(),
			want:   []string{"fake-gcs-server"},
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
