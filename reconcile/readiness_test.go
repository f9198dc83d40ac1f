package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// Pods as the kubelet and the node controller write them.

// runningPod is ready, and so is all that is in it.
func runningPod(p *corev1.Pod, since time.Time) {
	p.Spec.NodeName = "node-1"
	p.Spec.Containers = []corev1.Container{{Name: render.Container, Image: "registry.example/etcd:v3.6.16"}}
	p.Status.Phase, p.Status.PodIP = corev1.PodRunning, "10.0.0.3"
	p.Status.ContainerStatuses = etcdStatus(corev1.ContainerStatus{
		Ready: true, Started: new(true),
		State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}},
	})
	p.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(since)},
		{Type: corev1.ContainersReady, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(since)},
	}
}

// withSidecar is ready but for a container beside etcd, as GeneratePodReadyCondition writes it.
func withSidecar(p *corev1.Pod, since time.Time) {
	runningPod(p, since)
	p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Name: "proxy"})
	p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: "proxy", State: isRunning})
	for n := range p.Status.Conditions {
		c := &p.Status.Conditions[n]
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "ContainersNotReady", "containers with unready status: [proxy]"
	}
}

// withGate is ready but for a readiness gate.
func withGate(p *corev1.Pod, since time.Time) {
	runningPod(p, since)
	p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/lb"}}
	c := &p.Status.Conditions[0]
	c.Status, c.Reason, c.Message = corev1.ConditionFalse, "ReadinessGatesNotReady", `corresponding condition of pod readiness gate "example.com/lb" does not exist.`
}

// withNodeAway is as the node controller leaves it: MarkPodsNotReady sets the status of Ready, and
// its time, and nothing else.
func withNodeAway(p *corev1.Pod, since time.Time) {
	runningPod(p, since.Add(-time.Hour))
	p.Status.Conditions[0].Status, p.Status.Conditions[0].LastTransitionTime = corev1.ConditionFalse, metav1.NewTime(since)
}

// crashed is one whose etcd has ended since.
func crashed(p *corev1.Pod, when time.Time) {
	s := containerStatus(p)
	s.Ready, s.State, s.RestartCount = false, exited(2, "Error", ""), 1
	for n := range p.Status.Conditions {
		c := &p.Status.Conditions[n]
		if c.Status == corev1.ConditionTrue {
			c.LastTransitionTime = metav1.NewTime(when)
		}
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "ContainersNotReady", "containers with unready status: [etcd]"
	}
}

// TestReadiness holds what is known of a member by the readiness of its Pod, and since when
// patience with it runs.
func TestReadiness(t *testing.T) {
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	lately, for6, days := now.Add(-10*time.Second), now.Add(-6*time.Minute), now.Add(-48*time.Hour)
	const away, crash = "is on a node that does not answer (node-1)", "exited with code 2"
	serves := membership.Pod{Ready: true, ReadyLong: true}
	lost := func(since time.Time) func(*api.EtcdCluster) {
		return func(c *api.EtcdCluster) {
			c.Status.ClusterID = "c0"
			c.Status.Conditions = append(c.Status.Conditions, metav1.Condition{Type: api.ConditionAvailable, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(since)})
		}
	}
	cases := map[string]struct {
		reason  string
		mutate  func(*corev1.Pod)
		down    time.Time // since when the status says that it is; zero: it does not
		learner bool
		cluster func(*api.EtcdCluster)
		claim   *corev1.PersistentVolumeClaim
		want    membership.Pod
	}{
		"Ready": {
			reason: "all is well",
			mutate: func(p *corev1.Pod) { runningPod(p, days) }, want: serves,
		},
		"ReadyLately": {
			reason: "nothing has had its time yet",
			mutate: func(p *corev1.Pod) { runningPod(p, lately) }, want: membership.Pod{Ready: true},
		},
		"ReadyAndServing": {
			reason: "the cluster serves, as far as the last look has told", cluster: func(c *api.EtcdCluster) { lost(days)(c); c.Status.Conditions[1].Status = metav1.ConditionTrue },
			mutate: func(p *corev1.Pod) { runningPod(p, days) }, want: membership.Pod{Ready: true},
		},
		"ReadyAndLostLately": {
			reason: "nothing answers since a moment ago", cluster: lost(lately),
			mutate: func(p *corev1.Pod) { runningPod(p, days) }, want: membership.Pod{Ready: true},
		},
		"ReadyAndLost": {
			reason: "nothing has answered for minutes", cluster: lost(for6),
			mutate: func(p *corev1.Pod) { runningPod(p, days) }, want: serves,
		},
		"Sidecar": {
			reason: "a container beside etcd is no lost node",
			mutate: func(p *corev1.Pod) { withSidecar(p, for6) }, want: serves,
		},
		"Gate": {
			reason: "nor is a readiness gate",
			mutate: func(p *corev1.Pod) { withGate(p, for6) }, want: serves,
		},
		"NodeAway": {
			reason: "the node controller says so", down: for6.Add(-time.Second),
			mutate: func(p *corev1.Pod) { withNodeAway(p, for6) },
			want:   membership.Pod{Away: true, Problem: away, Overdue: true, Damaged: true, Forsaken: true},
		},
		"NodeAwayOfGate": {
			reason: "a Pod with a gate that was True is on a node, too", down: for6.Add(-time.Second),
			mutate: func(p *corev1.Pod) {
				withNodeAway(p, for6)
				p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/lb"}}
				p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "example.com/lb", Status: corev1.ConditionTrue})
			},
			want: membership.Pod{Away: true, Problem: away, Overdue: true, Damaged: true, Forsaken: true},
		},
		"NodeAwayAndServing": {
			reason: "it has answered until a moment ago, and patience begins now",
			mutate: func(p *corev1.Pod) { withNodeAway(p, for6) },
			want:   membership.Pod{Away: true, Problem: away, Damaged: true},
		},
		"NodeAwaySilentLately": {
			reason: "patience has begun when it was found down", down: lately,
			mutate: func(p *corev1.Pod) { withNodeAway(p, for6) },
			want:   membership.Pod{Away: true, Problem: away, Damaged: true},
		},
		"LearnersNodeAway": {
			reason: "nothing waits longer for a learner, which has no vote", learner: true,
			mutate: func(p *corev1.Pod) { withNodeAway(p, for6) },
			want:   membership.Pod{Away: true, Problem: away, Overdue: true, Damaged: true, Forsaken: true},
		},
		"SidecarAndCrash": {
			reason: "the sidecar has kept the Pod from being ready for days, and etcd has ended a moment ago", down: lately,
			mutate: func(p *corev1.Pod) { withSidecar(p, days); crashed(p, lately) },
			want:   membership.Pod{Problem: crash, Damaged: true},
		},
		"SidecarAndCrashUnseen": {
			reason: "the same before the status says so",
			mutate: func(p *corev1.Pod) { withSidecar(p, days); crashed(p, lately) },
			want:   membership.Pod{Problem: crash, Damaged: true},
		},
		"SidecarAndCrashAnotherDown": {
			reason: "another member has been down for days",
			cluster: func(c *api.EtcdCluster) {
				c.Status.Conditions[0].Status = metav1.ConditionTrue
				c.Status.Members = append(c.Status.Members, api.MemberStatus{Name: "db-1", ID: "a1", DownSince: new(metav1.NewTime(days))})
			},
			mutate: func(p *corev1.Pod) { withSidecar(p, days); crashed(p, lately) },
			want:   membership.Pod{Problem: crash, Damaged: true},
		},
		"SidecarAndCrashForLong": {
			reason: "etcd has been down for long as well", down: for6,
			mutate: func(p *corev1.Pod) { withSidecar(p, days); crashed(p, for6) },
			want:   membership.Pod{Problem: crash, Overdue: true, Damaged: true, Forsaken: true},
		},
		"GateAndCrash": {
			reason: "the containers have stopped being ready a moment ago, whatever the gate says", down: days,
			mutate: func(p *corev1.Pod) { withGate(p, days); crashed(p, lately) },
			want:   membership.Pod{Problem: crash, Damaged: true},
		},
		"GateAndDeleted": {
			reason: "nothing is heard of its node, and nothing was wrong with etcd before", down: days,
			mutate: func(p *corev1.Pod) {
				withGate(p, days)
				p.DeletionTimestamp = new(metav1.NewTime(now.Add(-11 * time.Second)))
			},
			want: membership.Pod{Problem: away, Damaged: true, Terminating: true},
		},
		"NotServing": {
			reason: "etcd runs, and has found no quorum",
			mutate: func(p *corev1.Pod) { runningPod(p, for6); notServing(p, for6) },
			want:   membership.Pod{UnreadyLong: true, Idle: true, IdleLong: true},
		},
		"NotServingLately": {
			reason: "it may be that an election is under way",
			mutate: func(p *corev1.Pod) { runningPod(p, for6); notServing(p, lately) },
			want:   membership.Pod{},
		},
		"Reading": {
			reason:  "it reads its data, of which there is much, and listens nowhere meanwhile",
			cluster: func(c *api.EtcdCluster) { c.Status.DBSize = resource.NewQuantity(4<<30, resource.BinarySI) },
			mutate:  func(p *corev1.Pod) { runningPod(p, for6); notServing(p, for6); containerStatus(p).Started = new(false) },
			want:    membership.Pod{Idle: true},
		},
		"ReadingRestored": {
			reason:  "it reads what was restored, of which no member has told the size yet",
			cluster: func(c *api.EtcdCluster) { c.Status.Restored = &api.RestoredSnapshot{Size: 4 << 30} },
			mutate:  func(p *corev1.Pod) { runningPod(p, for6); notServing(p, for6); containerStatus(p).Started = new(false) },
			want:    membership.Pod{Idle: true},
		},
		"ReadingUnknown": {
			reason: "the EtcdCluster was created again over a volume, which may be full",
			claim: func() *corev1.PersistentVolumeClaim {
				claim := newClaim("db-0")
				claim.Annotations = map[string]string{api.AnnotationClusterID: "c0"}
				claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("8Gi")}
				return claim
			}(),
			mutate: func(p *corev1.Pod) { runningPod(p, for6); notServing(p, for6); containerStatus(p).Started = new(false) },
			want:   membership.Pod{Idle: true},
		},
		"NoPort": {
			reason: "it has hardly any data, and listens nowhere all the same",
			mutate: func(p *corev1.Pod) { runningPod(p, for6); notServing(p, for6); containerStatus(p).Started = new(false) },
			want:   membership.Pod{UnreadyLong: true, Idle: true, IdleLong: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.Status.Members = []api.MemberStatus{{Name: "db-0", ID: "a0", Role: api.RoleFollower}}
			if tc.learner {
				c.Status.Members[0].Role = api.RoleLearner
			}
			c.Status.Conditions = []metav1.Condition{{Type: api.ConditionDegraded, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(days)}}
			if !tc.down.IsZero() {
				c.Status.Members[0].DownSince = new(metav1.NewTime(tc.down))
			}
			if tc.cluster != nil {
				tc.cluster(c)
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-0", UID: "pod", CreationTimestamp: metav1.NewTime(days), Annotations: fenced(c, "db-0")}}
			tc.mutate(pod)
			want := tc.want
			want.UID, want.Version = "pod", membership.Version{Major: 3, Minor: 6, Patch: 16}
			l := (&Reconciler{StallAfter: time.Minute}).limits(c, now)
			l.readingTime = readingTime(databaseToRead(c, tc.claim))
			got := podFacts(c, pod, l)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// notServing is one whose etcd runs, and which its kubelet has found not ready since then.
func notServing(p *corev1.Pod, since time.Time) {
	containerStatus(p).Ready = false
	for n := range p.Status.Conditions {
		c := &p.Status.Conditions[n]
		c.Status, c.Reason, c.Message = corev1.ConditionFalse, "ContainersNotReady", "containers with unready status: [etcd]"
		c.LastTransitionTime = metav1.NewTime(since)
	}
}

// TestHeard: a member that answers is not away, whatever becomes of its kubelet.
func TestHeard(t *testing.T) {
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	for name, answers := range map[string]bool{"Answers": true, "Silent": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			withNodeAway(w.pods["db-1"], now.Add(-time.Hour))
			w.cluster.Status.Members[1].DownSince = new(metav1.NewTime(now.Add(-time.Hour)))
			if !answers {
				delete(w.asked.endpoints, "db-1")
			}
			i, _ := facts(w.cluster, w.pods, w.claims, w.asked, (&Reconciler{StallAfter: time.Minute}).limits(w.cluster, now)).Instance("db-1")
			type known struct {
				Problem                    bool
				Damaged, Overdue, Forsaken bool
			}
			want := known{!answers, !answers, !answers, !answers}
			if diff := cmp.Diff(want, known{i.Pod.Problem != "", i.Pod.Damaged, i.Pod.Overdue, i.Pod.Forsaken}); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// TestAwayForLong: a node of which nothing is heard, and whose Pods are not deleted, holds up a
// change. Kubernetes has had its time then, and a person is told.
func TestAwayForLong(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	cases := map[string]struct {
		reason string
		since  time.Duration
		want   membership.Action
	}{
		"Lately": {reason: "it may come back", since: time.Minute, want: membership.Wait},
		"Evicts": {reason: "Kubernetes is about to delete its Pods", since: 5 * time.Minute, want: membership.Wait},
		"Long":   {reason: "it does not: they tolerate that", since: 7 * time.Minute, want: membership.Stall},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.upgrading()
			withNodeAway(w.pods["db-1"], now.Add(-tc.since))
			o := facts(w.cluster, w.pods, w.claims, w.asked, (&Reconciler{StallAfter: time.Minute}).limits(w.cluster, now))
			got := membership.Plan(desired(w.cluster), o)
			if diff := cmp.Diff(tc.want, got.Action); diff != "" || got.Reason != membership.Changing {
				t.Errorf("%s: %s: -want +got:\n%s", tc.reason, got, diff)
			}
		})
	}
}

func TestBeside(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	cases := map[string]struct {
		reason string
		mutate func(*corev1.Pod)
		want   string
	}{
		"Alone":    {reason: "etcd alone is in it", mutate: func(*corev1.Pod) {}},
		"EtcdDown": {reason: "that is etcd's own", mutate: func(p *corev1.Pod) { p.Status.ContainerStatuses[0].Ready = false }},
		"Sidecar":  {reason: "a container was put beside it", mutate: func(p *corev1.Pod) { withSidecar(p, time.Time{}) }, want: "its container proxy is not ready"},
		"SidecarReady": {reason: "and is ready", mutate: func(p *corev1.Pod) {
			withSidecar(p, time.Time{})
			p.Status.ContainerStatuses[1].Ready = true
		}},
		"NativeSidecar": {
			reason: "an init container that runs on counts as well",
			mutate: func(p *corev1.Pod) {
				p.Spec.InitContainers = []corev1.Container{{Name: "mesh", RestartPolicy: &always}, {Name: "once"}}
			},
			want: "its container mesh is not ready",
		},
		"NativeSidecarReady": {reason: "and it is ready", mutate: func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{Name: "mesh", RestartPolicy: &always}}
			p.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "mesh", Ready: true}}
		}},
		"Gate": {reason: "it was not answered yet", mutate: func(p *corev1.Pod) { withGate(p, time.Time{}) }, want: "its readiness gate example.com/lb is not True"},
		"GateFalse": {
			reason: "it was answered for",
			mutate: func(p *corev1.Pod) {
				withGate(p, time.Time{})
				p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "example.com/lb", Status: corev1.ConditionFalse})
			},
			want: "its readiness gate example.com/lb is not True",
		},
		"GateTrue": {reason: "it is open", mutate: func(p *corev1.Pod) {
			withGate(p, time.Time{})
			p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{Type: "example.com/lb", Status: corev1.ConditionTrue})
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := newPod("db-0")
			runningPod(pod, time.Time{})
			tc.mutate(pod)
			if diff := cmp.Diff(tc.want, unreadyBesideEtcd(pod)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
