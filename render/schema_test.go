package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/util/validation/field"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/crd"
)

// TestSchemaTakesGolden shows that the golden cases are such as the API server takes.
func TestSchemaTakesGolden(t *testing.T) {
	t.Parallel()
	for _, name := range cases(t) {
		if diff := cmp.Diff(field.ErrorList(nil), crd.Validate(api.EtcdClusterKind.Kind, load(t, name))); diff != "" {
			t.Errorf("the schema refuses the golden case %s: -want, +got\n%s", name, diff)
		}
	}
}
