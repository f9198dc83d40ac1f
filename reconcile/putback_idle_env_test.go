//go:build env

package reconcile_test

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/hostlet"
	"quorate.dev/reconcile"
	"quorate.dev/render"
)

// TestPutBackIdle: to run is not to serve. A member whose etcd lives on with what is new, and never
// serves, is rolled back like one whose etcd ends; at once where the spec was set back. So is one
// whose process never opens a port.
func TestPutBackIdle(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason     string
		size       int32
		change     func(*api.EtcdCluster) // nil: the version alone, of which the image hangs
		version    string                 // that is asked for as well
		stallAfter time.Duration
		reverted   bool
	}{
		"Three":           {reason: "the others serve all along", size: 3, change: muted, stallAfter: 15 * time.Second},
		"One":             {reason: "no member serves until it is rolled back", size: 1, change: muted, stallAfter: 15 * time.Second},
		"ThreeVersion":    {reason: "the version goes back as well: the cluster is of the earlier minor", size: 3, change: muted, version: etcd37, stallAfter: 15 * time.Second},
		"OneVersion":      {reason: "etcd has taken no data that the earlier one cannot read", size: 1, change: muted, version: etcd37, stallAfter: time.Hour, reverted: true},
		"ThreeReverted":   {reason: "nothing waits for what the spec does not ask for any more", size: 3, change: muted, stallAfter: time.Hour, reverted: true},
		"Hangs":           {reason: "a process that opens no port does not read a log for ever", size: 3, change: hung, stallAfter: 15 * time.Second},
		"HangsReverted":   {reason: "nor is the end of that waited for", size: 3, change: hung, stallAfter: time.Hour, reverted: true},
		"OneHangs":        {reason: "the size of its database is known from before", size: 1, change: hung, stallAfter: 15 * time.Second},
		"Version":         {reason: "the image of a version hangs, and is changed in place", size: 3, version: etcd37, stallAfter: 15 * time.Second},
		"VersionReverted": {reason: "the version alone was set back", size: 3, version: etcd37, stallAfter: time.Hour, reverted: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var with []func(*hostlet.Options)
			if tc.change == nil {
				with = append(with, images(hanging(t, tc.version)))
			}
			s := newStage(t, with...)
			s.operate(func(r *reconcile.Reconciler) { r.StallAfter = tc.stallAfter })
			c := s.cluster("db", tc.size)
			load := s.laden(c)
			before, _ := s.lives(c)
			who := identityOf(c)
			spec := *c.Spec.DeepCopy()
			s.change(c, func() {
				if tc.change != nil {
					tc.change(c)
				}
				c.Spec.Version = cmp.Or(tc.version, c.Spec.Version)
			})
			if tc.reverted {
				s.awaitIdle(c, tc.version)
				s.change(c, func() { c.Spec = spec })
				s.ready(c)
			} else {
				message := s.stalled(c, api.ReasonChangeFailed)
				var news []string
				if tc.version != "" {
					news = append(news, "etcd "+tc.version)
				}
				if tc.change != nil {
					news = append(news, "the new spec.options")
				}
				if says := "with " + strings.Join(news, " and ") + " it runs and does not serve"; !strings.Contains(message, says) {
					t.Errorf("%s: the message does not say %q: %s", tc.reason, says, message)
				}
				s.whole(c)
			}
			recreated := 0
			for _, pod := range s.pods(c) {
				if pod.UID != before[pod.Name] {
					recreated++
				}
				if tc.version != "" && strings.Contains(pod.Spec.Containers[0].Image, tc.version) {
					t.Errorf("%s: %s has the image of %s still", tc.reason, pod.Name, tc.version)
				}
			}
			if names := s.has(c, unwilling); tc.change != nil && recreated != 1 || recreated > 1 || len(names) > 0 {
				t.Errorf("%s: %d Pods were recreated, and %v have the option still", tc.reason, recreated, names)
			}
			s.same(c, who)
			load.await(20)
			load.check()
		})
	}
}

// hanging gives the binaries of released etcds, but for one version, whose etcd opens no port.
func hanging(t *testing.T, hangs string) registry {
	of, dir := released(t), t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "etcd"), []byte("#!/bin/sh\nexec /usr/bin/tail -f /dev/null\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, version string) (string, error) {
		if version == hangs {
			return dir, nil
		}
		return of(ctx, version)
	}
}

// TestIdleFromBirth: a cluster whose etcd has never served does so when the spec is mended. Until
// then it is told what to look at.
func TestIdleFromBirth(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		change func(*api.EtcdCluster)
	}{
		"Muted": {reason: "etcd has read all, and refuses to serve", change: muted},
		"Hung":  {reason: "the process opens no port", change: hung},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.operate(func(r *reconcile.Reconciler) { r.StallAfter = 15 * time.Second })
			c := s.cluster("db", 3)
			tc.change(c)
			s.create(c)
			s.awaitIdle(c, "")
			s.await(c, "told that no member serves", func() bool {
				stalled := meta.FindStatusCondition(c.Status.Conditions, api.ConditionStalled)
				return stalled != nil && strings.Contains(stalled.Message, "enough for a quorum, and does not serve")
			})
			s.change(c, func() { c.Spec.Options = nil })
			s.ready(c)
			if names := s.has(c, unwilling); len(names) > 0 {
				t.Errorf("%s: %v have the option still", tc.reason, names)
			}
		})
	}
}

// awaitIdle waits until the container of a changed Pod runs: one that has the option of an
// unwilling etcd, or the image of that version.
func (s *stage) awaitIdle(c *api.EtcdCluster, version string) {
	s.Helper()
	var changed []string
	s.await(c, "with a member that was changed", func() bool {
		changed = s.has(c, unwilling)
		for _, pod := range s.pods(c) {
			if version != "" && strings.HasSuffix(pod.Spec.Containers[0].Image, version) {
				changed = append(changed, pod.Name)
			}
		}
		return len(changed) > 0
	})
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: changed[0], Namespace: s.ns}}
	s.awaitPod(pod, "running", func() bool {
		status := pod.Status.ContainerStatuses
		return len(status) > 0 && status[0].Name == render.Container && status[0].State.Running != nil &&
			(version == "" || strings.HasSuffix(status[0].Image, version))
	})
}
