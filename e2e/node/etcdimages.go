package node

import (
	"context"
	"fmt"
	"os"
)

// EtcdImages returns the references of the etcd images of all supported versions, and sees to it
// that Docker has them: pulled where a registry answers, built from etcd's modules where none does.
func EtcdImages(ctx context.Context) ([]string, error) {
	unlock, err := lock(ctx, "etcd-images")
	if err != nil {
		return nil, err
	}
	defer unlock()
	var refs []string
	registry := true
	for _, version := range EtcdVersions() {
		ref := etcdRepository + ":v" + version
		refs = append(refs, ref)
		if hasImage(ctx, ref) {
			continue
		}
		if registry {
			say("pulling %s", ref)
			err := pull(ctx, ref)
			if err == nil {
				continue
			}
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			registry = false // one refusal is enough to know
			say("no registry gives it, so the etcd images are built from source: %s", lastLine(err))
		}
		if err := buildEtcdImage(ctx, version, ref); err != nil {
			return nil, err
		}
	}
	return refs, nil
}

func buildEtcdImage(ctx context.Context, version, ref string) error {
	programs, err := Etcd(ctx, version)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "quorate-etcd-")
	if err != nil {
		return fmt.Errorf("build image %s: %w", ref, err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // temporary
	if err := etcdImage(programs, ref).pipeTo(command(ctx, "docker", "load"), dir); err != nil {
		return err
	}
	say("built %s", ref)
	return nil
}
