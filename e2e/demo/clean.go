package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"quorate.dev/e2e/node"
)

// remove the cluster with all that is in it, and the images of the operator. What took long to
// make, and is no use to any other demo but to the tests, stays.
func remove(ctx context.Context) error {
	if err := node.Down(ctx, name); err != nil {
		return err
	}
	kubeconfig, err := kubeconfigFile()
	if err != nil {
		return err
	}
	if err := os.RemoveAll(kubeconfig); err != nil {
		return fmt.Errorf("remove the kubeconfig: %w", err)
	}
	images, err := output(ctx, "docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "--filter", "reference="+image+"*")
	if err != nil {
		return err
	}
	if refs := strings.Fields(images); len(refs) > 0 {
		if _, err := output(ctx, "docker", append([]string{"image", "rm"}, refs...)...); err != nil {
			return err
		}
	}
	fmt.Printf("Removed the cluster %s, its kubeconfig and the images %s*.\n", name, image)
	fmt.Println("Kept, because the tests use them too: the images of etcd and of the kind node (docker image ls) and the build cache ~/.cache/quorate.")
	return nil
}
