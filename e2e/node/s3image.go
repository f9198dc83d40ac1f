package node

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
)

// S3Image is the reference of an image of an S3 server (versitygw) that keeps its objects in a
// directory. S3Manifests run it.
const S3Image = "quorate-s3:dev"

// S3Manifests are a Deployment, a Service and a Secret: an S3 server at http://s3:7070 with the
// bucket "backups", for any namespace. The Secret "s3-credentials" has the keys that the AWS SDK
// reads from the environment. Its objects go with its Pod.
//
//go:embed s3.yaml
var S3Manifests []byte

// BuildS3Image sees to it that Docker has S3Image. It is built from the server's module: no
// registry has it under this name.
func BuildS3Image(ctx context.Context) error {
	unlock, err := lock(ctx, "s3-image")
	if err != nil {
		return err
	}
	defer unlock()
	if hasImage(ctx, S3Image) {
		return nil
	}
	server, err := S3(ctx)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "quorate-s3-")
	if err != nil {
		return fmt.Errorf("build image %s: %w", S3Image, err)
	}
	defer func() { _ = os.RemoveAll(dir) }() // temporary
	image := imageSpec{
		Ref:        S3Image,
		Files:      []imageFile{program(server, "usr/local/bin/"+filepath.Base(server))},
		Entrypoint: []string{"/usr/local/bin/" + filepath.Base(server)},
	}
	if err := image.pipeTo(command(ctx, "docker", "load"), dir); err != nil {
		return err
	}
	say("built %s", S3Image)
	return nil
}
