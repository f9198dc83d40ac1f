package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestRoster holds which members are known, by which ID, and which names come next.
func TestRoster(t *testing.T) {
	none := func(w *world) { w.claims, w.pods, w.asked = nil, nil, answers{} }
	type known struct {
		Name string
		ID   membership.ID
	}
	type result struct {
		Known []known
		Fresh string // the first of the names to come
	}
	three := []known{{"db-0", 0xa0}, {"db-1", 0xa1}, {"db-2", 0xa2}}
	cases := map[string]struct {
		reason string
		given  func(*world)
		want   result
	}{
		"Serving": {reason: "behind the last", given: func(*world) {}, want: result{three, "db-3"}},
		"HighWater": {
			reason: "names that were once used are never used again", given: func(w *world) { w.cluster.Status.NextOrdinal = 9 },
			want: result{three, "db-9"},
		},
		"BeyondHighWater": {
			reason: "what is seen counts where the status is behind",
			given:  func(w *world) { w.cluster.Status.NextOrdinal = 3; w.spare("db-6") },
			want:   result{append(three[:3:3], known{Name: "db-6"}), "db-7"},
		},
		"NoMore": {
			reason: "no name is left", given: func(w *world) { w.cluster.Status.NextOrdinal = api.MaxOrdinal + 1 },
			want: result{three, ""},
		},
		"PodOnly": {
			reason: "a Pod without a volume has a name too", given: func(w *world) { w.pods["db-5"] = w.pod("db-5") },
			want: result{append(three[:3:3], known{Name: "db-5"}), "db-6"},
		},
		"ListedOnly": {
			reason: "a member of which nothing else is left is known by its peer URL",
			given: func(w *world) {
				w.asked.members = append(w.asked.members, membership.Member{ID: 0xa9, PeerURLs: []string{w.cluster.PeerURL("db-4")}})
			},
			want: result{append(three[:3:3], known{"db-4", 0xa9}), "db-5"},
		},
		"ListedElsewhere": {
			reason: "a peer URL of the same host elsewhere is none of ours, nor is a second one beside ours",
			given: func(w *world) {
				w.asked.members[0].PeerURLs = []string{"http://10.0.0.9:2380", w.cluster.PeerURL("db-0")}
				w.asked.members = append(w.asked.members,
					membership.Member{ID: 0xd0, PeerURLs: []string{"http://db-4.db.other.svc:2380"}},
					membership.Member{ID: 0xd1, PeerURLs: []string{"https://db-5.db.ns.svc:2380"}})
			},
			want: result{three, "db-3"},
		},
		"AddedAgain": {
			reason: "etcd's list counts for more than what is remembered, and that for more than the volume",
			given: func(w *world) {
				w.asked.members[2].ID = 0xb2
				w.cluster.Status.Members[1].ID = "b1"
				w.claims["db-0"].Annotations[api.AnnotationMemberID] = "b0"
			},
			want: result{[]known{{"db-0", 0xa0}, {"db-1", 0xa1}, {"db-2", 0xb2}}, "db-3"},
		},
		"Copied": {
			reason: "a claim that was copied to another name makes no second member of its voter",
			given: func(w *world) {
				w.copied("db-9", "db-2")
				w.claims["db-9"].Annotations[api.AnnotationVolumeUID] = "claim-of-db-2"
			},
			want: result{append(three[:3:3], known{Name: "db-9"}), "db-10"},
		},
		"CopiedUnmarked": {
			reason: "nor one on which there was no UID yet",
			given:  func(w *world) { w.copied("db-9", "db-2") },
			want:   result{append(three[:3:3], known{Name: "db-9"}), "db-10"},
		},
		"CopiedUnlisted": {
			reason: "nor without a list: the status remembers the voter",
			given:  func(w *world) { w.copied("db-9", "db-2"); w.asked = answers{} },
			want:   result{append(three[:3:3], known{Name: "db-9"}), "db-10"},
		},
		"CopiedForgotten": {
			reason: "nor where the status remembers nothing: the claim on which the record was written counts",
			given: func(w *world) {
				w.copied("db-9", "db-2")
				w.claims["db-9"].Annotations[api.AnnotationVolumeUID] = "claim-of-db-9" // it was accepted
				w.claims["db-2"].Annotations[api.AnnotationVolumeUID] = "earlier"
				w.asked, w.cluster.Status.Members = answers{}, nil
			},
			want: result{[]known{{"db-0", 0xa0}, {"db-1", 0xa1}, {Name: "db-2"}, {"db-9", 0xa2}}, "db-10"},
		},
		"CopiedRestored": {
			reason: "nor in a namespace that was restored as a whole: one of the two is as good as the other",
			given: func(w *world) {
				w.copied("db-9", "db-2")
				for _, claim := range w.claims {
					claim.Annotations[api.AnnotationVolumeUID] = "earlier"
				}
				w.asked, w.cluster.Status.Members = answers{}, nil
			},
			want: result{append(three[:3:3], known{Name: "db-9"}), "db-10"},
		},
		"CopiedRemembered": {
			reason: "nor where an earlier version has taken it for one, and written that down",
			given: func(w *world) {
				w.copied("db-9", "db-2")
				w.cluster.Status.Members = append(w.cluster.Status.Members, api.MemberStatus{Name: "db-9", ID: "a2"})
			},
			want: result{append(three[:3:3], known{Name: "db-9"}), "db-10"},
		},
		"RestoredOfRemoved": {
			reason: "what was restored of a member that etcd does not list tells no ID",
			given: func(w *world) {
				w.claims["db-9"] = w.claims["db-2"].DeepCopy()
				w.claims["db-9"].Annotations[api.AnnotationMemberID], w.claims["db-9"].Annotations[api.AnnotationVolumeUID] = "a9", "earlier"
			},
			want: result{append(three[:3:3], known{Name: "db-9"}), "db-10"},
		},
		"Remembered": {
			reason: "where nothing is left, those that were seen last are known, and no other is expected",
			given: func(w *world) {
				none(w)
				w.cluster.Spec.Replicas, w.cluster.Status.NextOrdinal = new(int32(5)), 8
				w.cluster.Status.Members = []api.MemberStatus{{Name: "db-3", ID: "a3"}, {Name: "db-7", ID: "a7"}}
			},
			want: result{[]known{{"db-3", 0xa3}, {"db-7", 0xa7}}, "db-8"},
		},
		"Forgotten": {
			reason: "a formed cluster that remembers no member began with those of its first start, whatever the spec says now",
			given: func(w *world) {
				claim := w.claims["db-0"]
				none(w)
				w.claims = map[string]*corev1.PersistentVolumeClaim{"db-0": claim}
				w.cluster.Spec.Replicas, w.cluster.Status.Members = new(int32(5)), nil
			},
			want: result{[]known{{"db-0", 0xa0}, {Name: "db-1"}, {Name: "db-2"}}, "db-3"},
		},
		"Forming": {
			reason: "before that, those are expected that the spec asks for",
			given:  func(w *world) { *w = world{cluster: newCluster()}; w.cluster.Spec.Replicas = new(int32(1)) },
			want:   result{[]known{{Name: "db-0"}}, "db-1"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			tc.given(&w)
			o := facts(w.cluster, w.pods, w.claims, w.asked, limits{})
			got := result{Fresh: append(o.Fresh, "")[0]}
			for _, i := range o.Instances {
				got.Known = append(got.Known, known{i.Name, i.ID})
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
