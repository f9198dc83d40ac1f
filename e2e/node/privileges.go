package node

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

//go:embed runc-without-sys-resource.sh
var runcWrapper []byte

const (
	runcWrapperName = "runc-without-sys-resource"
	runcWrapperPath = "/usr/local/lib/quorate/" + runcWrapperName
	daemonConfig    = "/etc/docker/daemon.json"
	daemonPIDFile   = "/var/run/docker.pid"
)

// privilegesRefused says whether a privileged container failed because Docker gives it a capability
// that this machine grants to no process.
func privilegesRefused(err error) bool {
	return err != nil && strings.Contains(err.Error(), "unable to apply caps: operation not permitted")
}

// mendPrivileges makes Docker ask for the capabilities that this machine has: a wrapper around
// runc, as the default runtime, leaves CAP_SYS_RESOURCE out of every container. Docker reads its
// configuration again without restarting anything.
func (h *host) mendPrivileges(ctx context.Context) error {
	const why = "privileged containers fail because this machine withholds CAP_SYS_RESOURCE"
	if h.user != 0 {
		return fmt.Errorf("%s: run this once as root, so that Docker gets a runtime that does not ask for it", why)
	}
	pid, err := h.daemonPID()
	if err != nil {
		return fmt.Errorf("%s, and Docker's daemon is not to be found on this machine: %w", why, err)
	}
	file := h.path(daemonConfig)
	current, err := os.ReadFile(file)
	absent := errors.Is(err, os.ErrNotExist)
	if err != nil && !absent {
		return fmt.Errorf("read Docker's configuration: %w", err)
	}
	changed, err := withRuntime(current)
	if err != nil {
		return fmt.Errorf("change %s: %w", daemonConfig, err)
	}
	say("%s: Docker gets a default runtime that does not ask for it (%s, %s), until make host-clean", why, runcWrapperPath, daemonConfig)
	if err := h.remember(ctx, hostRecord{Kind: recordRuntime, Was: string(current), Absent: absent}); err != nil {
		return err
	}
	if err := writeNew(h.path(runcWrapperPath), runcWrapper, 0o755); err != nil {
		return fmt.Errorf("install the runtime: %w", err)
	}
	if err := replace(file, changed, 0o644); err != nil {
		return fmt.Errorf("change %s: %w", daemonConfig, err)
	}
	if err := h.signal(pid, syscall.SIGHUP); err != nil {
		return fmt.Errorf("make Docker read its configuration: %w", err)
	}
	err = answers(ctx, func(ctx context.Context) error {
		name, err := h.defaultRuntime(ctx)
		if err == nil && name != runcWrapperName {
			err = fmt.Errorf("the default runtime is %s", name)
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("wait for Docker's new default runtime: %w", err)
	}
	return nil
}

// withRuntime adds the wrapper to Docker's configuration as the default runtime.
func withRuntime(config []byte) ([]byte, error) {
	settings := map[string]any{}
	if len(strings.TrimSpace(string(config))) > 0 {
		if err := json.Unmarshal(config, &settings); err != nil {
			return nil, err
		}
	}
	runtimes, _ := settings["runtimes"].(map[string]any)
	if runtimes == nil {
		runtimes = map[string]any{}
	}
	if other, ok := settings["default-runtime"]; ok && other != runcWrapperName && other != "runc" {
		return nil, fmt.Errorf("the default runtime is already %v, which would have to leave out CAP_SYS_RESOURCE itself", other)
	}
	runtimes[runcWrapperName] = map[string]any{"path": runcWrapperPath}
	settings["runtimes"] = runtimes
	settings["default-runtime"] = runcWrapperName
	changed, err := json.MarshalIndent(settings, "", "  ")
	return append(changed, '\n'), err
}

// hasRuntime reports whether Docker's configuration names the wrapper already.
func (h *host) hasRuntime() bool {
	config, err := os.ReadFile(h.path(daemonConfig))
	return err == nil && strings.Contains(string(config), runcWrapperName)
}

func (h *host) defaultRuntime(ctx context.Context) (string, error) {
	name, err := h.run(ctx, "docker", "info", "--format", "{{.DefaultRuntime}}")
	return strings.TrimSpace(string(name)), err
}

// daemonPID is the process of a Docker daemon on this machine.
func (h *host) daemonPID() (int, error) {
	raw, err := os.ReadFile(h.path(daemonPIDFile))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(raw)))
}
