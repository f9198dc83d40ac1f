package node

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
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
func mendPrivileges(ctx context.Context) error {
	const why = "privileged containers fail because this machine withholds CAP_SYS_RESOURCE"
	if os.Geteuid() != 0 {
		return fmt.Errorf("%s: run this once as root, so that Docker gets a runtime that does not ask for it", why)
	}
	pid, err := daemonPID()
	if err != nil {
		return fmt.Errorf("%s, and Docker's daemon is not to be found on this machine: %w", why, err)
	}
	say("%s: Docker gets a default runtime that does not ask for it (%s, %s)", why, runcWrapperPath, daemonConfig)
	if err := writeNew(runcWrapperPath, runcWrapper, 0o755); err != nil {
		return fmt.Errorf("install the runtime: %w", err)
	}
	current, err := os.ReadFile(daemonConfig)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read Docker's configuration: %w", err)
	}
	changed, err := withRuntime(current)
	if err != nil {
		return fmt.Errorf("change %s: %w", daemonConfig, err)
	}
	if err := writeNew(daemonConfig+".new", changed, 0o644); err != nil {
		return fmt.Errorf("change %s: %w", daemonConfig, err)
	}
	if err := os.Rename(daemonConfig+".new", daemonConfig); err != nil {
		return fmt.Errorf("change %s: %w", daemonConfig, err)
	}
	if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
		return fmt.Errorf("make Docker read its configuration: %w", err)
	}
	err = answers(ctx, func(ctx context.Context) error {
		name, err := docker(ctx, "info", "--format", "{{.DefaultRuntime}}")
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

// daemonPID is the process of a Docker daemon on this machine.
func daemonPID() (int, error) {
	raw, err := os.ReadFile(filepath.Clean(daemonPIDFile))
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(raw)))
}
