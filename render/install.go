package render

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/resid"
	"sigs.k8s.io/yaml"

	"quorate.dev/templates"
)

// InstallNamespace is where Quorate runs by default.
const InstallNamespace = "quorate-system"

// InstallOptions say how Quorate itself is installed. The zero value is what "kubectl apply -k
// templates/install" gives.
type InstallOptions struct {
	// Namespace of the operator; empty means InstallNamespace.
	Namespace string
	// Image of the operator; empty means the one that "make image" builds.
	Image string
	// WatchNamespaces are the namespaces whose EtcdClusters the operator looks after, in which it
	// gets its rights, and which must exist. Empty means all namespaces, and rights in the whole
	// cluster.
	WatchNamespaces []string
	// Monitoring adds a ServiceMonitor and a PrometheusRule, for a cluster that has the Prometheus
	// operator. It needs the metrics, which are not served with WatchNamespaces.
	Monitoring bool
	// WithoutSecrets leaves out the rights on Secrets that EtcdClusters with TLS need. The operator
	// may not get any Secret then.
	WithoutSecrets bool
	// Only is the part to render, one of InstallParts; empty means all of them.
	Only string
}

// The parts of an installation, by what their deletion deletes.
const (
	// PartDefinitions is the CustomResourceDefinitions: with them go all EtcdClusters.
	PartDefinitions = "crds"
	// PartNamespace is the namespace of the operator: with it goes all that is in it, EtcdClusters
	// too.
	PartNamespace = "namespace"
	// PartOperator is the rest: without it every EtcdCluster stays as it is.
	PartOperator = "operator"
)

// InstallParts are the parts in the order in which to apply them.
func InstallParts() []string { return []string{PartDefinitions, PartNamespace, PartOperator} }

// partOf is the part of an installation that objects of a kind belong to.
func partOf(kind string) string {
	switch kind {
	case "CustomResourceDefinition":
		return PartDefinitions
	case "Namespace":
		return PartNamespace
	default:
		return PartOperator
	}
}

// Install renders the manifests that install Quorate, as one YAML stream in the order in which to
// apply them. It fails where an option has no such value, or where two exclude each other.
func Install(o InstallOptions) ([]byte, error) {
	if o.Only != "" && !slices.Contains(InstallParts(), o.Only) {
		return nil, fmt.Errorf("--only %q: want one of %s", o.Only, strings.Join(InstallParts(), ", "))
	}
	if o.Namespace == "" {
		o.Namespace = InstallNamespace
	}
	watched := slices.Compact(slices.Sorted(slices.Values(o.WatchNamespaces)))
	for _, ns := range append([]string{o.Namespace}, watched...) {
		if problems := validation.IsDNS1123Label(ns); len(problems) > 0 {
			return nil, fmt.Errorf("namespace %q: %s", ns, problems[0])
		}
	}
	if o.Monitoring && len(watched) > 0 {
		return nil, errors.New("--monitoring needs metrics, and an operator with --watch-namespace serves none, because that takes " +
			"cluster-wide rights: where it may have them, add the components templates/install/metrics and " +
			"templates/install/monitoring to a kustomization of your own")
	}
	manifests, err := build(overlay(o, watched), o.Only)
	if err != nil {
		return nil, fmt.Errorf("render installation: %w", err)
	}
	return manifests, nil
}

// overlay writes over the embedded templates what a person would write over them: one kustomization
// for the operator, one for each watched namespace, and one that holds them together. Its keys are
// directories.
func overlay(o InstallOptions, watched []string) map[string]types.Kustomization {
	operator := types.Kustomization{Namespace: o.Namespace, Resources: []string{"../install"}} // with rights on Secrets
	root := types.Kustomization{Resources: []string{"operator"}}
	dirs := map[string]types.Kustomization{}

	switch {
	case len(watched) > 0:
		operator.Resources = []string{"../install/base"}
	case o.WithoutSecrets:
		operator.Resources = []string{"../install/cluster"}
	}
	if o.Image != "" {
		operator.Patches = append(operator.Patches,
			patch("Deployment", "replace", "/spec/template/spec/containers/0/image", o.Image),
			patch("Deployment", "replace", "/spec/template/spec/containers/0/env/0/value", o.Image)) // QUORATE_IMAGE
	}
	if o.Monitoring {
		operator.Components = []string{"../install/monitoring"}
	}
	for _, ns := range watched {
		operator.Patches = append(operator.Patches,
			patch("Deployment", "add", "/spec/template/spec/containers/0/args/-", "--watch-namespace="+ns))

		dir := path.Join("watch", ns)
		root.Resources = append(root.Resources, dir)
		k := types.Kustomization{
			Namespace: ns,
			Resources: []string{"../../install/watch"},
			Patches:   []types.Patch{patch("RoleBinding", "replace", "/subjects/0/namespace", o.Namespace)},
		}
		if !o.WithoutSecrets {
			k.Resources = append(k.Resources, "../../install/tls/watch")
		}
		dirs[dir] = k
	}
	dirs["operator"], dirs["."] = operator, root
	return dirs
}

// patch sets one value in the objects of a kind that are called quorate, or quorate-secrets, as a
// binding of rights on Secrets is.
func patch(kind, op, pointer, value string) types.Patch {
	return types.Patch{
		Target: &types.Selector{ResId: resid.ResId{Gvk: resid.Gvk{Kind: kind}, Name: "quorate(-secrets)?"}},
		Patch:  fmt.Sprintf("- {op: %s, path: %s, value: %q}", op, pointer, value),
	}
}

// kustomizing lets one build run at a time: kustomize keeps the schemas that it merges by in a
// global variable, and two builds at once end in "concurrent map read and map write"
// (kubernetes-sigs/kustomize#3659).
var kustomizing sync.Mutex

// build runs kustomize in memory, over the embedded templates and the kustomizations given by
// directory, and renders the named part of them, or all where none is named.
func build(dirs map[string]types.Kustomization, only string) ([]byte, error) {
	memory := filesys.MakeFsInMemory()
	err := fs.WalkDir(templates.Install, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := templates.Install.ReadFile(name)
		return errors.Join(err, memory.WriteFile(name, content))
	})
	if err != nil {
		return nil, err
	}
	for dir, k := range dirs {
		k.TypeMeta = types.TypeMeta{APIVersion: types.KustomizationVersion, Kind: types.KustomizationKind}
		content, err := yaml.Marshal(k)
		if err != nil {
			return nil, err
		}
		if err := memory.WriteFile(path.Join(dir, "kustomization.yaml"), content); err != nil {
			return nil, err
		}
	}

	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionLegacy // namespaces and definitions first, then rights, then what uses them
	kustomizing.Lock()
	defer kustomizing.Unlock()
	objects, err := krusty.MakeKustomizer(options).Run(memory, ".")
	if err != nil {
		return nil, err
	}
	for _, object := range objects.Resources() {
		if only == "" || partOf(object.GetKind()) == only {
			continue
		}
		if err := objects.Remove(object.CurId()); err != nil {
			return nil, err
		}
	}
	return objects.AsYaml()
}
