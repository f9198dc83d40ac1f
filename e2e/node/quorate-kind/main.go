// Command quorate-kind gives this machine what the end-to-end tests and the demo run on: binaries
// for envtest, etcd, a kind node image and a kind cluster. See package node for what it does and
// why.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"quorate.dev/e2e/node"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func run() error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:           "quorate-kind",
		Short:         "Kubernetes and etcd for tests, pulled or built from source",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddCommand(minors(), assets(), etcd(), image(), up(), load(), etcdImages(), down(), host(), hostClean())
	return root.ExecuteContext(ctx)
}

func assets() *cobra.Command {
	var minor string
	cmd := &cobra.Command{
		Use:   "assets",
		Short: "Build kube-apiserver, etcd and kubectl, and print their directory (KUBEBUILDER_ASSETS)",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printed(node.Assets(cmd.Context(), minor))
		},
	}
	kubernetesFlag(cmd, &minor)
	return cmd
}

func etcd() *cobra.Command {
	return &cobra.Command{
		Use:   "etcd VERSION...",
		Short: "Build etcd, etcdctl and etcdutl, and print the directory of each version",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, versions []string) error {
			for _, version := range versions {
				if err := printed(node.Etcd(cmd.Context(), version)); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func image() *cobra.Command {
	var minor string
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Pull or build a kind node image, and print its reference",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := node.AskHost(cmd.Context(), node.NeedImage); err != nil {
				return err
			}
			return printed(node.Image(cmd.Context(), minor))
		},
	}
	kubernetesFlag(cmd, &minor)
	return cmd
}

func minors() *cobra.Command {
	return &cobra.Command{
		Use:   "minors",
		Short: "Print the minors of Kubernetes that Quorate is tested on, oldest first",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return printed(strings.Join(node.KubernetesMinors(), "\n"), nil)
		},
	}
}

func up() *cobra.Command {
	var c node.Cluster
	cmd := &cobra.Command{
		Use:   "up --name NAME",
		Short: "Make a kind cluster ready, or go on from the one that is there",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := node.AskHost(cmd.Context(), node.NeedCluster); err != nil {
				return err
			}
			return node.Up(cmd.Context(), c)
		},
	}
	nameFlag(cmd, &c.Name)
	kubernetesFlag(cmd, &c.Kubernetes)
	cmd.Flags().StringVar(&c.Config, "config", "", "kind configuration file (default: one node)")
	cmd.Flags().StringVar(&c.Kubeconfig, "kubeconfig", "", "file to write access to the cluster to (default: your own kubeconfig)")
	return cmd
}

func load() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "load --name NAME IMAGE...",
		Short: "Copy images from Docker into the nodes that lack them",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, images []string) error {
			return node.Load(cmd.Context(), name, images...)
		},
	}
	nameFlag(cmd, &name)
	return cmd
}

func etcdImages() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "etcd-images",
		Short: "Pull or build the etcd images, load them into a cluster if one is named, and print them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			images, err := node.EtcdImages(cmd.Context())
			if err != nil {
				return err
			}
			if name != "" {
				if err := node.Load(cmd.Context(), name, images...); err != nil {
					return err
				}
			}
			return printed(strings.Join(images, "\n"), nil)
		},
	}
	cmd.Flags().StringVar(&name, "name", "", "name of a cluster to load them into")
	return cmd
}

func down() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "down --name NAME",
		Short: "Remove a kind cluster",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return node.Down(cmd.Context(), name)
		},
	}
	nameFlag(cmd, &name)
	return cmd
}

func host() *cobra.Command {
	var image bool
	cmd := &cobra.Command{
		Use:   "host",
		Short: "Say what tests on kind are going to change of this machine, and ask at a terminal",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			need := node.NeedCluster
			if image {
				need = node.NeedImage
			}
			return node.AskHost(cmd.Context(), need)
		},
	}
	cmd.Flags().BoolVar(&image, "image", false, "only what the node image takes")
	return cmd
}

func hostClean() *cobra.Command {
	return &cobra.Command{
		Use:   "host-clean",
		Short: "Undo what was changed of this machine",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return node.CleanHost(cmd.Context())
		},
	}
}

// nameFlag is required everywhere: a cluster is never chosen by default, and so never by mistake.
func nameFlag(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "name", "", "name of the cluster")
	if err := cmd.MarkFlagRequired("name"); err != nil {
		panic(err) // only when the flag above is called otherwise
	}
}

// kubernetesFlag names a minor; none is the newest.
func kubernetesFlag(cmd *cobra.Command, minor *string) {
	cmd.Flags().StringVar(minor, "kubernetes", "", "minor of Kubernetes, one of those that the command minors prints (default: the newest)")
}

// printed puts a result on standard output, where scripts read it.
func printed(result string, err error) error {
	if err != nil {
		return err
	}
	fmt.Println(result)
	return nil
}
