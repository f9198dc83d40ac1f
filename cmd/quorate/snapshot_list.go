package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"quorate.dev/snapshot"
)

// listOptions are the flags of "quorate snapshot list".
type listOptions struct {
	store  storeFlag
	output outputFlag
}

func snapshotList() *cobra.Command {
	o := &listOptions{}
	cmd := &cobra.Command{
		Use:   "list --store STORE",
		Short: "List the snapshots of a store, newest first",
		Example: `  quorate snapshot list --store /backups
  quorate snapshot list --store s3://backups/prod -o wide`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := o.output.check("table", "wide", "json"); err != nil {
				return err
			}
			return o.store.use(cmd.Context(), func(store snapshot.Store) error {
				stored, err := snapshot.List(cmd.Context(), store)
				if err != nil {
					return err
				}
				return o.show(cmd.OutOrStdout(), cmd.ErrOrStderr(), stored)
			})
		},
	}
	o.store.flags(cmd.Flags())
	o.output.flags(cmd.Flags(), "table", "wide", "json")
	return cmd
}

func (o *listOptions) show(out, aside io.Writer, stored []snapshot.Stored) error {
	for _, s := range stored {
		if s.Damaged != nil {
			_, _ = fmt.Fprintf(aside, "Warning: %v\n", s.Damaged)
		}
	}
	if o.output.format == "json" {
		return printJSON(out, listed(stored))
	}
	if len(stored) == 0 {
		_, err := fmt.Fprintf(aside, "There are no snapshots in %s.\n", o.store.url)
		return err
	}
	return printStored(out, stored, o.output.format == "wide")
}

// listedSnapshot is a snapshot in the JSON of list and prune.
type listedSnapshot struct {
	Manifest     snapshot.Manifest      `json:"manifest"`
	Verification *snapshot.Verification `json:"verification,omitempty"`
	Damaged      string                 `json:"damaged,omitempty"`
}

func listed(stored []snapshot.Stored) []listedSnapshot {
	all := make([]listedSnapshot, 0, len(stored))
	for _, s := range stored {
		l := listedSnapshot{Manifest: s.Manifest, Verification: s.Verification}
		if s.Damaged != nil {
			l.Damaged = s.Damaged.Error()
		}
		all = append(all, l)
	}
	return all
}

// printStored is the table of list and prune.
func printStored(out io.Writer, stored []snapshot.Stored, wide bool) error {
	w := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	header := "NAME\tTAKEN\tCLUSTER\tREVISION\tSIZE\tVERSION\tVERIFIED"
	if wide {
		header += "\tVERIFIED-AT\tKEYS\tSTORED\tENCRYPTED\tMEMBER\tCLUSTER-ID"
	}
	_, _ = fmt.Fprintln(w, header) // into memory, as are all lines until Flush
	for _, s := range stored {
		m := s.Manifest
		if s.Damaged != nil {
			_, _ = fmt.Fprintf(w, "%s\t-\t-\t-\t-\t-\tdamaged\n", m.Name)
			continue
		}
		mode, at := "-", "-"
		if s.Verification != nil {
			mode, at = string(s.Verification.Mode), instant(s.Verification.At)
		}
		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s", m.Name, instant(m.TakenAt), orDash(m.Cluster), m.Revision, size(m.Size), m.EtcdVersion, mode)
		if wide {
			_, _ = fmt.Fprintf(w, "\t%s\t%d\t%s\t%t\t%s\t%s", at, m.TotalKeys, size(m.StoredSize), m.Encrypted, orDash(m.Member), m.ClusterID)
		}
		_, _ = fmt.Fprintln(w)
	}
	return w.Flush()
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}
