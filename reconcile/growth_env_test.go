//go:build env

package reconcile_test

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

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
		stalled       string
		says          []string
	}{
		"Driver": {
			reason: "the API server takes the larger claim, and the driver does not", class: hostlet.Refusing, stalled: api.ReasonChanging,
			says: []string{"has 1Gi of 2Gi", "its driver refuses to give it more", "set spec.storage.size back, together with spec.storage.changePolicy: Replace"},
		},
		"Class": {
			reason: "volumes of this class never grow", class: "standard", stalled: api.ReasonRefused,
			says: []string{"must support resize", "with spec.storage.size set back they stay on theirs"},
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
