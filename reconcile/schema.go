package reconcile

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/lru"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/crd"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// schemaRefuses is what the schema of this release has against the spec, in the words of an API
// server; nil where it takes it. An API server has judged the spec by the schema that it had when
// the spec was written, which may have been another one.
//
// What members have served with, as their volumes say, is never refused: it is judged as an API
// server judges an update, by what differs from that.
func schemaRefuses(c *api.EtcdCluster, of ...map[string]*corev1.PersistentVolumeClaim) error {
	var served []string
	for _, claims := range of {
		for _, claim := range claims {
			served = append(served, said(claim))
		}
	}
	slices.Sort(served)
	served = slices.Compact(served)
	key, err := judgedAs(c, served)
	if err != nil {
		return err
	}
	if known, ok := judgements.Get(key); ok {
		refused, _ := known.(error)
		return refused
	}
	refused := refusedBy(c, served)
	judgements.Add(key, refused)
	return refused
}

// judgements are the last ones by what they judged, because a look at a cluster takes several and
// nothing has changed mostly: one takes a millisecond, to find it again a hundredth of that.
var judgements = lru.New(1 << 14)

// judgedAs is what a judgement depends on.
func judgedAs(c *api.EtcdCluster, served []string) ([sha256.Size]byte, error) {
	text, err := json.Marshal([]any{c.Name, c.Spec, served})
	if err != nil {
		return [sha256.Size]byte{}, fmt.Errorf("write the spec as JSON: %w", err)
	}
	return sha256.Sum256(text), nil
}

func refusedBy(c *api.EtcdCluster, texts []string) error {
	errs := crd.Validate(api.EtcdClusterKind.Kind, c)
	for _, text := range texts {
		served, ok := render.AsServed(c, text)
		if len(errs) == 0 || !ok {
			continue
		}
		if left := differing(errs, crd.ValidateUpdate(api.EtcdClusterKind.Kind, c, served)); len(left) < len(errs) {
			errs = left
		}
	}
	if len(errs) == 0 {
		return nil
	}
	var problems []string
	for _, err := range errs {
		problems = append(problems, podstatus.FirstLine(err.Error()))
	}
	slices.Sort(problems) // a schema is walked in any order
	return errors.New(strings.Join(slices.Compact(problems), "; "))
}

// differing are those of all errors that are not about what members have served with, and those
// that are left where that is right.
func differing(all, left field.ErrorList) field.ErrorList {
	errs := slices.Clone(left)
	for _, err := range all {
		part, rest, _ := strings.Cut(strings.TrimPrefix(err.Field, "spec."), ".")
		part, _, _ = strings.Cut(part, "[")
		if !slices.Contains(servedParts, part) || part == "pod" && strings.HasPrefix(rest, "metadata") {
			errs = append(errs, err)
		}
	}
	return errs
}

// servedParts are the fields of the spec that volumes remember (render.Served), spec.pod without
// its metadata.
var servedParts = []string{"version", "image", "resources", "options", "pod", "scheduling"}

// refusedUnlessProved is what the schema has against the spec of which a Pod is to be made; nil
// where it is one that has served.
func refusedUnlessProved(c *api.EtcdCluster, seen observed, proved bool) error {
	if proved {
		return nil
	}
	return schemaRefuses(c, seen.claims, seen.former.claims)
}
