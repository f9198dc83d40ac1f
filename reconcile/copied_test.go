package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// copied is a claim under another name, with the annotations and the spec of one of a member, as a
// person makes a backup by hand.
func (w world) copied(to, from string) {
	w.claims[to] = newClaim(to)
	w.claims[to].Annotations, w.claims[to].Spec = w.claims[from].DeepCopy().Annotations, w.claims[from].Spec
}

// TestCopied: for a copy of a claim no member goes, nothing is started on it, and it is not
// deleted: a person is asked.
func TestCopied(t *testing.T) {
	asks := func(claims, command string) membership.Step {
		return membership.Step{
			Action: membership.Stall, Rule: "volumeReplaced", Reason: membership.VolumeReplaced,
			Message: "PersistentVolumeClaim " + claims + " was restored or copied, and belongs to no member. Copy what you need from it, and delete it: kubectl delete pvc " + command + " -n ns",
		}
	}
	cases := map[string]struct {
		reason   string
		copies   map[string]string
		unmarked bool // the claims were written on before they carried their UID
		want     membership.Step
	}{
		"One":         {reason: "three voters are not four", copies: map[string]string{"db-9": "db-2"}, want: asks("db-9", "db-9")},
		"All":         {reason: "nor six", copies: map[string]string{"db-10": "db-0", "db-11": "db-1", "db-12": "db-2"}, want: asks("db-10, db-11, db-12", "db-10 db-11 db-12")},
		"OneUnmarked": {reason: "its member has another volume, so it is a copy", copies: map[string]string{"db-9": "db-2"}, unmarked: true, want: asks("db-9", "db-9")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			for name, claim := range w.claims {
				if !tc.unmarked {
					claim.Annotations[api.AnnotationVolumeUID] = string(w.claims[name].UID)
				}
			}
			for to, from := range tc.copies {
				w.copied(to, from)
			}
			w.address()
			_, seen := w.look(t)
			if diff := cmp.Diff(tc.want, membership.Plan(desired(w.cluster), seen.Observed)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestCopiedUnlisted: while no quorum answers, nothing is started on a copy either.
func TestCopiedUnlisted(t *testing.T) {
	w := serving(t)
	w.copied("db-9", "db-2")
	w.asked = answers{}
	seen := facts(w.cluster, w.pods, w.claims, w.asked, limits{})
	if step := membership.Plan(desired(w.cluster), seen); step.Action != membership.Wait || step.Reason != membership.Unreachable {
		t.Errorf("the step is %s", step)
	}
}
