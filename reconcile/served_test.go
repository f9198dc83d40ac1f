package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/utils/ptr"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

const (
	// What a member is being changed to (AnnotationNextWith): how its Pod is created shows later.
	firstNext = `{"version":"3.6.16","tls":{"mode":"Disabled"}}`
	otherNext = `{"version":"3.6.16","options":{"snapshotCount":5000},"tls":{"mode":"Disabled"}}`

	// What a member has served with (AnnotationServed), in a Pod that was created without labels.
	firstServed = `{"version":"3.6.16","tls":{"mode":"Disabled"},"metadata":{}}`
	otherServed = `{"version":"3.6.16","options":{"snapshotCount":5000},"tls":{"mode":"Disabled"},"metadata":{}}`
	digest      = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
)

// served writes on all volumes of the world with what their members have served.
func (w world) served() {
	for _, claim := range w.claims {
		claim.Annotations[api.AnnotationServed] = firstServed
	}
}

// other is a spec with other options.
func other(w *world) { w.cluster.Spec.Options = &api.Options{SnapshotCount: new(int64(5000))} }

func given(w *world) {
	w.cluster.Status.FailedChange = &api.FailedChange{Generation: w.cluster.Generation, Message: "it did not work"}
}

// TestMade holds of which options a Pod is made.
func TestMade(t *testing.T) {
	t.Parallel()
	const servedCount, specCount = 10_000, 5000
	cases := map[string]struct {
		reason string
		given  func(*world)
		member string // empty: db-0
		next   bool   // it is being changed
		want   int64
		quota  string // of the database; empty: none is asked for
	}{
		"Served":  {reason: "a Pod that is gone comes back as it was, whatever the spec says by now", given: func(*world) {}, want: servedCount},
		"GivenUp": {reason: "and so it does where that does not work", given: given, want: servedCount},
		"NextWith": {
			reason: "it is being changed to what the spec has said, and not to what it says by now",
			given: func(w *world) {
				w.claims["db-0"].Annotations[api.AnnotationNext], w.claims["db-0"].Annotations[api.AnnotationNextWith] = "3.6.16", otherNext
				w.cluster.Spec.Options.SnapshotCount = new(int64(6000))
			},
			want: specCount,
		},
		"Announced": {reason: "it is being changed", given: func(w *world) { w.claims["db-0"].Annotations[api.AnnotationNext] = "3.6.16" }, want: specCount},
		"Unmarked":  {reason: "a volume of earlier days does not say", given: func(w *world) { delete(w.claims["db-0"].Annotations, api.AnnotationServed) }, want: specCount},
		"Garbage":   {reason: "nor what another writer has written there", given: func(w *world) { w.claims["db-0"].Annotations[api.AnnotationServed] = "garbage" }, want: specCount},
		"ToCome":    {reason: "a member to come does not try what no member has served with", given: func(*world) {}, member: "db-3", want: servedCount},
		"ToComeUnmarked": {
			reason: "where it is not known with what the others serve, it gets what the spec says", member: "db-3", want: specCount,
			given: func(w *world) {
				for _, claim := range w.claims {
					delete(claim.Annotations, api.AnnotationServed)
				}
			},
		},
		"ToComeMended": {
			reason: "unless it is stuck with that", given: func(*world) {}, member: "db-3", next: true, want: specCount,
		},
		"ToComeRetired": {
			reason: "what is kept of a member of earlier days is not asked", member: "db-3",
			given: func(w *world) {
				w.claims["db-0"].Annotations[api.AnnotationRetired] = "true"
				w.claims["db-0"].Annotations[api.AnnotationServed] = otherServed
			},
			want: servedCount,
		},
		"ToComeSmaller": {
			reason: "a quota that its volume has no room for is that of the spec", member: "db-3", want: servedCount,
			given: func(w *world) {
				for _, claim := range w.claims {
					claim.Annotations[api.AnnotationServed] = `{"version":"3.6.16","options":{"quotaBackendSize":"1Gi"}}`
				}
				w.cluster.Spec.Options.QuotaBackendSize = new(resource.MustParse("512Mi"))
			},
			quota: "512Mi",
		},
		"UnmarkedGivenUp": {
			reason: "whose data is there has served with something, and it is not known with what",
			given:  func(w *world) { given(w); delete(w.claims["db-0"].Annotations, api.AnnotationServed) }, want: specCount,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.served()
			other(&w)
			tc.given(&w)
			i := membership.Instance{Name: "db-3"}
			if tc.next {
				i.Volume.Next = membership.Version{Major: 3, Minor: 6, Patch: 16}
			}
			if tc.member == "" {
				i = membership.Instance{Name: "db-0", Volume: volume(w.cluster, w.claims["db-0"])}
			}
			got := int64(servedCount)
			of, _ := made(w.cluster, w.claims, i)
			quota := ""
			if o := of.Spec.Options; o != nil {
				got = ptr.Deref(o.SnapshotCount, servedCount)
				if o.QuotaBackendSize != nil {
					quota = o.QuotaBackendSize.String()
				}
			}
			if quota != tc.quota {
				t.Errorf("%s: it has the quota %q, want %q", tc.reason, quota, tc.quota)
			}
			if got != tc.want {
				t.Errorf("%s: it has a snapshotCount of %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}

// TestServes holds what is written down as what a member has served with.
func TestServes(t *testing.T) {
	t.Parallel()
	recreated := func(w *world) { other(w); w.pods["db-0"] = w.pod("db-0") }
	cases := map[string]struct {
		reason string
		given  func(*world)
		young  bool // it has yet to prove that it runs well
		want   string
	}{
		"Same":      {reason: "nothing new", given: func(*world) {}, want: firstServed},
		"Unmarked":  {reason: "it serves with what the spec says", given: func(w *world) { delete(w.claims["db-0"].Annotations, api.AnnotationServed) }, want: firstServed},
		"Young":     {reason: "it answers from what it was changed to, and may end a moment later", given: recreated, young: true, want: firstServed},
		"First":     {reason: "there is nothing to lose", given: func(w *world) { delete(w.claims["db-0"].Annotations, api.AnnotationServed) }, young: true, want: firstServed},
		"Recreated": {reason: "it serves with what it was changed to", given: recreated, want: otherServed},
		"Unsaid":    {reason: "a build of before did not name what it serves clients", given: func(w *world) { w.claims["db-0"].Annotations[api.AnnotationServed] = `{"version":"3.6.16"}` }, want: firstServed},
		"OverData": {
			reason: "it was made with the clients' port of the spec, and with the options of before",
			given: func(w *world) {
				other(w)
				w.claims["db-0"].Annotations[api.AnnotationServed] = `{"version":"3.6.16","tls":{"mode":"Managed"}}`
			},
			want: firstServed,
		},
		"NotYet": {reason: "the spec has changed, and its Pod has not", given: other, want: firstServed},
		"Silent": {reason: "it does not answer", given: func(w *world) { recreated(w); delete(w.asked.endpoints, "db-0") }, want: firstServed},
		"Leads": {reason: "it answers, and does not serve", given: func(w *world) {
			recreated(w)
			e := w.asked.endpoints["db-0"]
			e.Leader = 0
			w.asked.endpoints["db-0"] = e
		}, want: firstServed},
		"Changing":  {reason: "what answers is the container of before", given: func(w *world) { recreated(w); w.asksFor("db-0", "etcd:v3.6.15"); w.changed("db-0", "3.6.16") }, want: firstServed},
		"Overtaken": {reason: "the spec has changed again, and it is not known any more what its Pod was made of", given: func(w *world) { recreated(w); w.cluster.Spec.Options.SnapshotCount = new(int64(6000)) }, want: firstServed},
		"Digest": {
			reason: "the digest that it runs is that of another version",
			given: func(w *world) {
				w.cluster.Spec.Image = &api.Image{Digests: []api.ImageDigest{{Version: w.cluster.Spec.Version, Digest: digest}}}
				w.pods["db-0"] = w.pod("db-0")
				w.cluster.Spec.Version = "3.7.3"
			},
			want: firstServed,
		},
		"LikeOthers": {
			reason: "a change was given up, and it came with what another one serves with",
			given: func(w *world) {
				delete(w.claims["db-0"].Annotations, api.AnnotationServed)
				delete(w.claims["db-0"].Annotations, api.AnnotationMemberID)
				other(w)
				given(w)
			},
			want: firstServed,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.served()
			tc.given(&w)
			seen := observed{Observed: facts(w.cluster, w.pods, w.claims, w.asked, limits{}), pods: w.pods, claims: w.claims}
			seen.Instances[0].Pod.Unproved = tc.young
			if diff := cmp.Diff(tc.want, serves(w.cluster, seen, "db-0")); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAnnounceMended holds when a Pod that is stuck is recreated as the spec says.
func TestAnnounceMended(t *testing.T) {
	t.Parallel()
	stuck := func(w *world) {
		w.pods["db-0"].Status.ContainerStatuses = etcdStatus(corev1.ContainerStatus{Image: "x", State: waiting("ImagePullBackOff", "")})
		delete(w.asked.endpoints, "db-0")
	}
	mended := func(w *world) { stuck(w); other(w) }
	cases := map[string]struct {
		reason string
		given  func(*world)
		want   []write
		next   string
	}{
		"Mended": {
			reason: "with what it has served with it would be stuck again", given: mended, next: "3.6.16",
			want: []write{{Verb: "apply", Kind: "status"}, {"apply", "PersistentVolumeClaim", "db-0", "claim-of-db-0", "5"}, {"delete", "Pod", "db-0", "pod-of-db-0", "5"}},
		},
		"Announced": {
			reason: "that was written down, and no more",
			given: func(w *world) {
				mended(w)
				w.claims["db-0"].Annotations[api.AnnotationNext], w.claims["db-0"].Annotations[api.AnnotationNextWith] = "3.6.16", otherNext
			},
			want: []write{{Verb: "apply", Kind: "status"}, {"delete", "Pod", "db-0", "pod-of-db-0", "5"}},
		},
		"AnnouncedBefore": {
			reason: "the spec has asked for something else when that was written down, and it is stuck with that", next: "3.6.16",
			given: func(w *world) {
				mended(w)
				w.claims["db-0"].Annotations[api.AnnotationNext], w.claims["db-0"].Annotations[api.AnnotationNextWith] = "3.6.16", firstNext
			},
			want: []write{{Verb: "apply", Kind: "status"}, {"apply", "PersistentVolumeClaim", "db-0", "claim-of-db-0", "5"}, {"delete", "Pod", "db-0", "pod-of-db-0", "5"}},
		},
		"Evicted": {
			reason: "that says nothing against what it was made of",
			given:  func(w *world) { mended(w); w.pods["db-0"].Status.Phase = corev1.PodFailed },
			want:   []write{{Verb: "apply", Kind: "status"}, {"delete", "Pod", "db-0", "pod-of-db-0", "5"}},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			w.served()
			tc.given(&w)
			w.address()
			w.managed()
			s, seen := w.look(t)
			step := membership.Plan(desired(w.cluster), seen.Observed)
			if step.Action != membership.Stop || step.Reason != membership.Replacing {
				t.Fatalf("%s: the step is %s", tc.reason, step)
			}
			if err := s.take(t.Context(), w.cluster.DeepCopy(), seen, step); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, s.writes); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if next := s.marks["PersistentVolumeClaim db-0"][api.AnnotationNext]; next != tc.next {
				t.Errorf("%s: the volume says that %q comes next, want %q", tc.reason, next, tc.next)
			}
		})
	}
}

// TestNextWith holds what is written on a volume as what its member is being changed to.
func TestNextWith(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		said   string
		change membership.Change
		want   string
	}{
		"Recreated": {reason: "all that the spec says", said: firstServed, change: membership.ChangePod, want: `{"version":"3.7.3","options":{"snapshotCount":5000},"tls":{"mode":"Disabled"}}`},
		"InPlace":   {reason: "the image, and the rest is what it is", said: firstServed, change: membership.ChangeImage, want: `{"version":"3.7.3","tls":{"mode":"Disabled"}}`},
		"Unmarked":  {reason: "there is nothing to go back to, and the last spec wins", change: membership.ChangePod},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			other(&w)
			w.cluster.Spec.Version = "3.7.3"
			w.claims["db-0"].Annotations[api.AnnotationServed] = tc.said
			if diff := cmp.Diff(tc.want, nextWith(w.cluster, w.claims["db-0"], tc.change)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
