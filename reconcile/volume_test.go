package reconcile

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
)

// sized is the claim of a member that asks for so much, in the class that it got.
func sized(name, class, size string) *corev1.PersistentVolumeClaim {
	claim := newClaim(name)
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	if claim.Status.Phase = corev1.ClaimBound; class != "" {
		claim.Spec.StorageClassName = &class
	}
	return claim
}

// growing is a claim that was asked to grow, and how far it has come.
func growing(wants, has string) *corev1.PersistentVolumeClaim {
	claim := sized("db-0", "standard", wants)
	claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(has)}
	return claim
}

// TestUnfit: which volumes are not what the spec asks for, and cannot become that by growing.
func TestUnfit(t *testing.T) {
	t.Parallel()
	fast := new("fast")
	cases := map[string]struct {
		reason  string
		storage api.Storage
		claim   *corev1.PersistentVolumeClaim
		mark    string // AnnotationStorage
		spare   bool
		want    string
	}{
		"Same": {
			reason:  "It is what is asked for",
			storage: api.Storage{ChangePolicy: api.ChangeReplace, StorageClassName: fast},
			claim:   sized("db-0", "fast", "1Gi"),
		},
		"ClassNeverNamed": {
			reason:  "Any class will do, whichever is the default by now",
			storage: api.Storage{ChangePolicy: api.ChangeReplace},
			claim:   sized("db-0", "standard", "1Gi"),
		},
		"ClassNotNamedAnyMore": {
			reason:  "To ask for none in particular is no reason to move",
			storage: api.Storage{ChangePolicy: api.ChangeReplace},
			claim:   sized("db-0", "fast", "1Gi"), mark: "1Gi fast",
		},
		"DefaultNamed": {
			reason:  "It is there already",
			storage: api.Storage{ChangePolicy: api.ChangeReplace, StorageClassName: new("standard")},
			claim:   sized("db-0", "standard", "1Gi"), mark: "1Gi",
		},
		"AnotherClass": {
			reason:  "A volume keeps its class",
			storage: api.Storage{ChangePolicy: api.ChangeReplace, StorageClassName: fast},
			claim:   sized("db-0", "standard", "1Gi"), mark: "1Gi",
			want: "is of the storage class standard, and is to be of fast",
		},
		"WithoutClass": {
			reason:  "One that a person has made by hand",
			storage: api.Storage{ChangePolicy: api.ChangeReplace, StorageClassName: fast},
			claim:   sized("db-0", "", "1Gi"),
			want:    "has no storage class, and is to have fast",
		},
		"NotAskedFor": {
			reason:  "No member is moved that is not to be",
			storage: api.Storage{StorageClassName: fast},
			claim:   sized("db-0", "standard", "2Gi"),
		},
		"ExpandAskedFor": {
			reason:  "Nor where that is written out",
			storage: api.Storage{ChangePolicy: api.ChangeExpand, StorageClassName: fast},
			claim:   sized("db-0", "standard", "2Gi"),
		},
		"Larger": {
			reason:  "No volume shrinks",
			storage: api.Storage{ChangePolicy: api.ChangeReplace},
			claim:   sized("db-0", "standard", "2Gi"), mark: "2Gi",
			want: "has 2Gi, and is to have 1Gi",
		},
		"LargerInAnotherUnit": {
			reason:  "The same size",
			storage: api.Storage{ChangePolicy: api.ChangeReplace},
			claim:   sized("db-0", "standard", "1024Mi"), mark: "1024Mi",
		},
		"Smaller": {
			reason:  "It may grow",
			storage: api.Storage{ChangePolicy: api.ChangeReplace},
			claim:   sized("db-0", "standard", "512Mi"),
		},
		"SmallerAndSpare": {
			reason:  "Nothing is on it: another one is as good, and need not grow",
			storage: api.Storage{ChangePolicy: api.ChangeReplace},
			claim:   sized("db-0", "standard", "512Mi"), spare: true,
			want: "has 512Mi, and is to have 1Gi",
		},
		"NotGrown": {
			reason:  "To take a growth back that never came moves no member",
			storage: api.Storage{ChangePolicy: api.ChangeReplace},
			claim:   growing("2Gi", "1Gi"),
		},
		"NotGrownAll": {
			reason:  "Nor does a part of it stay in doubt: it is larger than what is asked for",
			storage: api.Storage{ChangePolicy: api.ChangeReplace},
			claim:   growing("3Gi", "2Gi"),
			want:    "has 2Gi, and is to have 1Gi",
		},
		"MadeOfThisSpec": {
			reason:  "Another one would be the same: a policy makes it so, and members would move for ever",
			storage: api.Storage{ChangePolicy: api.ChangeReplace, StorageClassName: fast},
			claim:   sized("db-0", "fast-encrypted", "10Gi"), mark: "1Gi fast",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			tc.storage.Size = c.Spec.Storage.Size
			c.Spec.Storage = tc.storage
			if tc.mark != "" {
				tc.claim.Annotations[api.AnnotationStorage] = tc.mark
			}
			if tc.spare {
				tc.claim.Annotations[api.AnnotationJoin] = api.JoinPending
			}
			if diff := cmp.Diff(tc.want, unfit(c, tc.claim)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLarger: a claim that is asked to grow keeps its class, and is not what it was made of any
// more.
func TestLarger(t *testing.T) {
	t.Parallel()
	c, seen := newCluster(), healthy()
	c.Spec.Storage.Size, c.Spec.Storage.StorageClassName = resource.MustParse("2Gi"), new("fast")
	seen.claims["db-1"] = sized("db-1", "standard", "1Gi")
	seen.claims["db-1"].Annotations[api.AnnotationStorage] = "1Gi"
	got := render.Volume(c, larger(c, seen, "db-1"))
	if size := (*got.Spec.Resources.Requests)[corev1.ResourceStorage]; size.String() != "2Gi" || *got.Spec.StorageClassName != "standard" {
		t.Errorf("it asks for %s of class %s", size.String(), *got.Spec.StorageClassName)
	}
	if made, is := got.Annotations[api.AnnotationStorage]; is {
		t.Errorf("it says that it was made of %s", made)
	}
}

// TestTryGrowth: the API server is asked whether volumes can grow, only where it matters, and what
// it says is a fact.
func TestTryGrowth(t *testing.T) {
	t.Parallel()
	claims := schema.GroupResource{Resource: "persistentvolumeclaims"}
	broken := errors.New("the API server is away")
	all := map[string]string{
		"db-0": "has 1Gi, and cannot grow to 2Gi", "db-1": "has 1Gi, and cannot grow to 2Gi", "db-2": "has 1Gi, and cannot grow to 2Gi",
	}
	cases := map[string]struct {
		reason string
		policy api.ChangePolicy
		seen   func(*observed)
		answer error
		tries  int
		want   map[string]string
		err    error
	}{
		"Forbidden": {
			reason: "Their class cannot expand", policy: api.ChangeReplace,
			answer: apierrors.NewForbidden(claims, "db-0", errors.New(mustSupportResize)), tries: 3, want: all,
		},
		"Quota": {
			reason: "A class that can expand, and too much is asked for", policy: api.ChangeReplace,
			answer: apierrors.NewForbidden(claims, "db-0", errors.New("exceeded quota: storage, requested: requests.storage=1Gi, used: requests.storage=3Gi, limited: requests.storage=3Gi")), tries: 3,
		},
		"Policy": {
			reason: "It is not known what another volume would get", policy: api.ChangeReplace,
			answer: apierrors.NewForbidden(claims, "db-0", errors.New("ValidatingAdmissionPolicy 'sizes' with binding 'sizes' denied request: no more than 1Gi")), tries: 3,
		},
		"Rights": {
			reason: "Nor does a right that the operator has not", policy: api.ChangeReplace,
			answer: apierrors.NewForbidden(claims, "db-0", errors.New(`User "system:serviceaccount:quorate:quorate" cannot patch resource "persistentvolumeclaims" in API group "" in the namespace "ns"`)), tries: 3,
		},
		"Taken": {reason: "They are asked to grow then", policy: api.ChangeReplace, tries: 3},
		"Invalid": {
			reason: "What else the API server has against it is told where it is asked for in earnest", policy: api.ChangeReplace,
			answer: apierrors.NewInvalid(schema.GroupKind{Kind: "PersistentVolumeClaim"}, "db-0", nil), tries: 3,
		},
		"Away": {reason: "That says nothing of volumes", policy: api.ChangeReplace, answer: broken, tries: 3, err: broken},
		"Expand": {
			reason: "Nothing is asked where none is to be replaced",
			answer: apierrors.NewForbidden(claims, "db-0", errors.New(mustSupportResize)),
		},
		"Unbound": {
			reason: "A claim that has no volume yet cannot grow, and no class is to blame", policy: api.ChangeReplace,
			seen:   func(seen *observed) { seen.claims["db-1"].Status.Phase = corev1.ClaimPending },
			answer: apierrors.NewForbidden(claims, "db-0", errors.New(mustSupportResize)), tries: 2,
			want: map[string]string{"db-0": all["db-0"], "db-2": all["db-2"]},
		},
		"OfNoMember": {
			reason: "What is left of a member that was removed stays as it is", policy: api.ChangeReplace,
			seen:   func(seen *observed) { seen.Members = seen.Members[:1] },
			answer: apierrors.NewForbidden(claims, "db-0", errors.New(mustSupportResize)), tries: 1,
			want: map[string]string{"db-0": all["db-0"]},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := newCluster(), healthy()
			c.Spec.Storage.Size, c.Spec.Storage.ChangePolicy = resource.MustParse("2Gi"), tc.policy
			for n := range seen.Instances {
				i := &seen.Instances[n]
				i.Volume.Small, seen.claims[i.Name] = true, sized(i.Name, "standard", "1Gi")
			}
			if tc.seen != nil {
				tc.seen(&seen)
			}
			tried := map[string]bool{} // with the labels of the spec, and where it is refused with those that are there
			s := newStub(t, func(w write) error { tried[w.Name] = true; return tc.answer })
			err := attempted(t, &seen, s.tryGrowth(c, seen))
			if !errors.Is(err, tc.err) {
				t.Errorf("%s: error %v, want %v", tc.reason, err, tc.err)
			}
			if len(tried) != tc.tries {
				t.Errorf("%s: %d volumes tried, want %d", tc.reason, len(tried), tc.tries)
			}
			var got map[string]string
			for _, i := range seen.Instances {
				if i.Volume.Unfit != "" {
					if got == nil {
						got = map[string]string{}
					}
					got[i.Name] = i.Volume.Unfit
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
