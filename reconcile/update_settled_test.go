package reconcile

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// TestAdjust holds what etcd is told of a downgrade, and that nothing is written for it.
func TestAdjust(t *testing.T) {
	t.Parallel()
	down := func(w *world) {
		w.runs("3.7.3", image37, "db-0", "db-1", "db-2")
		w.cluster.Spec.Version = "3.6.16"
	}
	told := func(w *world) {
		for name, e := range w.asked.endpoints {
			e.Downgrade = membership.Version{Major: 3, Minor: 6}
			w.asked.endpoints[name] = e
		}
	}
	refused := errors.New("etcd: no")
	cases := map[string]struct {
		reason string
		given  func(*world)
		etcd   error
		want   []string
		events []string
	}{
		"Downgrade": {
			reason: "the leader, by the version that comes", given: down,
			want: []string{"downgrade to 3.6.16 at db-1"}, events: []string{"Normal Downgrading having etcd make its data readable for 3.6"},
		},
		"Cancel": {
			reason: "the spec goes up again", given: func(w *world) { down(w); told(w); w.cluster.Spec.Version = "3.7.3" },
			want: []string{"cancel downgrade at db-1"}, events: []string{"Normal Downgrading taking back the downgrade to 3.6"},
		},
		"Refused": {reason: "the error is handed on, and no event tells of a change", given: down, etcd: refused, want: []string{"downgrade to 3.6.16 at db-1"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			tc.given(&w)
			w.address()
			var got []string
			s := newStub(t, nil, w.objects()...)
			s.Dial = w.dial(func(request string) error { got = append(got, request); return tc.etcd })
			seen, err := s.observe(t.Context(), w.cluster, s.Client)
			if err != nil {
				t.Fatal(err)
			}
			step := membership.Plan(desired(w.cluster), seen.Observed)
			if err := s.take(t.Context(), w.cluster, seen, step); !errors.Is(err, tc.etcd) {
				t.Errorf("%s: error is %v, want %v", tc.reason, err, tc.etcd)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: %s: -want +got:\n%s", tc.reason, step, diff)
			}
			if diff := cmp.Diff(tc.events, s.told()); diff != "" || !cmp.Equal(s.writes, []write{{Verb: "apply", Kind: "status"}}) {
				t.Errorf("%s: writes %v, events: -want +got:\n%s", tc.reason, s.writes, diff)
			}
		})
	}
}

// TestRecordChanged holds what is written on the volume of a member that has answered from what it
// was changed to.
func TestRecordChanged(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason             string
		before, next, runs string
		young              bool // it has been ready for a moment
		want               map[string]string
	}{
		"Minor":     {reason: "it ran that last", before: "3.6.16", runs: "3.7.3", want: map[string]string{api.AnnotationVersion: "3.7.3"}},
		"Recreated": {reason: "and nothing comes next", before: "3.6.16", next: "3.7.3", runs: "3.7.3", want: map[string]string{api.AnnotationVersion: "3.7.3"}},
		"Young":     {reason: "it may end a moment later: its Pod is to be made again of what it was changed to then", before: "3.6.16", next: "3.7.3", runs: "3.7.3", young: true, want: map[string]string{api.AnnotationVersion: "3.7.3", api.AnnotationNext: "3.7.3"}},
		"FromFive":  {reason: "whichever Pod runs on it reads the log of 3.5", before: "3.5.35", runs: "3.6.16", want: map[string]string{api.AnnotationVersion: "3.6.16", api.AnnotationReplays: membership.ReplaysAny}},
		"ToFive":    {reason: "back again", before: "3.6.16", runs: "3.5.35", want: map[string]string{api.AnnotationVersion: "3.5.35"}},
		"OtherFive": {reason: "a patch of it", before: "3.5.35", runs: "3.5.34", want: map[string]string{api.AnnotationVersion: "3.5.34"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.runs(tc.runs, "gcr.io/etcd-development/etcd:v"+tc.runs, "db-0")
			w.claims["db-0"].Annotations[api.AnnotationVersion] = tc.before
			if tc.next != "" {
				w.claims["db-0"].Annotations[api.AnnotationNext] = tc.next
			}
			w.cluster.Spec.Version = tc.runs
			w.address()
			w.managed()
			if tc.young {
				w.pods["db-0"].Status.ContainerStatuses[0].State.Running = &corev1.ContainerStateRunning{StartedAt: metav1.Now()}
			}
			s, seen := w.look(t)
			step := membership.Plan(desired(w.cluster), seen.Observed)
			if step.Action != membership.Record {
				t.Fatalf("%s: the step is %s", tc.reason, step)
			}
			if err := s.take(t.Context(), w.cluster, seen, step); err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for _, key := range []string{api.AnnotationVersion, api.AnnotationNext, api.AnnotationReplays} {
				if value, ok := s.marks["PersistentVolumeClaim db-0"][key]; ok {
					got[key] = value
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFailedChange: a change that did not work is given up for the spec that asks for it, and for
// no other.
func TestFailedChange(t *testing.T) {
	t.Parallel()
	for _, generation := range []int64{6, 7} {
		c := newCluster() // of generation 7
		c.Status.FailedChange = &api.FailedChange{Generation: generation, Message: "it did not work"}
		want := map[int64]string{7: "it did not work"}[generation]
		if got := desired(c).GivenUp; got != want {
			t.Errorf("generation %d: given up is %q, want %q", generation, got, want)
		}
		next := status(c, healthy(), membership.Step{Action: membership.None, Reason: membership.Healthy, Message: "x"})
		if kept := next.FailedChange != nil; kept != (want != "") {
			t.Errorf("generation %d: it is kept in the status: %t", generation, kept)
		}
	}
}

// TestSettled holds when a Pod that was changed under its container counts as changed.
func TestSettled(t *testing.T) {
	t.Parallel()
	const before = "containerd://before"
	running := func(id string) corev1.ContainerStatus {
		return corev1.ContainerStatus{ContainerID: id, State: isRunning}
	}
	resize := func(s corev1.ContainerStatus) corev1.ContainerStatus {
		s.Resources = &corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1")}}
		return s
	}
	cases := map[string]struct {
		reason    string
		previous  string
		image     string // that the Pod has
		status    []corev1.ContainerStatus
		cpu       string
		runs, ran membership.Version // what the Pod is to run, and what has run on the volume
		answered  bool
		unsettled bool
	}{
		"Unchanged":     {reason: "nothing was changed", status: etcdStatus(running("containerd://x")), answered: true},
		"UnchangedDown": {reason: "nothing was changed, whatever it does", status: etcdStatus(corev1.ContainerStatus{State: waiting("CrashLoopBackOff", "")})},
		"Before":        {reason: "the container of before answers", previous: before + " " + image36, status: etcdStatus(running(before)), answered: true, unsettled: true},
		"After":         {reason: "the one that came after it answers", previous: before + " " + image36, status: etcdStatus(running("containerd://after")), answered: true},
		"Silent":        {reason: "it does not answer yet", previous: before + " " + image36, status: etcdStatus(running("containerd://after")), unsettled: true},
		"Recorded":      {reason: "it has answered once, and that was written down", previous: before + " " + image36, status: etcdStatus(running("containerd://after")), runs: membership.Version{Major: 3, Minor: 7, Patch: 3}, ran: membership.Version{Major: 3, Minor: 7, Patch: 3}},
		"NotRunning":    {reason: "what answered has ended since", previous: before + " " + image36, status: etcdStatus(corev1.ContainerStatus{ContainerID: "containerd://after", State: exited(0, "", "")}), answered: true, unsettled: true},
		"NoStatus":      {reason: "the kubelet says nothing", previous: before + " " + image36, answered: true, unsettled: true},
		"FirstOfAll":    {reason: "it was changed before its container was made", previous: " " + image36, status: etcdStatus(running("containerd://first")), answered: true},
		"Rewritten":     {reason: "a policy makes another image of it than ran before", previous: before + " " + image36 + " mirror.example.com/etcd:v3.6.16", image: "mirror.example.com/etcd:v3.7.3", status: etcdStatus(running(before)), answered: true, unsettled: true},
		"RewrittenSame": {reason: "a policy makes of it what ran before, and no container is restarted for that", previous: before + " " + image36 + " mirror.example.com/etcd:v3.6.16", image: "mirror.example.com/etcd:v3.6.16", status: etcdStatus(running(before)), answered: true},
		"RewrittenDown": {reason: "the same of one that does not answer: no image can be rolled back", previous: before + " " + image36 + " mirror.example.com/etcd:v3.6.16", image: "mirror.example.com/etcd:v3.6.16", status: etcdStatus(corev1.ContainerStatus{ContainerID: before, State: waiting("CrashLoopBackOff", "")})},
		"Resized":       {reason: "it has what was asked for", cpu: "1", status: etcdStatus(resize(running("containerd://x"))), answered: true},
		"Resizing":      {reason: "it has not yet", cpu: "2", status: etcdStatus(resize(running("containerd://x"))), answered: true, unsettled: true},
		"ResizingDown":  {reason: "a container that is away gets it when it comes, and no image could be rolled back", cpu: "2", status: etcdStatus(resize(corev1.ContainerStatus{State: waiting("CrashLoopBackOff", "")}))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := newPod("db-0")
			pod.Spec.Containers = []corev1.Container{{Name: render.Container, Image: tc.image}}
			if tc.cpu != "" {
				pod.Spec.Containers[0].Resources.Requests = corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(tc.cpu)}
			}
			pod.Status.ContainerStatuses = tc.status
			if tc.previous != "" {
				pod.Annotations[api.AnnotationPrevious] = tc.previous
			}
			i := membership.Instance{Pod: membership.Pod{Version: tc.runs}, Volume: membership.Volume{Version: tc.ran}}
			if tc.answered {
				i.Endpoint.MemberID = 0xa0
			}
			if got := unsettled(pod, i); got != tc.unsettled {
				t.Errorf("%s: %t", tc.reason, got)
			}
		})
	}
}

// TestFailing holds what counts as tried more than once.
func TestFailing(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		status []corev1.ContainerStatus
		want   bool
	}{
		"NoStatus":    {reason: "the kubelet says nothing"},
		"Running":     {reason: "it runs", status: etcdStatus(corev1.ContainerStatus{State: isRunning})},
		"Creating":    {reason: "it is being made", status: etcdStatus(corev1.ContainerStatus{State: waiting("ContainerCreating", "")})},
		"FirstPull":   {reason: "the first pull has failed, and the next comes at once", status: etcdStatus(corev1.ContainerStatus{State: waiting("ErrImagePull", "")})},
		"Exited":      {reason: "it has ended once", status: etcdStatus(corev1.ContainerStatus{State: exited(1, "Error", "")})},
		"Pulling":     {reason: "the next pull is put off", status: etcdStatus(corev1.ContainerStatus{State: waiting("ImagePullBackOff", "")}), want: true},
		"InvalidName": {reason: "no pull ever helps", status: etcdStatus(corev1.ContainerStatus{State: waiting("InvalidImageName", "")}), want: true},
		"NeverPulled": {reason: "nor here", status: etcdStatus(corev1.ContainerStatus{State: waiting("ErrImageNeverPull", "")}), want: true},
		"Crashing":    {reason: "the next start is put off", status: etcdStatus(corev1.ContainerStatus{State: waiting("CrashLoopBackOff", "")}), want: true},
		"Config":      {reason: "it cannot be made", status: etcdStatus(corev1.ContainerStatus{State: waiting("CreateContainerConfigError", "no such user")}), want: true},
		"NotCreated":  {reason: "nor here", status: etcdStatus(corev1.ContainerStatus{State: waiting("CreateContainerError", "")}), want: true},
		"NotStarted":  {reason: "there is no such program in it", status: etcdStatus(corev1.ContainerStatus{State: waiting("RunContainerError", "")}), want: true},
		"NotRead":     {reason: "its runtime cannot look at the image", status: etcdStatus(corev1.ContainerStatus{State: waiting("ImageInspectError", "")}), want: true},
		"Hook":        {reason: "a hook of its start fails", status: etcdStatus(corev1.ContainerStatus{State: waiting("PostStartHookError", "")}), want: true},
		"AtTheGate":   {reason: "that is where a member to come is to wait", status: etcdStatus(corev1.ContainerStatus{State: waiting("CreateContainerConfigError", "missing value for INITIAL_CLUSTER_STATE")})},
		"AnotherOne":  {reason: "a container that a user has added", status: []corev1.ContainerStatus{{Name: "proxy", State: waiting("CrashLoopBackOff", "")}}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := newPod("db-0")
			pod.Status.ContainerStatuses = tc.status
			if got := failing(pod); got != tc.want {
				t.Errorf("%s: %t", tc.reason, got)
			}
		})
	}
}

// TestPutOff: a container that was never tried has not failed, whatever ran in its Pod before.
func TestPutOff(t *testing.T) {
	t.Parallel()
	backOff := func(ran string) []corev1.ContainerStatus {
		return etcdStatus(corev1.ContainerStatus{ContainerID: ran, State: waiting("CrashLoopBackOff", ""), LastTerminationState: exited(2, "Error", "panic: no")})
	}
	type facts struct {
		PutOff, Failing, Damaged bool
		Problem                  string
	}
	cases := map[string]struct {
		reason   string
		previous string
		status   []corev1.ContainerStatus
		want     facts
	}{
		"Untried": {
			reason: "it is the container of before that has ended", previous: "containerd://1 etcd:v3.5.35", status: backOff("containerd://1"),
			want: facts{PutOff: true, Problem: "is started later by its kubelet, since the same image ran in its Pod lately (CrashLoopBackOff)"},
		},
		"Tried": {
			reason: "it is the one that came after the change", previous: "containerd://1 etcd:v3.5.35", status: backOff("containerd://2"),
			want: facts{Failing: true, Damaged: true, Problem: "exited with code 2: panic: no"},
		},
		"Unchanged": {
			reason: "nothing was changed", status: backOff("containerd://1"),
			want: facts{Failing: true, Damaged: true, Problem: "exited with code 2: panic: no"},
		},
		"Pulling": {
			reason: "a new Pod would have to pull the same", previous: "containerd://1 etcd:v3.5.35",
			status: etcdStatus(corev1.ContainerStatus{ContainerID: "containerd://1", Image: "etcd", State: waiting("ImagePullBackOff", "")}),
			want:   facts{Failing: true, Problem: "cannot pull the image etcd"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := newPod("db-0")
			if tc.previous != "" {
				metav1.SetMetaDataAnnotation(&pod.ObjectMeta, api.AnnotationPrevious, tc.previous)
			}
			pod.Status.ContainerStatuses = tc.status
			got := podFacts(newCluster(), pod, limits{})
			if diff := cmp.Diff(tc.want, facts{got.PutOff, got.Failing, got.Damaged, got.Problem}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
