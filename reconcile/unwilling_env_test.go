//go:build env

package reconcile_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/hostlet"
)

// Quorate refuses every value of which it is known that etcd ends, or never serves, with it
// (docs/options.md). The etcds of these tests do so with values of a flag that it takes.
const (
	unwilling   = "cors"
	wrongOrigin = "http://wrong:1" // they end
	muteOrigin  = "http://mute:1"  // they never serve
	hungOrigin  = "http://hung:1"  // they open no port
)

func wrongOptions(c *api.EtcdCluster) {
	c.Spec.Options = &api.Options{Flags: map[string]string{unwilling: wrongOrigin}}
}

func muted(c *api.EtcdCluster) {
	c.Spec.Options = &api.Options{Flags: map[string]string{unwilling: muteOrigin}}
}

// hung is one whose process opens no port.
func hung(c *api.EtcdCluster) {
	c.Spec.Options = &api.Options{Flags: map[string]string{unwilling: hungOrigin}}
}

// released gives the released binaries of etcd, with an etcd that is unwilling where it is told to.
func released(t *testing.T) registry {
	var mu sync.Mutex
	dirs := map[string]string{}
	return func(ctx context.Context, version string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if dirs[version] != "" {
			return dirs[version], nil
		}
		etcd, err := hostlet.Released(ctx, version)
		if err != nil {
			return "", err
		}
		dir := t.TempDir()
		script := fmt.Sprintf(`#!/bin/sh
case "$*" in
*--%[1]s=%[2]s*) set -- "$@" --%[4]scompact-hash-check-time=0s ;;
*--%[1]s=%[3]s*) set -- "$@" --max-request-bytes=8 ;;
*--%[1]s=%[6]s*) exec /usr/bin/tail -f /dev/null ;;
esac
exec %[5]s "$@"
`, unwilling, wrongOrigin, muteOrigin, prefix(version), filepath.Join(etcd, "etcd"), hungOrigin)
		if err := os.WriteFile(filepath.Join(dir, "etcd"), []byte(script), 0o755); err != nil {
			return "", err
		}
		for _, tool := range []string{"etcdctl", "etcdutl"} {
			if err := os.Symlink(filepath.Join(etcd, tool), filepath.Join(dir, tool)); err != nil {
				return "", err
			}
		}
		dirs[version] = dir
		return dir, nil
	}
}

// prefix of what is a flag since 3.6.
func prefix(version string) string {
	if strings.HasPrefix(version, "3.5.") {
		return "experimental-"
	}
	return ""
}
