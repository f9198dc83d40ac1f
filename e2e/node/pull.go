package node

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// A registry that has not said what an image consists of by now is not going to.
	registryAnswers = 20 * time.Second
	pullCompletes   = 15 * time.Minute
)

// pull asks Docker for an image and waits briefly for the registry to answer at all, but long for
// the layers once it has: Docker prints the first line when it has read the image's manifest.
func pull(ctx context.Context, ref string) error {
	ctx, cancel := context.WithTimeout(ctx, pullCompletes)
	defer cancel()
	cmd := command(ctx, "docker", "pull", ref)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return fmt.Errorf("pull %s: %w", ref, err)
	}
	var complaint ending
	cmd.Stderr = &complaint
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("pull %s: %w", ref, err)
	}
	silent := time.AfterFunc(registryAnswers, cancel)
	lines := bufio.NewScanner(stdout)
	for lines.Scan() {
		silent.Stop()
	}
	err = cmd.Wait()
	switch {
	case err == nil:
		return nil
	case errors.Is(context.Cause(ctx), context.Canceled):
		return fmt.Errorf("pull %s: no answer within %s", ref, registryAnswers)
	}
	return fmt.Errorf("pull %s: %w%s", ref, err, tail(complaint.String()))
}
