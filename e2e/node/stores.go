package node

import (
	"context"
	"path/filepath"
)

// Object stores that the tests of snapshots speak to: an S3 server over a directory, with real
// signatures (Signature Version 4), and a server of the API of Google Cloud Storage.

func versitygw() recipe {
	return recipe{
		Name:     "versitygw-" + versitygwVersion,
		Requires: []module{{"github.com/versity/versitygw", versitygwVersion}},
		Packages: []string{"github.com/versity/versitygw/cmd/versitygw"},
	}
}

func fakeGCSServer() recipe {
	return recipe{
		Name:     "fake-gcs-server-" + fakeGCSVersion,
		Requires: []module{{"github.com/fsouza/fake-gcs-server", fakeGCSVersion}},
		Packages: []string{"github.com/fsouza/fake-gcs-server"},
	}
}

// S3 returns the path of versitygw, an S3 server over a directory.
func S3(ctx context.Context) (string, error) { return onlyProgram(ctx, versitygw()) }

// GCS returns the path of fake-gcs-server.
func GCS(ctx context.Context) (string, error) { return onlyProgram(ctx, fakeGCSServer()) }

// onlyProgram is the path of the only program of a recipe.
func onlyProgram(ctx context.Context, r recipe) (string, error) {
	dir, err := r.build(ctx)
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, r.programs()[0]), nil
}
