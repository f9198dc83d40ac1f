package node

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// CleanHost undoes what was changed of the machine by this package, the last first, as it was
// written down, and nothing else: what its owner has changed since stays. What cannot be undone
// stays written down.
func CleanHost(ctx context.Context) error {
	h, err := thisHost()
	if err != nil {
		return err
	}
	return h.clean(ctx)
}

func (h *host) clean(ctx context.Context) error {
	return h.records(ctx, func(all []hostRecord) ([]hostRecord, error) {
		if len(all) == 0 {
			say("nothing of this machine was changed")
			return nil, nil
		}
		var left []hostRecord
		var failed []error
		for _, r := range slices.Backward(all) {
			if err := h.undo(ctx, r); err != nil {
				left, failed = append(left, r), append(failed, fmt.Errorf("undo %s: %w", r.Kind, err))
			}
		}
		slices.Reverse(left)
		return left, errors.Join(failed...)
	})
}

func (h *host) undo(ctx context.Context, r hostRecord) error {
	if h.user != 0 {
		return errors.New("run it as the user who made the change, root")
	}
	switch r.Kind {
	case recordInotify:
		return h.undoInotify(r)
	case recordRoutes:
		return h.undoRoutes(ctx)
	case recordRuntime:
		return h.undoRuntime(ctx, r)
	case recordPackages:
		return h.undoPackages(ctx, r)
	default:
		return errors.New("a later version of this program has written that down")
	}
}

func (h *host) undoInotify(r hostRecord) error {
	now, err := h.inotify()
	if err != nil {
		return err
	}
	if now != inotifyWanted {
		say("fs.inotify.max_user_instances is %d, and was set to %d: it stays", now, inotifyWanted)
		return nil
	}
	if err := os.WriteFile(h.path(inotifyFile), []byte(r.Was), 0o600); err != nil {
		return err
	}
	say("fs.inotify.max_user_instances is %s again", r.Was)
	return nil
}

func (h *host) undoRoutes(ctx context.Context) error {
	missing, err := h.lacksRule(ctx)
	if err != nil {
		return err
	}
	if !missing {
		if _, err := h.run(ctx, "ip", append([]string{"-4", "rule", "del"}, hostRule...)...); err != nil {
			return err
		}
	}
	routes, err := h.routes(ctx, hostTable)
	if err != nil {
		return err
	}
	if len(routes) > 0 { // a table without routes cannot be flushed
		if _, err := h.run(ctx, "ip", "-4", "route", "flush", "table", hostTable); err != nil {
			return err
		}
	}
	say("the routing rule and the routes in table %s are gone", hostTable)
	return nil
}

// undoRuntime takes the runtime from Docker. It refuses while containers have it: they could not be
// started again.
func (h *host) undoRuntime(ctx context.Context, r hostRecord) error {
	users, err := h.ofRuntime(ctx)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		return fmt.Errorf("the containers %s have Docker's runtime %s: remove the clusters first (make demo-clean, quorate-kind down)",
			strings.Join(users, ", "), runcWrapperName)
	}
	file := h.path(daemonConfig)
	now, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	was, absent, err := withoutRuntime(now, r)
	if err != nil {
		return fmt.Errorf("%s: %w", daemonConfig, err)
	}
	switch {
	case absent:
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	case !bytes.Equal(now, was):
		if err := replace(file, was, 0o644); err != nil {
			return err
		}
	}
	if err := h.reread(ctx); err != nil {
		return err
	}
	if err := os.Remove(h.path(runcWrapperPath)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_ = os.Remove(filepath.Dir(h.path(runcWrapperPath))) // where nothing else is in it
	say("Docker has no runtime %s any more", runcWrapperName)
	return nil
}

// reread has a running Docker read its configuration, and waits until it has the default runtime of
// before.
func (h *host) reread(ctx context.Context) error {
	pid, err := h.daemonPID()
	if err != nil {
		return nil //nolint:nilerr // no Docker runs: it reads its configuration when it starts
	}
	if err := h.signal(pid, syscall.SIGHUP); err != nil {
		return fmt.Errorf("make Docker read its configuration: %w", err)
	}
	err = answers(ctx, func(ctx context.Context) error {
		if name, err := h.defaultRuntime(ctx); err != nil || name == runcWrapperName {
			return fmt.Errorf("the default runtime is %s: %w", name, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("wait for Docker's default runtime of before: %w", err)
	}
	return nil
}

// withoutRuntime is Docker's configuration as it was, where nothing else has changed in it since;
// else it is as it is now, without the runtime. It is absent where there was no file, and nothing
// would be in it.
func withoutRuntime(now []byte, r hostRecord) (was []byte, absent bool, err error) {
	if made, err := withRuntime([]byte(r.Was)); err == nil && bytes.Equal(made, now) && !bytes.Contains([]byte(r.Was), []byte(runcWrapperName)) {
		return []byte(r.Was), r.Absent, nil
	}
	if len(bytes.TrimSpace(now)) == 0 {
		return now, r.Absent, nil
	}
	settings, before := map[string]any{}, map[string]any{}
	if err := json.Unmarshal(now, &settings); err != nil {
		return nil, false, err
	}
	_ = json.Unmarshal([]byte(r.Was), &before) // it was read before
	changed := false
	if settings["default-runtime"] == runcWrapperName {
		delete(settings, "default-runtime")
		if other, ok := before["default-runtime"]; ok && other != runcWrapperName {
			settings["default-runtime"] = other
		}
		changed = true
	}
	if runtimes, ok := settings["runtimes"].(map[string]any); ok && runtimes[runcWrapperName] != nil {
		delete(runtimes, runcWrapperName)
		if len(runtimes) == 0 {
			delete(settings, "runtimes")
		}
		changed = true
	}
	if !changed {
		return now, false, nil
	}
	was, err = json.MarshalIndent(settings, "", "  ")
	return append(was, '\n'), r.Absent && len(settings) == 0, err
}

// ofRuntime are the containers that have the runtime.
func (h *host) ofRuntime(ctx context.Context) ([]string, error) {
	ids, err := h.run(ctx, "docker", "ps", "--all", "--quiet", "--no-trunc")
	if err != nil || len(bytes.TrimSpace(ids)) == 0 {
		return nil, err
	}
	all, err := h.run(ctx, "docker", append([]string{"inspect", "--format", "{{.HostConfig.Runtime}} {{.Name}}"}, strings.Fields(string(ids))...)...)
	if err != nil {
		return nil, err
	}
	var users []string
	for line := range strings.Lines(string(all)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), runcWrapperName+" /"); ok {
			users = append(users, name)
		}
	}
	return users, nil
}

// undoPackages removes packages. dpkg refuses where another package has come to need one of them,
// where apt-get would remove that as well.
func (h *host) undoPackages(ctx context.Context, r hostRecord) error {
	if _, err := h.run(ctx, "dpkg", append([]string{"--remove"}, r.Packages...)...); err != nil {
		return err
	}
	say("removed the packages %s", strings.Join(r.Packages, ", "))
	return nil
}
