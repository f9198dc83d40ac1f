package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os/exec"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quorate.dev/snapshot"
)

// stoppedFlags are those flags of "quorate snapshot save" that are for a member that does not run.
type stoppedFlags struct {
	dataDir, walDir string
	etcd, scratch   string
	dryRun          bool
}

// stoppedNames are the flags that mean nothing without --data-dir.
var stoppedNames = []string{"wal-dir", "etcd", "scratch", "dry-run"}

func (s *stoppedFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&s.dataDir, "data-dir", "", "data directory of a member that does not run, instead of --endpoints; it stays as it is")
	f.StringVar(&s.walDir, "wal-dir", "", "with --data-dir: directory of the write-ahead log, where etcd had that flag")
	f.StringVar(&s.etcd, "etcd", "", "with --data-dir: the etcd to start on a copy, of the minor of the data (default: etcd in PATH)")
	f.StringVar(&s.scratch, "scratch", "", "with --data-dir: directory with room for the copy (default: that of the system)")
	f.BoolVar(&s.dryRun, "dry-run", false, "with --data-dir: tell what is in it, and save nothing")
}

// check refuses flags of the one way to save beside those of the other.
func (s *stoppedFlags) check(f *pflag.FlagSet) error {
	if s.dataDir == "" {
		for _, name := range stoppedNames {
			if f.Changed(name) {
				return fmt.Errorf("--%s is for a member that does not run: write its --data-dir too, or leave --%s away", name, name)
			}
		}
		return nil
	}
	for _, name := range []string{"endpoints", "cacert", "cert", "key"} {
		if f.Changed(name) {
			return fmt.Errorf("--%s is for members that run, and --data-dir for one that does not: write one of both", name)
		}
	}
	return nil
}

func (s *stoppedFlags) member() snapshot.StoppedMember {
	return snapshot.StoppedMember{DataDir: s.dataDir, WALDir: s.walDir}
}

// binary is the etcd to start.
func (s *stoppedFlags) binary(state snapshot.StoppedState) (string, error) {
	path, err := exec.LookPath(cmp.Or(s.etcd, "etcd"))
	switch {
	case err == nil:
		return path, nil
	case s.etcd != "":
		return "", fmt.Errorf("--etcd: %w", err)
	}
	return "", fmt.Errorf("no etcd is in PATH to start on a copy of the data directory: write --etcd PATH, of an etcd %s", cmp.Or(state.EtcdVersion, "of the version that ran"))
}

// runStopped saves of a data directory.
func (o *saveOptions) runStopped(cmd *cobra.Command) error {
	state, err := o.stopped.member().Read(cmd.Context())
	if err != nil {
		return o.stopped.instead(err)
	}
	if o.stopped.dryRun {
		if o.output.format == "json" {
			return printJSON(cmd.OutOrStdout(), state)
		}
		return printStopped(cmd.OutOrStdout(), o.stopped.dataDir, state)
	}
	etcd, err := o.stopped.binary(state)
	if err != nil {
		return err
	}
	user, password, err := o.source.login(cmd.Flags())
	if err != nil {
		return err
	}
	return o.store.use(cmd.Context(), func(store snapshot.Store) error {
		if err := printStopped(cmd.ErrOrStderr(), o.stopped.dataDir, state); err != nil {
			return err
		}
		m, err := snapshot.SaveStopped(cmd.Context(), store, snapshot.SaveStoppedOptions{
			StoppedMember: o.stopped.member(), Etcd: etcd, Scratch: o.stopped.scratch,
			Username: user, Password: password, SaveOptions: o.options(cmd),
		})
		return o.saved(cmd, store, m, o.stopped.instead(err))
	})
}

// instead says what to write, where an error does not.
func (s *stoppedFlags) instead(err error) error {
	switch {
	case errors.Is(err, snapshot.ErrInUse):
		return fmt.Errorf("%w: stop it, or save of it while it runs (--endpoints)", err)
	case errors.Is(err, snapshot.ErrNoRoom):
		return fmt.Errorf("%w: write --scratch with a directory that has more", err)
	}
	return err
}

// printStopped tells what a data directory has, and what a snapshot of it can have.
func printStopped(out io.Writer, dir string, s snapshot.StoppedState) error {
	learner, torn := "", ""
	if s.Learner {
		learner = ", a learner"
	}
	if s.Unreadable > 0 {
		torn = fmt.Sprintf("; %d bytes behind it cannot be read", s.Unreadable)
	}
	_, err := fmt.Fprintf(out, `Data directory %s
  member    %s (%s) of cluster %s%s
  etcd      %s
  log       up to entry %d of term %d, last written at %s%s
  committed up to entry %d, as far as the member has heard
  database  up to entry %d, revision %d
  size      %s

A snapshot of it has every write that is in the log, whether the member has heard that it is committed or not. What the other members
acknowledged without this one is not in it, and nothing here tells how much that is. Where several such data directories of one cluster
are left, the one with the highest term has the most, and of those the one with the highest entry.

`, dir, cmp.Or(s.Member, "without a name"), s.MemberID, s.ClusterID, learner, cmp.Or(s.EtcdVersion, "of an unknown version"),
		s.LastIndex, s.Term, instant(s.LastWrite), torn, s.CommitIndex, s.DatabaseIndex, s.DatabaseRevision, size(s.Size))
	return err
}
