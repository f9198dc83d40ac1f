package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	api "quorate.dev/api/v1alpha1"
)

// TestSizes: what the database of a member may become, what that is to be, and what its volume has.
func TestSizes(t *testing.T) {
	type sizes struct{ Quota, ToBe, Capacity int64 }
	const mib = 1 << 20
	with := func(quota string) *api.Options {
		return &api.Options{QuotaBackendSize: new(resource.MustParse(quota))}
	}
	asks := func(size string) corev1.ResourceList {
		return corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	}
	cases := map[string]struct {
		reason string
		made   func(*world) // before its Pod is made
		then   func(*world)
		want   sizes
	}{
		"Default": {
			reason: "etcd's own limit, on a volume that has room for it",
			made: func(w *world) {
				w.cluster.Spec.Storage.Size = resource.MustParse("8Gi")
				w.claims["db-0"].Spec.Resources.Requests = asks("8Gi")
			},
			want: sizes{Quota: 2048 * mib, ToBe: 2048 * mib, Capacity: 8192 * mib},
		},
		"SmallVolume": {
			reason: "half of a small one",
			want:   sizes{Quota: 512 * mib, ToBe: 512 * mib, Capacity: 1024 * mib},
		},
		"Raised": {
			reason: "what it runs with is what its Pod says, whatever the spec says by now",
			made:   func(w *world) { w.cluster.Spec.Options = with("64Mi") },
			then:   func(w *world) { w.cluster.Spec.Options = with("128Mi") },
			want:   sizes{Quota: 64 * mib, ToBe: 128 * mib, Capacity: 1024 * mib},
		},
		"Growing": {
			reason: "a volume has no more than it has",
			then: func(w *world) {
				w.cluster.Spec.Storage.Size = resource.MustParse("2Gi")
				w.claims["db-0"].Spec.Resources.Requests = asks("2Gi")
				w.claims["db-0"].Status = corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound, Capacity: asks("1Gi")}
			},
			want: sizes{Quota: 512 * mib, ToBe: 512 * mib, Capacity: 1024 * mib},
		},
		"Grown": {
			reason: "and its database may become larger when it has grown",
			then: func(w *world) {
				w.cluster.Spec.Storage.Size = resource.MustParse("2Gi")
				w.claims["db-0"].Spec.Resources.Requests = asks("2Gi")
			},
			want: sizes{Quota: 512 * mib, ToBe: 1024 * mib, Capacity: 2048 * mib},
		},
		"Rewritten": {
			reason: "a policy has the last word",
			then: func(w *world) {
				w.pods["db-0"].Spec.Containers[0].Args = []string{"--quota-backend-bytes=1048576"}
			},
			want: sizes{Quota: mib, ToBe: 512 * mib, Capacity: 1024 * mib},
		},
		"Invalid": {
			reason: "a spec that is wrong asks for no quota",
			then:   func(w *world) { w.cluster.Spec.Options = with("1Mi") },
			want:   sizes{Quota: 512 * mib, Capacity: 1024 * mib},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			if tc.made != nil {
				tc.made(&w)
				w.pods["db-0"] = w.pod("db-0")
			}
			if tc.then != nil {
				tc.then(&w)
			}
			i, _ := facts(w.cluster, w.pods, w.claims, w.asked, limits{now: time.Now()}).Instance("db-0")
			got := sizes{i.Pod.Quota, i.Pod.QuotaToBe, i.Volume.Capacity}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestMostRequest: what etcd takes at most is known as far as the spec says it.
func TestMostRequest(t *testing.T) {
	cases := map[string]struct {
		reason string
		flags  map[string]string
		want   int64
	}{
		"Unsaid":  {reason: "etcd decides", want: 0},
		"Said":    {reason: "as etcd parses it", flags: map[string]string{"max-request-bytes": "0x100000"}, want: 1 << 20},
		"Refused": {reason: "the spec is refused", flags: map[string]string{"max-request-bytes": "many"}, want: 0},
		"Huge":    {reason: "there is no room for such a request", flags: map[string]string{"max-request-bytes": "18446744073709551615"}, want: 1<<60 - 1},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := newCluster()
			c.Spec.Options = &api.Options{Flags: tc.flags}
			if got := desired(c).Request; got != tc.want {
				t.Errorf("%s: got %d, want %d", tc.reason, got, tc.want)
			}
		})
	}
}
