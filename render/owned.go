package render

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	api "quorate.dev/api/v1alpha1"
)

// owned is what Quorate has applied of the metadata of a live object, and no other manager has
// taken from it since.
type owned struct {
	labels, annotations map[string]string
	owners              []types.UID
}

// ownedOf reads the names of these fields off metadata.managedFields, and their values off the
// object. An extraction (corev1ac.ExtractPod) gives the same and the spec as well, but goes through
// the whole object with its schema, which takes many times as long; every look at a cluster asks
// this of each of its Pods and claims.
func ownedOf(live metav1.Object) (owned, error) {
	for _, entry := range live.GetManagedFields() {
		if entry.Manager != api.Manager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "" {
			continue
		}
		fields := &fieldpath.Set{}
		if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
			return owned{}, fmt.Errorf("read metadata.managedFields of %s: %w", live.GetName(), err)
		}
		metadata := fields.WithPrefix(fieldpath.FieldNameElement("metadata"))
		of := func(name string) *fieldpath.Set { return metadata.WithPrefix(fieldpath.FieldNameElement(name)) }
		own := owned{labels: entries(of("labels"), live.GetLabels()), annotations: entries(of("annotations"), live.GetAnnotations())}
		for _, owner := range live.GetOwnerReferences() {
			if of("ownerReferences").Members.Has(fieldpath.KeyElementByFields("uid", string(owner.UID))) {
				own.owners = append(own.owners, owner.UID)
			}
		}
		return own, nil
	}
	return owned{}, nil
}

// entries are those of a map whose keys are fields of the set.
func entries(fields *fieldpath.Set, all map[string]string) map[string]string {
	ours := map[string]string{}
	for key, value := range all {
		if fields.Members.Has(fieldpath.FieldNameElement(key)) {
			ours[key] = value
		}
	}
	return ours
}
