package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/node"
	"quorate.dev/render"
)

const (
	name       = "quorate-demo"
	kindConfig = "kind-config.yaml"
	image      = "quorate:demo"

	sample  = "templates/samples/etcdcluster.yaml"
	etcdctl = "templates/samples/etcdctl.yaml"
)

// patience bounds each wait for what the cluster does by itself; pulling or building images is not
// among it.
const patience = 5 * time.Minute

// demo is what the steps share.
type demo struct {
	kubectl kubectl
	image   string // of the operator, under a name that changes with its content
	cluster *api.EtcdCluster
}

// step is one thing that happens, with what to look at when it fails.
type step struct {
	title string
	do    func(context.Context, *demo) error
	clues [][]string // arguments of kubectl
}

var steps = []step{
	{title: "A Kubernetes cluster in Docker: " + name, do: kubernetes},
	{title: "Images: the operator, etcd and an S3 server", do: images},
	{title: "Quorate: API, rights and operator", do: install, clues: operatorClues},
	{title: "An etcd of three members: " + sample, do: etcd, clues: append(etcdClues, operatorClues...)},
	{title: "A key, written and read through the Service: " + etcdctl, do: use, clues: append([][]string{{"describe", "pod", "etcdctl"}}, etcdClues...)},
	{title: "An S3 server, to keep backups in", do: objectStore, clues: [][]string{{"get", "pods", "--output=wide"}, {"describe", "deployment/s3"}}},
	{title: "A backup, read back, restored and compared: " + backupFile, do: backup, clues: append(backupClues, operatorClues...)},
	{title: "All is lost: the EtcdCluster and its volumes are deleted", do: destroy, clues: etcdClues},
	{title: "The cluster comes back from the backup: " + restoredFile, do: restore, clues: append(append(etcdClues, backupClues...), operatorClues...)},
	{title: "What there is now", do: show},
}

func run(ctx context.Context) error {
	raw, err := os.ReadFile(sample)
	if err != nil {
		return fmt.Errorf("read the sample: %w", err)
	}
	d := &demo{cluster: &api.EtcdCluster{}}
	if err := yaml.UnmarshalStrict(raw, d.cluster); err != nil {
		return fmt.Errorf("read %s: %w", sample, err)
	}
	d.cluster.Namespace = "default"

	started := time.Now()
	for n, s := range steps {
		fmt.Printf("\n%d/%d  %s\n", n+1, len(steps), s.title)
		begun := time.Now()
		if err := s.do(ctx, d); err != nil {
			if ctx.Err() == nil {
				d.kubectl.investigate(ctx, s.clues)
			}
			return fmt.Errorf("step %d, %s: %w", n+1, s.title, err)
		}
		fmt.Printf("     done in %s\n", seconds(time.Since(begun)))
	}
	fmt.Printf("\nAll of it took %s.\n\n%s", seconds(time.Since(started)), d.next())
	return nil
}

func kubernetes(ctx context.Context, d *demo) error {
	kubeconfig, err := kubeconfigFile()
	if err != nil {
		return err
	}
	if err := node.Up(ctx, node.Cluster{Name: name, Config: kindConfig, Kubeconfig: kubeconfig}); err != nil {
		return err
	}
	d.kubectl = findKubectl(kubeconfig)
	return nil
}

// images builds the operator and gives its image a name of its content: a Deployment with a new
// name is a new operator, and one with the old name goes on.
func images(ctx context.Context, d *demo) error {
	fmt.Printf("     $ make image IMAGE=%s\n", image)
	if _, err := output(ctx, "make", "--no-print-directory", "image", "IMAGE="+image); err != nil {
		return err
	}
	id, err := output(ctx, "docker", "image", "inspect", "--format", "{{.Id}}", image)
	if err != nil {
		return err
	}
	const short = 12
	d.image = image + "-" + strings.TrimPrefix(strings.TrimSpace(id), "sha256:")[:short]
	if _, err := output(ctx, "docker", "tag", image, d.image); err != nil {
		return err
	}
	etcd, err := node.EtcdImages(ctx)
	if err != nil {
		return err
	}
	if err := node.BuildS3Image(ctx); err != nil {
		return err
	}
	return node.Load(ctx, name, append(etcd, d.image, node.S3Image)...)
}

func install(ctx context.Context, d *demo) error {
	manifests, err := render.Install(render.InstallOptions{Image: d.image})
	if err != nil {
		return err
	}
	fmt.Printf("     $ quorate manifests --image %s | kubectl apply --server-side -f -\n", d.image)
	if _, err := d.kubectl.output(ctx, manifests, "apply", "--server-side", "--filename=-"); err != nil {
		return err
	}
	_, err = d.kubectl.output(ctx, nil, "rollout", "status", "deployment/quorate",
		"--namespace="+render.InstallNamespace, "--timeout="+patience.String())
	return err
}

// etcd applies the sample, unless there is one already: what a person has made of that stays.
func etcd(ctx context.Context, d *demo) error {
	there, err := d.kubectl.output(ctx, nil, "get", "etcdcluster", d.cluster.Name, "--ignore-not-found", "--output=name")
	if err != nil {
		return err
	}
	if there != "" {
		fmt.Printf("     %s is there, and stays as it is\n", strings.TrimSpace(there))
	} else if err := d.apply(ctx, sample); err != nil {
		return err
	}
	return watchUntilReady(ctx, d.kubectl.kubeconfig, d.cluster)
}

// use runs a Pod that has done its work before: it is gone and recreated each time.
func use(ctx context.Context, d *demo) error {
	if _, err := d.kubectl.output(ctx, nil, "delete", "pod/etcdctl", "--ignore-not-found", "--timeout=1m"); err != nil {
		return err
	}
	if err := d.apply(ctx, etcdctl); err != nil {
		return err
	}
	if _, err := d.kubectl.output(ctx, nil, "wait", "pod/etcdctl", "--for=jsonpath={.status.phase}=Succeeded", "--timeout=1m"); err != nil {
		return err
	}
	for _, container := range []string{"put", "get"} {
		if err := d.kubectl.show(ctx, "logs", "pod/etcdctl", "--container="+container); err != nil {
			return err
		}
	}
	_, err := d.kubectl.output(ctx, nil, "delete", "pod/etcdctl", "--timeout=1m")
	return err
}

func show(ctx context.Context, d *demo) error {
	return d.kubectl.show(ctx, "get", "etcdcluster,pods,pvc")
}

// apply a file, as a user would.
func (d *demo) apply(ctx context.Context, file string) error {
	manifest, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("read the sample: %w", err)
	}
	fmt.Printf("     $ kubectl apply --server-side -f %s\n", file)
	_, err = d.kubectl.output(ctx, manifest, "apply", "--server-side", "--filename=-")
	return err
}

// next is what to try after the demo.
func (d *demo) next() string {
	c := d.cluster.Name
	return fmt.Sprintf(`Try next:

  %[1]s

  kubectl delete pod %[2]s-1                              # it comes back as the same member, with its data
  kubectl get etcdcluster %[2]s --output=wide --watch     # what Quorate says about it
  kubectl exec %[2]s-0 -- etcdctl member list             # what etcd says itself

  kubectl scale etcdcluster %[2]s --replicas=5            # grow: learners first, one vote after the other
  kubectl scale etcdcluster %[2]s --replicas=3            # and shrink: the least valuable member first
  kubectl delete pvc,pod %[2]s-2                          # lose a member's data: another one takes its place

  kubectl patch etcdcluster %[2]s --type=merge --patch='{"spec":{"version":"%[4]s"}}'   # upgrade: one member after the other, in place
  kubectl patch etcdcluster %[2]s --type=merge --patch='{"spec":{"version":"%[5]s"}}'  # and back, by etcd's own downgrade

  kubectl scale etcdcluster %[2]s --replicas=0            # hibernate: Pods go, volumes stay
  kubectl scale etcdcluster %[2]s --replicas=3            # and awake
  kubectl wait etcdcluster %[2]s --for=condition=Ready
  kubectl exec %[2]s-0 -- etcdctl get greeting            # with all that was written

  kubectl explain etcdcluster.spec                          # what else there is to say
  kubectl logs --namespace=%[3]s deployment/quorate

"make demo" goes on from what is there. "make demo-clean" removes all of it.
`, d.kubectl.setup(), c, render.InstallNamespace, node.Etcd37, node.Etcd36)
}

// kubeconfigFile is a file of its own: the demo does not touch the kubeconfig of the person who
// runs it.
func kubeconfigFile() (string, error) {
	return filepath.Abs(filepath.Join(".cache", name+".kubeconfig"))
}
