package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quorate.dev/snapshot"
)

// agentRestoreMember is the init container of a first member that starts from a snapshot. It is run
// again whenever the Pod starts on its node, also long after the cluster has formed: what it made
// then stays as it is, and what was lost since stays lost.
func agentRestoreMember() *cobra.Command {
	var (
		store                      storeFlag
		identity                   identityFlag
		member                     restoreFlags
		name, sum, wanted, scratch string
	)
	return agentCommand("restore-member", "Make the data of a first member of a stored snapshot", func(f *pflag.FlagSet) {
		store.flags(f)
		identity.flags(f)
		member.flags(f)
		f.StringVar(&name, "snapshot", "", "name of the snapshot")
		f.StringVar(&sum, "sha256", "", "SHA-256 that its data must have")
		f.StringVar(&wanted, "wanted", "", "what the Pod says: empty once the cluster has formed, and then nothing is restored")
		f.StringVar(&scratch, "scratch", "", "directory that is removed: agents of before have left the fetched snapshot there")
	}, func(cmd *cobra.Command) (r agentResult, err error) {
		if wanted == "" {
			_, _ = fmt.Fprintln(cmd.ErrOrStderr(), "The cluster has formed, and its members find their data: nothing to restore.") // the log is a courtesy
			return r, nil
		}
		options, err := member.read(time.Now())
		if err != nil {
			return r, err
		}
		if options.Done(sum) {
			return r, os.RemoveAll(scratch)
		}
		if vacant(options.DataDir) != nil {
			return r, fmt.Errorf("the volume has other data than that of snapshot %s, and nothing is written over: delete the EtcdCluster and its PersistentVolumeClaims, and apply it again", name)
		}
		options.Again = true
		err = store.use(cmd.Context(), func(store snapshot.Store) error {
			return restoreChosen(cmd, store, name, sum, identity, options)
		})
		if err != nil {
			return r, err
		}
		return r, os.RemoveAll(scratch)
	})
}

// restoreChosen restores the snapshot that was chosen.
func restoreChosen(cmd *cobra.Command, store snapshot.Store, name, sum string, identity identityFlag, options snapshot.RestoreOptions) error {
	m, err := snapshot.ReadManifest(cmd.Context(), store, name)
	if err != nil {
		return err
	}
	if m.SHA256 != sum {
		return fmt.Errorf("snapshot %s is another one than was chosen: its data has SHA-256 %s, not %s", name, m.SHA256, sum)
	}
	if !m.Encrypted {
		identity.file = "" // a plain snapshot needs none, and the Secret of the cluster may not exist
	}
	fetch, err := identity.fetchOptions(cmd, false)
	if err != nil {
		return err
	}
	_, err = snapshot.RestoreStored(cmd.Context(), store, name, fetch, options)
	return err
}
