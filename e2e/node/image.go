package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/apis/config/defaults"
)

// imageRevision is raised when the way an image is put together changes: the versions of what goes
// in are part of its name already.
const imageRevision = 1

// Image returns the reference of a kind node image that Docker has: the one that kind publishes
// where a registry has it, and one built from source where none does. The minor is one of
// KubernetesMinors; an empty one is the newest.
func Image(ctx context.Context, minor string) (string, error) {
	r, err := releaseOf(minor)
	if err != nil {
		return "", err
	}
	unlock, err := lock(ctx, "node-image")
	if err != nil {
		return "", err
	}
	defer unlock()
	published, built := r.publishedImage(), r.builtImage()
	for _, ref := range []string{published, built} {
		if hasImage(ctx, ref) {
			return ref, nil
		}
	}
	say("pulling %s", published)
	err = pull(ctx, published)
	if err == nil {
		return published, nil
	}
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	say("no registry gives it, so the node image is built from source: %s", lastLine(err))
	if err := r.buildImage(ctx, built); err != nil {
		return "", err
	}
	say("built %s", built)
	return built, nil
}

// publishedImage is the name of the image that a registry may have: for the newest minor the one
// that the kind library defaults to.
func (r release) publishedImage() string {
	if r == newest {
		return defaults.Image
	}
	return publishedRepository + ":v" + r.Kubernetes
}

// builtImage is the name of the image that this package would build.
func (r release) builtImage() string {
	return fmt.Sprintf("%s:v%s-%s", nodeRepository, r.Kubernetes, fingerprint([]any{
		imageRevision, kindVersion, r.nodeRecipes(), debianSuite, debianPackages, debianUnwanted, nodeSetup,
	}))
}

// isBuilt says whether an image was built here, and so lacks what only registries have.
func isBuilt(ref string) bool {
	return strings.HasPrefix(ref, nodeRepository+":")
}

// buildImage puts a node together in a directory and loads it as one layer. It mirrors what
// kind's own Dockerfile and node image build do with a registry at hand.
func (r release) buildImage(ctx context.Context, ref string) error {
	kind, err := kindSources(ctx)
	if err != nil {
		return err
	}
	var debian string
	var programs programDirs
	parts, partsCtx := errgroup.WithContext(ctx)
	parts.Go(func() (err error) { debian, err = debianRoot(partsCtx); return err })
	parts.Go(func() (err error) { programs, err = buildPrograms(partsCtx, r.nodeRecipes()); return err })
	if err := parts.Wait(); err != nil {
		return err
	}

	cache, err := cacheRoot()
	if err != nil {
		return err
	}
	work := filepath.Join(cache, "node-image.partial")
	if err := os.RemoveAll(work); err != nil {
		return fmt.Errorf("remove what an interrupted run left: %w", err)
	}
	defer func() { _ = os.RemoveAll(work) }() // the next run would remove it, too
	root := filepath.Join(work, "root")
	base := filepath.Join(debian, "root.tar")
	say("putting the node together")
	if err := os.MkdirAll(root, 0o755); err != nil {
		return fmt.Errorf("create the node's root: %w", err)
	}
	if _, err := output(command(ctx, "tar", "--numeric-owner", "-C", root, "-xpf", base)); err != nil {
		return fmt.Errorf("unpack the Debian root: %w", err)
	}
	if err := kind.install(root, r.Kubernetes); err != nil {
		return err
	}
	if err := r.installPrograms(programs, root); err != nil {
		return err
	}
	if err := setUp(ctx, programs, root); err != nil {
		return err
	}

	required, err := r.kubeadmImages(ctx, programs)
	if err != nil {
		return err
	}
	names, err := newImageNames(append(required, kind.storageImages...), kind.sandboxImage)
	if err != nil {
		return err
	}
	if err := r.checkEtcd(names); err != nil {
		return err
	}
	say("storing the images that a new node needs")
	if err := storeImages(ctx, programs, root, r.componentImages(programs, root, base, names)); err != nil {
		return err
	}
	say("loading the node image into Docker")
	return loadNode(ctx, root, ref)
}

// loadNode makes a directory a Docker image of one layer: every layer costs time where Docker's
// storage driver is a slow one.
func loadNode(ctx context.Context, root, ref string) error {
	work := filepath.Dir(root)
	packed := filepath.Join(work, "node.tar")
	if _, err := output(command(ctx, "tar", "--numeric-owner", "-C", root, "-cf", packed, ".")); err != nil {
		return fmt.Errorf("pack the node image: %w", err)
	}
	node := imageSpec{
		Ref:        ref,
		Base:       packed,
		Entrypoint: []string{"/usr/local/bin/entrypoint", "/sbin/init"},
		Env:        []string{"container=docker"}, // how systemd knows that it is in a container
		StopSignal: "SIGRTMIN+3",                 // systemd re-executes itself on SIGTERM
	}
	return node.pipeTo(command(ctx, "docker", "load"), work)
}

func (r release) kubeadmImages(ctx context.Context, programs programDirs) ([]string, error) {
	out, err := output(command(ctx, programs.program(r.node(), "kubeadm"),
		"config", "images", "list", "--kubernetes-version", "v"+r.Kubernetes))
	if err != nil {
		return nil, fmt.Errorf("list the images that kubeadm needs: %w", err)
	}
	return strings.Fields(string(out)), nil
}

// checkEtcd fails unless the etcd of this release is of the minor whose flags kubeadm is going to
// use.
func (r release) checkEtcd(names imageNames) error {
	_, tag, _ := strings.Cut(names["etcd"], ":")
	if Minor(tag) != Minor(r.Etcd) {
		return fmt.Errorf("kubeadm %s installs %s, and etcd %s is built for it", r.Kubernetes, names["etcd"], r.Etcd)
	}
	return nil
}

func hasImage(ctx context.Context, ref string) bool {
	_, err := docker(ctx, "image", "inspect", "--format", "{{.Id}}", ref)
	return err == nil
}

func lastLine(err error) string {
	lines := strings.Split(err.Error(), "\n")
	return lines[len(lines)-1]
}
