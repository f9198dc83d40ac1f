//go:build e2e

package e2e

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/e2e-framework/pkg/features"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/history"
	"quorate.dev/e2e/share"
	"quorate.dev/render"
)

// killedPause is the longest time without an acknowledged write while etcd is killed twenty times
// within a minute. The first back-off of a kubelet is ten seconds, and two members that wait for
// theirs cost more than that.
const killedPause = 10 * time.Second

// TestKilledAgainAndAgain: etcd is killed with SIGKILL twenty times, three seconds apart, on any of
// three members under load, or four times without -long.
func TestKilledAgainAndAgain(t *testing.T) {
	t.Parallel()
	times := 4
	if share.Long() {
		times = 20
	}
	var c *api.EtcdCluster
	var before identity
	var clients *history.Load
	testenv.Test(t, features.New("three members under writes").
		Setup(step(func(s *stage) {
			c = s.cluster("db", 3)
			contract.Watch(s, c)
			s.create(c)
			s.ready(c)
			before = identityOf(c)
			clients = s.load(c, resizeFloor)
		})).
		Assess("etcd is killed again and again", step(func(s *stage) {
			pace := time.NewTicker(3 * time.Second)
			defer pace.Stop()
			members := rand.New(rand.NewPCG(share.Seed(t), 0))
			for range times {
				pods := s.pods(c)
				for _, n := range members.Perm(len(pods)) {
					if s.killEtcd(&pods[n]) {
						break
					}
				}
				<-pace.C
			}
			s.ready(c)
			if diff := cmp.Diff(before, identityOf(c)); diff != "" {
				s.Errorf("identity changed: -want +got:\n%s", diff)
			}
		})).
		Assess("all that clients were told is as one store would have told it", step(func(s *stage) { s.checkLoad(clients, killedPause) })).
		Feature())
}

// killEtcd sends SIGKILL to the process of a member. It reports whether there was one.
func (s *stage) killEtcd(pod *corev1.Pod) bool {
	s.Helper()
	for _, status := range pod.Status.ContainerStatuses {
		id, _ := strings.CutPrefix(status.ContainerID, "containerd://")
		if status.Name != render.Container || status.State.Running == nil || id == "" {
			continue
		}
		pid, err := onNode(s.Context(), "crictl", "inspect", "--output", "go-template", "--template", "{{.info.pid}}", id)
		if err != nil {
			return false // it has ended since
		}
		_, err = onNode(s.Context(), "kill", "-KILL", strings.TrimSpace(pid))
		return err == nil
	}
	return false
}
