package reconcile

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// TestObserveHostile: others may create Pods and claims with our label, and write into them what
// they like. What cannot be a member's is not looked at, its address not asked, and numbers cost
// nothing.
func TestObserveHostile(t *testing.T) {
	all := []string{"db-0", "db-1", "db-2"}
	type result struct{ Pods, Claims, Dialled []string }
	cases := map[string]struct {
		reason string
		given  func(*world)
		want   result
	}{
		"Healthy": {reason: "the members are asked", given: func(*world) {}, want: result{all, all, all}},
		"Names": {
			reason: "no member has such a name",
			given: func(w *world) {
				for _, name := range []string{"db-x", "other-0", "db-1000000", "db-99999999999"} {
					w.pods[name], w.claims[name] = w.pod("db-0"), newClaim(name)
					w.pods[name].Name = name
				}
			},
			want: result{all, all, all},
		},
		"Foreign": {
			reason: "the Pod of another owner is in the way, and its address is none of ours",
			given: func(w *world) {
				w.pods["db-7"] = owned(w.pod("db-7"), "apps/v1", "StatefulSet", "other", "other")
			},
			want: result{append(all[:3:3], "db-7"), all, all},
		},
		"ClaimQuantity": {
			reason: "to compare it with another one would write out all of its digits",
			given: func(w *world) {
				w.claims["db-7"] = newClaim("db-7")
				w.claims["db-7"].Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1e999999999")}
				w.claims["db-7"].Status.Phase = corev1.ClaimBound
				w.claims["db-7"].Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1e-9")}
			},
			want: result{all, append(all[:3:3], "db-7"), all},
		},
		"PodQuantity": {
			reason: "so would that of a Pod",
			given: func(w *world) {
				huge := corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1e999999999")}
				w.cluster.Spec.Resources = &api.Resources{Limits: corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}}
				w.pods["db-0"].Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: huge, Limits: huge}
				w.pods["db-0"].Status.ContainerStatuses[0].Resources = &corev1.ResourceRequirements{Requests: huge, Limits: huge}
			},
			want: result{all, all, all},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			tc.given(&w)
			w.address()
			s := newStub(t, nil, w.objects()...)
			dialled := make(chan string, 100)
			s.Dial = func(host string, port int) (membership.Client, error) {
				dialled <- host
				return w.dial(nil)(host, port)
			}
			began := time.Now()
			seen, err := s.observe(t.Context(), w.cluster, s.Client)
			if err != nil {
				t.Fatal(err)
			}
			membership.Plan(desired(w.cluster), seen.Observed)
			if took := time.Since(began); took > 10*time.Second {
				t.Errorf("%s: it took %s", tc.reason, took)
			}
			close(dialled)
			got := result{Pods: namesIn(seen.pods), Claims: namesIn(seen.claims)}
			for host := range dialled {
				got.Dialled = append(got.Dialled, host)
			}
			slices.Sort(got.Dialled)
			got.Dialled = slices.Compact(got.Dialled)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// FuzzAnnotations: whatever the annotations of a claim and a Pod say, a look at the cluster ends in
// a step and a status that the schema takes.
func FuzzAnnotations(f *testing.F) {
	for _, seed := range [][2]string{
		{"", ""},
		{"c0\na0\ncluster/3\n3.6.16", "db-0=http://db-0.db.ns.svc:2380\nexisting"},
		{"c0\na0\ncluster/3/999999\n3.7.9999\n9999.0.0\n{\"version\":\"3.6.16\"}\nany", "container image image\nimage hash\nversion=1,image=2"},
		{"c0\na0\ncluster/3\n3.6.16\n3.6.16\n{\"version\":\"\",\"options\":{\"flags\":{\"\":\"\"}}}", ""},
		{"c0\na0\ncluster/3\n3.6.16\n\n\n\n\n\nsum " + strings.Repeat("x", 300), ""},
		{"c0\na0\n/9/1000000\nlatest\n-1.0.0\n{\"resources\":{\"limits\":{\"cpu\":\"1e-100000000\"}}}", ",,=\n  "},
	} {
		f.Add(seed[0], seed[1], uint8(0))
	}
	ofClaim := []string{
		api.AnnotationClusterID, api.AnnotationMemberID, api.AnnotationBootstrap, api.AnnotationVersion, api.AnnotationNext,
		api.AnnotationServed, api.AnnotationReplays, api.AnnotationNextWith, api.AnnotationJoin, api.AnnotationSnapshot,
		api.AnnotationStorage, api.AnnotationTLS, api.AnnotationVolumeUID, api.AnnotationRetired, api.AnnotationSetAside,
	}
	ofPod := []string{
		api.AnnotationInitialCluster, api.AnnotationInitialClusterState, api.AnnotationPrevious, api.AnnotationApplied,
		api.AnnotationRevision, api.AnnotationRestore, api.AnnotationProvisions, api.AnnotationCheckAtStart,
	}
	f.Fuzz(func(t *testing.T, claim, pod string, whose uint8) {
		w := serving(t)
		name := []string{"db-0", "db-1", "db-2"}[whose%3]
		write := func(annotations map[string]string, keys []string, text string) {
			for n, value := range strings.SplitN(text, "\n", len(keys)) {
				if annotations[keys[n]] = value; value == "" {
					delete(annotations, keys[n])
				}
			}
		}
		write(w.claims[name].Annotations, ofClaim, claim)
		write(w.pods[name].Annotations, ofPod, pod)
		judge(t, w, name)
	})
}

// FuzzMembers: whatever the members say, a look at the cluster ends in a step and a status that the
// schema takes.
func FuzzMembers(f *testing.F) {
	f.Add("db-0", "http://db-0.db.ns.svc:2380", uint64(0xa0), uint64(0xa1), int64(7), int64(20<<10), false)
	f.Add("db-1", "http://db-1.db.ns.svc:2380\nhttp://db-0.db.ns.svc:2380", uint64(0xa0), uint64(0), int64(-1), int64(-1<<63), true)
	f.Add("db-999999", "http://db-999999.db.ns.svc:2380", uint64(0), uint64(1<<63), int64(1<<62), int64(1<<62), false)
	f.Add(strings.Repeat("x", 40_000), "http://"+strings.Repeat("\xff", 40_000), uint64(0xd0), uint64(0xd0), int64(0), int64(0), false)
	f.Add("", "", uint64(0xa2), uint64(0xa2), int64(7), int64(20<<10), true)
	f.Fuzz(func(t *testing.T, name, urls string, id, leader uint64, revision, size int64, learner bool) {
		w := serving(t)
		w.asked.members = append(w.asked.members, membership.Member{ID: membership.ID(id), Name: name, PeerURLs: strings.Split(urls, "\n"), Learner: learner})
		e := w.asked.endpoints["db-0"]
		e.MemberID, e.Leader, e.Revision, e.DBSize, e.Learner = membership.ID(id), membership.ID(leader), revision, size, learner
		e.Alarms = []membership.Alarm{{Kind: membership.AlarmCorrupt, Member: membership.ID(leader)}}
		w.asked.endpoints["db-0"] = e
		judge(t, w, "db-0")
	})
}

// judge looks at the world, plans, and makes what a pass makes of that.
func judge(t *testing.T, w world, name string) {
	t.Helper()
	now := time.Now()
	seen := observed{pods: w.pods, claims: w.claims}
	seen.former = takeFormer(w.cluster, &seen)
	seen.Observed = facts(w.cluster, seen.pods, seen.claims, w.asked, limits{now: now, stallBefore: now.Add(-time.Minute), replaceBefore: now.Add(-time.Hour), unavailable: now})
	step := membership.Plan(desired(w.cluster), seen.Observed)
	if seen.claims[name] != nil {
		m := member(w.cluster, seen, name)
		of, proved := seen.made(w.cluster, name)
		m.Proved = proved
		render.Volume(of, m)
		_, _ = render.Pod(of, m) // what cannot be rendered is told where it is applied
	}
	s := status(w.cluster, seen, step)
	if len(step.Members) > 0 {
		s.FailedChange = &api.FailedChange{Generation: w.cluster.Generation, Message: tried(step)}
	}
	schemaTakes(t, w.cluster, s)
}
