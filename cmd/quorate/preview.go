package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile"
	"quorate.dev/render"
)

// previewOptions are the flags of "quorate preview".
type previewOptions struct {
	namespace string
	all       bool
	context   string
	output    string
}

func preview() *cobra.Command {
	o := &previewOptions{}
	cmd := &cobra.Command{
		Use:   "preview [-n NAMESPACE | -A] [NAME...]",
		Short: "Show what this version of Quorate would change of running clusters",
		Long: `Show what this version of Quorate would change of the EtcdClusters that run, before it is installed in place of another one.
It reads EtcdClusters, their Pods, PersistentVolumeClaims, Services and PodDisruptionBudgets, and EtcdBackups where the version is
to change, with the rights of your kubeconfig, and writes nothing. etcd is not asked: what it would say is taken from the status.`,
		Example: `  # All clusters that you may see
  quorate preview -A

  # One of them, with every value that would change
  quorate preview -n team-a example -o json`,
		RunE: func(cmd *cobra.Command, names []string) error {
			reader, err := o.reader()
			if err != nil {
				return err
			}
			return o.run(cmd.Context(), reader, names, cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVarP(&o.namespace, "namespace", "n", "", "namespace of the EtcdClusters (default: that of the kubeconfig)")
	cmd.Flags().BoolVarP(&o.all, "all-namespaces", "A", false, "EtcdClusters of all namespaces")
	cmd.Flags().StringVar(&o.context, "context", "", "context of the kubeconfig (default: the current one)")
	cmd.Flags().StringVarP(&o.output, "output", "o", "table", "table or json")
	cmd.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
	return cmd
}

// reader is the API server that kubectl would talk to. Where no namespace was asked for, it is that
// of kubectl too.
func (o *previewOptions) reader() (client.Reader, error) {
	config := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
		clientcmd.NewDefaultClientConfigLoadingRules(), &clientcmd.ConfigOverrides{CurrentContext: o.context})
	rest, err := config.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	if o.namespace == "" && !o.all {
		if o.namespace, _, err = config.Namespace(); err != nil {
			return nil, fmt.Errorf("find the namespace: %w", err)
		}
	}
	scheme, err := kinds()
	if err != nil {
		return nil, err
	}
	return client.New(rest, client.Options{Scheme: scheme})
}

func (o *previewOptions) run(ctx context.Context, reader client.Reader, names []string, out io.Writer) error {
	list := &api.EtcdClusterList{}
	if err := reader.List(ctx, list, client.InNamespace(o.namespace)); err != nil {
		return fmt.Errorf("list EtcdClusters: %w", err)
	}
	for _, name := range names {
		if !slices.ContainsFunc(list.Items, func(c api.EtcdCluster) bool { return c.Name == name }) {
			return fmt.Errorf("there is no EtcdCluster %s", name)
		}
	}
	outlooks := []reconcile.Outlook{}
	for i := range list.Items {
		c := &list.Items[i]
		if len(names) > 0 && !slices.Contains(names, c.Name) {
			continue
		}
		outlook, err := reconcile.Preview(ctx, reader, c)
		if err != nil {
			return fmt.Errorf("preview EtcdCluster %s/%s: %w", c.Namespace, c.Name, err)
		}
		outlooks = append(outlooks, outlook)
	}
	switch o.output {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(outlooks)
	case "table":
		return table(out, outlooks)
	default:
		return fmt.Errorf("--output must be table or json, not %q", o.output)
	}
}

// table is for people: a line for each object that would change, and what it comes to.
func table(out io.Writer, outlooks []reconcile.Outlook) error {
	var lines bytes.Buffer
	w := tabwriter.NewWriter(&lines, 0, 0, 3, ' ', 0)
	line := func(cluster, object, change, why string) {
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", cluster, object, change, why) // into memory
	}
	line("CLUSTER", "OBJECT", "CHANGE", "WHY")
	members := 0
	effects := map[reconcile.Effect]int{}
	for _, o := range outlooks {
		members += o.Members
		cluster := o.Namespace + "/" + o.Name
		if o.Step != nil {
			line(cluster, "", string(o.Step.Reason), o.Step.Message)
		}
		for _, object := range o.Objects {
			effects[object.Effect]++
			line(cluster, object.Kind+" "+object.Name, inWords[object.Effect], why(object))
		}
		if o.Step == nil && len(o.Objects) == 0 {
			line(cluster, "", "no changes", "")
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for padded := range strings.Lines(lines.String()) {
		if _, err := fmt.Fprintln(out, strings.TrimRight(padded, " \n")); err != nil {
			return err
		}
	}
	sizes := ""
	if grown, removed := effects[reconcile.EffectGrown], effects[reconcile.EffectRemoved]; grown+removed > 0 {
		sizes = fmt.Sprintf("; %s would grow, %s be removed", count(grown, "volume"), count(removed, "member"))
	}
	_, err := fmt.Fprintf(out, "\n%s, %s: %s would be recreated, %d started again in place, %d resized; %s would be applied, which starts nothing again%s\n",
		count(len(outlooks), "cluster"), count(members, "member"), count(effects[reconcile.EffectRecreated], "Pod"), effects[reconcile.EffectRestarted],
		effects[reconcile.EffectResized], count(effects[reconcile.EffectApplied]+effects[reconcile.EffectCreated], "object"), sizes)
	return err
}

var inWords = map[reconcile.Effect]string{
	reconcile.EffectRecreated: "recreated",
	reconcile.EffectRestarted: "started again in place",
	reconcile.EffectResized:   "resized while it runs",
	reconcile.EffectApplied:   "applied",
	reconcile.EffectCreated:   "created",
	reconcile.EffectGrown:     "grown",
	reconcile.EffectRemoved:   "removed",
}

// why names the parts of the spec, or the places that differ: with a plus those that are new, with
// a minus those that go.
func why(o reconcile.ObjectChange) string {
	all := slices.Clone(o.Parts)
	for _, d := range o.Differences {
		all = append(all, place(d))
	}
	return strings.Join(slices.Compact(all), ", ")
}

func place(d render.Difference) string {
	path := strings.TrimPrefix(d.Path, "metadata.")
	switch {
	case d.From == "":
		return "+" + path
	case d.To == "":
		return "-" + path
	default:
		return path
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
