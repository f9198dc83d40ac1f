package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quorate.dev/snapshot"
)

// retentionFlags say which snapshots stay.
type retentionFlags struct {
	retention snapshot.Retention
	maxAge    string
	timeZone  string
}

func (r *retentionFlags) flags(f *pflag.FlagSet) {
	f.IntVar(&r.retention.Last, "keep-last", 0, "keep so many of the newest ones")
	f.IntVar(&r.retention.Daily, "keep-daily", 0, "keep the newest one of each day, for so many days that have one")
	f.IntVar(&r.retention.Weekly, "keep-weekly", 0, "keep the newest one of each week, for so many weeks that have one")
	f.IntVar(&r.retention.Monthly, "keep-monthly", 0, "keep the newest one of each month, for so many months that have one")
	f.StringVar(&r.maxAge, "max-age", "", "do not keep what is older, such as 720h, whatever the other flags say (default: any age)")
	f.StringVar(&r.timeZone, "time-zone", "UTC", "where days, weeks and months begin, such as Europe/Berlin")
}

func (r *retentionFlags) read() (snapshot.Retention, error) {
	for _, n := range []int{r.retention.Last, r.retention.Daily, r.retention.Weekly, r.retention.Monthly} {
		if n < 0 {
			return snapshot.Retention{}, fmt.Errorf("%d is no number of snapshots to keep: write 1 or more, or leave the flag away", n)
		}
	}
	location, err := time.LoadLocation(r.timeZone)
	if err != nil || r.timeZone == "" || r.timeZone == "Local" {
		return snapshot.Retention{}, fmt.Errorf("--time-zone: %q is not known: write UTC, or a name such as Europe/Berlin", r.timeZone)
	}
	retention := r.retention
	retention.Location = location
	if r.maxAge != "" {
		if retention.MaxAge, err = time.ParseDuration(r.maxAge); err != nil || retention.MaxAge <= 0 {
			return snapshot.Retention{}, fmt.Errorf("--max-age: %q is no age: write it in hours, such as 720h", r.maxAge)
		}
	}
	if retention.Last+retention.Daily+retention.Weekly+retention.Monthly == 0 && retention.MaxAge == 0 {
		return snapshot.Retention{}, errors.New("nothing says what to keep: write at least one of --keep-last, --keep-daily, --keep-weekly, --keep-monthly, --max-age")
	}
	return retention, nil
}

// pruneOptions are the flags of "quorate snapshot prune".
type pruneOptions struct {
	store     storeFlag
	retention retentionFlags
	output    outputFlag
	clusterID string
	yes       bool
}

func snapshotPrune() *cobra.Command {
	o := &pruneOptions{}
	cmd := &cobra.Command{
		Use:   "prune --store STORE --keep-last N",
		Short: "Delete old snapshots of a cluster",
		Long: `Delete old snapshots of a cluster. Without --yes it only shows which ones would go.

Verified snapshots alone are counted. The newest verified one never goes, nor does anything that is newer, nor what another cluster wrote.`,
		Example: `  # Look first
  quorate snapshot prune --store /backups --keep-last 7 --keep-daily 14

  # Then delete
  quorate snapshot prune --store /backups --keep-last 7 --keep-daily 14 --yes`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return o.run(cmd) },
	}
	f := cmd.Flags()
	o.store.flags(f)
	o.retention.flags(f)
	o.output.flags(f, "table", "json")
	f.StringVar(&o.clusterID, "cluster-id", "", "ID of the cluster whose snapshots are pruned (default: the only one that the store has snapshots of)")
	f.BoolVar(&o.yes, "yes", false, "delete; without it nothing is deleted")
	return cmd
}

func (o *pruneOptions) run(cmd *cobra.Command) error {
	if err := o.output.check("table", "json"); err != nil {
		return err
	}
	retention, err := o.retention.read()
	if err != nil {
		return err
	}
	return o.store.use(cmd.Context(), func(store snapshot.Store) error {
		stored, err := snapshot.List(cmd.Context(), store)
		if err != nil {
			return err
		}
		id, err := clusterToPrune(stored, o.clusterID)
		if err != nil {
			return err
		}
		if id == "" {
			return o.show(cmd.OutOrStdout(), cmd.ErrOrStderr(), nil)
		}
		dropped, err := snapshot.Prune(cmd.Context(), store, retention, snapshot.PruneOptions{ClusterID: id, DryRun: !o.yes, Now: time.Now()})
		if err != nil {
			return err
		}
		return o.show(cmd.OutOrStdout(), cmd.ErrOrStderr(), dropped)
	})
}

func (o *pruneOptions) show(out, aside io.Writer, dropped []snapshot.Stored) error {
	if o.output.format == "json" {
		return printJSON(out, listed(dropped))
	}
	if len(dropped) > 0 {
		if err := printStored(out, dropped, false); err != nil {
			return err
		}
	}
	said := "Nothing is to be deleted.\n"
	switch n := count(len(dropped), "snapshot"); {
	case len(dropped) == 0:
	case o.yes:
		said = fmt.Sprintf("\nDeleted %s.\n", n)
	default:
		said = fmt.Sprintf("\n%s would be deleted. To delete, repeat the command with --yes.\n", n)
	}
	_, err := io.WriteString(aside, said)
	return err
}

// clusterToPrune is the ID that was asked for, or else the only one there is. It is empty where
// there is none.
func clusterToPrune(stored []snapshot.Stored, id string) (string, error) {
	if id != "" {
		return id, nil
	}
	names := clustersOf(stored)
	ids := slices.Sorted(maps.Keys(names))
	switch len(ids) {
	case 0:
		return "", nil
	case 1:
		return ids[0], nil
	}
	for i, id := range ids {
		ids[i] = fmt.Sprintf("%s (%s)", id, orDash(names[id]))
	}
	return "", fmt.Errorf("the store has snapshots of several clusters: write --cluster-id with one of %s", strings.Join(ids, ", "))
}

func snapshotDelete() *cobra.Command {
	var store storeFlag
	cmd := &cobra.Command{
		Use:     "delete NAME --store STORE",
		Short:   "Delete one snapshot",
		Example: `  quorate snapshot delete etcd-20261125t075000z --store /backups`,
		Args:    oneSnapshot,
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] == latest {
				return errors.New("latest is not deleted: write the name of the snapshot, as list shows it")
			}
			return store.use(cmd.Context(), func(s snapshot.Store) error {
				// A name that is not there is a mistake to be told, though deleting it would be no
				// error.
				if _, err := (&choiceFlags{}).choose(cmd.Context(), s, args[0]); err != nil {
					return err
				}
				if err := snapshot.Delete(cmd.Context(), s, args[0]); err != nil {
					return err
				}
				_, err := fmt.Fprintf(cmd.OutOrStdout(), "Deleted snapshot %s\n", args[0])
				return err
			})
		},
	}
	store.flags(cmd.Flags())
	return cmd
}
