package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/spf13/cobra"

	"quorate.dev/snapshot"
)

// verifyOptions are the flags of "quorate snapshot verify".
type verifyOptions struct {
	store    storeFlag
	choice   choiceFlags
	identity identityFlag
	output   outputFlag
	mode     string
	etcd     string
	scratch  string
	quiet    bool
}

func snapshotVerify() *cobra.Command {
	o := &verifyOptions{}
	cmd := &cobra.Command{
		Use:   "verify NAME|latest --store STORE, or verify FILE",
		Short: "Verify a snapshot by restoring it and serving it",
		Long: `Verify a snapshot: it is read from the store again, its sizes and hashes are compared, it is restored into a scratch directory, an
etcd is started on it, and the hash of all its keys is compared with that of the snapshot. That it was verified is written beside it.

With --mode Hash sizes and hashes alone are compared, which needs no etcd and no disk. Without --store the argument is a file, as of
"etcdctl snapshot save": its hash is compared, and what is in it is told.`,
		Example: `  quorate snapshot verify latest --store /backups
  quorate snapshot verify etcd-20261125t075000z --store s3://backups/prod --etcd /opt/etcd/etcd
  quorate snapshot verify snapshot.db`,
		Args: oneSnapshot,
		RunE: func(cmd *cobra.Command, args []string) error { return o.run(cmd, args[0]) },
	}
	f := cmd.Flags()
	o.store.flags(f)
	o.choice.flags(f)
	o.identity.flags(f)
	o.output.flags(f, "text", "json")
	f.StringVar(&o.mode, "mode", string(snapshot.ModeRestore), "Restore or Hash")
	f.StringVar(&o.etcd, "etcd", "", "the etcd to start, of the minor of the snapshot or newer (default: etcd in PATH)")
	f.StringVar(&o.scratch, "scratch", "", "directory for the restored data, with room for twice the snapshot (default: that of the system)")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "do not tell on standard error how far it is")
	return cmd
}

// oneSnapshot is the argument of the commands that work on one.
func oneSnapshot(_ *cobra.Command, args []string) error {
	if len(args) == 1 && args[0] != "" {
		return nil
	}
	return errors.New("write one snapshot: its name as list shows it, or latest, with --store; or a file, without")
}

func (o *verifyOptions) run(cmd *cobra.Command, name string) error {
	if err := o.output.check("text", "json"); err != nil {
		return err
	}
	if o.store.url == "" {
		return o.file(cmd, name)
	}
	mode := snapshot.Mode(o.mode)
	if mode != snapshot.ModeRestore && mode != snapshot.ModeHash {
		return fmt.Errorf("--mode %q is not known: write Restore or Hash", o.mode)
	}
	etcd, err := o.binary(mode)
	if err != nil {
		return err
	}
	fetch, err := o.identity.fetchOptions(cmd, o.quiet)
	if err != nil {
		return err
	}
	return o.store.use(cmd.Context(), func(store snapshot.Store) error {
		chosen, err := o.choice.choose(cmd.Context(), store, name)
		if err != nil {
			return err
		}
		v, err := snapshot.Verify(cmd.Context(), store, chosen.Manifest.Name, snapshot.VerifyOptions{
			Mode: mode, Etcd: etcd, Scratch: o.scratch,
			FetchOptions: fetch,
		})
		if err != nil {
			return err
		}
		if o.output.format == "json" {
			return printJSON(cmd.OutOrStdout(), v)
		}
		return printVerified(cmd.OutOrStdout(), chosen.Manifest, v, len(fetch.Identities) > 0)
	})
}

// binary is the etcd to start, where one is started.
func (o *verifyOptions) binary(mode snapshot.Mode) (string, error) {
	if mode == snapshot.ModeHash {
		return "", nil
	}
	if o.etcd != "" {
		path, err := exec.LookPath(o.etcd)
		if err != nil {
			return "", fmt.Errorf("--etcd: %w", err)
		}
		return path, nil
	}
	path, err := exec.LookPath("etcd")
	if err != nil {
		return "", errors.New("no etcd is in PATH to serve the restored data: write --etcd PATH; or --mode Hash, which compares sizes and hashes alone and needs none")
	}
	return path, nil
}

// printVerified tells what was compared. What is encrypted is a closed box without an identity.
func printVerified(out io.Writer, m snapshot.Manifest, v snapshot.Verification, opened bool) error {
	if v.Mode == snapshot.ModeHash && m.Encrypted && !opened {
		_, err := fmt.Fprintf(out, "Verified snapshot %s: size and hash of what is stored are as they were written. It was not decrypted; --identity does that.\n", m.Name)
		return err
	}
	if v.Mode == snapshot.ModeHash {
		_, err := fmt.Fprintf(out, "Verified snapshot %s: all sizes and hashes are as they were written. It was not restored.\n", m.Name)
		return err
	}
	_, err := fmt.Fprintf(out, "Verified snapshot %s: restored, and etcd %s serves %s at revision %d with the hash of the snapshot.\n",
		m.Name, v.EtcdVersion, count(int(m.TotalKeys), "key"), m.Revision)
	return err
}

// file tells about a plain file.
func (o *verifyOptions) file(cmd *cobra.Command, file string) error {
	if _, err := plainFile(file); err != nil {
		return err
	}
	d, err := snapshot.Describe(cmd.Context(), file)
	if err != nil {
		return err
	}
	if o.output.format == "json" {
		return printJSON(cmd.OutOrStdout(), d)
	}
	return printDescribed(cmd.OutOrStdout(), file, d)
}

// plainFile is the argument where no store is named.
func plainFile(file string) (os.FileInfo, error) {
	if file == latest {
		return nil, errors.New("--store is missing: write where latest is to be looked for, or a file")
	}
	info, err := os.Stat(file)
	if err != nil {
		return nil, fmt.Errorf("without --store the argument is a file: %w", err)
	}
	return info, nil
}

func printDescribed(out io.Writer, file string, d snapshot.Description) error {
	readBy := "3.5 or newer" // which writes no version
	if minor, ok := strings.CutSuffix(d.StorageVersion, ".0"); ok {
		readBy = minor + " or newer"
	}
	_, err := fmt.Fprintf(out, `%s is whole: etcd's hash at its end is right, and every key can be read. It was not restored.
  revision  %d, with %s
  size      %s
  etcd      %s can read it
`, file, d.Revision, count(int(d.TotalKeys), "key"), size(d.Size), readBy)
	return err
}
