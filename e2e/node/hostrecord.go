package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// hostRecord is a change of the machine, with what is needed to undo it.
type hostRecord struct {
	// Kind is one of the constants below.
	Kind string `json:"kind"`
	// Was is what was there: the number of inotify instances, or Docker's configuration. Absent
	// says that there was no such file.
	Was    string `json:"was,omitempty"`
	Absent bool   `json:"absent,omitempty"`
	// Packages are those that were not installed.
	Packages []string `json:"packages,omitempty"`
}

const (
	recordInotify  = "inotify"
	recordRoutes   = "routes"
	recordRuntime  = "docker-runtime"
	recordPackages = "packages"
)

// hostRecords is the file of all records, in the cache.
const hostRecords = "host-changes.json"

// remember writes a change down, before it is made. Of what was changed before, it stays as it was
// at first.
func (h *host) remember(ctx context.Context, r hostRecord) error {
	return h.records(ctx, func(all []hostRecord) ([]hostRecord, error) {
		n := slices.IndexFunc(all, func(known hostRecord) bool { return known.Kind == r.Kind })
		if n < 0 {
			return append(all, r), nil
		}
		for _, p := range r.Packages {
			if !slices.Contains(all[n].Packages, p) {
				all[n].Packages = append(all[n].Packages, p)
			}
		}
		return all, nil
	})
}

// records changes the file of records, which one process does at a time. What change returns is
// written with its error as well.
func (h *host) records(ctx context.Context, change func([]hostRecord) ([]hostRecord, error)) error {
	unlock, err := lockIn(ctx, h.cache, "host-changes")
	if err != nil {
		return err
	}
	defer unlock()
	file := filepath.Join(h.cache, hostRecords)
	var all []hostRecord
	raw, err := os.ReadFile(file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return fmt.Errorf("read what was changed of this machine: %w", err)
	default:
		if err := json.Unmarshal(raw, &all); err != nil {
			return fmt.Errorf("read what was changed of this machine: %s: %w", file, err)
		}
	}
	all, failed := change(all)
	if len(all) == 0 {
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return errors.Join(failed, err)
		}
		return failed
	}
	raw, err = json.MarshalIndent(all, "", "  ")
	if err == nil {
		err = replace(file, append(raw, '\n'), 0o644)
	}
	if err != nil {
		err = fmt.Errorf("write down what is changed of this machine: %w", err)
	}
	return errors.Join(failed, err)
}

// replace writes a file in one step.
func replace(file string, content []byte, mode fs.FileMode) error {
	if err := writeNew(file+".new", content, mode); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}
