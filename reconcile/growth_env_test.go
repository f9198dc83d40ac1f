//go:build env

package reconcile_test

import (
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/hostlet"
	"quorate.dev/reconcile"
)

// TestGrowthTakenBack: volumes that cannot grow stall the cluster, in the words of what refuses it.
// No turn is kept, and the size is set back without a member that moves.
func TestGrowthTakenBack(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, class string
		quota         bool // the namespace has no room for more
		stalled       string
		says          []string
	}{
		"Driver": {
			reason: "the API server takes the larger claim, and the driver does not", class: hostlet.Refusing, stalled: api.ReasonChanging,
			says: []string{"has 1Gi of 2Gi", "its driver refuses to give it more", "revert spec.storage.size and set spec.storage.changePolicy to Replace"},
		},
		"Provider": {
			reason: "the driver tries again and again, and nothing but events tells of a quota of the provider", class: hostlet.Failing, stalled: api.ReasonChanging,
			says: []string{"has 1Gi of 2Gi (ControllerResizeInProgress; Resizing)", "a quota of the provider", "revert spec.storage.size and set spec.storage.changePolicy to Replace"},
		},
		"Quota": {
			reason: "the namespace may not ask for more", class: hostlet.Expandable, quota: true, stalled: api.ReasonRefused,
			says: []string{"exceeded quota: storage, requested: requests.storage=1Gi, used: requests.storage=3Gi, limited: requests.storage=3Gi"},
		},
		"Class": {
			reason: "volumes of this class never grow", class: "standard", stalled: api.ReasonRefused,
			says: []string{"must support resize", "with spec.storage.size reverted they stay on theirs"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			var operator *reconcile.Reconciler
			s.operate(func(r *reconcile.Reconciler) { r.MaxChanging, operator = 1, r })
			c := s.cluster("db", 3)
			c.Spec.Storage.StorageClassName = &tc.class
			load := s.laden(c)
			members, volumes := identityOf(c), s.claimUIDs(c)
			if tc.quota {
				s.storageQuota("3Gi")
			}
			s.change(c, func() { c.Spec.Storage.Size = resource.MustParse("2Gi") })
			s.stalledWith(c, tc.stalled, tc.says...)
			s.turnsBack(operator)
			s.change(c, func() {
				c.Spec.Storage.Size, c.Spec.Storage.ChangePolicy = resource.MustParse("1Gi"), api.ChangeReplace
			})
			s.ready(c)
			s.change(c, func() { c.Spec.Storage.ChangePolicy = "" })
			s.ready(c)
			s.same(c, members)
			if now := s.claimUIDs(c); !maps.Equal(volumes, now) {
				t.Errorf("%s: the volumes were %v, and are %v", tc.reason, volumes, now)
			}
			load.check()
		})
	}
}

// storageQuota lets the claims of the namespace ask for so much together, which they do already.
// There is no controller that counts what they ask for.
func (s *stage) storageQuota(size string) {
	s.Helper()
	all := corev1.ResourceList{corev1.ResourceRequestsStorage: resource.MustParse(size)}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: "storage", Namespace: s.ns}, Spec: corev1.ResourceQuotaSpec{Hard: all}}
	s.must(s.Create(s.Context(), quota))
	quota.Status = corev1.ResourceQuotaStatus{Hard: all, Used: all}
	s.must(s.Status().Update(s.Context(), quota))
}
