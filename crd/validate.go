package crd

import (
	"context"
	"encoding/json"
	"fmt"

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
)

// Validate says what an API server says of an object that is to be created, given as its type in
// Go. Its status is left out: an API server judges that when Quorate writes it.
func Validate(kind string, object any) field.ErrorList {
	k, obj, err := content(kind, object)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return k.Create(obj)
}

// ValidateUpdate is Validate for an object that is to take the place of an earlier one. As in an
// API server, what both have in common is right, whatever the schema says of it by now; and the
// rules for changes are evaluated too.
func ValidateUpdate(kind string, object, earlier any) field.ErrorList {
	k, obj, err := content(kind, object)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	_, old, err := content(kind, earlier)
	if err != nil {
		return field.ErrorList{field.InternalError(nil, err)}
	}
	return k.Update(obj, old)
}

// content is an object as an API server holds it, without its status.
func content(kind string, object any) (*Kind, map[string]any, error) {
	k, err := Of(kind)
	if err != nil {
		return nil, nil, err
	}
	data, err := json.Marshal(object)
	if err != nil {
		return nil, nil, fmt.Errorf("write %s as JSON: %w", kind, err)
	}
	obj := map[string]any{}
	if err := utiljson.Unmarshal(data, &obj); err != nil {
		return nil, nil, fmt.Errorf("read %s from JSON: %w", kind, err)
	}
	delete(obj, "status")
	k.Decode(obj)
	return k, obj, nil
}

// Decode drops nulls and unknown fields and sets defaults, as an API server does before it judges.
// The unknown fields are returned: kubectl asks for them to be refused.
func (k *Kind) Decode(obj map[string]any) (unknown []string) {
	unknown = pruning.PruneWithOptions(obj, k.structural, true, structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	defaulting.PruneNonNullableNullsWithoutDefaults(obj, k.structural)
	defaulting.Default(obj, k.structural)
	return unknown
}

// Create says what is wrong with a decoded object that is to be created; nothing where it is taken.
func (k *Kind) Create(obj map[string]any) field.ErrorList {
	errs := validation.ValidateCustomResource(nil, obj, k.openapi)
	errs = append(errs, scalable(obj)...)
	errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, obj)...)
	if blocked(errs) {
		return errs
	}
	rules, _ := k.rules.Validate(unbounded(), nil, k.structural, obj, nil, celconfig.RuntimeCELCostBudget)
	return append(errs, rules...)
}

// Update says what is wrong with a decoded object that is to take the place of an earlier one.
func (k *Kind) Update(obj, old map[string]any) field.ErrorList {
	correlated := common.NewCorrelatedObject(obj, old, &model.Structural{Structural: k.structural})
	errs := validation.ValidateCustomResourceUpdate(nil, obj, old, k.openapi, validation.WithRatcheting(correlated))
	errs = append(errs, scalable(obj)...)
	if len(listtype.ValidateListSetsAndMaps(nil, k.structural, old)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, k.structural, obj)...)
	}
	if blocked(errs) {
		return errs
	}
	rules, _ := k.rules.Validate(unbounded(), nil, k.structural, obj, old, celconfig.RuntimeCELCostBudget, cel.WithRatcheting(correlated))
	return append(errs, rules...)
}

// unbounded: rules wait for nothing, and what they may cost is bounded by the library.
func unbounded() context.Context { return context.Background() } //nolint:forbidigo // see above

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

// blocked: after such an error an API server does not evaluate CEL rules, and says so in one more
// message, which is left out here.
func blocked(errs field.ErrorList) bool {
	for _, err := range errs {
		switch err.Type {
		case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeTypeInvalid:
			return true
		}
	}
	return false
}
