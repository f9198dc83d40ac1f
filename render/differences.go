package render

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	policyv1ac "k8s.io/client-go/applyconfigurations/policy/v1"

	api "quorate.dev/api/v1alpha1"
)

// Difference is one place in which what is to be applied to an object differs from what was applied
// to it last.
type Difference struct {
	// Path leads there. An item of a list goes by its name or its place, and one of a list of mere
	// values by nothing.
	Path string `json:"path"`
	// From and To are the values there; empty where there is none.
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
}

// String is the difference in one line.
func (d Difference) String() string {
	switch {
	case d.From == "":
		return d.Path + ": + " + d.To
	case d.To == "":
		return d.Path + ": - " + d.From
	default:
		return d.Path + ": " + d.From + " -> " + d.To
	}
}

// Differences are where what is to be applied to a live object differs from what Quorate applied to
// it last, which the API server keeps in its managedFields. What others have written there is none
// of it. They are in the order of their paths.
func Differences(live runtime.Object, want runtime.ApplyConfiguration) ([]Difference, error) {
	applied, err := appliedTo(live)
	if err != nil {
		return nil, fmt.Errorf("extract what was applied: %w", err)
	}
	from, err := plain(applied)
	if err != nil {
		return nil, err
	}
	to, err := plain(want)
	if err != nil {
		return nil, err
	}
	return compare("", from, to), nil
}

func appliedTo(live runtime.Object) (runtime.ApplyConfiguration, error) {
	switch o := live.(type) {
	case *corev1.Pod:
		return corev1ac.ExtractPod(o, api.Manager)
	case *corev1.PersistentVolumeClaim:
		return corev1ac.ExtractPersistentVolumeClaim(o, api.Manager)
	case *corev1.Service:
		return corev1ac.ExtractService(o, api.Manager)
	case *policyv1.PodDisruptionBudget:
		return policyv1ac.ExtractPodDisruptionBudget(o, api.Manager)
	default:
		return nil, fmt.Errorf("%T is nothing that Quorate applies", live)
	}
}

// plain is a value as maps, lists and scalars.
func plain(value any) (any, error) {
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var p any
	return p, json.Unmarshal(raw, &p)
}

func compare(path string, from, to any) []Difference {
	switch f := from.(type) {
	case map[string]any:
		if t, ok := to.(map[string]any); ok {
			return compareFields(path, f, t)
		}
	case []any:
		if t, ok := to.([]any); ok {
			return compareItems(path, f, t)
		}
	}
	if reflect.DeepEqual(from, to) {
		return nil
	}
	return []Difference{{Path: path, From: inLine(from), To: inLine(to)}}
}

func compareFields(path string, from, to map[string]any) []Difference {
	names := slices.Collect(maps.Keys(from))
	for name := range to {
		if _, ok := from[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	all := make([]Difference, 0, len(names))
	for _, name := range names {
		below := strings.TrimPrefix(path+"."+name, ".")
		if strings.ContainsAny(name, "./") { // of a label or an annotation
			below = path + "[" + name + "]"
		}
		all = append(all, compare(below, from[name], to[name])...)
	}
	return all
}

// compareItems compares lists of objects by their names or places, and other lists by what they
// hold, and then by its order.
func compareItems(path string, from, to []any) []Difference {
	if isObject := func(item any) bool { _, ok := item.(map[string]any); return ok }; slices.ContainsFunc(from, isObject) || slices.ContainsFunc(to, isObject) {
		return compareFields(path, byName(from), byName(to))
	}
	var all []Difference
	left := slices.Clone(to)
	for _, item := range from {
		if n := slices.IndexFunc(left, func(other any) bool { return reflect.DeepEqual(item, other) }); n >= 0 {
			left = slices.Delete(left, n, n+1)
		} else {
			all = append(all, Difference{Path: path, From: inLine(item)})
		}
	}
	for _, item := range left {
		all = append(all, Difference{Path: path, To: inLine(item)})
	}
	if len(all) == 0 && !reflect.DeepEqual(from, to) {
		all = append(all, Difference{Path: path, From: inLine(from), To: inLine(to)})
	}
	return all
}

func byName(items []any) map[string]any {
	named := map[string]any{}
	for n, item := range items {
		object, _ := item.(map[string]any)
		name, ok := object["name"].(string)
		if !ok {
			name = strconv.Itoa(n)
		}
		named[name] = item
	}
	return named
}

// inLine is a value in one line; nothing for none.
func inLine(value any) string {
	switch v := value.(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		raw, err := json.Marshal(v)
		if err != nil { // what was decoded from JSON can be encoded again
			return fmt.Sprint(v)
		}
		return string(raw)
	}
}
