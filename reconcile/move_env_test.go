//go:build env

package reconcile_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/hostlet"
	"quorate.dev/e2e/share"
)

// standard is the default class, whose volumes cannot grow.
const standard = "standard"

// replaced asks for volumes of another class or size, whatever it takes.
func replaced(size, class string) func(*api.EtcdClusterSpec) {
	return func(spec *api.EtcdClusterSpec) {
		spec.Storage.ChangePolicy, spec.Storage.Size = api.ChangeReplace, resource.MustParse(size)
		if class != "" {
			spec.Storage.StorageClassName = &class
		}
	}
}

// watched fails the test where the cluster is ever seen with fewer or more voters than these, or
// not available.
func (s *stage) watched(c *api.EtcdCluster, least, most int) {
	s.Helper()
	contract.Available(s, c)
	contract.Follow(s, c, func(seen *api.EtcdCluster) {
		voters := 0
		for _, m := range seen.Status.Members {
			if m.Role != api.RoleLearner {
				voters++
			}
		}
		if voters < least || voters > most {
			s.Errorf("%d voters, want %d to %d: %s", voters, least, most, contract.Describe(seen))
		}
	})
}

// on fails unless these are the volumes that stay.
func (s *stage) on(c *api.EtcdCluster, class, size string) {
	s.Helper()
	for _, claim := range s.claims(c) {
		if has := claim.Status.Capacity.Storage().String(); claim.DeletionTimestamp.IsZero() && (*claim.Spec.StorageClassName != class || has != size) {
			s.Errorf("%s is of class %s and has %s, want %s and %s", claim.Name, *claim.Spec.StorageClassName, has, class, size)
		}
	}
}

// TestMoved: volumes that are not what the spec asks for, and cannot become that, are left behind
// under load, one member after the other, each when its successor votes.
func TestMoved(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason      string
		members     int
		before      func(*api.EtcdClusterSpec)
		change      func(*api.EtcdClusterSpec)
		class, size string
		stays       bool // the members stay the same
	}{
		"AnotherClass": {
			reason:  "three members",
			members: 3, change: replaced("1Gi", hostlet.Expandable), class: hostlet.Expandable, size: "1Gi",
		},
		"Smaller": {
			reason:  "no volume shrinks",
			members: 3, before: replaced("2Gi", ""), change: replaced("1Gi", ""), class: standard, size: "1Gi",
		},
		"CannotGrow": {
			reason:  "the class does not let its volumes grow, which the API server alone can tell",
			members: 3, change: replaced("2Gi", ""), class: standard, size: "2Gi",
		},
		"CanGrow": {
			reason:  "no member is replaced where that is not needed",
			members: 3, before: replaced("1Gi", hostlet.Expandable), change: replaced("2Gi", hostlet.Expandable),
			class: hostlet.Expandable, size: "2Gi", stays: true,
		},
		"DefaultNamed": {
			reason:  "the class that the volumes have got anyway",
			members: 1, change: replaced("1Gi", standard), class: standard, size: "1Gi", stays: true,
		},
		"One": {
			reason:  "one, two, one",
			members: 1, change: replaced("1Gi", hostlet.Expandable), class: hostlet.Expandable, size: "1Gi",
		},
		"Two": {
			reason:  "two, three, two, three, two",
			members: 2, change: replaced("1Gi", hostlet.Expandable), class: hostlet.Expandable, size: "1Gi",
		},
	}
	for name, tc := range share.Of(t, cases, 3) {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.operate()
			c := s.cluster("db", int32(tc.members))
			if tc.before != nil {
				tc.before(&c.Spec)
			}
			load := s.laden(c)
			who := identityOf(c)
			s.watched(c, tc.members, tc.members+1)
			load.await(20)
			s.change(c, func() { tc.change(&c.Spec) })
			s.ready(c)
			load.await(20)
			names := s.sized(c, tc.members)
			s.on(c, tc.class, tc.size)
			for _, name := range names {
				if _, stays := who.Members[name]; stays != tc.stays {
					t.Errorf("%s: members are %v, and were %v", tc.reason, names, namesOf(who))
				}
			}
			if now := identityOf(c).Cluster; now != who.Cluster {
				t.Errorf("%s: the cluster is another one: %s, then %s", tc.reason, who.Cluster, now)
			}
			load.check()
		})
	}
}

// TestMovedWithAll: the size, the class and the version change in one apply, in that order, and the
// old volume is kept.
func TestMovedWithAll(t *testing.T) {
	s := newStage(t)
	s.operate()
	c := s.cluster("db", 1)
	c.Spec.Version, c.Spec.Storage.Retention = etcd35, &api.Retention{WhenScaled: api.RetentionRetain}
	load := s.laden(c)
	s.watched(c, 1, 4)
	s.change(c, func() {
		replaced("1Gi", hostlet.Expandable)(&c.Spec)
		c.Spec.Replicas, c.Spec.Version = new(int32(3)), etcd36
	})
	s.runs(c, etcd36)
	load.await(20)
	if members := namesOf(identityOf(c)); !slices.Equal(members, []string{"db-1", "db-2", "db-3"}) {
		t.Errorf("members are %v, want two for the size, and one for the first", members)
	}
	for _, claim := range s.claims(c) {
		first := claim.Name == "db-0"
		if retired := claim.Annotations[api.AnnotationRetired] != ""; retired != first || (*claim.Spec.StorageClassName == standard) != first {
			t.Errorf("%s is of class %s, kept for a person: %t", claim.Name, *claim.Spec.StorageClassName, retired)
		}
	}
	_, restarts := s.lives(c)
	for name, n := range restarts {
		if n != 1 {
			t.Errorf("%s was started again %d times, want once, for the version", name, n)
		}
	}
	load.check()
}

// TestCannotMove: a volume that cannot be made costs no member anything, and when the spec is set
// back nothing is left of it.
func TestCannotMove(t *testing.T) {
	s := newStage(t)
	c, load, _ := healing{}.struck(s)
	before, _ := s.lives(c)
	who := identityOf(c)
	s.watched(c, 3, 3)
	s.change(c, func() { replaced("1Gi", "nosuch")(&c.Spec) })
	message := s.stalled(c, api.ReasonPodPending)
	for _, says := range []string{`storageclass "nosuch"`, "is of the storage class standard, and is to be of nosuch", "revert spec.storage"} {
		if !strings.Contains(message, says) {
			t.Errorf("the message does not say %q: %s", says, message)
		}
	}
	load.await(20)
	s.change(c, func() { replaced("1Gi", standard)(&c.Spec) })
	s.ready(c)
	s.clean(c, namesOf(who)...)
	if after, _ := s.lives(c); !maps.Equal(before, after) {
		t.Errorf("the Pods are others: %v, then %v", before, after)
	}
	s.same(c, who)
	load.check()
}

// TestQuotaForbidsMoving: a second volume is more than the namespace may have, and that is told.
func TestQuotaForbidsMoving(t *testing.T) {
	s := newStage(t)
	c, load, _ := healing{}.struck(s)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "volumes", Namespace: s.ns}}
	quota.Spec.Hard = corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: resource.MustParse("3")}
	s.create(quota)
	quota.Status.Hard, quota.Status.Used = quota.Spec.Hard, corev1.ResourceList{corev1.ResourcePersistentVolumeClaims: resource.MustParse("3")}
	s.must(s.Status().Update(s.Context(), quota)) // as its controller does
	who := identityOf(c)
	s.watched(c, 3, 3)
	s.change(c, func() { replaced("1Gi", hostlet.Expandable)(&c.Spec) })
	message := s.stalled(c, api.ReasonRefused)
	for _, says := range []string{"exceeded quota", "to take the place of db-", "whose volume is of the storage class standard, and is to be of expandable"} {
		if !strings.Contains(message, says) {
			t.Errorf("the message does not say %q: %s", says, message)
		}
	}
	load.await(20)
	s.change(c, func() { replaced("1Gi", standard)(&c.Spec) })
	s.ready(c)
	s.clean(c, namesOf(who)...)
	s.same(c, who)
	load.check()
}

// TestTooLargeToMove: a database that has no room on new volumes is found out before anything is
// begun.
func TestTooLargeToMove(t *testing.T) {
	s := newStage(t)
	c, load, _ := healing{}.struck(s)
	etcd := s.etcd(c)
	for n := range 20 {
		s.put(etcd, fmt.Sprintf("large%d", n), strings.Repeat("x", 1<<20))
	}
	before, _ := s.lives(c)
	who := identityOf(c)
	s.change(c, func() {
		replaced("1Gi", hostlet.Expandable)(&c.Spec)
		c.Spec.Options = &api.Options{QuotaBackendSize: new(resource.MustParse("16Mi"))}
	})
	if message := s.stalled(c, api.ReasonVolumeTooSmall); !strings.Contains(message, "(16 MiB)") {
		t.Errorf("the message does not say how large it may be: %s", message)
	}
	if after, _ := s.lives(c); !maps.Equal(before, after) || len(s.claims(c)) != 3 {
		t.Errorf("something was begun: %s", contract.Describe(c))
	}
	s.same(c, who)
	s.change(c, func() { c.Spec.Options = nil })
	s.ready(c)
	s.sized(c, 3)
	s.on(c, hostlet.Expandable, "1Gi")
	load.check()
}

// TestMovedOnce: what a policy of the API server makes of the volume that the spec asks for is what
// there is to be had, and no member moves for it again.
func TestMovedOnce(t *testing.T) {
	s := newStage(t)
	s.wire = &wire{}
	s.mutate(`object.kind == "PersistentVolumeClaim" ? Object{metadata: Object.metadata{labels: {"` + injected + `": "true"}}, spec: Object.spec{resources: Object.spec.resources{requests: {"storage": "3Gi"}}}} : Object{}`)
	s.operate()
	c := s.cluster("db", 1)
	replaced("2Gi", "")(&c.Spec)
	load := s.laden(c)
	s.on(c, standard, "3Gi")
	s.rests(c)
	s.change(c, func() { replaced("1Gi", "")(&c.Spec) })
	s.ready(c)
	if names := s.sized(c, 1); !slices.Equal(names, []string{"db-1"}) {
		t.Errorf("members are %v, want the first successor", names)
	}
	s.on(c, standard, "3Gi")
	s.rests(c)
	load.check()
}
