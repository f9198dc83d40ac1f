package reconcile

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestRestored: in a namespace that was restored as a whole nothing is started, and nothing is
// written on what was restored; once it is accepted all is started. The status may have been
// restored as well, and the owner of a claim may be an EtcdCluster that is no more.
func TestRestored(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason   string
		status   bool
		owned    bool // by the EtcdCluster of before
		accepted bool
		want     membership.Action
		said     membership.Reason
	}{
		"WithoutStatus":  {reason: "the claims tell that it has formed", want: membership.Stall, said: membership.VolumeReplaced},
		"WithStatus":     {reason: "the status tells so", status: true, want: membership.Stall, said: membership.VolumeReplaced},
		"Accepted":       {reason: "they are trusted then", accepted: true, want: membership.Start, said: membership.Starting},
		"AcceptedStatus": {reason: "they are trusted then", status: true, accepted: true, want: membership.Start, said: membership.Starting},
		"Owned":          {reason: "the garbage collector is about to delete them, and what they tell must not be lost", owned: true, want: membership.Stall, said: membership.VolumeReplaced},
		"OwnedStatus":    {reason: "the same", owned: true, status: true, want: membership.Stall, said: membership.VolumeReplaced},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.cluster.UID = "another"
			w.pods, w.asked.endpoints, w.asked.members = map[string]*corev1.Pod{}, nil, nil
			if !tc.status {
				w.cluster.Status = api.EtcdClusterStatus{}
			}
			for name, claim := range w.claims {
				if !tc.accepted {
					claim.Annotations[api.AnnotationVolumeUID] = "earlier"
				}
				if tc.owned {
					w.claims[name] = ownedBy("earlier", claim)
				}
			}
			s, seen := w.look(t)
			step := membership.Plan(desired(w.cluster), seen.Observed)
			if step.Action != tc.want || step.Reason != tc.said {
				t.Errorf("%s: the step is %s", tc.reason, step)
			}
			says := "kubectl annotate pvc db-0 db-1 db-2 -n ns " + api.AnnotationVolumeUID + "-"
			if tc.said == membership.VolumeReplaced && !strings.Contains(step.Message, says) {
				t.Errorf("%s: it does not say %q: %s", tc.reason, says, step.Message)
			}
			if _, err := s.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w.cluster)}); err != nil {
				t.Errorf("%s: the pass ends with %v", tc.reason, err)
			}
			pods, claims := 0, 0
			for _, w := range s.writes {
				switch w.Kind {
				case "Pod":
					pods++
				case "PersistentVolumeClaim":
					claims++
				}
			}
			if started := pods > 0; started != (tc.want == membership.Start) || started != (claims > 0) {
				t.Errorf("%s: it wrote %v", tc.reason, s.writes)
			}
			for name := range w.claims {
				if uid := s.marks["PersistentVolumeClaim "+name][api.AnnotationVolumeUID]; tc.accepted && uid != "claim-of-"+name {
					t.Errorf("%s: %s says that it is %q", tc.reason, name, uid)
				}
			}
			if latch := s.status[len(s.status)-1].ClusterID; latch != "c0" {
				t.Errorf("%s: the latch is %q", tc.reason, latch)
			}
		})
	}
}
