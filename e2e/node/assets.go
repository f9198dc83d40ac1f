package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// kubernetes builds programs of the Kubernetes repository. Recipes of different programs share
// what the compiler made: only linking is done twice.
func kubernetes(name string, programs ...string) recipe {
	packages := make([]string, 0, len(programs))
	for _, p := range programs {
		packages = append(packages, "k8s.io/kubernetes/cmd/"+p)
	}
	return recipe{
		Name:           name + "-" + Kubernetes,
		Requires:       []module{{"k8s.io/kubernetes", "v" + Kubernetes}},
		StagingOf:      "k8s.io/kubernetes",
		StagingVersion: kubernetesStaging,
		Packages:       packages,
		// kubeadm decides by these what it may install, and the API server reports them.
		LinkerFlags: "-X k8s.io/component-base/version.gitVersion=v" + Kubernetes +
			" -X k8s.io/client-go/pkg/version.gitVersion=v" + Kubernetes,
	}
}

func etcd(version string) recipe {
	v := "v" + version
	return recipe{
		Name: "etcd-" + version,
		Requires: []module{
			{"go.etcd.io/etcd/server/v3", v},
			{"go.etcd.io/etcd/etcdctl/v3", v},
			{"go.etcd.io/etcd/etcdutl/v3", v},
		},
		Packages: []string{"go.etcd.io/etcd/server/v3", "go.etcd.io/etcd/etcdctl/v3", "go.etcd.io/etcd/etcdutl/v3"},
		Renames:  map[string]string{"server": "etcd"},
	}
}

func apiserver() recipe {
	return kubernetes("apiserver", "kube-apiserver", "kubectl")
}

// Assets returns a directory with kube-apiserver, etcd and kubectl: what envtest wants to find in
// KUBEBUILDER_ASSETS.
func Assets(ctx context.Context) (string, error) {
	apiserver, etcd := apiserver(), etcd(Etcd37)
	name := fmt.Sprintf("assets-%s-%s", runtime.GOARCH, fingerprint([]recipe{apiserver, etcd}))
	return cached(ctx, name, func(dir string) error {
		for _, from := range []struct {
			recipe   recipe
			programs []string
		}{
			{apiserver, []string{"kube-apiserver", "kubectl"}},
			{etcd, []string{"etcd"}},
		} {
			built, err := from.recipe.build(ctx)
			if err != nil {
				return err
			}
			for _, program := range from.programs {
				if err := os.Link(filepath.Join(built, program), filepath.Join(dir, program)); err != nil {
					return fmt.Errorf("gather the assets: %w", err)
				}
			}
		}
		return nil
	})
}

// Etcd returns a directory with etcd, etcdctl and etcdutl of a released version, such as one of
// EtcdVersions.
func Etcd(ctx context.Context, version string) (string, error) {
	return etcd(strings.TrimPrefix(version, "v")).build(ctx)
}
