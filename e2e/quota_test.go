//go:build e2e

package e2e

import (
	"strconv"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/pkg/features"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
	"quorate.dev/e2e/share"
)

// tooFew is a quota under which a cluster cannot run, and what the API server says.
type tooFew struct {
	name    string
	limit   corev1.ResourceList
	message string
}

// TestQuota: a namespace without room for a cluster leaves it stalled with the API server's own
// words; with room it comes up, and what ran before is not touched.
func TestQuota(t *testing.T) {
	t.Parallel()
	// How many there are: the neighbour's, and those that the clusters of the rows before have
	// left.
	const volumes = "<volumes>"
	rows := []tooFew{
		{"pods", quantities(corev1.ResourcePods, "1"), `the API server refuses what the spec asks for: pods "db-pods-0" is forbidden: exceeded quota: pods, requested: pods=1, used: pods=1, limited: pods=1`},
		{"volumes", quantities(corev1.ResourcePersistentVolumeClaims, "1"), `the API server refuses what the spec asks for: persistentvolumeclaims "db-volumes-0" is forbidden: exceeded quota: volumes, requested: persistentvolumeclaims=1, used: persistentvolumeclaims=` + volumes + `, limited: persistentvolumeclaims=1`},
		{"cpu", quantities(corev1.ResourceRequestsCPU, "4"), `the API server refuses what the spec asks for: pods "db-cpu-0" is forbidden: failed quota: cpu: must specify requests.cpu for: etcd`},
	}
	var neighbour *running
	story := features.New("a namespace with quota").
		Setup(step(func(s *stage) { neighbour = s.run("neighbour") }))
	for n, row := range share.List(t, rows, 1, func(row tooFew) string { return row.name }) {
		var c *api.EtcdCluster
		var quota *corev1.ResourceQuota
		story = story.
			Assess("too few "+row.name, step(func(s *stage) {
				quota = &corev1.ResourceQuota{
					ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: row.name},
					Spec:       corev1.ResourceQuotaSpec{Hard: row.limit},
				}
				s.create(quota)
				s.await(quota, "in force", func() bool { return len(quota.Status.Used) > 0 })
				c = s.cluster("db-"+row.name, 1)
				contract.Watch(s, c)
				s.create(c)
				want := strings.ReplaceAll(row.message, volumes, strconv.Itoa(1+n))
				if got := s.stalled(c, api.ReasonRefused); got != want {
					s.Errorf("stalled with the message\n%s\nwant\n%s", got, want)
				}
			})).
			Assess("enough "+row.name, step(func(s *stage) {
				if err := s.Delete(s.Context(), quota); err != nil {
					s.Fatal(err)
				}
				s.ready(c)
				if err := s.Delete(s.Context(), c); err != nil {
					s.Fatal(err)
				}
			}))
	}
	testenv.Test(t, story.
		Assess("the neighbour has run all along", step(func(s *stage) { s.undisturbed(neighbour) })).
		Feature())
}
