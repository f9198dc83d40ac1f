package v1alpha1

import (
	"slices"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"quorate.dev/crd"
)

// quantityPattern ends the message about a malformed quantity that Kubernetes gives in front of
// ours.
const quantityPattern = `'^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$'`

// args are merge patches over the minimal object of a kind.
type args struct {
	// before is what exists already; empty when the object is created.
	before string
	object string
}

// admissionCase is one row: what is sent, and every message a user reads; none where it is
// accepted.
type admissionCase struct {
	reason string
	args   args
	want   []string
}

// admission judges EtcdClusters.
func admission(t *testing.T, cases map[string]admissionCase) {
	t.Helper()
	admissionOf(t, minimal, cases)
}

// admissionOf judges objects of the kind that base is of.
func admissionOf(t *testing.T, base string, cases map[string]admissionCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, admit(t, base, tc.args)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// minimal is the smallest good EtcdCluster; the rows of the tables are merge patches over it.
const minimal = `
apiVersion: etcd.quorate.dev/v1alpha1
kind: EtcdCluster
metadata: {name: a, namespace: default}
spec: {version: 3.6.16, storage: {size: 1Gi}}
`

// patched is an object with a merge patch applied.
func patched(t *testing.T, object, patch string) map[string]any {
	t.Helper()
	base, err := yaml.YAMLToJSON([]byte(object))
	if err != nil {
		t.Fatal(err)
	}
	over, err := yaml.YAMLToJSON([]byte(patch))
	if err != nil {
		t.Fatal(err)
	}
	merged, err := jsonpatch.MergePatch(base, over)
	if err != nil {
		t.Fatal(err)
	}
	obj := map[string]any{}
	if err := utiljson.Unmarshal(merged, &obj); err != nil {
		t.Fatal(err)
	}
	return obj
}

// kindOf is the schema of the kind that the object is of.
func kindOf(t *testing.T, obj map[string]any) *crd.Kind {
	t.Helper()
	name, _, _ := unstructured.NestedString(obj, "kind")
	kind, err := crd.Of(name)
	if err != nil {
		t.Fatal(err)
	}
	return kind
}

// server is what a real API server says when an object is created, or when it takes the place of an
// earlier one; nil without the tag env.
var server func(t *testing.T, obj, old map[string]any) []string

// admit gives what a user would read when the object is created, or when it replaces before, if
// that is given.
func admit(t *testing.T, base string, a args) []string {
	t.Helper()
	obj := patched(t, base, a.object)
	kind := kindOf(t, obj)
	if unknown := kind.Decode(obj); len(unknown) > 0 {
		t.Fatalf("unknown fields: %v", unknown)
	}
	var errs field.ErrorList
	if a.before == "" {
		errs = kind.Create(obj)
	} else {
		old := patched(t, base, a.before)
		if unknown := kind.Decode(old); len(unknown) > 0 {
			t.Fatalf("unknown fields before: %v", unknown)
		}
		if errs := kind.Create(old); len(errs) > 0 {
			t.Fatalf("the object before is refused itself: %v", errs)
		}
		errs = kind.Update(obj, old)
	}
	var messages []string
	for _, err := range errs {
		messages = append(messages, err.Error())
	}
	slices.Sort(messages) // a schema is walked in any order
	if server != nil {
		var old map[string]any
		if a.before != "" {
			old = patched(t, base, a.before)
		}
		if diff := cmp.Diff(server(t, patched(t, base, a.object), old), messages); diff != "" {
			t.Errorf("offline is not what the API server says: -server, +offline\n%s", diff)
		}
	}
	return messages
}
