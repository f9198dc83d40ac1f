package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// storeImages puts images into the node's containerd, before the node exists: containerd runs on
// this machine, on the node's directory, for just as long as that takes. Nothing is unpacked, so
// nothing is mounted, and the node unpacks with the snapshotter that fits its own disk.
func storeImages(ctx context.Context, programs programDirs, root string, images []imageSpec) (err error) {
	run, err := os.MkdirTemp("", "quorate-containerd-")
	if err != nil {
		return fmt.Errorf("start containerd: %w", err)
	}
	defer func() { _ = os.RemoveAll(run) }() // temporary
	config := filepath.Join(run, "config.toml")
	socket := filepath.Join(run, "sock")
	// Only storing is wanted; the CRI and NRI plugins would set up networks and more sockets.
	settings := `version = 3
disabled_plugins = ["io.containerd.grpc.v1.cri", "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime", "io.containerd.nri.v1.nri"]
`
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		return fmt.Errorf("start containerd: %w", err)
	}
	daemon := command(ctx, programs.program(containerd, "containerd"), "--config", config,
		"--root", filepath.Join(root, "var/lib/containerd"), "--state", filepath.Join(run, "state"), "--address", socket)
	var complaints ending
	daemon.Stderr = &complaints
	if err := daemon.Start(); err != nil {
		return fmt.Errorf("start containerd: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- daemon.Wait() }()
	defer func() {
		_ = daemon.Process.Signal(os.Interrupt) // it may have ended already
		if waitErr := <-ended; err == nil && waitErr != nil {
			err = fmt.Errorf("stop containerd: %w%s", waitErr, tail(complaints.String()))
		}
	}()

	ctr := programs.program(containerd, "ctr")
	if err := answers(ctx, func(ctx context.Context) error {
		_, err := output(command(ctx, ctr, "--address", socket, "version"))
		return err
	}); err != nil {
		return fmt.Errorf("wait for containerd: %w%s", err, tail(complaints.String()))
	}
	for _, image := range images {
		err := image.pipeTo(command(ctx, ctr, "--address", socket, "--namespace", "k8s.io", "images", "import",
			"--label=io.cri-containerd.pinned=pinned", "--all-platforms", "--no-unpack", "--digests", "-"), filepath.Dir(root))
		if err != nil {
			return err
		}
	}
	return nil
}

// answers asks until the answer is no error: for services that do not say when they are ready.
func answers(ctx context.Context, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	again := time.NewTicker(200 * time.Millisecond)
	defer again.Stop()
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-again.C:
		}
	}
}
