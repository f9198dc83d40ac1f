package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"golang.org/x/mod/modfile"

	quorate "quorate.dev"
)

// projectRequires is what the project itself requires.
var projectRequires = func() []module {
	file, err := modfile.ParseLax("go.mod", quorate.GoMod, nil)
	if err != nil {
		panic(err) // this program was built with it
	}
	requires := make([]module, 0, len(file.Require))
	for _, r := range file.Require {
		requires = append(requires, module{r.Mod.Path, r.Mod.Version})
	}
	return requires
}()

// programs builds programs of the Kubernetes repository. Recipes of different programs share what
// the compiler made: only linking is done twice. The newest Kubernetes is built with libraries of
// the project's own versions, which are the same or newer, so that they are compiled once as well.
func (r release) programs(name string, programs ...string) recipe {
	packages := make([]string, 0, len(programs))
	for _, p := range programs {
		packages = append(packages, "k8s.io/kubernetes/cmd/"+p)
	}
	var atLeast []module
	if r == newest {
		atLeast = projectRequires
	}
	return recipe{
		Name:           name + "-" + r.Kubernetes,
		Requires:       []module{{"k8s.io/kubernetes", "v" + r.Kubernetes}},
		StagingOf:      "k8s.io/kubernetes",
		StagingVersion: r.staging(),
		AtLeast:        atLeast,
		Packages:       packages,
		// kubeadm decides by these what it may install, and the API server reports them.
		LinkerFlags: "-X k8s.io/component-base/version.gitVersion=v" + r.Kubernetes +
			" -X k8s.io/client-go/pkg/version.gitVersion=v" + r.Kubernetes,
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

func (r release) apiserver() recipe {
	return r.programs("apiserver", "kube-apiserver", "kubectl")
}

// node has the programs of a node, and those of the control plane that are no API server.
func (r release) node() recipe {
	return r.programs("kubernetes", "kubeadm", "kubelet", "kube-controller-manager", "kube-scheduler", "kube-proxy")
}

func (r release) etcd() recipe {
	return etcd(r.Etcd)
}

// Assets returns a directory with kube-apiserver, etcd and kubectl: what envtest wants to find in
// KUBEBUILDER_ASSETS. The minor is one of KubernetesMinors; an empty one is the newest.
func Assets(ctx context.Context, minor string) (string, error) {
	r, err := releaseOf(minor)
	if err != nil {
		return "", err
	}
	apiserver, etcd := r.apiserver(), r.etcd()
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
