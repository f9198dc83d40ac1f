package v1alpha1

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"

	"quorate.dev/crd"
)

// The API server must take every definition: it is structural, and its CEL rules compile and keep
// within the cost budget.
func TestDefinitionValid(t *testing.T) {
	t.Parallel()
	for kind, crd := range everyDefinition(t) {
		for _, err := range validation.ValidateCustomResourceDefinition(t.Context(), crd) {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// A rule is ASCII: gofmt makes a typographic quote of two apostrophes in a comment, and the rule
// then means something else.
func TestRulesPlain(t *testing.T) {
	t.Parallel()
	rules := 0
	for kind, crd := range everyDefinition(t) {
		walk(crd.Spec.Validation.OpenAPIV3Schema, "", func(path string, s *apiextensions.JSONSchemaProps) {
			for _, rule := range s.XValidations {
				rules++
				for _, text := range []string{rule.Rule, rule.Message} {
					if strings.ContainsFunc(text, func(r rune) bool { return r > unicode.MaxASCII }) {
						t.Errorf("%s: %s: not ASCII: %s", kind, path, text)
					}
				}
			}
		})
	}
	if rules < 40 { // a walk that goes astray must not pass
		t.Errorf("walked over %d rules only", rules)
	}
}

// everyDefinition is those of all kinds.
func everyDefinition(t *testing.T) map[string]*apiextensions.CustomResourceDefinition {
	t.Helper()
	if diff := cmp.Diff(slices.Sorted(slices.Values(kindsOfOurs)), crd.Kinds()); diff != "" {
		t.Fatalf("-want, +got\n%s", diff)
	}
	all := map[string]*apiextensions.CustomResourceDefinition{}
	for _, name := range crd.Kinds() {
		kind, err := crd.Of(name)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = kind.Definition
	}
	return all
}

// kubernetes are the parts of the schema that are types of Kubernetes: described there, and bounded
// by the size of a request only.
var kubernetes = regexp.MustCompile(`^(apiVersion|kind|metadata)$|` +
	`^spec\.scheduling\.(affinity|tolerations\[\]|topologySpreadConstraints\[\])$|` +
	`^status\.conditions\[\]$`)

// Every field of ours says in kubectl explain what it is, and has a bound, without which neither
// the cost of a rule nor the size of an object could be known.
func TestFieldsDescribedAndBounded(t *testing.T) {
	t.Parallel()
	for kind, crd := range everyDefinition(t) {
		fields := 0
		walk(crd.Spec.Validation.OpenAPIV3Schema, "", func(path string, s *apiextensions.JSONSchemaProps) {
			fields++
			for _, lack := range lacks(path, s) {
				t.Errorf("%s: %s: %s", kind, path, lack)
			}
		})
		if fields < 15 { // a walk that goes astray must not pass
			t.Errorf("%s: walked over %d fields only", kind, fields)
		}
	}
}

// walk visits every field, item and value of a map that is not Kubernetes' own.
func walk(s *apiextensions.JSONSchemaProps, path string, visit func(string, *apiextensions.JSONSchemaProps)) {
	if kubernetes.MatchString(path) {
		return
	}
	if path != "" {
		visit(path, s)
	}
	for name, field := range s.Properties {
		walk(&field, strings.TrimPrefix(path+"."+name, "."), visit)
	}
	if s.Items != nil && s.Items.Schema != nil {
		walk(s.Items.Schema, path+"[]", visit)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		value := *s.AdditionalProperties.Schema
		if value.MaxLength == nil && boundsValues(s) { // controller-gen has no marker for the values of a map
			value.MaxLength = new(int64)
		}
		walk(&value, path+"{}", visit)
	}
}

// boundsValues: one of the map's own rules bounds the length of its values.
func boundsValues(s *apiextensions.JSONSchemaProps) bool {
	for _, rule := range s.XValidations {
		if strings.Contains(rule.Rule, "self[k].size() <= ") {
			return true
		}
	}
	return false
}

func lacks(path string, s *apiextensions.JSONSchemaProps) (lacks []string) {
	field := !strings.HasSuffix(path, "]") && !strings.HasSuffix(path, "}")
	if field && s.Description == "" {
		lacks = append(lacks, "description")
	}
	switch {
	case s.XIntOrString: // a quantity: its pattern is Kubernetes' own
	case s.Type == "string":
		if s.MaxLength == nil && len(s.Enum) == 0 && s.Format == "" {
			lacks = append(lacks, "maxLength, enum or format")
		}
	case s.Type == "array":
		if s.MaxItems == nil {
			lacks = append(lacks, "maxItems")
		}
		if s.XListType == nil {
			lacks = append(lacks, "listType")
		}
	case s.AdditionalProperties != nil:
		if s.MaxProperties == nil {
			lacks = append(lacks, "maxProperties")
		}
	}
	return lacks
}

// A fresh object is never taken for one that was looked at already, and an EtcdCluster has the size
// that kubectl scale shows.
func TestDefaults(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   string
		want   string
	}{
		"EtcdCluster": {
			reason: "the size and the status have defaults",
			args:   minimal,
			want:   `{spec: {replicas: 3}, status: {observedGeneration: -1}}`,
		},
		"EtcdBackup": {
			reason: "only the status has a default",
			args:   minimalBackup,
			want:   `{status: {observedGeneration: -1}}`,
		},
		"EtcdBackupSchedule": {
			reason: "only the status has a default",
			args:   minimalSchedule,
			want:   `{status: {observedGeneration: -1}}`,
		},
		"EtcdRole": {
			reason: "only the status has a default",
			args:   minimalRole,
			want:   `{status: {observedGeneration: -1}}`,
		},
		"EtcdUser": {
			reason: "only the status has a default",
			args:   minimalUser,
			want:   `{status: {observedGeneration: -1}}`,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := patched(t, tc.args, `{}`)
			if unknown := kindOf(t, got).Decode(got); len(unknown) > 0 {
				t.Fatalf("unknown fields: %v", unknown)
			}
			if diff := cmp.Diff(patched(t, tc.args, tc.want), got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
