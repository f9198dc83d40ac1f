package node

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// output runs a command and returns what it printed. Its error carries the end of what the command
// complained about, because that is what a person needs.
func output(cmd *exec.Cmd) ([]byte, error) {
	var stdout bytes.Buffer
	var stderr ending
	cmd.Stdout = &stdout
	if cmd.Stderr == nil {
		cmd.Stderr = &stderr
	}
	if err := cmd.Run(); err != nil {
		return stdout.Bytes(), fmt.Errorf("%s: %w%s", strings.Join(shorten(cmd.Args), " "), err, tail(stderr.String()))
	}
	return stdout.Bytes(), nil
}

// command is exec.CommandContext, but ends the command the way a person would: by asking first, so
// that Docker and debootstrap can clean up.
func command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// goTool runs the go command for a pure Go build, free of the caller's workspace and flags.
func goTool(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := command(ctx, "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=", "GOOS=linux")
	return output(cmd)
}

func docker(ctx context.Context, args ...string) (string, error) {
	out, err := output(command(ctx, "docker", args...))
	return strings.TrimSpace(string(out)), err
}

func shorten(args []string) []string {
	const enough = 6
	if len(args) <= enough {
		return args
	}
	return append(args[:enough:enough], "...")
}

func tail(stderr string) string {
	const enough = 12
	lines := strings.Split(strings.TrimSpace(stderr), "\n")
	if len(lines) > enough {
		lines = lines[len(lines)-enough:]
	}
	if text := strings.Join(lines, "\n"); text != "" {
		return "\n" + text
	}
	return ""
}

// ending keeps the end of what is written to it.
type ending struct{ kept bytes.Buffer }

func (e *ending) Write(p []byte) (int, error) {
	const enough = 64 << 10
	n, err := e.kept.Write(p)
	if extra := e.kept.Len() - enough; extra > 0 {
		e.kept.Next(extra)
	}
	return n, err
}

func (e *ending) String() string { return e.kept.String() }
