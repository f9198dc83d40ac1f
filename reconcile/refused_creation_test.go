package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// deniesTeam is a policy that takes no object of these kinds with the label team=bad, whether it is
// new or there already.
func (s *stub) deniesTeam(kinds ...string) {
	s.Client = interceptor.NewClient(s.Client.(client.WithWatch), interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			d, err := decode(o)
			if err != nil {
				return err
			}
			if slices.Contains(kinds, d.Kind) && d.Metadata.Labels["team"] == "bad" {
				return forbiddenBy(d.Kind, d.Metadata.Name, "this team is not known")
			}
			return c.Apply(ctx, o, opts...)
		},
	})
}

const servedTeamA = `{"version":"3.6.16","tls":{"mode":"Disabled"},"metadata":{"labels":{"team":"a"}}}`

// labelledA is a world whose Pods were created with the label team=a, with which their members have
// served; the spec asks for team=bad since, which Pods alone get.
func labelledA(t *testing.T) world {
	t.Helper()
	w := serving(t)
	for _, claim := range w.claims {
		claim.Annotations[api.AnnotationServed] = servedTeamA
	}
	w.cluster.Spec.Pod = &api.Pod{Metadata: &api.Metadata{Labels: api.Labels{"team": "a"}}}
	for name := range w.pods {
		w.pods[name] = w.pod(name)
		w.pods[name].Labels["team"] = "a"
	}
	w.cluster.Spec.Pod.Metadata.Labels["team"] = "bad"
	return w
}

// TestRefusedMetadataOfLearner: the API server refuses the labels of the spec on Pods. A lost
// member is to be replaced all the same; the Pod of its successor was created with the labels of
// before. It has to be told that it must find its data from now on, before it may vote: that is no
// label of the spec.
func TestRefusedMetadataOfLearner(t *testing.T) {
	t.Parallel()
	for name, denied := range map[string][]string{"Denied": {"Pod"}, "Control": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			learnerVotes(t, denied)
		})
	}
}

func learnerVotes(t *testing.T, denied []string) {
	t.Helper()
	w := labelledA(t)
	w.learner()
	w.pods["db-3"].Labels["team"] = "a"
	w.claims["db-3"].Annotations[api.AnnotationServed] = servedTeamA
	// It has been started, and has not been recorded yet.
	w.pods["db-3"].Annotations[api.AnnotationInitialCluster] = "db-0=http://db-0.db.ns.svc:2380,db-3=http://db-3.db.ns.svc:2380"
	delete(w.claims["db-3"].Annotations, api.AnnotationClusterID)
	delete(w.claims["db-3"].Annotations, api.AnnotationMemberID)
	// db-2 was lost and removed.
	delete(w.pods, "db-2")
	delete(w.claims, "db-2")
	delete(w.asked.endpoints, "db-2")
	w.asked.members = slices.DeleteFunc(w.asked.members, func(m membership.Member) bool { return m.Name == "db-2" })
	w.address()
	w.managed()
	var took []string
	for range 4 {
		s, seen := w.look(t)
		s.deniesTeam(denied...)
		step := membership.Plan(desired(w.cluster), seen.Observed)
		took = append(took, step.String())
		if step.Action == membership.Promote {
			return
		}
		err := s.act(t.Context(), w.cluster.DeepCopy(), seen, step)
		if err != nil {
			took = append(took, "error: "+err.Error())
		}
		for key, marks := range s.marks {
			switch key {
			case "PersistentVolumeClaim db-3":
				w.claims["db-3"].Annotations = marks
			case "Pod db-3":
				w.pods["db-3"].Annotations = marks
			}
		}
	}
	t.Errorf("the learner is never made a voter, with two voters of three left: %q", took)
}

// TestRefusedMetadataOutOfService: with TLS the Pod of a learner is made out of the Service
// for clients, and let in when it votes and serves. That label is the operator's own.
func TestRefusedMetadataOutOfService(t *testing.T) {
	t.Parallel()
	w := labelledA(t)
	w.pods["db-0"].Labels[api.LabelClients] = api.ClientsOut // it was a learner a moment ago, or was taken out before the labels were edited
	w.address()
	w.managed()
	s, seen := w.look(t)
	s.deniesTeam("Pod")
	step := membership.Plan(desired(w.cluster), seen.Observed)
	err := s.act(t.Context(), w.cluster.DeepCopy(), seen, step)
	if !refuses(err) {
		t.Fatalf("step %s: want a refusal that is told, got %v", step, err)
	}
	if got := s.labels["Pod db-0"][api.LabelClients]; got != api.ClientsIn {
		t.Errorf("a voter that serves stays out of the Service for clients for as long as labels of the spec are refused: label %q", got)
	}
}

// TestRefusedMetadataThenOptions: labels of the spec are refused on Pods, for an hour, and
// that is told. Then good options are asked for. The Pod of the first member is deleted for that,
// and would be created with the labels of before.
func TestRefusedMetadataThenOptions(t *testing.T) {
	t.Parallel()
	w := labelledA(t)
	w.address()
	w.managed()
	s, seen := w.look(t)
	s.deniesTeam("Pod")
	step := membership.Plan(desired(w.cluster), seen.Observed)
	step, err := outcome(t.Context(), step, s.act(t.Context(), w.cluster.DeepCopy(), seen, step))
	if err != nil || step.Action != membership.Stall {
		t.Fatalf("want a stall, got %s, %v", step, err)
	}
	w.cluster.Status = status(w.cluster, seen, step)
	longAgo(w.cluster)

	w.cluster.Generation++
	other(&w)
	s = newStub(t, nil, append(w.objects(), leadsTo("db-0", "db-1", "db-2"))...)
	s.Dial, s.StallAfter = w.dial(nil), time.Minute
	s.proving.look(client.ObjectKeyFromObject(w.cluster), nil, time.Now().Add(-time.Hour))
	s.deniesTeam("Pod")
	if seen, err = s.observe(t.Context(), w.cluster, s.Client); err != nil {
		t.Fatal(err)
	}
	step = membership.Plan(desired(w.cluster), seen.Observed)
	if step.Action != membership.Update {
		t.Fatalf("want an update, got %s", step)
	}
	// The member cannot be taken out of the Service, and the cluster is looked at again after ten
	// seconds.
	told, err := outcome(t.Context(), step, s.act(t.Context(), w.cluster.DeepCopy(), seen, step))
	if err != nil || told.Action != membership.Stall {
		t.Fatalf("want a stall, got %s, %v", told, err)
	}
	w.cluster.Status = status(w.cluster, seen, told)
	name := step.Members[0]
	s.draining.begun.Store(client.ObjectKeyFromObject(w.cluster), drained{step.Members, time.Now().Add(-10 * time.Second)})
	seen.touched = step.Members
	after := w.cluster.DeepCopy()
	if err := s.take(t.Context(), after, seen, step); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(s.writes, func(x write) bool { return x.Verb == "delete" && x.Name == name }) {
		t.Fatalf("the update is not begun: %v", s.writes)
	}
	w.cluster.Status = after.Status
	w.claims[name].Annotations = s.marks["PersistentVolumeClaim "+name]
	delete(w.pods, name)
	delete(w.asked.endpoints, name)

	s = newStub(t, nil, w.objects()...)
	s.Dial, s.StallAfter = w.dial(nil), time.Minute
	seen, err = s.observe(t.Context(), w.cluster, s.Client)
	if err != nil {
		t.Fatal(err)
	}
	if step = membership.Plan(desired(w.cluster), seen.Observed); step.Action != membership.Start {
		t.Errorf("nothing has been tried of the options, and they are given up: %s", step)
	}
}

// longAgo makes what is stalled so for an hour.
func longAgo(c *api.EtcdCluster) {
	meta.FindStatusCondition(c.Status.Conditions, api.ConditionStalled).LastTransitionTime = metav1.NewTime(time.Now().Add(-time.Hour))
}

// TestRefusedChangeThenPodGone: a policy freezes changes: it denies that Pods are deleted, and so
// the change that the spec asks for is not begun, for an hour. Then the node of one member is
// started again, and its Pod is gone. It is to come back as it was, and the change is to be made
// when the freeze is over.
func TestRefusedChangeThenPodGone(t *testing.T) {
	t.Parallel()
	w := serving(t)
	w.served()
	other(&w)
	w.address()
	w.managed()
	s := newStub(t, noChanges, w.objects()...)
	s.Dial, s.StallAfter = w.dial(nil), time.Minute
	s.proving.look(client.ObjectKeyFromObject(w.cluster), nil, time.Now().Add(-time.Hour))
	seen, err := s.observe(t.Context(), w.cluster, s.Client)
	if err != nil {
		t.Fatal(err)
	}
	step := membership.Plan(desired(w.cluster), seen.Observed)
	if step.Action != membership.Update {
		t.Fatalf("want an update, got %s", step)
	}
	step, err = outcome(t.Context(), step, s.act(t.Context(), w.cluster.DeepCopy(), seen, step))
	if err != nil || step.Action != membership.Stall {
		t.Fatalf("want a stall, got %s, %v", step, err)
	}
	w.cluster.Status = status(w.cluster, seen, step)
	longAgo(w.cluster)
	delete(w.pods, "db-2")
	delete(w.asked.endpoints, "db-2")
	took := w.passes(t, 4, nil)
	if f := w.cluster.Status.FailedChange; f != nil {
		t.Errorf("a change that was never tried is given up for ever: %q; %q", f.Message, took)
	}
	if got := w.claims["db-2"].Annotations[api.AnnotationNextWith]; got != "" {
		t.Errorf("what is refused as a change came to db-2 because its Pod was gone: %q", took)
	}
}

// passes goes on from the world as Reconcile does, so many times, and writes what comes of each
// into the world: what is written on claims, Pods that are created and the status.
func (w *world) passes(t *testing.T, times int, refuse func(decoded) bool) (took []string) {
	t.Helper()
	remembered := map[types.NamespacedName]map[string]refusedPod{}
	for range times {
		s := newStub(t, nil, w.objects()...)
		s.refusedPods.of = remembered
		s.Dial, s.StallAfter = w.dial(nil), time.Minute
		seen, err := s.observe(t.Context(), w.cluster, s.Client)
		if err != nil {
			t.Fatal(err)
		}
		created, written := map[string]bool{}, map[string]bool{}
		s.Client = interceptor.NewClient(s.Client.(client.WithWatch), interceptor.Funcs{
			Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
				d, err := decode(o)
				if err != nil {
					return err
				}
				if refuse != nil && refuse(d) {
					return forbiddenBy(d.Kind, d.Metadata.Name, "not allowed")
				}
				s.mu.Lock()
				again := written[d.Metadata.Name] && d.Kind == "PersistentVolumeClaim"
				s.mu.Unlock()
				if again { // it has another resource version than was seen
					return apierrors.NewConflict(corev1.Resource("persistentvolumeclaims"), d.Metadata.Name, errors.New("changed"))
				}
				if err := c.Apply(ctx, o, opts...); err != nil {
					return err
				}
				s.mu.Lock()
				defer s.mu.Unlock()
				dryRun := (&client.ApplyOptions{}).ApplyOptions(opts).DryRun
				switch {
				case len(dryRun) > 0:
				case d.Kind == "Pod":
					created[d.Metadata.Name] = true
				case d.Kind == "PersistentVolumeClaim":
					written[d.Metadata.Name] = true
				}
				return nil
			},
		})
		step := membership.Plan(desired(w.cluster), seen.Observed)
		took = append(took, step.String())
		c := w.cluster.DeepCopy()
		err = s.act(t.Context(), c, seen, step)
		told, left := outcome(t.Context(), step, err)
		if err != nil {
			took = append(took, "error: "+err.Error())
		}
		if len(s.status) > 0 { // a put-back, or an intent
			w.cluster.Status = c.Status
		}
		if left == nil {
			w.cluster.Status = status(c, seen, told)
		}
		for name, pod := range remembered[client.ObjectKeyFromObject(w.cluster)] { // the next pass comes a minute later
			pod.since = pod.since.Add(-time.Minute)
			remembered[client.ObjectKeyFromObject(w.cluster)][name] = pod
		}
		for name := range w.claims {
			if marks := s.marks["PersistentVolumeClaim "+name]; marks != nil {
				w.claims[name].Annotations = marks
			}
			if w.pods[name] == nil && created[name] {
				took = append(took, name+" is created")
				pod := newPod(name)
				pod.Annotations, pod.Spec = s.marks["Pod "+name], s.specs["apply "+name]
				w.pods[name] = pod
			}
		}
	}
	return took
}

// TestRefusedPodsMended: what all members have served with cannot be had any more: its
// priority class is gone, and then the Pods are (a power failure). The spec is mended.
func TestRefusedPodsMended(t *testing.T) {
	t.Parallel()
	w := serving(t)
	for _, claim := range w.claims {
		claim.Annotations[api.AnnotationServed] = `{"version":"3.6.16","scheduling":{"priorityClassName":"gone"},"tls":{"mode":"Disabled"},"metadata":{}}`
	}
	w.cluster.Spec.Scheduling = &api.Scheduling{PriorityClassName: "gone"}
	clear(w.pods)
	clear(w.asked.endpoints)
	w.asked.members = nil
	refuse := func(d decoded) bool { return d.Kind == "Pod" && d.Spec.PriorityClassName == "gone" }
	took := w.passes(t, 1, refuse)
	if stalled := meta.FindStatusCondition(w.cluster.Status.Conditions, api.ConditionStalled); stalled == nil || stalled.Reason != api.ReasonRefused {
		t.Fatalf("want a stall, got %+v; %q", w.cluster.Status.Conditions, took)
	}
	longAgo(w.cluster)
	w.cluster.Generation++
	w.cluster.Spec.Scheduling.PriorityClassName = "there"
	took = append(took, w.passes(t, 12, refuse)...)
	if len(w.pods) < 3 { // a spec that the API server takes was given up, and no quorum comes back
		t.Errorf("no member is started with the spec that was mended: %q; %+v", took, w.cluster.Status.FailedChange)
	}
}

// TestRefusedMetadataOfVolume: what is being changed cannot be created, and labels of the spec are
// refused on volumes by now. The rollback writes on the volume all the same.
func TestRefusedMetadataOfVolume(t *testing.T) {
	t.Parallel()
	w := serving(t)
	w.served()
	other(&w)
	w.cluster.Spec.AdditionalMetadata = &api.Metadata{Labels: api.Labels{"team": "bad"}}
	claim := w.claims["db-0"]
	claim.Annotations[api.AnnotationNext], claim.Annotations[api.AnnotationNextWith] = "3.6.16", otherNext
	delete(w.pods, "db-0")
	delete(w.asked.endpoints, "db-0")
	w.address()
	w.managed()
	s := newStub(t, nil, w.objects()...)
	s.deniesTeam("PersistentVolumeClaim")
	s.Dial, s.StallAfter = w.dial(nil), time.Minute
	of, _ := made(w.cluster, w.claims, membership.Instance{Name: "db-0", Volume: volume(w.cluster, claim)})
	for ago := time.Hour; ago > 0; ago -= time.Minute { // it was tried again and again
		s.refusedPods.remember(w.cluster, "db-0", madeOf(of, claim), forbiddenBy("pods", "db-0", "not allowed"), time.Now().Add(-ago))
	}
	seen, err := s.observe(t.Context(), w.cluster, s.Client)
	if err != nil {
		t.Fatal(err)
	}
	step := membership.Plan(desired(w.cluster), seen.Observed)
	if step.Action != membership.PutBack {
		t.Fatalf("want a rollback, got %s", step)
	}
	if err := s.take(t.Context(), w.cluster.DeepCopy(), seen, step); err != nil {
		t.Errorf("the rollback waits for labels: %v", err)
	}
	if marks, wrote := s.marks["PersistentVolumeClaim db-0"]; !wrote || marks[api.AnnotationNext] != "" {
		t.Errorf("the volume still says that its member is being changed: %v", marks)
	}
}

// TestPendingPodsKeepTheirSpec: a change of the spec is yet to come. The Pods of two members were
// deleted, and no node has room for them yet. They get the change by that only where waiting has
// not helped: else it would come to two members at once that no member has tried.
func TestPendingPodsKeepTheirSpec(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		since  time.Duration
		want   membership.Action
	}{
		"Moment": {reason: "there may be room in a moment", since: time.Second, want: membership.Wait},
		"Long":   {reason: "the spec may have been mended for that", since: time.Hour, want: membership.Stop},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.served()
			other(&w)
			w.address()
			w.managed()
			since := metav1.NewTime(time.Now().Add(-tc.since))
			for _, name := range []string{"db-0", "db-2"} {
				w.pods[name].Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{{
					Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", LastTransitionTime: since,
					Message: "0/3 nodes are available: 3 Insufficient cpu.",
				}}}
				w.pods[name].CreationTimestamp = since
				delete(w.asked.endpoints, name)
			}
			w.asked.members = nil
			s := newStub(t, nil, w.objects()...)
			s.Dial, s.StallAfter = w.dial(nil), time.Minute
			seen, err := s.observe(t.Context(), w.cluster, s.Client)
			if err != nil {
				t.Fatal(err)
			}
			step := membership.Plan(desired(w.cluster), seen.Observed)
			if step.Action != tc.want {
				t.Errorf("%s: want %s, got %s", tc.reason, tc.want, step)
			}
		})
	}
}

// TestRefusedImageMended: the Pods of all members have been deleted to be given another patch, and
// the API server takes no Pod of that image. They come back with what ran before: when that has
// lasted, and at once when the spec is reverted.
func TestRefusedImageMended(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		reverts bool
		passes  int
		unsaid  bool // no volume says with what its member has served
	}{
		"Lasts":          {reason: "it is rolled back by itself", passes: 9},
		"LastsUnsaid":    {reason: "it is rolled back by itself", passes: 9, unsaid: true},
		"Reverted":       {reason: "the spec does not ask for that image any more", passes: 6, reverts: true},
		"RevertedUnsaid": {reason: "the spec does not ask for that image any more", passes: 6, reverts: true, unsaid: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			if !tc.unsaid {
				w.served()
			}
			for _, claim := range w.claims {
				claim.Annotations[api.AnnotationNext] = "3.6.17"
			}
			w.cluster.Spec.Version = "3.6.17"
			clear(w.asked.endpoints)
			w.asked.members = nil
			refuse := func(d decoded) bool {
				return d.Kind == "Pod" && len(d.Spec.Containers) > 0 && strings.HasSuffix(d.Spec.Containers[0].Image, "3.6.17")
			}
			clear(w.pods)
			took := w.passes(t, 1, refuse)
			if tc.reverts {
				longAgo(w.cluster)
				w.cluster.Generation++
				w.cluster.Spec.Version = "3.6.16"
			}
			took = append(took, w.passes(t, tc.passes, refuse)...)
			if len(w.pods) < 3 {
				t.Errorf("%s: Pods are %v after %q", tc.reason, slices.Sorted(maps.Keys(w.pods)), took)
			}
		})
	}
}
