package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quorate.dev/snapshot"
)

// The commands by which the first member of a cluster gets the data of a former member, which is
// left where the majority is lost for good. An etcd of the version that ran there has to read that:
// the program of the agent is put into a container of etcd's image.

// agentInstall is the init container before agentCopyMember.
func agentInstall() *cobra.Command {
	var path string
	return agentCommand("install", "Copy this program", func(f *pflag.FlagSet) {
		f.StringVar(&path, "to", "", "file to write")
	}, func(*cobra.Command) (agentResult, error) {
		return agentResult{}, install(path)
	})
}

func install(path string) (err error) {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }() // it was only read
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	to, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o755) //nolint:gosec // another user of the Pod may run it
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Close())
}

// agentCopyMember makes the data of a first member of the data directory of a former one, which
// stays as it is. The container may be started again at any moment, and another one may have done
// it before.
func agentCopyMember() *cobra.Command {
	var (
		member        restoreFlags
		from          snapshot.StoppedMember
		options       snapshot.SaveStoppedOptions
		origin, owner string
		scratch       string
	)
	return agentCommand("copy-member", "Make the data of a first member of what a former member has", func(f *pflag.FlagSet) {
		member.flags(f)
		f.StringVar(&from.DataDir, "from", "", "data directory of the former member")
		f.StringVar(&origin, "origin", "", "what the data directory is to say that it was made of")
		f.StringVar(&owner, "cluster", "", "namespace/name of the EtcdCluster")
		f.StringVar(&options.ClusterID, "cluster-id", "", "ID of the cluster that the former member must be of")
		f.StringVar(&options.Etcd, "etcd", "", "etcd to start on a copy, of the minor of the data")
		f.StringVar(&scratch, "scratch", "", "directory with room for a copy, which is removed in the end")
	}, func(cmd *cobra.Command) (r agentResult, err error) {
		restore, err := member.read(time.Now())
		if err != nil {
			return r, err
		}
		if restore.Origin = origin; restore.Done(origin) {
			return r, os.RemoveAll(scratch)
		}
		if vacant(restore.DataDir) != nil {
			return r, errors.New("the volume of the first member has other data, and nothing is written over")
		}
		if err := errors.Join(os.RemoveAll(scratch), os.MkdirAll(scratch, 0o700)); err != nil { // what a killed one has left is of no use
			return r, err
		}
		options.StoppedMember, options.Scratch = from, scratch
		options.Name, options.Cluster, options.Keep = copyName, owner, scratch
		options.Progress = reporter(cmd.ErrOrStderr(), false)
		m, err := snapshot.SaveStopped(cmd.Context(), nowhere{}, options)
		if err != nil {
			return r, fmt.Errorf("read the data of the former member: %w", err)
		}
		r.Manifest = &m
		if err := snapshot.Restore(cmd.Context(), filepath.Join(scratch, copyName+".db"), restore); err != nil {
			return r, err
		}
		return r, os.RemoveAll(scratch)
	})
}

// copyName is the snapshot that is taken on the way.
const copyName = "copy"

// nowhere is the store of a snapshot of which only the plain copy is wanted: the volume has room
// for that, and not for more.
type nowhere struct{}

func (nowhere) Create(_ context.Context, _ string, write func(io.Writer) error) error {
	return write(io.Discard)
}

func (nowhere) Open(_ context.Context, key string) (io.ReadCloser, error) {
	return nil, fmt.Errorf("%s: %w", key, snapshot.ErrNotFound)
}

func (nowhere) List(context.Context, string, func(snapshot.Object) error) error { return nil }
func (nowhere) Delete(context.Context, string) error                            { return nil }
func (nowhere) Location(key string) string                                      { return key }
func (nowhere) Close() error                                                    { return nil }

// agentExpectMember is the init container of a first member whose data was copied by
// agentCopyMember: etcd is not started without that, and is whenever the Pod starts on its node
// later.
func agentExpectMember() *cobra.Command {
	var (
		member         restoreFlags
		wanted, origin string
	)
	return agentCommand("expect-member", "See that a first member has the data that was made for it", func(f *pflag.FlagSet) {
		member.flags(f)
		f.StringVar(&wanted, "wanted", "", "what the Pod says: empty once the cluster has formed, and then nothing is expected")
		f.StringVar(&origin, "origin", "", "what the data directory must say that it was made of")
	}, func(*cobra.Command) (r agentResult, err error) {
		if wanted == "" {
			return r, nil
		}
		options, err := member.read(time.Now())
		if err == nil && !options.Done(origin) {
			err = errors.New("the volume does not have the data that was copied to it")
		}
		return r, err
	})
}
