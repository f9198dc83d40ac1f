package node

import (
	"context"
	_ "embed"
	"fmt"
	"path/filepath"
	"strings"
)

//go:embed pause/main.go
var pauseSource string

// corednsSource is CoreDNS with the plugins of kubeadm's Corefile and a few for a person to add.
// All of them would bring the libraries of every cloud, which take longer to compile than the rest.
const corednsSource = `package main

import (
	"github.com/coredns/coredns/coremain"
	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/forward"
	_ "github.com/coredns/coredns/plugin/health"
	_ "github.com/coredns/coredns/plugin/hosts"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/loadbalance"
	_ "github.com/coredns/coredns/plugin/log"
	_ "github.com/coredns/coredns/plugin/loop"
	_ "github.com/coredns/coredns/plugin/metrics"
	_ "github.com/coredns/coredns/plugin/ready"
	_ "github.com/coredns/coredns/plugin/reload"
	_ "github.com/coredns/coredns/plugin/rewrite"
	_ "github.com/coredns/coredns/plugin/template"
)

func main() { coremain.Run() }
`

// programs of a node image and of the images that it carries, by recipe: those that are the same
// with every Kubernetes.
var (
	containerd = recipe{
		Name:     "containerd-" + containerdVersion,
		Requires: []module{{"github.com/containerd/containerd/v2", containerdVersion}},
		Packages: []string{
			"github.com/containerd/containerd/v2/cmd/containerd",
			"github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2",
			"github.com/containerd/containerd/v2/cmd/ctr",
		},
	}
	cniPlugins = recipe{
		Name:     "cni-plugins-" + cniPluginsVersion,
		Requires: []module{{"github.com/containernetworking/plugins", cniPluginsVersion}},
		Packages: []string{
			"github.com/containernetworking/plugins/plugins/ipam/host-local",
			"github.com/containernetworking/plugins/plugins/main/loopback",
			"github.com/containernetworking/plugins/plugins/main/ptp",
			"github.com/containernetworking/plugins/plugins/meta/portmap",
		},
	}
	coredns = recipe{
		Name:     "coredns-" + corednsVersion,
		Requires: []module{{"github.com/coredns/coredns", corednsVersion}},
		Packages: []string{"./coredns"},
		Sources:  map[string]string{"coredns/main.go": corednsSource},
	}
	localPath = recipe{
		Name:     "local-path-provisioner-" + localPathVersion,
		Requires: []module{{"github.com/rancher/local-path-provisioner", localPathVersion}},
		Packages: []string{"github.com/rancher/local-path-provisioner"},
	}
	pause = recipe{
		Name:     "pause",
		Packages: []string{"./pause"},
		Sources:  map[string]string{"pause/main.go": pauseSource},
	}
)

// nodeRecipes is everything that is compiled for a node image, the longest builds first.
func (r release) nodeRecipes() []recipe {
	return []recipe{r.apiserver(), r.node(), r.etcd(), containerd, coredns, cniPlugins, localPath, pause}
}

// programDirs has the directory of every built recipe by its name.
type programDirs map[string]string

func (d programDirs) program(r recipe, name string) string {
	return filepath.Join(d[r.Name], name)
}

func buildPrograms(ctx context.Context, recipes []recipe) (programDirs, error) {
	dirs := programDirs{}
	for _, r := range recipes {
		dir, err := r.build(ctx)
		if err != nil {
			return nil, err
		}
		dirs[r.Name] = dir
	}
	return dirs, nil
}

// componentImages are the images that a new node needs before it can pull any, under the names that
// kubeadm and kind ask for. root is the unpacked node, base the Debian that it began as.
func (r release) componentImages(built programDirs, root, base string, names imageNames) []imageSpec {
	kubernetesImage := func(of recipe, name, base string) imageSpec {
		return imageSpec{
			Ref:   names[name],
			Base:  base,
			Files: []imageFile{program(built.program(of, name), "usr/local/bin/"+name)},
		}
	}
	sandbox := imageSpec{
		Ref:        names[sandboxImage],
		Files:      []imageFile{program(built.program(pause, "pause"), "pause")},
		Entrypoint: []string{"/pause"},
	}
	helper := imageSpec{
		Ref:   names["local-path-helper"],
		Files: []imageFile{program(filepath.Join(root, "usr/bin/busybox"), "bin/busybox")},
	}
	for _, applet := range []string{"sh", "mkdir", "rm"} {
		helper.Files = append(helper.Files, imageFile{Path: "bin/" + applet, Link: "busybox"})
	}
	etcdImage := etcdImage(built[r.etcd().Name], names["etcd"])
	return []imageSpec{
		sandbox,
		helper,
		kubernetesImage(r.apiserver(), "kube-apiserver", ""),
		kubernetesImage(r.node(), "kube-controller-manager", ""),
		kubernetesImage(r.node(), "kube-scheduler", ""),
		kubernetesImage(r.node(), "kube-proxy", base), // it calls iptables
		etcdImage,
		{
			Ref:        names["coredns"],
			Files:      []imageFile{program(built.program(coredns, "coredns"), "coredns")},
			Entrypoint: []string{"/coredns"},
		},
		{
			Ref:   names["local-path-provisioner"],
			Files: []imageFile{program(built.program(localPath, "local-path-provisioner"), "usr/bin/local-path-provisioner")},
		},
	}
}

// etcdImage is laid out like the official image of the etcd project.
func etcdImage(programs, ref string) imageSpec {
	return imageSpec{
		Ref: ref,
		Files: []imageFile{
			{Path: "tmp", Mode: 0o1777},
			{Path: "var/lib/etcd", Mode: 0o755},
			program(filepath.Join(programs, "etcd"), "usr/local/bin/etcd"),
			program(filepath.Join(programs, "etcdctl"), "usr/local/bin/etcdctl"),
			program(filepath.Join(programs, "etcdutl"), "usr/local/bin/etcdutl"),
		},
		Cmd:        []string{"/usr/local/bin/etcd"},
		WorkingDir: "/var/lib/etcd/",
	}
}

// sandboxImage is the key of the image that containerd starts Pods with.
const sandboxImage = "pause"

// imageNames maps the last word of an image's repository to the full reference.
type imageNames map[string]string

// newImageNames indexes what kubeadm lists, what the storage manifest names, and the sandbox image
// of containerd's configuration, which may be of another version than kubeadm's.
func newImageNames(refs []string, sandbox string) (imageNames, error) {
	names := imageNames{}
	for _, ref := range refs {
		repository, _, ok := strings.Cut(ref[strings.LastIndex(ref, "/")+1:], ":")
		if !ok {
			return nil, fmt.Errorf("image %q has no tag", ref)
		}
		names[repository] = ref
	}
	names[sandboxImage] = sandbox
	for _, name := range []string{
		"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy", "coredns", "etcd",
		"local-path-provisioner", "local-path-helper", sandboxImage,
	} {
		if names[name] == "" {
			return nil, fmt.Errorf("no image named %s among %s", name, strings.Join(refs, ", "))
		}
	}
	return names, nil
}
