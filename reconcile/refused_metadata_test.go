package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestRefusedMetadataStays: labels that are refused take none from a Pod that runs. A record does
// not name those that came while it ran.
func TestRefusedMetadataStays(t *testing.T) {
	t.Parallel()
	w := serving(t)
	w.served()
	w.address()
	w.managed()
	w.cluster.Spec.AdditionalMetadata = &api.Metadata{Labels: api.Labels{"team": "a"}}
	for _, pod := range w.pods {
		pod.Labels["team"] = "a"
	}
	w.managed()
	w.cluster.Spec.AdditionalMetadata.Labels["team"] = "bad"
	refused := 0
	s := newStub(t, func(x write) error {
		if x.Kind == "Pod" && x.Verb == "apply" && refused == 0 { // the next one would be taken
			refused++
			return apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, x.Name, nil)
		}
		return nil
	}, w.objects()...)
	s.Dial = w.dial(nil)
	seen, err := s.observe(t.Context(), w.cluster, s.Client)
	if err != nil {
		t.Fatal(err)
	}
	err = s.applyMetadata(t.Context(), w.cluster, seen, current(w.cluster, seen, "db-0"))
	if !refuses(err) || refused != 1 {
		t.Errorf("want one refusal, got %v of %d", err, refused)
	}
	if got, wrote := s.labels["Pod db-0"]; wrote && got["team"] != "a" {
		t.Errorf("a refused edit took the label from a running Pod: applied %v", got)
	}
}

// TestRefusedMetadataTold: a policy looks at new Pods alone. The one that is created without the
// labels of the spec gets them a moment later, and only an event tells that they are refused.
func TestRefusedMetadataTold(t *testing.T) {
	t.Parallel()
	w := serving(t)
	w.served()
	w.address()
	w.managed()
	w.claims["db-1"].Annotations[api.AnnotationServed] = `{"version":"3.6.16","tls":{"mode":"Disabled"},"metadata":{"labels":{"team":"a"}}}`
	w.cluster.Spec.AdditionalMetadata = &api.Metadata{Labels: api.Labels{"team": "bad"}}
	delete(w.pods, "db-1")
	refused := 0
	s := newStub(t, func(x write) error {
		if x.Kind == "Pod" && x.Verb == "apply" && refused == 0 {
			refused++
			denied := apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, x.Name, nil)
			denied.ErrStatus.Message = "this team is not known"
			return denied
		}
		return nil
	}, w.objects()...)
	s.Dial = w.dial(nil)
	seen, err := s.observe(t.Context(), w.cluster, s.Client)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.start(t.Context(), w.cluster, seen, membership.Step{Action: membership.Start, Reason: membership.Starting, Members: []string{"db-1"}}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Warning Refused Pod db-1 has labels and annotations that the API server took before, because it refuses those of spec.additionalMetadata and spec.pod.metadata. Correct or revert these: this team is not known",
		"Normal Starting Created Pod db-1",
	}
	if diff := cmp.Diff(want, s.told()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if team := s.labels["Pod db-1"]["team"]; team != "a" {
		t.Errorf("want the label with which the API server took its Pod before, got %q", team)
	}
}
