package reconcile

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestApply(t *testing.T) {
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	conflict := apierrors.NewConflict(claims, "db-0", errors.New("the object has been modified"))
	quota := apierrors.NewForbidden(claims, "db-0", errors.New("exceeded quota"))
	made := []write{{Verb: "apply", Kind: "PersistentVolumeClaim", Name: "db-0"}}
	// What is marked for deletion stays in the fake API server only for the sake of a finalizer.
	going := func(o *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
		o.DeletionTimestamp, o.Finalizers = new(metav1.Now()), []string{"kubernetes.io/pvc-protection"}
		return o
	}
	unlabelled := func(o *corev1.PersistentVolumeClaim) *corev1.PersistentVolumeClaim {
		o.Labels = nil
		return o
	}
	type result struct {
		Created bool
		Writes  []write
		Error   string
	}
	cases := map[string]struct {
		reason string
		live   client.Object
		refuse error
		want   result
	}{
		"Created":  {reason: "there is none", want: result{Created: true, Writes: made}},
		"Ours":     {reason: "it may differ", live: ownedBy("cluster", newClaim("db-0")), want: result{Writes: made}},
		"Retained": {reason: "a volume without owner is taken over for its label", live: newClaim("db-0"), want: result{Writes: made}},
		"Unlabelled": {
			reason: "without owner and label it is not ours", live: unlabelled(newClaim("db-0")),
			want: result{Error: "PersistentVolumeClaim db-0 exists and belongs to another application (it has no label etcd.quorate.dev/cluster and no owner); delete it if nothing needs it, or create this EtcdCluster under another name"},
		},
		"LabelLost": {reason: "with our owner it is ours all the same", live: unlabelled(ownedBy("cluster", newClaim("db-0"))), want: result{Writes: made}},
		"Foreign": {
			reason: "another owner controls it", live: owned(newClaim("db-0"), "apps/v1", "StatefulSet", "sts", "x"),
			want: result{Error: "PersistentVolumeClaim db-0 exists and belongs to StatefulSet sts; delete it if nothing needs it, or create this EtcdCluster under another name"},
		},
		"Earlier": {
			reason: "the garbage collector is about to delete it", live: ownedBy("earlier", newClaim("db-0")),
			want: result{Error: "waiting for the earlier PersistentVolumeClaim db-0 to be gone"},
		},
		"Going": {
			reason: "what is applied to it would go with it", live: going(newClaim("db-0")),
			want: result{Error: "waiting for the earlier PersistentVolumeClaim db-0 to be gone"},
		},
		"Conflict": {
			reason: "it was changed since", refuse: conflict,
			want: result{Error: `apply PersistentVolumeClaim db-0: Operation cannot be fulfilled on persistentvolumeclaims "db-0": the object has been modified`},
		},
		"Quota": {
			reason: "it is refused", refuse: quota,
			want: result{Error: `apply PersistentVolumeClaim db-0: persistentvolumeclaims "db-0" is forbidden: exceeded quota`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var objects []client.Object
			if tc.live != nil {
				objects = append(objects, tc.live)
			}
			s := newStub(t, func(write) error { return tc.refuse }, objects...)
			created, err := s.apply(t.Context(), newCluster(), corev1ac.PersistentVolumeClaim("db-0", "ns"))
			got := result{Created: created, Writes: s.writes}
			if err != nil {
				got.Error = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if tc.refuse != nil && !errors.Is(err, tc.refuse) {
				t.Errorf("%s: the error does not wrap what the API server said: %v", tc.reason, err)
			}
		})
	}
}

// TestApplied: an apply that would change nothing is not made, as long as the object is as the last
// one left it.
func TestApplied(t *testing.T) {
	config := func(app string) *corev1ac.ServiceApplyConfiguration {
		return corev1ac.Service("db", "ns").WithLabels(map[string]string{"app": app})
	}
	live := func(version string) client.Object {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: "ns", ResourceVersion: version}}
	}
	cases := map[string]struct {
		reason string
		before func(applied)
		live   client.Object
		want   bool
	}{
		"Never":    {reason: "it was never applied", before: func(applied) {}, live: live("5")},
		"Same":     {reason: "it was not changed since", before: func(a applied) { a.remember(config("x").WithResourceVersion("5"), hash(config("x"))) }, live: live("5"), want: true},
		"Touched":  {reason: "it was changed since", before: func(a applied) { a.remember(config("x").WithResourceVersion("5"), hash(config("x"))) }, live: live("6")},
		"Other":    {reason: "something else is wanted now", before: func(a applied) { a.remember(config("y").WithResourceVersion("5"), hash(config("y"))) }, live: live("5")},
		"OtherKey": {reason: "that was another object", before: func(a applied) { a.remember(config("x").WithName("other").WithResourceVersion("5"), hash(config("x"))) }, live: live("5")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newApplied()
			tc.before(a)
			if diff := cmp.Diff(tc.want, a.same(tc.live, config("x"))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestEach(t *testing.T) {
	err := each([]string{"c", "a", "b"}, func(name string) error {
		if name == "a" {
			return nil
		}
		return errors.New(name)
	})
	if diff := cmp.Diff("c\nb", err.Error()); diff != "" {
		t.Errorf("errors come in the order of the names, so that a message made of them is stable: -want +got:\n%s", diff)
	}
}

func TestFingerprint(t *testing.T) {
	budget := func(change func(*policyv1.PodDisruptionBudget)) *policyv1.PodDisruptionBudget {
		b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{
			Name: "db", UID: "1", Generation: 1, ResourceVersion: "7", Labels: map[string]string{"a": "b"},
		}}
		change(b)
		return b
	}
	service := func(version string) *corev1.Service {
		return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "db", UID: "1", ResourceVersion: version}}
	}
	before := budget(func(*policyv1.PodDisruptionBudget) {})
	cases := map[string]struct {
		reason  string
		a, b    client.Object
		changes bool
	}{
		"Status":        {reason: "its controller counts Pods", a: before, b: budget(func(b *policyv1.PodDisruptionBudget) { b.ResourceVersion = "8"; b.Status.CurrentHealthy = 3 })},
		"Spec":          {reason: "what was applied was changed", a: before, b: budget(func(b *policyv1.PodDisruptionBudget) { b.Generation = 2 }), changes: true},
		"Labels":        {reason: "labels are no part of the generation", a: before, b: budget(func(b *policyv1.PodDisruptionBudget) { b.Labels = nil }), changes: true},
		"Owner":         {reason: "nor are owners", a: before, b: budget(func(b *policyv1.PodDisruptionBudget) { b.OwnerReferences = []metav1.OwnerReference{{UID: "2"}} }), changes: true},
		"Another":       {reason: "it was deleted and made by another", a: before, b: budget(func(b *policyv1.PodDisruptionBudget) { b.UID = "3" }), changes: true},
		"NoGenerations": {reason: "where there are none, every change counts", a: service("7"), b: service("8"), changes: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := fingerprint(tc.a) != fingerprint(tc.b); got != tc.changes {
				t.Errorf("%s: the fingerprint changes: %t, want %t", tc.reason, got, tc.changes)
			}
		})
	}
}
