package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quorate.dev/snapshot"
)

// agent has the commands that the operator runs in Jobs and init containers. They are not for
// people: "quorate snapshot" is.
func agent() *cobra.Command {
	cmd := &cobra.Command{Use: "agent", Short: "What the operator runs in Pods", Hidden: true}
	cmd.AddCommand(agentSave(), agentFetch(), agentRestore(), agentRestoreMember(), agentInstall(), agentCopyMember(), agentExpectMember(), agentClearUnvoted(), agentVerifyHash(), agentVerifyServed(), agentFind(), agentDelete())
	return cmd
}

// agentCommand runs work, and leaves its result in the file --result.
func agentCommand(use, short string, flags func(*pflag.FlagSet), work func(*cobra.Command) (agentResult, error)) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			result, err := work(cmd)
			if err != nil {
				result.Error = failure(cmd.Context(), err)
			}
			return errors.Join(err, result.write(file))
		},
	}
	flags(cmd.Flags())
	cmd.Flags().StringVar(&file, "result", "/dev/termination-log", "file for the result, a JSON document")
	return cmd
}

// storedFlags name a store, as JSON or as a URL, and a snapshot in it.
type storedFlags struct {
	storeFlag
	name string
}

func (s *storedFlags) flags(f *pflag.FlagSet) {
	s.storeFlag.flags(f)
	f.StringVar(&s.name, "name", "", "name of the snapshot")
}

func agentSave() *cobra.Command {
	var (
		stored  storedFlags
		source  sourceFlags
		options snapshot.SaveOptions
	)
	return agentCommand("save", "Save a snapshot", func(f *pflag.FlagSet) {
		stored.flags(f)
		source.flags(f)
		f.StringVar(&options.Cluster, "cluster", "", "namespace/name of the EtcdCluster")
		f.StringVar(&options.ClusterID, "cluster-id", "", "ID that the cluster must have")
		f.StringSliceVar(&options.Recipients, "recipient", nil, "age recipient")
		f.StringVar(&options.Keep, "keep", "", "directory where a plain copy stays (default: one in TMPDIR, until the end)")
	}, func(cmd *cobra.Command) (r agentResult, err error) {
		from, err := source.source(cmd.Flags())
		if err != nil {
			return r, err
		}
		options.Name, options.Progress = stored.name, reporter(cmd.ErrOrStderr(), false)
		options.Unfinished = true // the Pod may take the place of one that was killed
		err = stored.use(cmd.Context(), func(store snapshot.Store) error {
			m, err := snapshot.Save(cmd.Context(), from, store, options)
			if err == nil {
				r.Manifest = &m
			}
			return err
		})
		return r, err
	})
}

func agentFetch() *cobra.Command {
	var (
		stored   storedFlags
		identity identityFlag
		file     string
	)
	return agentCommand("fetch", "Write a stored snapshot to a plain file", func(f *pflag.FlagSet) {
		stored.flags(f)
		identity.flags(f)
		f.StringVar(&file, "file", "", "file to write")
	}, func(cmd *cobra.Command) (r agentResult, err error) {
		options, err := identity.fetchOptions(cmd, false)
		if err != nil {
			return r, err
		}
		err = stored.use(cmd.Context(), func(store snapshot.Store) error {
			m, err := snapshot.Fetch(cmd.Context(), store, stored.name, file, options)
			if err == nil {
				r.Manifest = &m
			}
			return err
		})
		return r, err
	})
}

func agentRestore() *cobra.Command {
	var (
		member restoreFlags
		file   string
	)
	return agentCommand("restore", "Write the data directory of one member from a plain file", func(f *pflag.FlagSet) {
		member.flags(f)
		f.StringVar(&file, "file", "", "file that was fetched")
	}, func(cmd *cobra.Command) (agentResult, error) {
		options, err := member.read(time.Now())
		if err != nil {
			return agentResult{}, err
		}
		options.Again = true // the container may be started again
		return agentResult{}, snapshot.Restore(cmd.Context(), file, options)
	})
}

func agentVerifyHash() *cobra.Command {
	var (
		stored   storedFlags
		identity identityFlag
		record   bool
	)
	return agentCommand("verify-hash", "Read a stored snapshot again, compare its hashes, and record that", func(f *pflag.FlagSet) {
		stored.flags(f)
		identity.flags(f)
		f.BoolVar(&record, "record", true, "record it in the store; false: more is verified, and recorded, after it")
	}, func(cmd *cobra.Command) (r agentResult, err error) {
		options, err := identity.fetchOptions(cmd, false)
		if err != nil {
			return r, err
		}
		err = stored.use(cmd.Context(), func(store snapshot.Store) error {
			v, err := snapshot.VerifyHash(cmd.Context(), store, stored.name, options)
			if err != nil {
				return err
			}
			r.Verification = &v
			if !record {
				return nil
			}
			return snapshot.RecordVerification(cmd.Context(), store, v)
		})
		return r, err
	})
}

func agentVerifyServed() *cobra.Command {
	var (
		stored         storedFlags
		file, endpoint string
		timeout        time.Duration
	)
	return agentCommand("verify-served", "Compare what an etcd serves with a plain file, and record that", func(f *pflag.FlagSet) {
		stored.flags(f)
		f.StringVar(&file, "file", "", "file that was fetched")
		f.StringVar(&endpoint, "endpoint", "", "client URL of the etcd that runs on the restored data")
		f.DurationVar(&timeout, "timeout", 0, "how long it is waited for (default: 10 minutes, and 5 more for each GiB of the database)")
	}, func(cmd *cobra.Command) (r agentResult, err error) {
		err = stored.use(cmd.Context(), func(store snapshot.Store) error {
			m, err := snapshot.ReadManifest(cmd.Context(), store, stored.name) // of this one alone
			if err != nil {
				return err
			}
			limit := cmp.Or(timeout, servedWithin(m.Size))
			ctx, cancel := context.WithTimeout(cmd.Context(), limit)
			defer cancel()
			v, err := snapshot.VerifyServed(ctx, file, endpoint, m)
			if err != nil && ctx.Err() != nil {
				return fmt.Errorf("not verified within %s: %w (%w)", limit, err, ctx.Err())
			}
			if err != nil {
				return err
			}
			r.Manifest, r.Verification = &m, &v
			return snapshot.RecordVerification(cmd.Context(), store, v)
		})
		return r, err
	})
}

// servedWithin is how long an etcd may take to serve a database of so many bytes, and to be
// compared with its file: 10 minutes, which an empty one is given too, and 5 more for each GiB that
// is begun. The database is read four times meanwhile, twice as a file and twice by etcd, at 14
// MiB/s or more. For the 8 GiB that etcd suggests at most it is 50 minutes, of the 6 hours that the
// Job has.
func servedWithin(size int64) time.Duration {
	const gib = 1 << 30
	return 10*time.Minute + time.Duration((size+gib-1)/gib)*5*time.Minute
}

func agentFind() *cobra.Command {
	var (
		stored   storedFlags
		choice   choiceFlags
		identity identityFlag
	)
	return agentCommand("find", "Choose a snapshot; with --identity, check that the identity decrypts it", func(f *pflag.FlagSet) {
		stored.flags(f)
		choice.flags(f)
		identity.flags(f)
	}, func(cmd *cobra.Command) (r agentResult, err error) {
		err = stored.use(cmd.Context(), func(store snapshot.Store) error {
			chosen, err := choice.choose(cmd.Context(), store, stored.name)
			if err != nil {
				return err
			}
			r.Manifest, r.Verification = &chosen.Manifest, chosen.Verification
			if !chosen.Manifest.Encrypted || identity.file == "" {
				return nil
			}
			identities, err := identity.read()
			if err != nil {
				return fmt.Errorf("snapshot %s is encrypted: %w", chosen.Manifest.Name, err)
			}
			return snapshot.Readable(cmd.Context(), store, chosen.Manifest, identities)
		})
		return r, err
	})
}

func agentDelete() *cobra.Command {
	var (
		stored    storedFlags
		clusterID string
	)
	return agentCommand("delete", "Delete a snapshot", func(f *pflag.FlagSet) {
		stored.flags(f)
		f.StringVar(&clusterID, "cluster-id", "", "ID of the cluster that the snapshot must be of (default: any)")
	}, func(cmd *cobra.Command) (agentResult, error) {
		return agentResult{}, stored.use(cmd.Context(), func(store snapshot.Store) error {
			return snapshot.DeleteOf(cmd.Context(), store, stored.name, clusterID)
		})
	})
}
