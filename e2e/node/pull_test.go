//go:build e2e

package node

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"log"
	"net"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/registry"
)

// TestPull: what a registry has is pulled by the real Docker, and one that has it not, or is none,
// is found out soon.
func TestPull(t *testing.T) {
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	address := server.Listener.Addr().String()
	there := address + "/etcd:v3.6.16"
	var empty bytes.Buffer
	if err := tar.NewWriter(&empty).Close(); err != nil {
		t.Fatal(err)
	}
	load := command(t.Context(), "docker", "import", "-", there)
	load.Stdin = &empty
	if _, err := output(load); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"push", there}, {"image", "rm", there}} {
		if _, err := docker(t.Context(), args...); err != nil {
			t.Fatal(err)
		}
	}
	silent, closed := listen(t), listen(t)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		ref    string
		want   string // part of the error; none where it is empty
	}{
		"There":    {reason: "it is pulled", ref: there},
		"NotThere": {reason: "a registry that has not got it says so", ref: address + "/etcd:v3.6.99", want: "not found"},
		"Closed":   {reason: "where no registry is, that is found out at once", ref: closed.Addr().String() + "/etcd:v3.6.16", want: "connection refused"},
		"Silent":   {reason: "one that never answers is not waited for", ref: silent.Addr().String() + "/etcd:v3.6.16", want: "no answer within"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := pull(t.Context(), tc.ref)
			switch {
			case tc.want == "" && err != nil:
				t.Fatalf("%s: %v", tc.reason, err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Fatalf("%s: error is %v, want one with %q", tc.reason, err, tc.want)
			}
			if has := hasImage(t.Context(), tc.ref); has != (tc.want == "") {
				t.Errorf("%s: Docker has it: %v", tc.reason, has)
			}
		})
	}
	t.Cleanup(func() {
		if _, err := docker(context.WithoutCancel(t.Context()), "image", "rm", there); err != nil {
			t.Error(err)
		}
	})
}

// listen on a port on which nothing answers.
func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // it may be closed already
	return l
}
