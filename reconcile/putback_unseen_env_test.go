//go:build env

package reconcile_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/node"
	"quorate.dev/reconcile"
)

// dying is a client whose operator gets no further than the first change of an image.
type dying struct {
	deafening
	ctx context.Context
}

func (d *dying) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
	err := d.deafening.Apply(ctx, o, opts...)
	return errors.Join(err, d.ctx.Err())
}

// TestPutBackUnseen: the operator ends as it has changed the image of the only member. The later
// minor serves meanwhile, and takes the data for itself; then the Pod is deleted, and the image is
// gone. An operator that comes back sees none of that. It puts the member back, etcd refuses the
// data, and the member is started with what has run: it serves as soon as its image is there again.
func TestPutBackUnseen(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		from, to string
		reverts  bool
	}{
		"3.6":      {reason: "etcd 3.6 ends with an error", from: etcd36, to: etcd37},
		"3.5":      {reason: "etcd 3.5 ends while it reads the log", from: etcd35, to: etcd36},
		"Reverted": {reason: "the spec is set back before the image is there again: that is a downgrade then", from: etcd36, to: etcd37, reverts: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var gone atomic.Bool
			s := newStage(t, images(func(ctx context.Context, version string) (string, error) {
				if gone.Load() && version == tc.to {
					return "", errors.New("manifest unknown")
				}
				return node.Etcd(ctx, version)
			}))
			dead, die := context.WithCancel(t.Context())
			changed := make(chan string, 1)
			crash := s.operate(func(r *reconcile.Reconciler) {
				r.Client = &dying{ctx: dead, deafening: deafening{
					Client: r.Client, version: tc.to,
					before: func(string) error { return nil },
					after:  func(pod string) { die(); changed <- pod },
				}}
			})
			c := s.cluster("db", 1)
			c.Spec.Version = tc.from
			load := s.laden(c)
			s.change(c, func() { c.Spec.Version = tc.to })
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: <-changed, Namespace: s.ns}}
			crash()
			s.storage(c, tc.to)
			gone.Store(true)
			s.deletePod(pod.Name)
			s.gone(pod)

			s.operate()
			claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: s.ns}}
			s.awaitObject(claim, "marked with what has run", func() bool { return claim.Annotations[api.AnnotationVersion] == tc.to })
			want := tc.to
			if tc.reverts {
				want = tc.from
				s.change(c, func() { c.Spec.Version = tc.from })
			}
			gone.Store(false)
			s.runs(c, want)
			load.await(20)
			load.check()
		})
	}
}

// storage waits until the only member has made its data that of the minor of a version.
func (s *stage) storage(c *api.EtcdCluster, version string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), patience)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond) // nothing tells of it but etcd itself, when it is asked
	defer again.Stop()
	cli := s.etcd(c)
	for {
		ask, done := context.WithTimeout(ctx, time.Second)
		says, err := cli.Status(ask, cli.Endpoints()[0])
		done()
		if err == nil && says.Version == version && says.StorageVersion == version[:len("3.N")]+".0" {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			s.Fatalf("the data is not of %s: %v, %v", version, says, err)
		}
	}
}
