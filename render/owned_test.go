package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

// TestOwned: what is read off managedFields is what an extraction gives, whatever others have done
// to a Pod or a claim; and what they have done to our part is seen, and only that.
func TestOwned(t *testing.T) {
	t.Parallel()
	const ours = "team" // a label and an annotation of the spec
	cases := map[string]struct {
		reason string
		others func(o metav1.Object) // what another manager makes of it
		drifts bool
		broken bool
	}{
		"Nothing":           {reason: "it is as it was applied", others: func(metav1.Object) {}},
		"LabelAdded":        {reason: "it is theirs", others: func(o metav1.Object) { o.GetLabels()["others"] = "stay" }},
		"AnnotationAdded":   {reason: "it is theirs", others: func(o metav1.Object) { o.GetAnnotations()["others"] = "stay" }},
		"LabelChanged":      {reason: "it is ours", others: func(o metav1.Object) { o.GetLabels()[ours] = "another" }, drifts: true},
		"LabelRemoved":      {reason: "it is ours", others: func(o metav1.Object) { delete(o.GetLabels(), ours) }, drifts: true},
		"AnnotationChanged": {reason: "it is ours", others: func(o metav1.Object) { o.GetAnnotations()[ours] = "another" }, drifts: true},
		"AnnotationRemoved": {reason: "it is ours", others: func(o metav1.Object) { delete(o.GetAnnotations(), ours) }, drifts: true},
		"OwnerAdded": {reason: "it is theirs", others: func(o metav1.Object) {
			o.SetOwnerReferences(append(o.GetOwnerReferences(), metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "other", UID: "other"}))
		}},
		"OwnersRemoved": {reason: "they are ours", others: func(o metav1.Object) { o.SetOwnerReferences(nil) }, drifts: true},
		"Forgotten":     {reason: "whose the fields are was cleared", others: func(o metav1.Object) { o.SetManagedFields(nil) }, drifts: true},
		"Unreadable": {reason: "an extraction fails as well", others: func(o metav1.Object) {
			o.GetManagedFields()[0].FieldsV1.SetRawString(`{"k:uid":{}}`)
		}, broken: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storage, c := newPods(t), load(t, "minimal")
			c.UID = "c0"
			c.Spec.AdditionalMetadata = &api.Metadata{Labels: map[string]string{ours: "storage"}, Annotations: map[string]string{ours: "storage"}}
			c.Spec.Storage.Retention = &api.Retention{WhenDeleted: api.RetentionDelete}
			m := firstMember(c)
			wantPod, err := Pod(c, m)
			if err != nil {
				t.Fatal(err)
			}
			wantClaim := Volume(c, m)
			pod, claim := &corev1.Pod{}, &corev1.PersistentVolumeClaim{}
			changed(t, storage, "pods", wantPod, pod, tc.others)
			changed(t, storage, "persistentvolumeclaims", wantClaim, claim, tc.others)

			metadata, err := PodMetadata(pod, c, m)
			ownersOnly := name == "OwnersRemoved" // a Pod never loses its owner but with its end
			if (err != nil) != tc.broken || (metadata != nil) != (tc.drifts && !ownersOnly) {
				t.Errorf("%s: of the Pod %t is applied, error %v", tc.reason, metadata != nil, err)
			}
			current, err := VolumeCurrent(claim, wantClaim)
			if (err != nil) != tc.broken || !tc.broken && current == tc.drifts {
				t.Errorf("%s: the claim is current: %t, error %v", tc.reason, current, err)
			}

			extractedPod, podErr := corev1ac.ExtractPod(pod, api.Manager)
			extractedClaim, claimErr := corev1ac.ExtractPersistentVolumeClaim(claim, api.Manager)
			if (podErr != nil) != tc.broken || (claimErr != nil) != tc.broken {
				t.Errorf("extractions: errors %v and %v", podErr, claimErr)
			}
			if tc.broken {
				return
			}
			same(t, pod, extractedPod.ObjectMetaApplyConfiguration)
			same(t, claim, extractedClaim.ObjectMetaApplyConfiguration)
		})
	}
}

// changed is an object that was applied, and that another manager has updated.
func changed(t *testing.T, storage pods, resource string, want runtime.ApplyConfiguration, live interface {
	runtime.Object
	metav1.Object
}, others func(metav1.Object)) {
	t.Helper()
	applyTo(t, storage, resource, want, api.Manager)
	gvr := corev1.SchemeGroupVersion.WithResource(resource)
	named, ok := want.(interface {
		GetName() *string
		GetNamespace() *string
	})
	if !ok {
		t.Fatalf("a %T has no name", want)
	}
	get := func() {
		stored, err := storage.Get(gvr, *named.GetNamespace(), *named.GetName())
		if err != nil {
			t.Fatal(err)
		}
		switch into := live.(type) {
		case *corev1.Pod:
			stored.(*corev1.Pod).DeepCopyInto(into)
		case *corev1.PersistentVolumeClaim:
			stored.(*corev1.PersistentVolumeClaim).DeepCopyInto(into)
		}
	}
	get()
	before := live.GetManagedFields()[0].FieldsV1.String()
	others(live)
	if len(live.GetManagedFields()) == 0 || live.GetManagedFields()[0].FieldsV1.String() != before {
		return // as the API server would give it: the storage would refuse it, or mend it
	}
	if err := storage.Update(gvr, live, live.GetNamespace(), metav1.UpdateOptions{FieldManager: "somebody"}); err != nil {
		t.Fatal(err)
	}
	get()
}

// same compares what is read of an object with what was extracted of it.
func same(t *testing.T, live metav1.Object, extracted *metav1ac.ObjectMetaApplyConfiguration) {
	t.Helper()
	got, err := ownedOf(live)
	if err != nil {
		t.Fatal(err)
	}
	var want owned
	if extracted != nil {
		want.labels, want.annotations = extracted.Labels, extracted.Annotations
		for _, owner := range extracted.OwnerReferences {
			want.owners = append(want.owners, *owner.UID)
		}
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(owned{}), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s: -extracted +read:\n%s", live.GetName(), diff)
	}
}
