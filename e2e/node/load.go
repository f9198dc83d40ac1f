package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/cluster/nodes"
	"sigs.k8s.io/kind/pkg/cluster/nodeutils"
)

// Load copies images from Docker into every node of a cluster that does not have them yet.
func Load(ctx context.Context, name string, images ...string) error {
	all, err := newProvider().ListInternalNodes(name)
	if err != nil {
		return fmt.Errorf("list the nodes of cluster %s: %w", name, err)
	}
	if len(all) == 0 {
		return fmt.Errorf("there is no cluster %s", name)
	}
	for _, image := range images {
		if err := loadImage(ctx, all, image); err != nil {
			return err
		}
	}
	return nil
}

func loadImage(ctx context.Context, all []nodes.Node, image string) error {
	id, err := docker(ctx, "image", "inspect", "--format", "{{.Id}}", image)
	if err != nil {
		return fmt.Errorf("find image %s: %w", image, err)
	}
	var missing []nodes.Node
	for _, node := range all {
		listing, err := docker(ctx, "exec", node.String(), "ctr", "--namespace=k8s.io", "images", "list")
		if err != nil {
			return fmt.Errorf("list the images of node %s: %w", node, err)
		}
		if !imageListed(listing, image, id) {
			missing = append(missing, node)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	say("loading %s into %d of %d nodes", image, len(missing), len(all))
	dir, err := os.MkdirTemp("", "quorate-load-")
	if err != nil {
		return fmt.Errorf("save image %s: %w", image, err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // temporary
	archive := filepath.Join(dir, "image.tar")
	if _, err := docker(ctx, "save", "--output", archive, image); err != nil {
		return fmt.Errorf("save image %s: %w", image, err)
	}
	loads, _ := errgroup.WithContext(ctx)
	for _, node := range missing {
		loads.Go(func() error {
			f, err := os.Open(archive)
			if err != nil {
				return err
			}
			defer func() { _ = f.Close() }() // only read from
			return nodeutils.LoadImageArchive(node, f)
		})
	}
	if err := loads.Wait(); err != nil {
		return fmt.Errorf("load image %s: %w", image, err)
	}
	return nil
}

// imageListed says whether a node's containerd has an image under this name with this ID. Its list
// has a row for the name and, for the kubelet, one for the ID: they are the same image when they
// have the same digest. A Docker that keeps images in containerd uses that digest as the ID itself.
func imageListed(listing, image, id string) bool {
	digests := map[string]string{}
	for line := range strings.Lines(listing) {
		if columns := strings.Fields(line); len(columns) >= 3 {
			digests[columns[0]] = columns[2]
		}
	}
	digest := digests[fullName(image)]
	return digest != "" && (digest == digests[id] || digest == id)
}

// fullName is the name that containerd knows an image of Docker by.
func fullName(image string) string {
	name, tail, _ := strings.Cut(image, "/")
	if tail == "" {
		image, name = "docker.io/library/"+image, "docker.io"
	}
	if name != "localhost" && !strings.ContainsAny(name, ".:") {
		image = "docker.io/" + image
	}
	if last := image[strings.LastIndex(image, "/"):]; !strings.ContainsAny(last, ":@") {
		image += ":latest"
	}
	return image
}
