// Command quorate runs etcd on Kubernetes. It is one binary: the operator, and what goes with
// installing it.
//
// There is nothing to find here but flags and wiring: what decides is in packages membership and
// render, what acts in package reconcile.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"
	_ "time/tzdata" // the image has no time zones

	"github.com/spf13/cobra"
	_ "golang.org/x/crypto/x509roots/fallback" // nor CA certificates

	"quorate.dev/render"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	cmd := &cobra.Command{
		Use:           "quorate",
		Short:         "Runs etcd on Kubernetes",
		SilenceUsage:  true,
		SilenceErrors: true, // main prints them
	}
	cmd.AddCommand(operator(), preview(), snapshots(), agent(), manifests(), alerts(), version())
	return cmd
}

func manifests() *cobra.Command {
	var o render.InstallOptions
	cmd := &cobra.Command{
		Use:   "manifests",
		Short: "Print the manifests that install the operator",
		Example: `  # One operator for the whole cluster
  quorate manifests | kubectl apply --server-side -f -

  # The CustomResourceDefinitions first, and by themselves: with them go all EtcdClusters
  quorate manifests --only crds | kubectl apply --server-side -f -

  # Delete the operator; every EtcdCluster stays, and runs on
  quorate manifests --only operator | kubectl delete -f -

  # One for two namespaces, which must exist, without any cluster-wide right
  quorate manifests --watch-namespace team-a,team-b | kubectl apply --server-side -f -

  # One without the rights on Secrets, for EtcdClusters without TLS
  quorate manifests --without-secrets | kubectl apply --server-side -f -

  # One for the whole cluster, with metrics and alerts for the Prometheus operator
  quorate manifests --monitoring | kubectl apply --server-side -f -`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			yaml, err := render.Install(o)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(yaml)
			return err
		},
	}
	cmd.Flags().StringVar(&o.Namespace, "namespace", render.InstallNamespace, "namespace of the operator")
	cmd.Flags().StringVar(&o.Only, "only", "",
		"print one part: crds, namespace (that of the operator) or operator, which is the rest (default: all)")
	cmd.Flags().StringVar(&o.Image, "image", "", "image of the operator (default: the one that make image builds)")
	cmd.Flags().StringSliceVar(&o.WatchNamespaces, "watch-namespace", nil,
		"namespace to look after; repeat it or separate by commas (default: all)")
	cmd.Flags().BoolVar(&o.WithoutSecrets, "without-secrets", false,
		"leave out the rights to get, create and patch Secrets, which EtcdClusters with TLS need")
	cmd.Flags().BoolVar(&o.Monitoring, "monitoring", false,
		"add a ServiceMonitor and a PrometheusRule with the alerts, for a cluster that has the Prometheus operator")
	return cmd
}

func alerts() *cobra.Command {
	return &cobra.Command{
		Use:   "alerts",
		Short: "Print the alerts as a rule file for Prometheus",
		Long: `Print the alerts as a rule file, for rule_files of the configuration of Prometheus. Where the Prometheus operator runs,
"quorate manifests --monitoring" has the same alerts as a PrometheusRule.`,
		Example: `  quorate alerts > quorate.rules.yaml`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			rules, err := render.Alerts()
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(rules)
			return err
		},
	}
}

func version() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "quorate %s %s %s/%s\n", built(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// built is the version that the Go toolchain derived from the source's tag or commit.
func built() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}
