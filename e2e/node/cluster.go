package node

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/kind/pkg/cluster"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
	"sigs.k8s.io/kind/pkg/cmd"
	"sigs.k8s.io/kind/pkg/exec"
)

// Cluster names a kind cluster and says what it is to be like.
type Cluster struct {
	Name       string
	Config     string // a kind configuration file; none means one node
	Kubeconfig string // where to write access to it; none means the user's own kubeconfig
	Kubernetes string // the minor, one of KubernetesMinors; none means the newest
}

// Up returns when the cluster runs and can run Pods that want volumes and names. It goes on from a
// cluster of this name that answers, and recreates one that does not.
func Up(ctx context.Context, c Cluster) error {
	unlock, err := lock(ctx, "cluster-"+c.Name)
	if err != nil {
		return err
	}
	defer unlock()
	config, err := readConfig(c.Config)
	if err != nil {
		return err
	}
	provider := newProvider()
	nodes, err := listNodes(provider, c.Name)
	if err != nil {
		return err
	}
	switch {
	case len(nodes) == 0:
		err = create(ctx, provider, c, config)
	case nodes.answer(ctx):
		err = goOn(ctx, provider, c, config, nodes)
	default:
		say("the cluster %s is half-made or does not answer: it is recreated", c.Name)
		if err := provider.Delete(c.Name, c.Kubeconfig); err != nil {
			return fmt.Errorf("remove cluster %s: %w", c.Name, err)
		}
		err = create(ctx, provider, c, config)
	}
	if err != nil {
		return err
	}
	if nodes, err = listNodes(provider, c.Name); err != nil {
		return err
	}
	if err := connect(ctx, nodes, config.Networking); err != nil {
		return err
	}
	if err := nodes.waitReady(ctx); err != nil {
		return fmt.Errorf("cluster %s (left as it is; quorate-kind down --name %s removes it): %w", c.Name, c.Name, err)
	}
	say("the cluster %s is ready", c.Name)
	return nil
}

// Down removes the cluster of this name, if there is one.
func Down(ctx context.Context, name string) error {
	unlock, err := lock(ctx, "cluster-"+name)
	if err != nil {
		return err
	}
	defer unlock()
	provider := newProvider()
	nodes, err := listNodes(provider, name)
	if err != nil {
		return err
	}
	disconnect(ctx, nodes)
	if err := provider.Delete(name, ""); err != nil {
		return fmt.Errorf("remove cluster %s: %w", name, err)
	}
	return nil
}

func create(ctx context.Context, provider *cluster.Provider, c Cluster, config *v1alpha4.Cluster) error {
	image, err := Image(ctx, c.Kubernetes)
	if err != nil {
		return err
	}
	l, err := detectLimits(ctx, image)
	if err != nil {
		return err
	}
	if err := fit(config, image, l); err != nil {
		return err
	}
	if l.Snapshotter != "" {
		// The only way that kind has to pass this on to its nodes.
		if err := os.Setenv("KIND_EXPERIMENTAL_CONTAINERD_SNAPSHOTTER", l.Snapshotter); err != nil {
			return fmt.Errorf("choose a snapshotter: %w", err)
		}
	}
	say("creating the cluster %s from %s", c.Name, image)
	created := make(chan error, 1)
	go func() {
		created <- provider.Create(c.Name,
			cluster.CreateWithV1Alpha4Config(config),
			cluster.CreateWithNodeImage(image),
			cluster.CreateWithKubeconfigPath(c.Kubeconfig),
			cluster.CreateWithRetain(true), // so that a failure can be looked at; the next run removes it
		)
	}()
	select {
	case err = <-created:
	case <-ctx.Done(): // kind does not know contexts: the next run removes what it has made
		err = ctx.Err()
	}
	if err == nil {
		return nil
	}
	var details string
	if failed := exec.RunErrorForError(err); failed != nil {
		details = tail(string(failed.Output))
	}
	return fmt.Errorf("create cluster %s (left as it is; quorate-kind down --name %s removes it): %w%s", c.Name, c.Name, err, details)
}

// goOn takes a running cluster as the one that is wanted, unless it plainly is another.
func goOn(ctx context.Context, provider *cluster.Provider, c Cluster, config *v1alpha4.Cluster, nodes nodeList) error {
	if want := len(config.Nodes); want != len(nodes) {
		return fmt.Errorf("the cluster %s has %d nodes and %d are wanted: quorate-kind down --name %s removes it",
			c.Name, len(nodes), want, c.Name)
	}
	r, err := releaseOf(c.Kubernetes)
	if err != nil {
		return err
	}
	// kind and the node images of this package write the version there.
	version, err := docker(ctx, "exec", nodes[0], "cat", "/kind/version")
	if err != nil {
		return fmt.Errorf("read the version of cluster %s: %w", c.Name, err)
	}
	if Minor(version) != Minor(r.Kubernetes) {
		return fmt.Errorf("the cluster %s runs Kubernetes %s and %s is wanted: quorate-kind down --name %s removes it",
			c.Name, version, Minor(r.Kubernetes), c.Name)
	}
	say("going on from the cluster %s", c.Name)
	if err := provider.ExportKubeConfig(c.Name, c.Kubeconfig, false); err != nil {
		return fmt.Errorf("write the kubeconfig of cluster %s: %w", c.Name, err)
	}
	return nil
}

func newProvider() *cluster.Provider {
	return cluster.NewProvider(cluster.ProviderWithDocker(), cluster.ProviderWithLogger(cmd.NewLogger()))
}

// nodeList is the containers of a cluster's nodes, the one that kubectl is run in first.
type nodeList []string

func listNodes(provider *cluster.Provider, name string) (nodeList, error) {
	all, err := provider.ListInternalNodes(name)
	if err != nil {
		return nil, fmt.Errorf("list the nodes of cluster %s: %w", name, err)
	}
	var list nodeList
	for _, n := range all {
		list = append(list, n.String())
	}
	if first, err := nodeutils.BootstrapControlPlaneNode(all); err == nil {
		for i, n := range list {
			if n == first.String() {
				list[0], list[i] = list[i], list[0]
			}
		}
	}
	return list, nil
}

// answer says whether the API server is ready and knows as many nodes as there are containers.
func (n nodeList) answer(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if _, err := n.kubectl(ctx, "get", "--raw=/readyz"); err != nil {
		return false
	}
	names, err := n.kubectl(ctx, "get", "nodes", "--output=name")
	return err == nil && len(strings.Fields(names)) == len(n)
}

// waitReady waits for what a Pod with a volume and a name needs: a node, DNS and a provisioner.
func (n nodeList) waitReady(ctx context.Context) error {
	const patience = "--timeout=180s"
	for _, wait := range [][]string{
		{"wait", "node", "--all", "--for=condition=Ready", patience},
		{"rollout", "status", "deployment/coredns", "--namespace=kube-system", patience},
		{"rollout", "status", "deployment/local-path-provisioner", "--namespace=local-path-storage", patience},
	} {
		if _, err := n.kubectl(ctx, wait...); err != nil {
			return fmt.Errorf("wait for %s: %w", wait[len(wait)-2], err)
		}
	}
	marks, err := n.kubectl(ctx, "get", "storageclass",
		`--output=jsonpath={.items[*].metadata.annotations.storageclass\.kubernetes\.io/is-default-class}`)
	if err != nil {
		return fmt.Errorf("look for a default storage class: %w", err)
	}
	if !strings.Contains(marks, "true") {
		return fmt.Errorf("no storage class is the default one")
	}
	return nil
}

func (n nodeList) kubectl(ctx context.Context, args ...string) (string, error) {
	return docker(ctx, append([]string{"exec", n[0], "kubectl", "--kubeconfig=/etc/kubernetes/admin.conf"}, args...)...)
}
