//go:build env

package reconcile_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	api "quorate.dev/api/v1alpha1"
)

// TestPutBackLast: the image in the middle of the way to another minor cannot be pulled for the
// last member. It is rolled back once, and what is next for the others is not asked of it. When the
// image is there again, and the spec is written again, all go on to the end of the way.
func TestPutBackLast(t *testing.T) {
	var pulls atomic.Int32
	var there atomic.Bool
	of := released(t)
	s := newStage(t, images(func(ctx context.Context, version string) (string, error) {
		if version == etcd36 && pulls.Add(1) > 2 && !there.Load() {
			return "", errors.New("manifest unknown")
		}
		return of(ctx, version)
	}))
	s.version = etcd35
	s.operate()
	c := s.cluster("db", 3)
	load := s.laden(c)
	before, _ := s.lives(c)
	who := identityOf(c)
	s.change(c, func() { c.Spec.Version = etcd37 })
	message := s.stalled(c, api.ReasonChangeFailed)
	if says := "with etcd " + etcd36 + " it cannot pull the image"; !strings.Contains(message, says) {
		t.Errorf("the message does not say %q: %s", says, message)
	}
	s.whole(c)
	earlier := 0
	for _, pod := range s.pods(c) {
		if strings.HasSuffix(pod.Spec.Containers[0].Image, etcd35) {
			earlier++
		}
		if pod.UID != before[pod.Name] {
			t.Errorf("%s was recreated", pod.Name)
		}
	}
	if earlier != 1 {
		t.Errorf("%d members have the image of %s, want the last one alone", earlier, etcd35)
	}
	load.await(20)
	there.Store(true)
	s.change(c, func() { c.Spec.Suspend = true })
	s.change(c, func() { c.Spec.Suspend = false })
	s.runs(c, etcd37)
	s.same(c, who)
	load.await(20)
	load.check()
}
