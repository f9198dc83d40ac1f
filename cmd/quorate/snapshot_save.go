package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"quorate.dev/snapshot"
)

// saveOptions are the flags of "quorate snapshot save".
type saveOptions struct {
	source     sourceFlags
	stopped    stoppedFlags
	store      storeFlag
	output     outputFlag
	name       string
	cluster    string
	recipients []string
	quiet      bool
}

func snapshotSave() *cobra.Command {
	o := &saveOptions{}
	cmd := &cobra.Command{
		Use:   "save --store STORE [--endpoints URL,...], or save --store STORE --data-dir DIR",
		Short: "Save a snapshot of a running etcd, or of the data directory of one that is lost",
		Long: `Save a snapshot of a running etcd. All members that are named are asked how they are, and the one with the highest revision is read.
It goes on serving. What etcd sends is stored as it is, compressed, with its hashes; nothing in a store is ever overwritten.

With --data-dir a snapshot is saved of the data directory of a member that does not run, and that cannot: most members of its cluster are
lost for good. An etcd that no other machine can reach is started on a copy of it. The directory itself stays as it is. The snapshot has
every write that the member knows of, and becomes a new cluster by "quorate snapshot restore", as any other.`,
		Example: `  quorate snapshot save --endpoints http://127.0.0.1:2379 --store /backups

  # With TLS, as etcdctl has it; the variables ETCDCTL_ENDPOINTS, ETCDCTL_CACERT and so on count as well
  quorate snapshot save --endpoints https://10.0.0.1:2379,https://10.0.0.2:2379,https://10.0.0.3:2379 \
    --cacert ca.crt --cert client.crt --key client.key --store s3://backups/prod

  # Of what is left of a lost cluster: first a look at it
  quorate snapshot save --data-dir /var/lib/etcd.lost --dry-run
  quorate snapshot save --data-dir /var/lib/etcd.lost --etcd /opt/etcd/etcd --store /backups --cluster prod`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return errors.New("save takes no file: write the directory as --store, and --name for another name than the time")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	o.source.flags(f)
	o.stopped.flags(f)
	o.store.flags(f)
	o.output.flags(f, "text", "json")
	f.StringVar(&o.name, "name", "", "name of the snapshot (default: that of the cluster, or etcd, and the time)")
	f.StringVar(&o.cluster, "cluster", "", "what the cluster is called; it is written down, and list shows it")
	f.StringSliceVar(&o.recipients, "recipient", nil, "age recipient (age1...) that the snapshot is encrypted to; repeat it or separate by commas")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "do not tell on standard error how far it is")
	return cmd
}

func (o *saveOptions) run(cmd *cobra.Command) error {
	if err := o.output.check("text", "json"); err != nil {
		return err
	}
	if err := o.stopped.check(cmd.Flags()); err != nil {
		return err
	}
	if o.stopped.dataDir != "" {
		return o.runStopped(cmd)
	}
	source, err := o.source.source(cmd.Flags())
	if err != nil {
		return err
	}
	return o.store.use(cmd.Context(), func(store snapshot.Store) error {
		m, err := snapshot.Save(cmd.Context(), source, store, o.options(cmd))
		return o.saved(cmd, store, m, err)
	})
}

func (o *saveOptions) options(cmd *cobra.Command) snapshot.SaveOptions {
	return snapshot.SaveOptions{
		Name: o.name, Cluster: o.cluster, Recipients: o.recipients, Progress: reporter(cmd.ErrOrStderr(), o.quiet),
	}
}

// saved tells how a save has ended.
func (o *saveOptions) saved(cmd *cobra.Command, store snapshot.Store, m snapshot.Manifest, err error) error {
	if errors.Is(err, snapshot.ErrExists) {
		return fmt.Errorf("%w: write another --name", err)
	}
	if err != nil {
		return err
	}
	if o.output.format == "json" {
		return printJSON(cmd.OutOrStdout(), m)
	}
	return printSaved(cmd.OutOrStdout(), store.Location(m.Object), m, o.store.url)
}

// printSaved tells what was saved, and what to do next: a snapshot counts when it was restored
// once.
func printSaved(out io.Writer, location string, m snapshot.Manifest, store string) error {
	_, err := fmt.Fprintf(out, `Saved snapshot %s
  data      %s%s
  revision  %d, with %s
  size      %s, stored in %s
  etcd      %s, member %s of cluster %s

It is not verified yet:

  quorate snapshot verify %s --store %s
`, m.Name, location, encrypted(m), m.Revision, count(int(m.TotalKeys), "key"), size(m.Size), size(m.StoredSize),
		m.EtcdVersion, m.Member, m.ClusterID, m.Name, quoted(store))
	return err
}

func encrypted(m snapshot.Manifest) string {
	if m.Encrypted {
		return " (encrypted)"
	}
	return ""
}
