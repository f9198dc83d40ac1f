package render

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/json"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"sigs.k8s.io/yaml"

	api "quorate.dev/api/v1alpha1"
)

// schema says what the API server would say of a new EtcdCluster: the messages of the rules, and
// whether anything else of the schema refuses it.
type schema func(ctx context.Context, c *api.EtcdCluster) (messages []string, otherwise bool, err error)

var loadSchema = sync.OnceValues(func() (schema, error) {
	raw, err := os.ReadFile("../templates/install/crd/etcd.quorate.dev_etcdclusters.yaml")
	if err != nil {
		return nil, err
	}
	v1 := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(raw, v1); err != nil {
		return nil, err
	}
	props := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v1.Spec.Versions[0].Schema.OpenAPIV3Schema, props, nil); err != nil {
		return nil, err
	}
	structural, err := structuralschema.NewStructural(props)
	if err != nil {
		return nil, err
	}
	openapi, _, err := validation.NewSchemaValidator(props)
	if err != nil {
		return nil, err
	}
	rules := cel.NewValidator(structural, true, celconfig.PerCallLimit)
	return func(ctx context.Context, c *api.EtcdCluster) ([]string, bool, error) {
		raw, err := json.Marshal(c)
		if err != nil {
			return nil, false, err
		}
		obj := map[string]any{}
		if err := json.Unmarshal(raw, &obj); err != nil {
			return nil, false, err
		}
		delete(obj, "status")
		defaulting.Default(obj, structural)
		others := validation.ValidateCustomResource(nil, obj, openapi)
		errs, _ := rules.Validate(ctx, nil, structural, obj, nil, celconfig.RuntimeCELCostBudget)
		var messages []string
		for _, err := range errs {
			messages = append(messages, err.Detail)
		}
		slices.Sort(messages)
		return slices.Compact(messages), len(others) > 0, nil
	}, nil
})

func judge(t *testing.T, c *api.EtcdCluster) (messages []string, otherwise bool) {
	t.Helper()
	schema, err := loadSchema()
	if err != nil {
		t.Fatal(err)
	}
	messages, otherwise, err = schema(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return messages, otherwise
}

// TestSchemaAgrees shows that the schema refuses what Validate refuses on every version.
func TestSchemaAgrees(t *testing.T) {
	t.Parallel()
	for name, tc := range invalid {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, "minimal")
			tc.args(c)
			if messages, otherwise := judge(t, c); len(messages) == 0 && !otherwise {
				t.Errorf("%s: the schema takes it, Validate says %v", tc.reason, Validate(c))
			}
		})
	}
}

// TestSchemaAgreesOnFlags shows that the schema and Validate refuse the same flags, in as many
// words.
func TestSchemaAgreesOnFlags(t *testing.T) {
	t.Parallel()
	for _, flag := range append(everyFlag(t), "Upper", "--name", "a_b", strings.Repeat("x", 65), "listen-new-urls") {
		c := load(t, "minimal")
		c.Spec.Options = &api.Options{Flags: map[string]string{flag: "1"}}
		want, _ := judge(t, c)
		if got := refused(flag); len(got) != len(want) {
			t.Errorf("flag %s: -schema, +refused\n%s", flag, cmp.Diff(want, got))
		}
	}
}

// TestSchemaTakesGolden shows that the golden cases are such as the API server takes.
func TestSchemaTakesGolden(t *testing.T) {
	t.Parallel()
	for _, name := range cases(t) {
		if messages, otherwise := judge(t, load(t, name)); otherwise || len(messages) > 0 {
			t.Errorf("the schema refuses the golden case %s: %v", name, messages)
		}
	}
}
