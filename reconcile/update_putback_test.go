package reconcile

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
)

// TestPutBackChange goes from a world in which a member does not come up with what it was changed
// to, to what is written.
func TestPutBackChange(t *testing.T) {
	conflict := apierrors.NewConflict(schema.GroupResource{Resource: "etcdclusters"}, "db", errors.New("changed"))
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "persistentvolumeclaims"}, "db-0", errors.New("denied by a policy"))
	status := write{Verb: "apply", Kind: "status"}
	claim := write{"apply", "PersistentVolumeClaim", "db-0", "claim-of-db-0", "5"}
	fails := func(w *world, image string) {
		w.upgrading()
		pod := w.pods["db-0"]
		w.asksFor("db-0", image)
		pod.Status.ContainerStatuses = etcdStatus(corev1.ContainerStatus{
			Image: image36, ContainerID: "containerd://db-0", State: waiting("ImagePullBackOff", "no such image"),
		})
		delete(w.asked.endpoints, "db-0")
	}
	image := func(w *world) {
		fails(w, image37)
		w.pods["db-0"].Annotations[api.AnnotationPrevious] = "containerd://db-0 " + image36
	}
	recreated := func(w *world) {
		fails(w, image37)
		w.claims["db-0"].Annotations[api.AnnotationNext] = "3.7.3"
	}
	options := func(w *world) {
		w.served()
		other(w)
		w.pods["db-0"] = w.pod("db-0")
		w.pods["db-0"].Status.ContainerStatuses = etcdStatus(corev1.ContainerStatus{
			State: waiting("CrashLoopBackOff", ""), LastTerminationState: exited(2, "Error", "flag provided but not defined: -wrong"),
		})
		w.claims["db-0"].Annotations[api.AnnotationNext] = "3.6.16"
		delete(w.asked.endpoints, "db-0")
	}
	single := func(w *world) {
		image(w)
		w.alone()
		w.asked.members = nil
	}
	const (
		wrong   = "with the new spec.options it exited with code 2: flag provided but not defined: -wrong"
		message = "db-0: with etcd 3.7.3 it cannot pull the image " + image37
		told    = "Warning ChangeFailed rolling db-0 back: with etcd 3.7.3 it cannot pull the image " + image37
	)
	type result struct {
		Writes []write
		Failed *api.FailedChange // in the first status that was written
		Events []string
		Image  string
		Grace  *int64 // with which the Pod was deleted
	}
	cases := map[string]struct {
		reason string
		given  func(*world)
		seen   func(*observed)
		refuse func(write) error
		want   result
		err    error
	}{
		"Image": {
			reason: "that it was tried is written down before it is tried no more", given: image,
			want: result{
				Writes: []write{status, status, {"apply", "Pod", "db-0", "pod-of-db-0", "5"}},
				Failed: &api.FailedChange{Generation: 7, Message: message}, Events: []string{told}, Image: image36,
			},
		},
		"ImageOfSingle": {
			reason: "it does not answer, and its volume tells what it ran", given: single,
			want: result{
				Writes: []write{status, status, {"apply", "Pod", "db-0", "pod-of-db-0", "5"}},
				Failed: &api.FailedChange{Generation: 7, Message: message}, Events: []string{told}, Image: image36,
			},
		},
		"SingleHalfWay": {
			reason: "what was tried is what lies between, on the way to what the spec asks for",
			given: func(w *world) {
				single(w)
				w.claims["db-0"].Annotations[api.AnnotationVersion] = "3.5.35"
				w.asksFor("db-0", image36)
				w.pods["db-0"].Annotations[api.AnnotationPrevious] = "containerd://db-0 " + image35
			},
			want: result{
				Writes: []write{status, status, {"apply", "Pod", "db-0", "pod-of-db-0", "5"}}, Image: image35,
				Failed: &api.FailedChange{Generation: 7, Message: "db-0: with etcd 3.6.16 it cannot pull the image " + image36},
				Events: []string{"Warning ChangeFailed rolling db-0 back: with etcd 3.6.16 it cannot pull the image " + image36},
			},
		},
		"SpecChanged": {
			reason: "the spec asks for something else by now, which has not been tried",
			given:  func(w *world) { image(w); w.cluster.Spec.Version = "3.7.2" },
			want: result{
				Writes: []write{status, {"apply", "Pod", "db-0", "pod-of-db-0", "5"}}, Events: []string{told}, Image: image36,
			},
		},
		"SpecSetBack": {
			reason: "to what it ran", given: func(w *world) { image(w); w.cluster.Spec.Version = "3.6.16" },
			want: result{
				Writes: []write{status, {"apply", "Pod", "db-0", "pod-of-db-0", "5"}}, Events: []string{told}, Image: image36,
			},
		},
		"Recreated": {
			reason: "its Pod goes as it was seen, before its volume says that nothing comes next: one that comes up after all is no other", given: recreated,
			want: result{
				Writes: []write{status, status, {"delete", "Pod", "db-0", "pod-of-db-0", "5"}, claim},
				Failed: &api.FailedChange{Generation: 7, Message: message}, Events: []string{"Warning ChangeFailed Deleted Pod db-0", told},
			},
		},
		"Options": {
			reason: "its Pod goes, and then its volume says that it is not being changed: the next one is made of what it has served with", given: options,
			want: result{
				Writes: []write{status, status, {"delete", "Pod", "db-0", "pod-of-db-0", "5"}, claim},
				Failed: &api.FailedChange{Generation: 7, Message: "db-0: " + wrong}, Events: []string{"Warning ChangeFailed Deleted Pod db-0", "Warning ChangeFailed rolling db-0 back: " + wrong},
			},
		},
		"OptionsAlone": {
			reason: "and it does not wait",
			given: func(w *world) {
				options(w)
				w.alone()
				w.asked.members = nil
			},
			want: result{
				Writes: []write{status, status, {"delete", "Pod", "db-0", "pod-of-db-0", "5"}, claim}, Grace: new(int64(2)),
				Failed: &api.FailedChange{Generation: 7, Message: "db-0: " + wrong}, Events: []string{"Warning ChangeFailed Deleted Pod db-0", "Warning ChangeFailed rolling db-0 back: " + wrong},
			},
		},
		"OptionsMended": {
			reason: "the spec asks for something else by now, which has not been tried",
			given:  func(w *world) { options(w); w.cluster.Spec.Options = nil },
			want: result{
				Writes: []write{status, {"delete", "Pod", "db-0", "pod-of-db-0", "5"}, claim},
				Events: []string{"Warning ChangeFailed Deleted Pod db-0", "Warning ChangeFailed rolling db-0 back: " + wrong},
			},
		},
		"ResourcesToo": {
			reason: "what would come while it runs is not why it does not come up",
			given: func(w *world) {
				image(w)
				cpu := func(n string) {
					w.cluster.Spec.Resources = &api.Resources{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}}
				}
				cpu("1")
				before := w.pod("db-0")
				cpu("2")
				w.pods["db-0"].Annotations[api.AnnotationRevision] = before.Annotations[api.AnnotationRevision]
				w.pods["db-0"].Spec.Containers[0].Resources = before.Spec.Containers[0].Resources
			},
			want: result{
				Writes: []write{status, status, {"apply", "Pod", "db-0", "pod-of-db-0", "5"}},
				Failed: &api.FailedChange{Generation: 7, Message: message}, Events: []string{told}, Image: image36,
			},
		},
		"Conflict": {
			reason: "where it cannot be written down, it is looked at again", given: image, refuse: func(write) error { return conflict },
			want: result{}, err: conflict,
		},
		"VolumeRefused": {
			reason: "no Pod is deleted to be made as it was: its volume would go on saying what it is to be made of",
			given:  recreated, refuse: func(w write) error {
				if w.Kind == "PersistentVolumeClaim" {
					return denied
				}
				return nil
			},
			want: result{}, err: denied,
		},
		"PodGone": {
			reason: "it has gone by itself", given: image, seen: func(seen *observed) { delete(seen.pods, "db-0") },
			want: result{}, err: apply.ErrChanged,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			tc.given(&w)
			w.address()
			w.managed()
			s := newStub(t, tc.refuse, w.objects()...)
			s.Dial = w.dial(func(request string) error { t.Errorf("etcd is asked to %s", request); return nil })
			seen, err := s.observe(t.Context(), w.cluster, s.Client)
			if err != nil {
				t.Fatal(err)
			}
			step := membership.Plan(desired(w.cluster), seen.Observed)
			if step.Action != membership.PutBack {
				t.Fatalf("%s: the step is %s", tc.reason, step)
			}
			if tc.seen != nil {
				tc.seen(&seen)
			}
			if err := s.putBack(t.Context(), w.cluster.DeepCopy(), seen, step); !errors.Is(err, tc.err) {
				t.Errorf("%s: error is %v, want %v", tc.reason, err, tc.err)
			}
			got := result{Writes: s.writes, Events: s.told(), Grace: s.graces["db-0"]}
			if len(s.status) > 0 {
				got.Failed = s.status[0].FailedChange
			}
			if spec := s.specs["apply db-0"]; len(spec.Containers) == 1 {
				got.Image = spec.Containers[0].Image
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if previous := s.marks["Pod db-0"][api.AnnotationPrevious]; previous != "" {
				t.Errorf("%s: the Pod still says that %s ran before", tc.reason, previous)
			}
			if next := s.marks["PersistentVolumeClaim db-0"][api.AnnotationNext]; next != "" {
				t.Errorf("%s: the volume still says that %s comes next", tc.reason, next)
			}
		})
	}
}
