package main

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quorate.dev/snapshot"
)

// restoreOptions are the flags of "quorate snapshot restore".
type restoreOptions struct {
	store    storeFlag
	choice   choiceFlags
	identity identityFlag
	member   restoreFlags
	output   outputFlag
	quiet    bool
}

func snapshotRestore() *cobra.Command {
	o := &restoreOptions{}
	cmd := &cobra.Command{
		Use:   "restore NAME|latest --store STORE --data-dir DIR, or restore FILE --data-dir DIR",
		Short: "Write the data directory of one member from a snapshot",
		Long: `Write the data directory of one member from a snapshot. The members of a cluster are restored one by one, each where it will run, all
from the same snapshot, with the same --initial-cluster and --initial-cluster-token. They are a new cluster with the old data.

Everything is checked on the way, and the directory appears at the end: an interrupted restore leaves none. At the end the command is
printed that starts etcd on it. Without --store the argument is a file, as of "etcdctl snapshot save".`,
		Example: `  # The only member of a cluster
  quorate snapshot restore latest --store /backups --data-dir /var/lib/etcd

  # One of three
  quorate snapshot restore prod-20261125t075000z --store s3://backups/prod --data-dir /var/lib/etcd --name m1 \
    --initial-cluster m1=http://10.0.0.1:2380,m2=http://10.0.0.2:2380,m3=http://10.0.0.3:2380 --initial-cluster-token restored-1`,
		Args: oneSnapshot,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	o.store.flags(f)
	o.choice.flags(f)
	o.identity.flags(f)
	o.member.flags(f)
	o.output.flags(f, "text", "json")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "do not tell on standard error how far it is")
	return cmd
}

// restored is what was restored, in words or as JSON.
type restored struct {
	Snapshot string `json:"snapshot"`
	DataDir  string `json:"dataDir"`
	// Next starts etcd.
	Next string `json:"next"`
}

func (o *restoreOptions) run(cmd *cobra.Command, name string) error {
	if err := o.output.check("text", "json"); err != nil {
		return err
	}
	options, err := o.member.read(time.Now())
	if err != nil {
		return err
	}
	if err := vacant(options.DataDir); err != nil {
		return err
	}
	result := restored{Snapshot: name, DataDir: options.DataDir}
	if o.store.url == "" {
		err = o.file(cmd.Context(), name, options, &result)
	} else {
		err = o.stored(cmd, name, options, &result)
	}
	if err != nil {
		return err
	}
	if o.output.format == "json" {
		return printJSON(cmd.OutOrStdout(), result)
	}
	return printRestored(cmd.OutOrStdout(), result, options)
}

// file restores a plain file.
func (o *restoreOptions) file(ctx context.Context, file string, options snapshot.RestoreOptions, result *restored) error {
	info, err := plainFile(file)
	if err != nil {
		return err
	}
	result.Next = nextCommand(options, info.Size())
	return snapshot.Restore(ctx, file, options)
}

// stored restores a snapshot of a store.
func (o *restoreOptions) stored(cmd *cobra.Command, name string, options snapshot.RestoreOptions, result *restored) error {
	fetch, err := o.identity.fetchOptions(cmd, o.quiet)
	if err != nil {
		return err
	}
	return o.store.use(cmd.Context(), func(store snapshot.Store) error {
		chosen, err := o.choice.choose(cmd.Context(), store, name)
		if err != nil {
			return err
		}
		m := chosen.Manifest
		result.Snapshot, result.Next = m.Name, nextCommand(options, m.Size)
		if err := announce(cmd.ErrOrStderr(), chosen); err != nil {
			return err
		}
		_, err = snapshot.RestoreStored(cmd.Context(), store, m.Name, fetch, options)
		return err
	})
}

// announce tells which snapshot was chosen, and what is to be known of it, before anything is
// written.
func announce(aside io.Writer, chosen snapshot.Stored) error {
	m := chosen.Manifest
	said := "It was never verified."
	if v := chosen.Verification; v != nil {
		said = fmt.Sprintf("It was verified (%s) at %s.", v.Mode, instant(v.At))
	}
	_, err := fmt.Fprintf(aside, "Restoring snapshot %s: taken at %s from cluster %s, etcd %s, revision %d. %s\n",
		m.Name, instant(m.TakenAt), strings.TrimSpace(m.Cluster+" "+m.ClusterID), m.EtcdVersion, m.Revision, said)
	return err
}

func printRestored(out io.Writer, r restored, o snapshot.RestoreOptions) error {
	members, err := initialCluster(o.InitialCluster)
	if err != nil {
		return err
	}
	then := "Start it, with the TLS flags that it had:"
	if len(members) > 1 {
		then = fmt.Sprintf("Restore the other members from %s too, each where it will run, with the same --initial-cluster and\n"+
			"--initial-cluster-token. Then start all of them, with the TLS flags that they had; this one with:", r.Snapshot)
	}
	_, err = fmt.Fprintf(out, "Restored %s into %s as member %s.\n\n%s\n\n  %s\n", r.Snapshot, r.DataDir, o.Name, then, r.Next)
	return err
}
