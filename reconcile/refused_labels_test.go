package reconcile

import (
	"context"
	"errors"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestRefusedLabelsRollback: an image that cannot be pulled is rolled back whether the labels of
// the spec are taken or not.
func TestRefusedLabelsRollback(t *testing.T) {
	t.Parallel()
	w := serving(t)
	w.upgrading()
	w.asksFor("db-0", image37)
	w.pods["db-0"].Status.ContainerStatuses = etcdStatus(corev1.ContainerStatus{
		Image: image36, ContainerID: "containerd://db-0", State: waiting("ImagePullBackOff", "no such image"),
	})
	delete(w.asked.endpoints, "db-0")
	w.pods["db-0"].Annotations[api.AnnotationPrevious] = "containerd://db-0 " + image36
	w.address()
	w.managed()
	w.cluster.Spec.Pod = &api.Pod{Metadata: &api.Metadata{Labels: api.Labels{"team": "bad"}}}
	s, seen := w.look(t)
	s.deniesTeam("Pod")
	step := membership.Plan(desired(w.cluster), seen.Observed)
	if step.Action != membership.PutBack {
		t.Fatalf("want a rollback, got %s", step)
	}
	if err := s.take(t.Context(), w.cluster.DeepCopy(), seen, step); err != nil {
		t.Errorf("the rollback waits for labels: %v", err)
	}
	if got := s.specs["apply db-0"].Containers; len(got) == 0 || got[0].Image != image36 {
		t.Errorf("the member keeps an image that cannot be pulled: %v", s.writes)
	}
}

// TestRefusedLabelsBeside: beside labels that are refused, something else goes wrong. It decides
// when the record is tried again.
func TestRefusedLabelsBeside(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		err    error
	}{
		"Conflict": {reason: "the next look is at once", err: apierrors.NewConflict(schema.GroupResource{Resource: "persistentvolumeclaims"}, "db-0", errors.New("changed"))},
		"Busy":     {reason: "it is tried again with growing pauses", err: apierrors.NewInternalError(errors.New("webhook timed out"))},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := labelledVolumes(t)
			w.claims["db-0"].Annotations[api.AnnotationNext], w.claims["db-0"].Annotations[api.AnnotationNextWith] = "3.6.16", servedTeamA
			manage(t, w.claims["db-0"])
			s, seen := w.look(t)
			s.Client = newStub(t, func(x write) error {
				if x.Kind == "PersistentVolumeClaim" && x.Name == "db-0" && x.Verb == "apply" {
					return tc.err
				}
				return nil
			}, w.objects()...).Client
			s.deniesTeam("PersistentVolumeClaim", "Pod")
			step := membership.Step{Action: membership.Record, Members: []string{"db-0"}}
			err := s.act(t.Context(), w.cluster.DeepCopy(), seen, step)
			if _, left := outcome(t.Context(), step, err); left == nil {
				t.Errorf("%s: want an error, got %v", tc.reason, err)
			}
		})
	}
}

// TestRefusedLabelsTurn: the labels of the spec are refused on volumes while a member is updated.
// The cluster keeps its turn: another one may not begin while a member is away.
func TestRefusedLabelsTurn(t *testing.T) {
	t.Parallel()
	w := labelledVolumes(t)
	other(&w)
	s, _ := w.look(t)
	s.deniesTeam("PersistentVolumeClaim")
	s.MaxChanging = 1
	key := turnOf("db")
	s.changing.resumed, s.changing.taken = true, map[types.NamespacedName]bool{}
	s.draining.begun.Store(key, drained{[]string{"db-0"}, time.Now().Add(-time.Minute)})
	for range 2 { // the first one may find that the cache is behind
		if _, err := s.Reconcile(t.Context(), ctrl.Request{NamespacedName: key}); err != nil {
			t.Fatal(err)
		}
	}
	if !s.changing.taken[key] {
		t.Errorf("the Pod of db-0 is deleted, and another cluster may begin: %v, %v", s.writes, s.told())
	}
}

// TestRefusedLabelsDrain: a change is refused for an hour, and its member is back in the Service
// for clients. When it is taken, the member leaves the Service before it, as at the first time.
func TestRefusedLabelsDrain(t *testing.T) {
	t.Parallel()
	w := serving(t)
	w.served()
	other(&w)
	w.address()
	w.managed()
	w.pods["db-0"].Labels[api.LabelClients] = api.ClientsOut
	freeze := true
	s, seen := w.lookThrough(t, func(x write) error {
		if freeze {
			return noChanges(x)
		}
		return nil
	}, leadsTo("db-0", "db-1", "db-2"))
	step := membership.Plan(desired(w.cluster), seen.Observed)
	if step.Action != membership.Update {
		t.Fatalf("want an update, got %s", step)
	}
	// It has left the Service while another member proved itself.
	s.draining.begun.Store(client.ObjectKeyFromObject(w.cluster), drained{step.Members, time.Now().Add(-time.Hour)})
	if err := s.act(t.Context(), w.cluster.DeepCopy(), seen, step); !refuses(err) {
		t.Fatalf("want a refusal, got %v", err)
	}
	if s.labels["Pod db-0"][api.LabelClients] != api.ClientsIn {
		t.Fatalf("it stays out of the Service: %v", s.labels["Pod db-0"])
	}
	for _, pod := range seen.pods {
		pod.Labels[api.LabelClients] = api.ClientsIn
	}
	freeze, s.writes = false, nil
	s.refused.forget(client.ObjectKeyFromObject(w.cluster)) // the pause is over
	err := s.act(t.Context(), w.cluster.DeepCopy(), seen, step)
	for _, x := range s.writes {
		if x.Verb == "delete" {
			t.Errorf("Pod %s is deleted while the Service leads to it: %v", x.Name, err)
		}
	}
}

// TestQuotaExceeded: a quota has no room for the volume of a member that comes, for a moment. The
// volume is made as the spec says: what its annotations ask of a provisioner holds for good.
func TestQuotaExceeded(t *testing.T) {
	t.Parallel()
	w := labelledVolumes(t)
	w.cluster.Spec.AdditionalMetadata = &api.Metadata{Labels: api.Labels{"team": "a"}, Annotations: map[string]string{"example.com/encryption": "true"}}
	delete(w.pods, "db-2")
	delete(w.claims, "db-2")
	s, seen := w.look(t)
	refused := 0
	s.Client = interceptor.NewClient(s.Client.(client.WithWatch), interceptor.Funcs{
		Apply: func(ctx context.Context, c client.WithWatch, o runtime.ApplyConfiguration, opts ...client.ApplyOption) error {
			d, err := decode(o)
			if err != nil {
				return err
			}
			if d.Kind == "PersistentVolumeClaim" && d.Metadata.Name == "db-3" && refused == 0 {
				refused++
				return forbiddenBy("persistentvolumeclaims", "db-3", "exceeded quota: storage, requested: requests.storage=1Gi, used: requests.storage=10Gi, limited: requests.storage=10Gi")
			}
			return c.Apply(ctx, o, opts...)
		},
	})
	for range 2 {
		if err := s.act(t.Context(), w.cluster.DeepCopy(), seen, provisionDB3); err != nil && !exceedsQuota(err) {
			t.Fatal(err)
		}
	}
	if got := s.marks["PersistentVolumeClaim db-3"]; got["example.com/encryption"] != "true" {
		t.Errorf("the volume is made without what the spec asks for: %v, %v", got, s.told())
	}
}
