//go:build env

package reconcile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/node"
	"quorate.dev/e2e/share"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// unvoted is the data directory of an etcd that ended before it wrote a state to its log, as it is
// left where etcd cannot lock its memory (--memory-mlock) or is killed within its first second.
func unvoted(dir string) error {
	metadata, err := proto.Marshal(&etcdserverpb.Metadata{NodeID: new(uint64(0xbeef)), ClusterID: new(uint64(0xcafe))})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(dir, "data", "member", "snap"), 0o700); err != nil {
		return err
	}
	db, err := bbolt.Open(filepath.Join(dir, "data", "member", "snap", "db"), 0o600, nil)
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	w, err := wal.Create(zap.NewNop(), filepath.Join(dir, "data", "member", "wal"), metadata)
	if err != nil {
		return err
	}
	return w.Close()
}

// TestFirstStartUnvoted: etcd of first members has ended before it had voted. It would run on what
// it has left for ever, and elect no leader. The cluster forms all the same.
func TestFirstStartUnvoted(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		size   int32
		mended bool // the spec changes meanwhile
	}{
		"One":       {reason: "it runs for long, and is recreated", size: 1},
		"OneMended": {reason: "the spec was the reason", size: 1, mended: true},
		"Three":     {reason: "the spec was the reason for all of them", size: 3, mended: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for _, version := range share.List(t, node.EtcdVersions(), 1, func(v string) string { return v }) {
				t.Run(version, func(t *testing.T) {
					var there atomic.Bool
					s := newStage(t, agents, images(func(ctx context.Context, version string) (string, error) {
						if !there.Load() {
							return "", errors.New("manifest unknown")
						}
						return node.Etcd(ctx, version)
					}))
					s.operate()
					s.version = version
					c := s.cluster("db", tc.size)
					s.create(c)
					s.await(c, "told that no image is there", func() bool { return is(c, api.ConditionStalled, metav1.ConditionTrue) })
					for n := range int(tc.size) {
						s.must(s.hostlet.Spoil(t.Context(), s.ns, c.MemberName(n), unvoted))
					}
					there.Store(true)
					for n := range int(tc.size) {
						pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: c.MemberName(n), Namespace: s.ns}}
						s.awaitPod(pod, "running", func() bool {
							status := podstatus.Container(pod, render.Container)
							return status != nil && status.State.Running != nil
						})
					}
					if tc.mended {
						s.change(c, func() { c.Spec.Options = &api.Options{SnapshotCount: new(int64(5000))} })
					}
					s.ready(c)
					load := s.load(c)
					load.await(20)
					load.check()
				})
			}
		})
	}
}
