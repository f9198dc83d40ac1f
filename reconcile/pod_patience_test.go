package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// etcdStatus is that of the container of etcd.
func waiting(reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: reason, Message: message}}
}

func etcdStatus(s corev1.ContainerStatus) []corev1.ContainerStatus {
	s.Name = render.Container
	return []corev1.ContainerStatus{s}
}

func exited(code int32, reason, message string) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, Message: message}}
}

var isRunning = corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}

// readiness of a Pod, and since when.
func readiness(value corev1.ConditionStatus, since time.Time) corev1.PodCondition {
	return corev1.PodCondition{Type: corev1.PodReady, Status: value, LastTransitionTime: metav1.NewTime(since)}
}

func unschedulablePod(message string) corev1.PodCondition {
	return corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: message}
}

// TestPatience holds what is known of a Pod that does not run, of how bad it is, and of how long it
// has lasted.
func TestPatience(t *testing.T) {
	now := time.Date(2026, 5, 1, 10, 0, 0, 0, time.UTC)
	for3, for6 := now.Add(-3*time.Minute), now.Add(-6*time.Minute) // more than two, and more than five minutes
	const crash, lost = "exited with code 2", "cannot be scheduled: 0/2 nodes are available: 2 node(s) had volume node affinity conflict"
	crashing := etcdStatus(corev1.ContainerStatus{State: exited(2, "Error", ""), RestartCount: 4})
	silent := func(p *corev1.Pod, since time.Time) {
		p.Spec.NodeName = "node-1"
		p.Status.ContainerStatuses = etcdStatus(corev1.ContainerStatus{Ready: true, State: isRunning})
		p.Status.Conditions = []corev1.PodCondition{readiness(corev1.ConditionFalse, since), {Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
	}
	gated := corev1.ContainerStatus{State: waiting("CreateContainerConfigError", "missing value for INITIAL_CLUSTER_STATE")}
	provisioner := func(p *corev1.Pod) { p.Annotations = map[string]string{api.AnnotationProvisions: "true"} }
	cases := map[string]struct {
		reason string
		after  *api.Duration
		mutate func(*corev1.Pod)
		want   membership.Pod
	}{
		"Crashing": {
			reason: "for three minutes: it is overdue, and may yet mend",
			mutate: func(p *corev1.Pod) {
				p.Status.ContainerStatuses, p.Status.Conditions = crashing, []corev1.PodCondition{readiness(corev1.ConditionFalse, for3)}
			},
			want: membership.Pod{Problem: crash, Overdue: true, Damaged: true},
		},
		"CrashingForLong": {
			reason: "for longer than the spec waits, by default five minutes",
			mutate: func(p *corev1.Pod) {
				p.Status.ContainerStatuses, p.Status.Conditions = crashing, []corev1.PodCondition{readiness(corev1.ConditionFalse, for6)}
			},
			want: membership.Pod{Problem: crash, Overdue: true, Damaged: true, Forsaken: true},
		},
		"CrashingImpatient": {
			reason: "the spec waits for a minute", after: new(api.Duration("1m")),
			mutate: func(p *corev1.Pod) {
				p.Status.ContainerStatuses, p.Status.Conditions = crashing, []corev1.PodCondition{readiness(corev1.ConditionFalse, for3)}
			},
			want: membership.Pod{Problem: crash, Overdue: true, Damaged: true, Forsaken: true},
		},
		"CrashingPatient": {
			reason: "the spec waits for an hour", after: new(api.Duration("1h")),
			mutate: func(p *corev1.Pod) {
				p.Status.ContainerStatuses, p.Status.Conditions = crashing, []corev1.PodCondition{readiness(corev1.ConditionFalse, for6)}
			},
			want: membership.Pod{Problem: crash, Overdue: true, Damaged: true},
		},
		"CrashingForEver": {
			reason: "the spec waits for ever", after: new(api.Never),
			mutate: func(p *corev1.Pod) {
				p.Status.ContainerStatuses, p.Status.Conditions = crashing, []corev1.PodCondition{readiness(corev1.ConditionFalse, for6)}
			},
			want: membership.Pod{Problem: crash, Overdue: true, Damaged: true},
		},
		"UnpulledForLong": {
			reason: "another member would need the same image",
			mutate: func(p *corev1.Pod) {
				p.Status.ContainerStatuses = etcdStatus(corev1.ContainerStatus{Image: "x", State: corev1.ContainerState{
					Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff"},
				}})
				p.CreationTimestamp = metav1.NewTime(for6)
			},
			want: membership.Pod{Problem: "cannot pull the image x", NeverRan: true, Failing: true, ImageUnavailable: true, Overdue: true},
		},
		"NodeSilent": {
			reason: "the node was heard of three minutes ago for the last time",
			mutate: func(p *corev1.Pod) { silent(p, for3) },
			want:   membership.Pod{Away: true, Problem: "is on a node that does not answer (node-1)", Overdue: true, Damaged: true},
		},
		"NodeSilentForLong": {
			reason: "it is given up",
			mutate: func(p *corev1.Pod) { silent(p, for6) },
			want:   membership.Pod{Away: true, Problem: "is on a node that does not answer (node-1)", Overdue: true, Damaged: true, Forsaken: true},
		},
		"NodeSilentEvicted": {
			reason: "Kubernetes has given it up, and no kubelet confirms that it is gone",
			mutate: func(p *corev1.Pod) {
				silent(p, for6)
				p.DeletionTimestamp = new(metav1.NewTime(now.Add(-11 * time.Second)))
			},
			want: membership.Pod{Problem: "is on a node that does not answer (node-1)", Overdue: true, Damaged: true, Forsaken: true, Terminating: true},
		},
		"Terminating": {
			reason: "its grace is not over",
			mutate: func(p *corev1.Pod) {
				silent(p, for6)
				p.DeletionTimestamp = new(metav1.NewTime(now.Add(30 * time.Second)))
			},
			want: membership.Pod{Terminating: true},
		},
		"VolumeLost": {
			reason: "the node that had its volume is gone",
			mutate: func(p *corev1.Pod) {
				p.Status.Conditions = []corev1.PodCondition{unschedulablePod("0/2 nodes are available: 2 node(s) had volume node affinity conflict.")}
				p.CreationTimestamp = metav1.NewTime(for6)
			},
			want: membership.Pod{Problem: lost, NeverRan: true, Overdue: true, Damaged: true, Forsaken: true},
		},
		"Unfenced": {
			reason: "on an empty directory it would start again",
			mutate: func(p *corev1.Pod) { p.Annotations[api.AnnotationInitialClusterState] = render.StateNew },
			want:   membership.Pod{NeverRan: true, Unfenced: true},
		},
		"UnfencedJoin": {
			reason: "and so would one that is told of others",
			mutate: func(p *corev1.Pod) { p.Annotations[api.AnnotationInitialCluster] += ",db-1=http://db-1.db.ns.svc:2380" },
			want:   membership.Pod{NeverRan: true, Unfenced: true},
		},
		"Provisioning": {
			reason: "no etcd runs in it, and nothing has to find its data",
			mutate: provisioner,
			want:   membership.Pod{NeverRan: true, Provisions: true},
		},
		"Provisioned": {
			reason: "all but its start is done, which is no problem of a Pod and no end of a member",
			mutate: func(p *corev1.Pod) {
				provisioner(p)
				p.Status.PodIP, p.Status.ContainerStatuses = "10.0.0.3", etcdStatus(gated)
				p.CreationTimestamp = metav1.NewTime(for6)
			},
			want: membership.Pod{NeverRan: true, Provisions: true, Provisioned: true},
		},
		"ProvisionedWithoutAddress": {
			reason: "the others could not find it yet",
			mutate: func(p *corev1.Pod) { provisioner(p); p.Status.ContainerStatuses = etcdStatus(gated) },
			want:   membership.Pod{NeverRan: true, Provisions: true},
		},
		"Released": {
			reason: "the kubelet has not seen yet that it may start", mutate: func(p *corev1.Pod) { p.Status.ContainerStatuses = etcdStatus(gated) },
			want: membership.Pod{NeverRan: true},
		},
		"Inconsistent": {
			reason: "etcd's check accuses one of two members: it is started again without it, however long that takes",
			mutate: func(p *corev1.Pod) {
				p.Status.ContainerStatuses = etcdStatus(corev1.ContainerStatus{
					State:                waiting("CrashLoopBackOff", ""),
					LastTerminationState: exited(1, "Error", `{"level":"fatal","msg":"discovery failed","error":"a0 found data inconsistency with peers"}`),
				})
				p.CreationTimestamp = metav1.NewTime(for6)
			},
			want: membership.Pod{Problem: "exited with code 1: discovery failed: a0 found data inconsistency with peers"},
		},
		"ProvisionerEvicted": {
			reason: "it has prepared nothing",
			mutate: func(p *corev1.Pod) {
				provisioner(p)
				p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}
				p.CreationTimestamp = metav1.NewTime(for3)
			},
			want: membership.Pod{NeverRan: true, Provisions: true, Ended: true, Problem: "has ended (Evicted)", Overdue: true},
		},
		"ProvisionerFails": {
			reason: "it waits for something else than to be let go, and there is no data yet that could be damaged",
			mutate: func(p *corev1.Pod) {
				provisioner(p)
				p.Status.PodIP, p.Status.ContainerStatuses = "10.0.0.3", etcdStatus(corev1.ContainerStatus{State: waiting("CreateContainerConfigError", "no such user")})
				p.CreationTimestamp = metav1.NewTime(for6)
			},
			want: membership.Pod{NeverRan: true, Provisions: true, Problem: "cannot start its container etcd: no such user", Failing: true, Overdue: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			if tc.after != nil {
				c.Spec.Recovery = &api.Recovery{ReplaceAfter: tc.after}
			}
			pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Name: "db-0", UID: "pod", CreationTimestamp: metav1.NewTime(now), Annotations: fenced(c, "db-0"),
			}}
			tc.mutate(pod)
			want := tc.want
			want.UID = "pod"
			r := &Reconciler{StallAfter: 2 * time.Minute}
			got := podFacts(c, pod, r.limits(c, now))
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
