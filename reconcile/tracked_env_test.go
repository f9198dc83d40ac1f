//go:build env

package reconcile_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// trackingLabel is the one by which Argo CD finds what belongs to an Application, with the tracking
// method "label". It writes it on what is in Git, here on the EtcdCluster.
const trackingLabel = "app.kubernetes.io/instance"

// tracked judges as Argo CD does: of all kinds of objects it takes for its own what has the label
// and no owner; and of these it prunes what is not in Git, unless the object says that it may not.
func (s *stage) tracked(application string, inGit ...string) (own, pruned []string) {
	s.Helper()
	server, err := discovery.NewDiscoveryClientForConfig(apiServer)
	s.must(err)
	lists, err := server.ServerPreferredNamespacedResources()
	s.must(err)
	for _, list := range lists {
		group, err := schema.ParseGroupVersion(list.GroupVersion)
		s.must(err)
		for _, resource := range list.APIResources {
			if !slices.Contains(resource.Verbs, "list") {
				continue
			}
			objects := &metav1.PartialObjectMetadataList{}
			objects.SetGroupVersionKind(group.WithKind(resource.Kind + "List"))
			s.must(s.List(s.Context(), objects, client.InNamespace(s.ns), client.MatchingLabels{trackingLabel: application}))
			for _, o := range objects.Items {
				if len(o.OwnerReferences) > 0 {
					continue
				}
				name := resource.Kind + " " + o.Name
				own = append(own, name)
				options := strings.Split(o.Annotations["argocd.argoproj.io/sync-options"], ",")
				if !slices.Contains(inGit, name) && !slices.Contains(options, "Prune=false") {
					pruned = append(pruned, name)
				}
			}
		}
	}
	slices.Sort(own)
	return own, pruned
}

// TestTracked: an Argo CD that tracks by label, with an Application that is called like the
// EtcdCluster, takes nothing for its own but what is in Git, before and after that goes. A claim
// that an earlier Quorate has labelled loses the label, and one that another manager labels is
// kept.
func TestTracked(t *testing.T) {
	s := newStage(t)
	s.unasked = true // with the Secrets that a person gets, whose spec says nothing of TLS
	stop := s.operate()
	c := s.cluster("db", 1)
	c.Labels = map[string]string{trackingLabel: c.Name}
	s.create(c)
	s.ready(c)
	const cluster, volume = "EtcdCluster db", "PersistentVolumeClaim db-0"
	judged := func(when string, wantOwn, wantPruned []string, inGit ...string) {
		t.Helper()
		own, pruned := s.tracked(c.Name, inGit...)
		if diff := cmp.Diff([][]string{wantOwn, wantPruned}, [][]string{own, pruned}); diff != "" {
			t.Errorf("%s: what the tracker takes for its own, and what it prunes of that: -want +got:\n%s", when, diff)
		}
	}
	judged("while the manifest is in Git", []string{cluster}, nil, cluster)

	stop()
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "db-0", Namespace: s.ns}}
	s.must(s.Get(s.Context(), client.ObjectKeyFromObject(claim), claim))
	before, err := corev1ac.ExtractPersistentVolumeClaim(claim, api.Manager)
	s.must(err)
	before.Labels[trackingLabel] = c.Name
	delete(before.Annotations, "argocd.argoproj.io/sync-options")
	s.must(s.Apply(s.Context(), before, client.FieldOwner(api.Manager), client.ForceOwnership))
	judged("as an earlier Quorate has left it", []string{cluster, volume}, []string{volume}, cluster)

	s.operate()
	s.awaitObject(claim, "without the label", func() bool { return claim.UID != "" && claim.Labels[trackingLabel] == "" })
	judged("taken over", []string{cluster}, nil, cluster)

	labelled := maps.Clone(claim.Labels)
	labelled[trackingLabel] = c.Name
	s.change(claim, func() { claim.Labels = labelled })
	judged("labelled by another manager", []string{cluster, volume}, nil, cluster)

	s.must(s.Delete(s.Context(), c))
	s.gone(&corev1.Pod{ObjectMeta: claim.ObjectMeta})
	judged("after the EtcdCluster", []string{volume}, nil)
	s.must(s.Get(s.Context(), client.ObjectKeyFromObject(claim), claim))
	if !claim.DeletionTimestamp.IsZero() || len(claim.OwnerReferences) > 0 {
		t.Errorf("the claim is not kept: deleted %v, owners %v", claim.DeletionTimestamp, claim.OwnerReferences)
	}
}
