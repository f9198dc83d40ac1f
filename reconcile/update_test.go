package reconcile

import (
	"encoding/json"
	"errors"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
)

// Images of the versions that these tests change between.
const (
	image35 = "gcr.io/etcd-development/etcd:v3.5.35"
	image36 = "gcr.io/etcd-development/etcd:v3.6.16"
	image37 = "gcr.io/etcd-development/etcd:v3.7.3"
)

// managed gives the Pods of the world what an API server has written down of their applies, without
// which nothing can be taken over from them, and containers that run.
func (w world) managed() {
	for name, pod := range w.pods {
		manage(w.t, pod)
		if s := pod.Status.ContainerStatuses; len(s) == 1 && s[0].ContainerID == "" {
			s[0].ContainerID = "containerd://" + name
		}
	}
}

// manage lets the API server take a Pod or a claim for what Quorate has applied.
func manage(t *testing.T, o client.Object) {
	t.Helper()
	of := func(all map[string]string) map[string]any {
		keys := map[string]any{}
		for key := range all {
			keys["f:"+key] = map[string]any{}
		}
		return keys
	}
	fields := map[string]any{
		"f:metadata": map[string]any{"f:annotations": of(o.GetAnnotations()), "f:labels": of(o.GetLabels())},
		"f:spec": map[string]any{"f:containers": map[string]any{`k:{"name":"etcd"}`: map[string]any{
			".": map[string]any{}, "f:name": map[string]any{}, "f:image": map[string]any{}, "f:args": map[string]any{}, "f:resources": map[string]any{},
		}}},
	}
	raw, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	o.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: api.Manager, Operation: metav1.ManagedFieldsOperationApply, APIVersion: "v1", FieldsType: "FieldsV1",
		FieldsV1: metav1.NewFieldsV1(string(raw)),
	}})
}

// runs makes members of the world run a version, that many of them.
func (w world) runs(version, image string, names ...string) {
	v, err := membership.ParseVersion(version)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, name := range names {
		e := w.asked.endpoints[name]
		e.Version, e.Storage = v, membership.Version{Major: v.Major, Minor: v.Minor}
		w.asked.endpoints[name] = e
		w.claims[name].Annotations[api.AnnotationVersion] = version
		w.asksFor(name, image)
	}
}

// upgrading is a world in which all run 3.6.16 and the spec asks for 3.7.3. db-1 leads.
func (w world) upgrading() {
	w.cluster.Spec.Version = "3.7.3"
	w.runs("3.6.16", image36, "db-0", "db-1", "db-2")
}

// leaderLeft is the same when only the leader has still to change; db-2 is ahead of db-0.
func (w world) leaderLeft() {
	w.upgrading()
	w.runs("3.7.3", image37, "db-0", "db-2")
	e := w.asked.endpoints["db-2"]
	e.RaftIndex, e.Applied = 9, 9
	w.asked.endpoints["db-2"] = e
}

// alone is a world of db-0 alone.
func (w *world) alone() {
	w.cluster.Spec.Replicas = new(int32(1))
	for _, name := range []string{"db-1", "db-2"} {
		delete(w.pods, name)
		delete(w.claims, name)
		delete(w.asked.endpoints, name)
	}
	w.claims["db-0"].Annotations[api.AnnotationBootstrap] = "cluster/1"
	w.cluster.Status.Members, w.asked.members = w.cluster.Status.Members[:1], w.asked.members[:1]
}

// TestUpdate goes from a world to what the API server and etcd are asked for to change one member.
func TestUpdate(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, "db-0", errors.New("changed"))
	status := write{Verb: "apply", Kind: "status"}
	claimed := func(name string) write { return write{"apply", "PersistentVolumeClaim", name, "claim-of-" + name, "5"} }
	applied := func(name string) write { return write{"apply", "Pod", name, "pod-of-" + name, "5"} }
	deleted := func(name string) write { return write{Verb: "delete", Kind: "Pod", Name: name, UID: "pod-of-" + name} }
	options := func(w *world) {
		w.cluster.Spec.Options = &api.Options{HeartbeatInterval: new(api.Duration("50ms"))}
	}
	cpu := func(n string) *api.Resources {
		return &api.Resources{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}}
	}
	resized := func(w *world) {
		w.cluster.Spec.Resources = cpu("1")
		for name := range w.pods {
			w.pods[name] = w.pod(name)
		}
		w.cluster.Spec.Resources = cpu("2")
	}
	const (
		inPlace = "Normal Changing changing db-0 in place from 3.6.16 to 3.7.3, then db-2, db-1"
		last    = "Normal Changing changing db-1 in place from 3.6.16 to 3.7.3"
	)
	type result struct {
		Change   membership.Change
		Requests []string
		Writes   []write
		Events   []string
		Previous string // on its Pod
		Next     string // on its volume
		Grace    *int64 // with which its Pod was deleted
		Image    string // that was applied
		CPU      string // that was applied to the subresource resize
	}
	cases := map[string]struct {
		reason string
		given  func(*world)
		since  func(*world) // what happens between the decision and the second look
		refuse func(write) error
		etcd   error
		want   result
		err    error
	}{
		"Image": {
			reason: "what is to run is on the volume first; then this very Pod as it was seen, which says what ran in it before",
			given:  func(w *world) { w.upgrading() },
			want: result{
				Change: membership.ChangeImage, Writes: []write{status, claimed("db-0"), applied("db-0")}, Events: []string{inPlace}, Next: "3.7.3",
				Previous: "containerd://db-0 " + image36, Image: image37,
			},
		},
		"Leader": {
			reason: "its leadership goes to the one that has most of the log, before its image does",
			given:  func(w *world) { w.leaderLeft() },
			want: result{
				Change: membership.ChangeImage, Requests: []string{"move to a2 at db-1"}, Writes: []write{status, claimed("db-1"), applied("db-1")}, Events: []string{last}, Next: "3.7.3",
				Previous: "containerd://db-1 " + image36, Image: image37,
			},
		},
		"LeadershipStays": {
			reason: "etcd hands it over by itself when it ends", etcd: errors.New("etcd: no"),
			given: func(w *world) { w.leaderLeft() },
			want: result{
				Change: membership.ChangeImage, Requests: []string{"move to a2 at db-1"}, Writes: []write{status, claimed("db-1"), applied("db-1")}, Events: []string{last}, Next: "3.7.3",
				Previous: "containerd://db-1 " + image36, Image: image37,
			},
		},
		"Options": {
			reason: "that it is being changed is on the volume before its Pod goes, which comes back in a later pass",
			given:  options,
			want: result{
				Change: membership.ChangePod, Writes: []write{status, claimed("db-0"), deleted("db-0")},
				Events: []string{"Normal Changing Deleted Pod db-0", "Normal Changing recreating the Pod of db-0 (spec.options), then db-2, db-1"},
				Next:   "3.6.16",
			},
		},
		"OptionsAlone": {
			reason: "no member serves until it is back, and it does not wait for clients that watch",
			given: func(w *world) {
				w.lead("db-0")
				w.alone()
				options(w)
			},
			want: result{
				Change: membership.ChangePod, Writes: []write{status, claimed("db-0"), deleted("db-0")},
				Events: []string{"Normal Changing Deleted Pod db-0", "Normal Changing recreating the Pod of db-0 (spec.options); it is the only member: etcd does not serve until it is back"},
				Next:   "3.6.16", Grace: new(int64(2)),
			},
		},
		"OptionsAndVersion": {
			reason: "what is to run in the next Pod is on the volume before this one goes",
			given:  func(w *world) { w.upgrading(); options(w) },
			want: result{
				Change: membership.ChangePod, Writes: []write{status, claimed("db-0"), deleted("db-0")},
				Events: []string{"Normal Changing Deleted Pod db-0", "Normal Changing recreating the Pod of db-0 from 3.6.16 to 3.7.3 (spec.options), then db-2, db-1"},
				Next:   "3.7.3",
			},
		},
		"Rewritten": {
			reason: "a policy has rewritten the image, and leaves a change of it as it is: it acts when Pods are created alone",
			given: func(w *world) {
				w.upgrading()
				w.pods["db-0"].Spec.Containers[0].Image = "mirror.example.com/etcd:v3.6.16"
			},
			want: result{
				Change: membership.ChangePod, Writes: []write{status, claimed("db-0"), deleted("db-0")},
				Events: []string{"Normal Changing Deleted Pod db-0", "Normal Changing recreating the Pod of db-0 from 3.6.16 to 3.7.3, then db-2, db-1"},
				Next:   "3.7.3",
			},
		},
		"RewrittenNotTold": {
			reason: "what the API server has against the change is told when it is asked for in earnest",
			given: func(w *world) {
				w.upgrading()
				w.pods["db-0"].Spec.Containers[0].Image = "mirror.example.com/etcd:v3.6.16"
			},
			refuse: func(w write) error {
				if w.Kind == "Pod" {
					return conflict
				}
				return nil
			},
			want: result{Change: membership.ChangeImage, Writes: []write{status, claimed("db-0")}, Next: "3.7.3"}, err: conflict,
		},
		"VolumeTaken": {
			reason: "without that the Pod stays", refuse: func(w write) error {
				if w.Kind == "PersistentVolumeClaim" {
					return conflict
				}
				return nil
			},
			given: func(w *world) { w.upgrading(); options(w) },
			want:  result{Change: membership.ChangePod, Writes: []write{status}}, err: conflict,
		},
		"Resources": {
			reason: "the container runs on, and so does the leadership; both appliers own them from then on",
			given: func(w *world) {
				resized(w)
				w.lead("db-0")
				w.pods["db-1"], w.pods["db-2"] = w.pod("db-1"), w.pod("db-2")
			},
			want: result{
				Change: membership.ChangeResources, Writes: []write{status, {"apply", "resize", "db-0", "pod-of-db-0", "5"}, {"apply", "Pod", "db-0", "pod-of-db-0", ""}},
				Events: []string{"Normal Changing changing cpu and memory of db-0 while it runs (spec.resources)"}, Image: image36, CPU: "2",
			},
		},
		"ResizeRefused": {
			reason: "what the Pod is made of stays what it says", refuse: func(w write) error {
				if w.Kind == "resize" {
					return conflict
				}
				return nil
			},
			given: resized, want: result{Change: membership.ChangeResources, Writes: []write{status}}, err: conflict,
		},
		"Conflict": {
			reason: "another operator has written first", refuse: func(write) error { return conflict },
			given: func(w *world) { w.leaderLeft() }, want: result{Change: membership.ChangeImage}, err: conflict,
		},
		"PodChanged": {
			reason: "it is another Pod by now, or says something else", refuse: func(w write) error {
				if w.Kind == "Pod" {
					return conflict
				}
				return nil
			},
			given: func(w *world) { w.upgrading() }, want: result{Change: membership.ChangeImage, Writes: []write{status, claimed("db-0")}, Next: "3.7.3"}, err: conflict,
		},
		"AnotherDown": {
			reason: "two would be away", given: func(w *world) { w.upgrading() }, since: func(w *world) { delete(w.asked.endpoints, "db-2") },
			want: result{Change: membership.ChangeImage, Writes: []write{status}}, err: apply.ErrChanged,
		},
		"AnotherChanging": {
			reason: "another operator was first", given: func(w *world) { w.upgrading() },
			since: func(w *world) {
				w.asksFor("db-2", image37)
				w.pods["db-2"].Annotations[api.AnnotationPrevious] = "containerd://db-2 " + image36
			},
			want: result{Change: membership.ChangeImage, Writes: []write{status}}, err: apply.ErrChanged,
		},
		"ClusterChanged": {
			reason: "the spec may ask for something else", given: func(w *world) { w.upgrading() }, since: func(w *world) { w.cluster.ResourceVersion = "2" },
			want: result{Change: membership.ChangeImage, Writes: []write{status}}, err: apply.ErrChanged,
		},
		"InFlight": {
			reason: "what comes of another operation is not known yet",
			given: func(w *world) {
				w.upgrading()
				w.cluster.Status.Operation = theirs(operation(membership.Update, "", 0, target("db-2", "pod-of-db-2")))
			},
			want: result{Change: membership.ChangeImage}, err: errInFlight,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			tc.given(&w)
			w.address()
			w.managed()
			var got result
			take := func(request string) error {
				got.Requests = append(got.Requests, request)
				return tc.etcd
			}
			s := newStub(t, tc.refuse, w.objects()...)
			s.Dial = w.dial(take)
			seen, err := s.observe(t.Context(), w.cluster, s.Client)
			if err != nil {
				t.Fatal(err)
			}
			step := membership.Plan(desired(w.cluster), seen.Observed)
			if step.Action != membership.Update {
				t.Fatalf("%s: the step is %s", tc.reason, step)
			}
			c := w.cluster.DeepCopy()
			if tc.since != nil {
				w.asked.endpoints = maps.Clone(w.asked.endpoints)
				tc.since(&w)
				s.Reader, s.Dial = newStub(t, nil, w.objects()...).Client, w.dial(take)
			}
			if err := s.update(t.Context(), c, seen, step); !errors.Is(err, tc.err) {
				t.Errorf("%s: error is %v, want %v", tc.reason, err, tc.err)
			}
			member := step.Members[0]
			got.Change, got.Writes, got.Events, got.Grace = step.Change, s.writes, s.told(), s.graces[member]
			got.Previous, got.Next = s.marks["Pod "+member][api.AnnotationPrevious], s.marks["PersistentVolumeClaim "+member][api.AnnotationNext]
			if spec := s.specs["apply "+member]; len(spec.Containers) == 1 {
				got.Image = spec.Containers[0].Image
			}
			if spec := s.specs["resize "+member]; len(spec.Containers) == 1 {
				got.CPU = spec.Containers[0].Resources.Requests.Cpu().String()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
