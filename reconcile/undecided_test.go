package reconcile

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// forbiddenBy is what the API server answers where an admission plugin or a webhook denies a
// request.
func forbiddenBy(resource, name, why string) error {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, name, errors.New(why))
}

// TestUndecidedGrowth: midway through a move a dry run that shows nothing makes no member one too
// many. db-0 to db-2 are on volumes of 1Gi, 2Gi are asked for, and db-3 votes on a new volume.
func TestUndecidedGrowth(t *testing.T) {
	const waits = "waiting for the API server to tell whether the volumes of db-0, db-1, db-2 can grow, before one of db-0, db-1, db-2, db-3 is removed"
	wait := membership.Step{Action: membership.Wait, Rule: "removeSurplusVoter", Reason: membership.Moving, Message: waits}
	cases := map[string]struct {
		reason string
		answer error
		want   membership.Step
	}{
		"Cannot": {
			reason: "the class does not expand", answer: forbiddenBy("persistentvolumeclaims", "db-0", mustSupportResize),
			want: membership.Step{
				Action: membership.Remove, Members: []string{"db-2"}, ID: 0xa2, Rule: "removeSurplusVoter", Reason: membership.Moving,
				Message: "removing db-2 (its volume has 1Gi, and cannot grow to 2Gi): spec.replicas is 3; then db-0, db-1",
			},
		},
		"Webhook":  {reason: "a webhook is away", answer: apierrors.NewInternalError(errors.New("failed calling webhook")), want: wait},
		"Policy":   {reason: "a policy that freezes claims says nothing of the class", answer: forbiddenBy("persistentvolumeclaims", "db-0", "freeze"), want: wait},
		"Conflict": {reason: "the claim is another one by now", answer: apierrors.NewConflict(schema.GroupResource{Resource: "persistentvolumeclaims"}, "db-0", errors.New("uid")), want: wait},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.cluster.Spec.Storage.Size, w.cluster.Spec.Storage.ChangePolicy = resource.MustParse("2Gi"), api.ChangeReplace
			w.learner()
			w.asked.members[3].Learner = false
			e := w.asked.endpoints["db-3"]
			e.Learner = false
			w.asked.endpoints["db-3"] = e
			w.claims["db-3"].Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("2Gi")}
			for _, claim := range w.claims {
				claim.Status.Phase, claim.Status.Capacity = corev1.ClaimBound, claim.Spec.Resources.Requests
			}
			w.cluster.Status.Members = append(w.cluster.Status.Members, api.MemberStatus{Name: "db-3", ID: "a3"})
			w.address()
			s := newStub(t, func(w write) error {
				if w.Verb == "try" && w.Kind == "PersistentVolumeClaim" {
					return tc.answer
				}
				return nil
			}, w.objects()...)
			s.Dial = w.dial(nil)
			seen, err := s.observe(t.Context(), w.cluster, s.Client)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, membership.Plan(desired(w.cluster), seen.Observed)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestTriesAreBounded: a webhook that hangs, and lets a dry run pass in the end, keeps no member
// that is lost from being replaced.
func TestTriesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := serving(t)
		cpu := func(n string) *api.Resources {
			return &api.Resources{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(n)}}
		}
		w.cluster.Spec.Resources = cpu("1")
		for name := range w.pods {
			w.pods[name] = w.pod(name)
		}
		w.managed()
		w.cluster.Spec.Resources = cpu("2")
		delete(w.pods, "db-2")
		delete(w.claims, "db-2")
		delete(w.asked.endpoints, "db-2")
		w.address()
		var asked []string
		s := newStub(t, nil, w.objects()...)
		s.Dial = w.dial(func(what string) error { asked = append(asked, what); return nil })
		var hangs atomic.Int32
		s.Client = interceptor.NewClient(s.Client.(client.WithWatch), interceptor.Funcs{
			SubResource: func(of client.WithWatch, name string) client.SubResourceClient {
				return hanging{of.SubResource(name), &hangs}
			},
		})
		begun := time.Now()
		if _, err := s.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.cluster)}); err != nil {
			t.Fatal(err)
		}
		if hangs.Load() == 0 {
			t.Error("void: nothing was tried")
		}
		if diff := cmp.Diff([]string{"remove a2 at db-1"}, asked); diff != "" {
			t.Errorf("etcd is asked for: -want +got:\n%s", diff)
		}
		if took := time.Since(begun); took > 3*tryFor {
			t.Errorf("the pass took %s", took)
		}
	})
}

// hanging is a subresource whose dry runs take nine seconds.
type hanging struct {
	client.SubResourceClient
	hangs *atomic.Int32
}

func (h hanging) Apply(ctx context.Context, o runtime.ApplyConfiguration, opts ...client.SubResourceApplyOption) error {
	if len((&client.SubResourceApplyOptions{}).ApplyOpts(opts).DryRun) == 0 {
		return h.SubResourceClient.Apply(ctx, o, opts...)
	}
	h.hangs.Add(1)
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(9 * time.Second):
		return nil
	}
}

// TestUndecidedImage: an image that a policy has rewritten at the creation of its Pod is not
// changed in place before it is known that the policy acts on that, too.
func TestUndecidedImage(t *testing.T) {
	const mirror = "mirror.example.com/etcd:v3.6.16"
	t.Parallel()
	w := serving(t)
	w.upgrading()
	for _, pod := range w.pods {
		pod.Spec.Containers[0].Image = mirror
	}
	w.address()
	s := newStub(t, func(w write) error {
		if w.Verb == "try" {
			return apierrors.NewTooManyRequests("later", 1)
		}
		return nil
	}, append(w.objects(), leadsTo())...)
	s.Dial = w.dial(nil)
	seen, err := s.observe(t.Context(), w.cluster, s.Client)
	if err != nil {
		t.Fatal(err)
	}
	want := membership.Step{
		Action: membership.Wait, Rule: "updateMember", Reason: membership.Changing,
		Message: "waiting for the API server to tell whether a policy sees the image of db-0 when it is changed in place",
	}
	if diff := cmp.Diff(want, membership.Plan(desired(w.cluster), seen.Observed)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// TestPutBackRewritten: what a policy had made of a Pod when it was created is rolled back by the
// policy.
func TestPutBackRewritten(t *testing.T) {
	const mirror = "mirror.example.com/etcd:v3.6.16"
	changed, deleted := write{"apply", "Pod", "db-0", "pod-of-db-0", "5"}, write{"delete", "Pod", "db-0", "pod-of-db-0", "5"}
	cases := map[string]struct {
		reason string
		ran    string // where that is not what was asked for
		tries  error
		want   write
	}{
		"AsAsked":   {reason: "no policy had a hand in it", want: changed},
		"Rewritten": {reason: "the policy does not see a change in place", ran: " " + mirror, want: deleted},
		"NotTold":   {reason: "a new Pod is seen by the policy in any case", ran: " " + mirror, tries: apierrors.NewTooManyRequests("later", 1), want: deleted},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.upgrading()
			pod := w.pods["db-0"]
			w.asksFor("db-0", image37)
			pod.Annotations[api.AnnotationPrevious] = "containerd://db-0 " + image36 + tc.ran
			pod.Status.ContainerStatuses = etcdStatus(corev1.ContainerStatus{Image: image36, ContainerID: "containerd://db-0", State: waiting("ImagePullBackOff", "no such image")})
			delete(w.asked.endpoints, "db-0")
			w.address()
			s := newStub(t, func(w write) error {
				if w.Verb == "try" {
					return tc.tries
				}
				return nil
			}, w.objects()...)
			s.Dial = w.dial(nil)
			seen, err := s.observe(t.Context(), w.cluster, s.Client)
			if err != nil {
				t.Fatal(err)
			}
			step := membership.Plan(desired(w.cluster), seen.Observed)
			if err := s.take(t.Context(), w.cluster, seen, step); err != nil {
				t.Fatalf("%s: %s: %v", tc.reason, step, err)
			}
			var got []write
			for _, w := range s.writes {
				if w.Kind == "Pod" {
					got = append(got, w)
				}
			}
			if diff := cmp.Diff([]write{tc.want}, got); diff != "" {
				t.Errorf("%s: %s: -want +got:\n%s", tc.reason, step, diff)
			}
		})
	}
}

// TestLastOutComesBack: a member that has left the Service for clients comes back where the others
// stop being ready, and is not restarted before they had their time from then on.
func TestLastOutComesBack(t *testing.T) {
	t.Parallel()
	c, seen := newCluster(), healthy()
	c.Status.ClusterID = seen.ID().String()
	seen.claims = nil
	seen.pods["db-0"].Labels[api.LabelClients] = api.ClientsOut
	s := newStub(t, nil, leadsTo(), c)
	s.draining.begun.Store(client.ObjectKeyFromObject(c), drained{members: []string{"db-0"}, since: time.Now().Add(-2 * drainFor)})
	step := membership.Step{Action: membership.Update, Change: membership.ChangeImage, Members: []string{"db-0"}, Version: membership.Version{Major: 3, Minor: 7, Patch: 3}, Reason: membership.Changing}
	err := s.act(t.Context(), c, seen, step)
	if draining := (&drainingError{}); !errors.As(err, &draining) {
		t.Errorf("the step is not put off: %v", err)
	}
	if got := s.labels["Pod db-0"][api.LabelClients]; got != api.ClientsIn {
		t.Errorf("no endpoint is left, and the label of db-0, which serves, is %q", got)
	}
}

// TestPanicGivesTurnBack: the others do not wait for a cluster of which every pass panics.
func TestPanicGivesTurnBack(t *testing.T) {
	t.Parallel()
	w := serving(t)
	w.upgrading()
	w.address()
	s := newStub(t, nil, w.objects()...)
	s.MaxChanging = 1
	if err := s.changing.resume(t.Context(), s.Client, 1); err != nil {
		t.Fatal(err)
	}
	if err := s.changing.enter(w.cluster, 1); err != nil {
		t.Fatal(err)
	}
	s.Dial = func(string, int) (membership.Client, error) { panic("broken") }
	func() {
		defer func() {
			if recover() == nil {
				t.Error("controller-runtime sees no panic")
			}
		}()
		_, _ = s.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.cluster)})
	}()
	other := newCluster()
	other.Name = "other"
	if err := s.changing.enter(other, 1); err != nil {
		t.Errorf("other still waits: %v", err)
	}
}

// TestRefusedChange: what the API server refuses costs neither an endpoint nor writes without end.
func TestRefusedChange(t *testing.T) {
	denied := forbiddenBy("pods", "db-0", "policy: image is not signed")
	cases := map[string]struct {
		reason  string
		label   string // of db-0 before the pass
		options bool   // are changed, for which its Pod is recreated; else the version, in place
		claim   bool   // the refusal is that of its claim; else of its Pod
		verbs   []string
		refused time.Duration // so long ago it was refused; 0: it was not
	}{
		"DryRun": {
			reason: "nothing but metadata is written for what is refused", label: api.ClientsIn, verbs: []string{"try"},
		},
		"DryRunOfDeletion": {
			reason: "nor where its Pod would be deleted", label: api.ClientsIn, options: true, verbs: []string{"try"},
		},
		"DryRunOfClaim": {
			reason: "nor where the change could not be announced", label: api.ClientsIn, claim: true, verbs: []string{"try"},
		},
		"InEarnest": {
			reason: "the member comes back into the Service", label: api.ClientsOut, verbs: []string{"image"},
		},
		"Lately": {
			reason: "a webhook that lets dry runs pass is not asked again at once", label: api.ClientsIn, refused: time.Second,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			if tc.options {
				w.cluster.Spec.Options = &api.Options{SnapshotCount: new(int64(5000))}
			} else {
				w.upgrading()
			}
			for _, pod := range w.pods {
				pod.Labels[api.LabelClients] = api.ClientsIn
			}
			w.pods["db-0"].Labels[api.LabelClients] = tc.label
			w.address()
			led := leadsTo("db-0", "db-1", "db-2")
			if tc.label == api.ClientsOut {
				led = leadsTo("db-1", "db-2")
			}
			images := 0
			s := newStub(t, func(w write) error {
				if kind := map[bool]string{false: "Pod", true: "PersistentVolumeClaim"}[tc.claim]; w.Kind != kind || w.Name != "db-0" {
					return nil
				}
				if w.Verb == "apply" && slices.Contains(tc.verbs, "image") {
					if images++; images <= 2 { // with the labels of the spec, and with those that are there; the next one gives the label back
						return denied
					}
					return nil
				}
				if slices.Contains(tc.verbs, w.Verb) {
					return denied
				}
				return nil
			}, append(w.objects(), led)...)
			s.Dial = w.dial(nil)
			if tc.refused > 0 {
				change := membership.Step{Action: membership.Update, Change: membership.ChangeImage, Members: []string{"db-0"}}
				s.refused.remember(w.cluster, change, denied, time.Now().Add(-tc.refused))
			}
			if _, err := s.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.cluster)}); err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			for _, name := range []string{"db-0", "db-1", "db-2"} {
				if got := s.labels["Pod "+name][api.LabelClients]; got != api.ClientsIn {
					t.Errorf("%s: the label of %s is %q", tc.reason, name, got)
				}
				var metadata []string
				for _, w := range s.writes {
					if w.Name == name && (w.Kind == "Pod" || w.Kind == "PersistentVolumeClaim") {
						metadata = append(metadata, w.Kind)
					}
				}
				if len(metadata) > 2 && tc.label == api.ClientsIn { // one of each is maintained
					t.Errorf("%s: of %s is written %v", tc.reason, name, metadata)
				}
			}
			if len(s.status) > 0 {
				w.cluster.Status = s.status[len(s.status)-1]
			}
			if said := refusal(w.cluster); said == nil || said.Message != "the API server refuses what the spec asks for: "+denied.Error() {
				t.Errorf("%s: the status says %v", tc.reason, w.cluster.Status.Conditions)
			}
		})
	}
}
