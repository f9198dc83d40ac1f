package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quorate.dev/render"
	"quorate.dev/snapshot"
)

// agentClearUnvoted is the init container of a first member whose Pod is recreated. It is run again
// whenever the Pod starts on its node, also long after the cluster has formed: then nothing is
// removed.
func agentClearUnvoted() *cobra.Command {
	var dir, state string
	return agentCommand("clear-unvoted", "Remove the data directory of a first member that has yet to vote", func(f *pflag.FlagSet) {
		f.StringVar(&dir, "data-dir", "", "data directory of etcd")
		f.StringVar(&state, "initial-cluster-state", "", "what the Pod says: nothing is removed once it is not "+render.StateNew)
	}, func(cmd *cobra.Command) (r agentResult, err error) {
		if state != render.StateNew {
			return r, nil
		}
		cleared, err := snapshot.ClearUnvoted(cmd.Context(), dir)
		if cleared {
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "Removed the data directory: etcd ended before it wrote a vote to its log, and would never elect a leader with it.") // the log is a courtesy
		}
		return r, err
	})
}
