package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
)

// TestOverQuota: a quota that admits one new member and not all of them is told.
func TestOverQuota(t *testing.T) {
	t.Parallel()
	quota := func(name string, resourceName corev1.ResourceName, hard, used string, change ...func(*corev1.ResourceQuota)) corev1.ResourceQuota {
		q := corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
		q.Status.Hard = corev1.ResourceList{resourceName: resource.MustParse(hard)}
		if used != "" {
			q.Status.Used = corev1.ResourceList{resourceName: resource.MustParse(used)}
		}
		for _, c := range change {
			c(&q)
		}
		return q
	}
	const (
		claims  = corev1.ResourcePersistentVolumeClaims
		storage = corev1.ResourceRequestsStorage
	)
	scoped := func(q *corev1.ResourceQuota) {
		q.Spec.Scopes = []corev1.ResourceQuotaScope{corev1.ResourceQuotaScopeBestEffort}
	}
	selected := func(q *corev1.ResourceQuota) { q.Spec.ScopeSelector = &corev1.ScopeSelector{} }
	told := func(name, left, of, need string) string {
		return "ResourceQuota " + name + " leaves " + left + " of " + of + ", and the new members need " + need + " beside the volumes of the former ones: raise it"
	}
	cases := map[string]struct {
		reason  string
		quotas  []corev1.ResourceQuota
		cluster func(*api.EtcdCluster)
		pods    int
		want    string
	}{
		"None":          {reason: "nothing is limited", pods: 3},
		"Claims":        {reason: "one more volume is admitted, and three are needed", quotas: []corev1.ResourceQuota{quota("q", claims, "4", "3")}, pods: 3, want: told("q", "1", "persistentvolumeclaims", "3")},
		"ClaimsEnough":  {reason: "just so many", quotas: []corev1.ResourceQuota{quota("q", claims, "6", "3")}, pods: 3},
		"ClaimsCounted": {reason: "the same, as objects", quotas: []corev1.ResourceQuota{quota("q", "count/persistentvolumeclaims", "5", "3")}, pods: 3, want: told("q", "2", "count/persistentvolumeclaims", "3")},
		"Storage":       {reason: "they are too large together", quotas: []corev1.ResourceQuota{quota("q", storage, "5Gi", "3Gi")}, pods: 3, want: told("q", "2Gi", "requests.storage", "3Gi")},
		"Unused":        {reason: "nothing is used yet, as far as its controller has counted", quotas: []corev1.ResourceQuota{quota("q", storage, "2Gi", "")}, pods: 3, want: told("q", "2Gi", "requests.storage", "3Gi")},
		"Class": {
			reason: "so it is for a class that the spec names", quotas: []corev1.ResourceQuota{quota("q", "fast.storageclass.storage.k8s.io/requests.storage", "4Gi", "3Gi")}, pods: 3,
			cluster: func(c *api.EtcdCluster) { c.Spec.Storage.StorageClassName = new("fast") },
			want:    told("q", "1Gi", "fast.storageclass.storage.k8s.io/requests.storage", "3Gi"),
		},
		"OtherClass": {reason: "that is for others", quotas: []corev1.ResourceQuota{quota("q", "fast.storageclass.storage.k8s.io/requests.storage", "4Gi", "3Gi")}, pods: 3},
		"Pods":       {reason: "the former Pods are gone before the new ones come", quotas: []corev1.ResourceQuota{quota("q", corev1.ResourcePods, "4", "3")}, pods: 3},
		"PodsLost":   {reason: "two of three were lost, and others have taken their room", quotas: []corev1.ResourceQuota{quota("q", corev1.ResourcePods, "4", "3")}, pods: 1, want: told("q", "1", "pods", "2")},
		"Survivor": {
			reason: "one starts, and the others join it later", quotas: []corev1.ResourceQuota{quota("q", claims, "4", "3")}, pods: 3,
			cluster: func(c *api.EtcdCluster) { c.Status.Restore = &api.ClusterRestore{Survivor: &api.Survivor{}} },
		},
		"Scoped": {reason: "it is for Pods of a kind, of which nothing is known here", quotas: []corev1.ResourceQuota{quota("q", corev1.ResourcePods, "0", "0", scoped), quota("r", corev1.ResourcePods, "0", "0", selected)}},
		"First":  {reason: "of several the first by name, whatever the order of a list", quotas: []corev1.ResourceQuota{quota("b", claims, "4", "3"), quota("a", storage, "4Gi", "3Gi")}, pods: 3, want: told("a", "1Gi", "requests.storage", "3Gi")},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &api.EtcdCluster{}
			c.Spec.Storage.Size = resource.MustParse("1Gi")
			if tc.cluster != nil {
				tc.cluster(c)
			}
			if diff := cmp.Diff(tc.want, overQuota(tc.quotas, newMembersNeed(c, tc.pods))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
