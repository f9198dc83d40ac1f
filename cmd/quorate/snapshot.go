package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quorate.dev/snapshot"
)

// latest is what a person writes for the newest snapshot.
const latest = "latest"

func snapshots() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "snapshot",
		Short: "Save, verify and restore snapshots of any etcd",
		Long: `Save, verify and restore snapshots of any etcd. No Kubernetes is needed: not for saving, and not for restoring.

A store is a directory, or a bucket: s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or azblob://ACCOUNT/CONTAINER/PREFIX. Credentials for a
bucket are found as the tools of its cloud find them: in variables such as AWS_ACCESS_KEY_ID, in files, or by the identity of the machine.`,
	}
	cmd.AddCommand(snapshotSave(), snapshotVerify(), snapshotRestore(), snapshotList(), snapshotPrune(), snapshotDelete())
	return cmd
}

// storeFlag is --store, as a person writes it.
type storeFlag struct{ url string }

func (s *storeFlag) flags(f *pflag.FlagSet) {
	f.StringVar(&s.url, "store", "", "a directory, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or azblob://ACCOUNT/CONTAINER/PREFIX")
}

// use opens the store, and closes it after do.
func (s *storeFlag) use(ctx context.Context, do func(snapshot.Store) error) error {
	if s.url == "" {
		return errors.New("--store is missing: write a directory, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or azblob://ACCOUNT/CONTAINER/PREFIX")
	}
	config, err := snapshot.ParseStore(s.url)
	if err != nil {
		return fmt.Errorf("--store: %w", err)
	}
	store, err := snapshot.OpenStore(ctx, config)
	if err != nil {
		return err
	}
	return errors.Join(do(store), store.Close())
}

// outputFlag is --output of the commands that print one result.
type outputFlag struct{ format string }

func (o *outputFlag) flags(f *pflag.FlagSet, formats ...string) {
	f.StringVarP(&o.format, "output", "o", formats[0], strings.Join(formats[:len(formats)-1], ", ")+" or "+formats[len(formats)-1])
}

func (o *outputFlag) check(formats ...string) error {
	if slices.Contains(formats, o.format) {
		return nil
	}
	return fmt.Errorf("--output %q is not known: write %s", o.format, strings.Join(formats, " or "))
}

// identityFlag names a file with the keys that a snapshot was encrypted to.
type identityFlag struct{ file string }

func (i *identityFlag) flags(f *pflag.FlagSet) {
	f.StringVar(&i.file, "identity", "", "file with the age identity (AGE-SECRET-KEY-1...) that an encrypted snapshot is decrypted with")
}

func (i *identityFlag) read() ([]age.Identity, error) {
	if i.file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(i.file)
	if err != nil {
		return nil, identityError{fmt.Errorf("--identity: %w", err)}
	}
	identities, err := age.ParseIdentities(bytes.NewReader(text))
	if err != nil { // not wrapped: it may quote a mistyped private key
		return nil, identityError{fmt.Errorf("--identity: %s is no file of age-keygen: it must have a line AGE-SECRET-KEY-1..., and besides such lines only comments (#)", i.file)}
	}
	return identities, nil
}

// identityError is why no identity could be read. The snapshot may be good.
type identityError struct{ error }

func (identityError) Is(target error) bool { return target == snapshot.ErrIdentity }

// fetchOptions are how a stored snapshot is read: with these keys, and telling on standard error
// how far it is.
func (i *identityFlag) fetchOptions(cmd *cobra.Command, quiet bool) (snapshot.FetchOptions, error) {
	identities, err := i.read()
	return snapshot.FetchOptions{Identities: identities, Progress: reporter(cmd.ErrOrStderr(), quiet)}, err
}

// choiceFlags narrow down which snapshot is meant.
type choiceFlags struct {
	before, cluster, clusterID string
	verified                   bool
}

func (c *choiceFlags) flags(f *pflag.FlagSet) {
	f.StringVar(&c.before, "before", "", "take the newest one that was taken before this time, such as 2026-11-25T07:50:00Z")
	f.StringVar(&c.cluster, "cluster", "", "take one of this cluster, as list shows it")
	f.StringVar(&c.clusterID, "cluster-id", "", "take one of the cluster with this ID of etcd")
	f.BoolVar(&c.verified, "verified", false, "take one that was verified")
}

// choose finds the snapshot that is meant.
func (c *choiceFlags) choose(ctx context.Context, store snapshot.Store, name string) (snapshot.Stored, error) {
	selection := snapshot.Selection{Name: name, Cluster: c.cluster, ClusterID: c.clusterID, VerifiedOnly: c.verified}
	if c.before != "" {
		if name != "" && name != latest {
			return snapshot.Stored{}, fmt.Errorf("--before chooses among snapshots, and %s is one: write latest for it, or leave --before away", name)
		}
		before, err := time.Parse(time.RFC3339, c.before)
		if err != nil {
			return snapshot.Stored{}, fmt.Errorf("--before: %q is no time: write it as 2026-11-25T07:50:00Z", c.before)
		}
		selection.Before = before
	}
	var stored []snapshot.Stored
	var err error
	if name != latest {
		stored, err = snapshot.Named(ctx, store, name)
	}
	if err == nil && len(stored) == 0 { // an error says what there is instead
		stored, err = snapshot.List(ctx, store)
	}
	if err != nil {
		return snapshot.Stored{}, err
	}
	if of := clustersOf(stored); len(of) == 1 && c.cluster == "" && name == latest {
		selection.ClusterID = cmp.Or(c.clusterID, slices.Collect(maps.Keys(of))[0]) // though some of them may not say its name
	}
	chosen, err := snapshot.Select(stored, selection)
	if err != nil && !errors.Is(err, snapshot.ErrNotFound) && !errors.Is(err, snapshot.ErrDamaged) {
		return snapshot.Stored{}, fmt.Errorf("%w (--cluster, or --cluster-id)", err)
	}
	return chosen, err
}

// clustersOf are the names of the clusters that snapshots are of, by their IDs.
func clustersOf(stored []snapshot.Stored) map[string]string {
	names := map[string]string{}
	for _, s := range stored {
		if s.Damaged == nil {
			names[s.Manifest.ClusterID] = cmp.Or(s.Manifest.Cluster, names[s.Manifest.ClusterID])
		}
	}
	return names
}

// printJSON writes one document for programs.
func printJSON(out io.Writer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	return encoder.Encode(value)
}

// instant is a time as lists show it, and as --before takes it.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
