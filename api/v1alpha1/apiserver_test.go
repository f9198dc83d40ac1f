package v1alpha1

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
	"sigs.k8s.io/yaml"
)

// definitions are the generated CustomResourceDefinitions as the API server holds them, by kind.
var definitions = sync.OnceValues(func() (map[string]*apiextensions.CustomResourceDefinition, error) {
	files, err := filepath.Glob("../../templates/install/crd/etcd.quorate.dev_*.yaml")
	if err != nil {
		return nil, err
	}
	all := map[string]*apiextensions.CustomResourceDefinition{}
	for _, file := range files {
		crd, err := definition(file)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all[crd.Spec.Names.Kind] = crd
	}
	return all, nil
})

func definition(file string) (*apiextensions.CustomResourceDefinition, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	v1 := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(data, v1); err != nil {
		return nil, err
	}
	apiextensionsv1.SetDefaults_CustomResourceDefinition(v1)
	apiextensionsv1.SetDefaults_CustomResourceDefinitionSpec(&v1.Spec)

	crd := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(v1, crd, nil); err != nil {
		return nil, err
	}
	crd.Status.StoredVersions = []string{v1.Spec.Versions[0].Name} // the API server does this when it stores it
	return crd, nil
}

// gate admits objects of one kind, with the same steps in the same order as the API server.
type gate struct {
	structural *structuralschema.Structural
	openapi    validation.SchemaValidator
	cel        *cel.Validator
}

var gates = sync.OnceValues(func() (map[string]gate, error) {
	crds, err := definitions()
	if err != nil {
		return nil, err
	}
	all := map[string]gate{}
	for kind, crd := range crds {
		if all[kind], err = newGate(crd); err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
	}
	return all, nil
})

func newGate(crd *apiextensions.CustomResourceDefinition) (gate, error) {
	schema := crd.Spec.Validation.OpenAPIV3Schema // one version: the conversion to the internal type moves its schema up
	structural, err := structuralschema.NewStructural(schema)
	if err != nil {
		return gate{}, err
	}
	openapi, _, err := validation.NewSchemaValidator(schema)
	if err != nil {
		return gate{}, err
	}
	return gate{structural, openapi, cel.NewValidator(structural, true, celconfig.PerCallLimit)}, nil
}

// decode drops nulls and sets defaults. Unknown fields are returned: kubectl asks for them to be
// refused.
func (g gate) decode(obj map[string]any) (unknown []string) {
	unknown = pruning.PruneWithOptions(obj, g.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, g.structural)
	defaulting.Default(obj, g.structural)
	return unknown
}

func (g gate) create(ctx context.Context, obj map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, obj, g.openapi)
	errs = append(errs, scalable(obj)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, g.structural, obj)...)
	if blocked(errs) {
		return errs
	}
	rules, _ := g.cel.Validate(ctx, nil, g.structural, obj, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, rules...)
}

func (g gate) update(ctx context.Context, obj, old map[string]any) field.ErrorList {
	correlated := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: g.structural})
	errs := validation.ValidateCustomResourceUpdate(nil, obj, old, g.openapi, validation.WithRatcheting(correlated))
	errs = append(errs, scalable(obj)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, g.structural, obj)...)
	if blocked(errs) {
		return errs
	}
	rules, _ := g.cel.Validate(ctx, nil, g.structural, obj, old, celconfig.RuntimeCELCostBudget, cel.WithRatcheting(correlated))
	return append(errs, rules...)
}

// scalable is what the scale subresource asks of the number that it reads, besides the schema.
func scalable(obj map[string]any) field.ErrorList {
	path := field.NewPath(".spec.replicas")
	replicas, _, err := unstructured.NestedInt64(obj, "spec", "replicas")
	if err != nil {
		return field.ErrorList{field.Invalid(path, replicas, err.Error())}
	}
	if replicas < 0 {
		return field.ErrorList{field.Invalid(path, replicas, "should be a non-negative integer")}
	}
	return nil
}

// blocked: after such an error the API server does not evaluate CEL rules, and says so.
func blocked(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}

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

// gateOf is the gate of the kind that the object is of.
func gateOf(t *testing.T, obj map[string]any) gate {
	t.Helper()
	all, err := gates()
	if err != nil {
		t.Fatal(err)
	}
	kind, _, _ := unstructured.NestedString(obj, "kind")
	g, ok := all[kind]
	if !ok {
		t.Fatalf("no definition of kind %q", kind)
	}
	return g
}

// admit gives what a user would read when the object is created, or when it replaces before, if
// that is given.
func admit(t *testing.T, base string, a args) []string {
	t.Helper()
	obj := patched(t, base, a.object)
	g := gateOf(t, obj)
	if unknown := g.decode(obj); len(unknown) > 0 {
		t.Fatalf("unknown fields: %v", unknown)
	}
	var errs field.ErrorList
	if a.before == "" {
		errs = g.create(t.Context(), obj)
	} else {
		old := patched(t, base, a.before)
		if unknown := g.decode(old); len(unknown) > 0 {
			t.Fatalf("unknown fields before: %v", unknown)
		}
		if errs := g.create(t.Context(), old); len(errs) > 0 {
			t.Fatalf("the object before is refused itself: %v", errs)
		}
		errs = g.update(t.Context(), obj, old)
	}
	var messages []string
	for _, err := range errs {
		messages = append(messages, err.Error())
	}
	slices.Sort(messages) // a schema is walked in any order
	return messages
}
