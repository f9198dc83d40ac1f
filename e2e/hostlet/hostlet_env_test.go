//go:build env

package hostlet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"quorate.dev/e2e/node"
)

func TestPodOnClaim(t *testing.T) {
	s := newStage(t)
	pod, pvc := s.single()

	if pod.Status.Phase != corev1.PodRunning || pod.Spec.NodeName != nodeName || pvc.Status.Phase != corev1.ClaimBound {
		t.Errorf("Pod is %s on node %q with claim %s", pod.Status.Phase, pod.Spec.NodeName, pvc.Status.Phase)
	}
	got := map[corev1.PodConditionType]corev1.ConditionStatus{}
	for _, c := range pod.Status.Conditions {
		got[c.Type] = c.Status
	}
	want := map[corev1.PodConditionType]corev1.ConditionStatus{
		corev1.PodScheduled: "True", corev1.PodInitialized: "True", corev1.ContainersReady: "True", corev1.PodReady: "True",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("conditions: -want, +got:\n%s", diff)
	}
	if capacity := pvc.Status.Capacity[corev1.ResourceStorage]; capacity.Cmp(resource.MustParse("1Gi")) != 0 {
		t.Errorf("claim has capacity %s", &capacity)
	}
}

func TestKillKeepsDataWipeLosesIt(t *testing.T) {
	s := newStage(t)
	pod, pvc := s.single()
	s.put(pod, "key", "value")

	s.must(s.host.Kill(s.ns, pod.Name))
	s.waitReady(pod, 1)
	if got := pod.Status.ContainerStatuses[0].LastTerminationState.Terminated; got == nil || got.ExitCode != 137 {
		t.Errorf("last state is %v, want exit code 137", got)
	}
	if got := s.value(pod, "key"); got != "value" {
		t.Errorf("after a kill the key is %q", got)
	}

	s.must(s.host.Terminate(s.ns, pod.Name))
	s.waitReady(pod, 2)

	s.must(s.host.Wipe(t.Context(), s.ns, pvc.Name))
	s.waitReady(pod, 3)
	if got := s.value(pod, "key"); got != "" {
		t.Errorf("after a wipe the key is %q", got)
	}
}

func TestPeersFindEachOtherByName(t *testing.T) {
	s := newStage(t)
	cluster := "a=http://a.peers.$(NAMESPACE).svc:2380,b=http://b.peers.$(NAMESPACE).svc:2380,c=http://c.peers.$(NAMESPACE).svc:2380"
	pods := []*corev1.Pod{etcdPod("a", cluster), etcdPod("b", cluster), etcdPod("c", cluster)}
	for _, pod := range pods {
		s.create(pod, claim(pod.Name)) // the claim last: the Pod waits for it
	}
	for _, pod := range pods {
		s.waitReady(pod, 0)
	}

	members, err := s.etcd(pods[0]).MemberList(t.Context())
	s.must(err)
	for _, m := range members.Members {
		want := "http://" + m.Name + ".peers." + s.ns + ".svc:2380"
		if got := s.host.PeerURL(m.PeerURLs[0]); got != want {
			t.Errorf("PeerURL(%q) = %q, want %q", m.PeerURLs[0], got, want)
		}
		if got := s.host.Substitute(want); got != m.PeerURLs[0] {
			t.Errorf("Substitute(%q) = %q, want %q", want, got, m.PeerURLs[0])
		}
	}

	// The same name is the same member, though the Pod is another.
	again := etcdPod("b", cluster)
	s.delete(pods[1])
	s.waitGone(pods[1])
	s.create(again)
	s.waitReady(again, 0)
	s.put(again, "key", "value")
	if got := s.value(pods[2], "key"); got != "value" {
		t.Errorf("after b was created again c has %q", got)
	}
}

func TestImageChangesInPlace(t *testing.T) {
	s := newStage(t)
	pod, _ := s.single()
	s.put(pod, "key", "value")
	version := func() string {
		status, err := s.etcd(pod).Status(t.Context(), s.etcd(pod).Endpoints()[0])
		s.must(err)
		return status.Version
	}

	s.change(pod, func() { pod.Spec.Containers[0].Image = image("0.0.0") })
	s.waitContainer(pod, "in image pull back-off", func(c *corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && c.State.Waiting.Reason == "ImagePullBackOff"
	})

	s.change(pod, func() { pod.Spec.Containers[0].Image = image(node.Etcd37) })
	s.waitReady(pod, 1)
	if got := version(); got != node.Etcd37 {
		t.Errorf("version is %s, want %s", got, node.Etcd37)
	}
	if got := pod.Status.ContainerStatuses[0].Image; got != image(node.Etcd37) {
		t.Errorf("status has image %s", got)
	}
	if got := s.value(pod, "key"); got != "value" {
		t.Errorf("after the change the key is %q", got)
	}
}

func TestCPUChangesInPlace(t *testing.T) {
	s := newStage(t)
	pod, _ := s.single()
	resize := func(n int64) error {
		from := pod.DeepCopy()
		pod.Spec.Containers[0].Resources.Requests = CPU(n)
		return s.SubResource("resize").Patch(t.Context(), pod, client.StrategicMergeFrom(from))
	}
	s.must(resize(2))
	s.waitContainer(pod, "with two cores", func(c *corev1.ContainerStatus) bool {
		return c.Ready && c.RestartCount == 0 && c.Resources != nil && equality.Semantic.DeepEqual(c.Resources.Requests, CPU(2))
	})
	if err := resize(Cores + 1); !apierrors.HasStatusCause(err, "NodeCapacity") {
		t.Errorf("more cores than the node has: %v", err)
	}
}

func TestClaimSaysWhetherItIsUsed(t *testing.T) {
	s := newStage(t)
	pod, pvc := s.single()
	unused := func(want corev1.ConditionStatus) {
		s.waitFor(pvc, "Unused="+string(want), func() (bool, string) {
			return len(pvc.Status.Conditions) == 1 && pvc.Status.Conditions[0].Status == want, fmt.Sprint(pvc.Status.Conditions)
		})
	}
	unused(corev1.ConditionFalse)
	s.delete(pod)
	unused(corev1.ConditionTrue)
}

func TestRestartReadsAnnotationAgainAndBacksOff(t *testing.T) {
	s := newStage(t)
	pod, _ := s.single()

	s.change(pod, func() { pod.Annotations["log-level"] = "nonsense" })
	s.must(s.host.Kill(s.ns, pod.Name))
	s.waitContainer(pod, "in crash loop back-off", func(c *corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && c.State.Waiting.Reason == "CrashLoopBackOff"
	})
	if log := s.host.Log(s.ns, pod.Name); !strings.Contains(log, "nonsense") {
		t.Errorf("log does not tell why:\n%s", log)
	}

	s.change(pod, func() { pod.Annotations["log-level"] = "error" })
	s.waitContainer(pod, "ready", func(c *corev1.ContainerStatus) bool { return c.Ready })
}

func TestLivenessKillsPausedProcess(t *testing.T) {
	s := newStage(t)
	pod, _ := s.single()

	s.must(s.host.Pause(s.ns, pod.Name))
	s.waitReady(pod, 1)

	s.must(s.host.Pause(s.ns, pod.Name))
	s.must(s.host.Resume(s.ns, pod.Name))
	if got := s.value(pod, "key"); got != "" {
		t.Errorf("after resume the key is %q", got)
	}
}

func TestDeletion(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		pause  bool
		grace  int64
		want   int32 // exit code
	}{
		"Graceful": {
			reason: "etcd ends by the SIGTERM that it is sent",
			grace:  5,
			want:   128 + int32(syscall.SIGTERM),
		},
		"GraceExpires": {
			reason: "a process that does not answer is killed",
			pause:  true,
			grace:  1,
			want:   128 + int32(syscall.SIGKILL),
		},
		"Force": {
			reason: "without grace the object goes first and the process at once",
			grace:  0,
			want:   128 + int32(syscall.SIGKILL),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			pod, _ := s.single()
			w := s.host.worker(client.ObjectKeyFromObject(pod))
			w.mu.Lock()
			r := w.run
			w.mu.Unlock()
			if tc.pause {
				s.must(s.host.Pause(s.ns, pod.Name))
			}
			s.delete(pod, client.GracePeriodSeconds(tc.grace))
			s.waitGone(pod)
			select {
			case <-r.done:
			case <-time.After(patience):
				t.Fatalf("%s: the process lives on", tc.reason)
			}
			if got := r.exitCode(); got != tc.want {
				t.Errorf("%s: exit code %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

func TestClaimOutlivesItsPods(t *testing.T) {
	s := newStage(t)
	pod, pvc := s.single()

	s.delete(pvc)
	s.put(pod, "key", "value") // on a claim that is being deleted
	if _, err := os.Stat(volumeOf(s, pvc)); err != nil {
		t.Errorf("volume of a claim in use: %v", err)
	}
	dir := volumeOf(s, pvc)
	s.delete(pod)
	s.waitGone(pvc, pod)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("volume of a deleted claim: %v", err)
	}
}

func TestUnschedulable(t *testing.T) {
	s := newStage(t)
	pod, pvc := etcdPod("a", "a=http://a.peers.$(NAMESPACE).svc:2380"), claim("a")
	unschedulable := func(message string) {
		t.Helper()
		s.waitFor(pod, "unschedulable", func() (bool, string) {
			for _, c := range pod.Status.Conditions {
				if c.Type == corev1.PodScheduled && strings.Contains(c.Message, message) {
					return c.Reason == corev1.PodReasonUnschedulable, c.Reason
				}
			}
			return false, "no such condition"
		})
	}

	s.create(pod)
	unschedulable(`persistentvolumeclaim "a" not found`)
	pvc.Spec.StorageClassName = new("fast")
	s.create(pvc)
	unschedulable(`storageclass "fast" of persistentvolumeclaim "a" not found`)
}

func TestRunsToCompletion(t *testing.T) {
	s := newStage(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "once"},
		Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever,
			Containers:    []corev1.Container{{Name: "etcdutl", Image: image(node.Etcd36), Command: []string{"etcdutl", "version"}}},
		},
	}
	s.create(pod)
	s.waitFor(pod, "succeeded", func() (bool, string) {
		return pod.Status.Phase == corev1.PodSucceeded, string(pod.Status.Phase)
	})
	if log := s.host.Log(s.ns, "once"); !strings.Contains(log, node.Etcd36) {
		t.Errorf("log is %q", log)
	}
}

func TestSaysWhatItDoesNotDo(t *testing.T) {
	s := newStage(t)
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "configured"},
		Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "etcd", Image: image(node.Etcd36)}},
			Volumes: []corev1.Volume{{
				Name: "ca", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: "ca"}}},
			}},
		},
	}
	s.create(pod)
	s.waitContainer(pod, "refused", func(c *corev1.ContainerStatus) bool {
		return c.State.Waiting != nil && c.State.Waiting.Reason == "CreateContainerConfigError"
	})
	if got, want := pod.Status.ContainerStatuses[0].State.Waiting.Message, "volume ca: only claims, Secrets, emptyDir and downwardAPI are supported"; got != want {
		t.Errorf("message is %q, want %q", got, want)
	}
}

func TestWaitForSaysWhatItSaw(t *testing.T) {
	s := newStage(t)
	pod, _ := s.single()
	patience := errors.New("patience is exhausted")
	ctx, cancel := context.WithCancelCause(t.Context())
	err := s.host.WaitFor(ctx, s, pod, "purple", func() (bool, string) {
		cancel(patience)
		return false, "grey"
	})
	if !errors.Is(err, patience) {
		t.Fatalf("error is %v", err)
	}
	for _, want := range []string{"purple", "grey", "ready true, restarts 0, state running", "ready to serve client requests"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not mention %q:\n%v", want, err)
		}
	}
}

func TestGarbage(t *testing.T) {
	s := newStage(t)
	owner := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}}
	other := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "other"}}
	s.create(owner, other)
	owned := func(name string, by *corev1.ConfigMap) metav1.ObjectMeta {
		return metav1.ObjectMeta{Name: name, OwnerReferences: []metav1.OwnerReference{
			{APIVersion: "v1", Kind: "ConfigMap", Name: by.Name, UID: by.UID, Controller: new(true)},
		}}
	}
	pod, pvc := etcdPod("a", "a=http://a.peers.$(NAMESPACE).svc:2380"), claim("a")
	pod.ObjectMeta, pvc.ObjectMeta = owned("a", owner), owned("a", owner)
	pod.Annotations = map[string]string{"log-level": "info"}
	service := &corev1.Service{ObjectMeta: owned("a", owner), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: owned("a", owner)}
	kept := &corev1.Service{ObjectMeta: owned("b", other), Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone}}
	s.create(pvc, pod, service, budget, kept)
	s.waitReady(pod, 0)

	s.delete(owner)
	s.waitGone(pod, pvc, service, budget)
	s.must(s.Get(t.Context(), client.ObjectKeyFromObject(kept), kept))

	// A namesake is not the owner: this one was orphaned before it was made.
	late := &policyv1.PodDisruptionBudget{ObjectMeta: owned("late", owner)}
	s.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "owner"}})
	s.create(late)
	s.waitGone(late)
}
