package reconcile

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "quorate.dev/api/v1alpha1"
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
