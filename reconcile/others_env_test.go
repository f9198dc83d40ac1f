//go:build env

package reconcile_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/history"
)

// What others write on our objects: people, injectors, policies.

// quiet is longer than an operator waits before it looks again at a cluster at rest.
const quiet = 12 * time.Second

// rests waits for a time in which nothing is written, and fails where none comes: two writers undo
// each other. What has just become ready may still have something to write down.
func (s *stage) rests(c *api.EtcdCluster) {
	s.Helper()
	for _, pod := range s.pods(c) {
		s.awaitPod(&pod, "ready", func() bool { return history.Ready(&pod) }) // later than the member is
	}
	var writes []string
	for range 4 {
		before := len(s.wire.writes())
		<-time.After(quiet)
		if writes = s.wire.writes()[before:]; len(writes) == 0 {
			return
		}
	}
	s.Errorf("a cluster at rest has cost %d writes in %s: %v", len(writes), quiet, writes)
}

const injected = "example.com/injected"

// meddling is a user's change of one of our objects.
type meddling struct {
	reason string
	object client.Object
	change func(o client.Object)
	well   func(o client.Object) bool // as it is to be afterwards
}

func meddlings() map[string]meddling {
	pod := func(name string) client.Object { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }
	claim := func(name string) client.Object {
		return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	label := func(key, value string) func(client.Object) {
		return func(o client.Object) {
			labels := maps.Clone(o.GetLabels())
			if labels[key] = value; value == "" {
				delete(labels, key)
			}
			o.SetLabels(labels)
		}
	}
	inject := func(o client.Object) {
		label(injected, "true")(o)
		annotations := maps.Clone(o.GetAnnotations())
		annotations[injected] = "true"
		o.SetAnnotations(annotations)
		if pod, ok := o.(*corev1.Pod); ok {
			pod.Spec.Tolerations = append(pod.Spec.Tolerations, corev1.Toleration{Key: injected, Operator: corev1.TolerationOpExists})
		}
	}
	left := func(o client.Object) bool {
		return o.GetLabels()[injected] == "true" && o.GetAnnotations()[injected] == "true" && ours(o)
	}
	return map[string]meddling{
		"PodInjected":          {reason: "what is injected stays", object: pod("db-2"), change: inject, well: left},
		"ClaimInjected":        {reason: "what is injected stays", object: claim("db-2"), change: inject, well: left},
		"PodMember":            {reason: "a label that is taken comes back", object: pod("db-1"), change: label(api.LabelMember, ""), well: ours},
		"PodClients":           {reason: "clients are led to it again", object: pod("db-1"), change: label(api.LabelClients, ""), well: ours},
		"PodClientsOut":        {reason: "that is no switch for people", object: pod("db-2"), change: label(api.LabelClients, api.ClientsOut), well: ours},
		"PodCluster":           {reason: "so does the one that all are found by", object: pod("db-0"), change: label(api.LabelCluster, ""), well: ours},
		"JoinedPodCluster":     {reason: "the same of a Pod that was made for a member to come", object: pod("db-1"), change: label(api.LabelCluster, ""), well: ours},
		"PodClusterOfAnother":  {reason: "a Pod that is said to be of another cluster is ours still", object: pod("db-2"), change: label(api.LabelCluster, "other"), well: ours},
		"ClaimMember":          {reason: "a label that is taken comes back", object: claim("db-1"), change: label(api.LabelMember, ""), well: ours},
		"ClaimCluster":         {reason: "a member whose claim is not found by its label has not lost its data", object: claim("db-0"), change: label(api.LabelCluster, ""), well: ours},
		"JoinedClaimCluster":   {reason: "the same of one that has joined", object: claim("db-1"), change: label(api.LabelCluster, ""), well: ours},
		"ClaimClusterOfOthers": {reason: "a claim that is said to be of another cluster holds our data still", object: claim("db-2"), change: label(api.LabelCluster, "other"), well: ours},
	}
}

// ours reports whether an object has the labels that we gave it.
func ours(o client.Object) bool {
	_, isPod := o.(*corev1.Pod)
	return o.GetLabels()[api.LabelCluster] == "db" && o.GetLabels()[api.LabelMember] == o.GetName() && isPod == (o.GetLabels()[api.LabelClients] == api.ClientsIn)
}

// TestMeddled: whatever others write on Pods and claims, the members stay the same, nothing is
// started again, and once all is said there is nothing more to write.
func TestMeddled(t *testing.T) {
	s := newStage(t)
	s.wire = &wire{}
	s.operate()
	c := s.cluster("db", 1)
	load := s.laden(c)
	s.resize(c, 3)
	s.sized(c, 3)
	before, uids := identityOf(c), s.uids(c)
	for name, tc := range meddlings() {
		o := tc.object
		o.SetNamespace(s.ns)
		s.must(s.Get(t.Context(), client.ObjectKeyFromObject(o), o))
		s.change(o, func() { tc.change(o) })
		s.awaitObject(o, name+": "+tc.reason, func() bool { return tc.well(o) })
		s.awaitMembers(c, namesOf(before)...)
	}
	s.unmoved(c, before, uids)
	load.await(10)
	load.check()
	s.rests(c)
	s.clean(c, namesOf(before)...)
}

// unmoved fails unless the members are the same, in the same Pods, on the same claims, and no
// container was started again.
func (s *stage) unmoved(c *api.EtcdCluster, members identity, uids map[string]string) {
	s.Helper()
	if diff := cmp.Diff(members, identityOf(c)); diff != "" {
		s.Errorf("the members changed: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(uids, s.uids(c)); diff != "" {
		s.Errorf("objects are not the same: -want +got:\n%s", diff)
	}
	s.unrestarted(c)
}

func (s *stage) unrestarted(c *api.EtcdCluster) {
	s.Helper()
	for _, pod := range s.pods(c) {
		for _, container := range pod.Status.ContainerStatuses {
			if container.RestartCount > 0 {
				s.Errorf("%s was restarted %d times", pod.Name, container.RestartCount)
			}
		}
	}
}

// TestMutated: a policy of the API server that writes on everything we make and change, and over a
// label of ours.
func TestMutated(t *testing.T) {
	s := newStage(t)
	s.wire = &wire{}
	s.mutate(`Object{metadata: Object.metadata{labels: {"` + injected + `": "true", "app.kubernetes.io/managed-by": "policy"}, annotations: {"` + injected + `": "true"}}}`)
	s.operate()
	c := s.cluster("db", 1)
	load := s.laden(c)
	s.resize(c, 3)
	names := s.sized(c, 3)
	for _, pod := range s.pods(c) {
		if pod.Labels[injected] != "true" || pod.Labels["app.kubernetes.io/managed-by"] != "policy" {
			t.Errorf("void: the labels of %s are %v", pod.Name, pod.Labels)
		}
	}
	load.check()
	s.rests(c)
	s.unrestarted(c)
	s.resize(c, 1)
	if rest := s.sized(c, 1); !slices.Equal(rest, names[:1]) {
		t.Errorf("members are %v, want the first of %v", rest, names)
	}
}

// mutate lets the API server change all Pods and claims of this stage so, when they are made and
// whenever they change.
func (s *stage) mutate(expression string) {
	s.Helper()
	mutation := admissionregistrationv1.Mutation{
		PatchType:          admissionregistrationv1.PatchTypeApplyConfiguration,
		ApplyConfiguration: &admissionregistrationv1.ApplyConfiguration{Expression: expression},
	}
	s.enforce(onBoth, []string{"pods", "persistentvolumeclaims"}, "", mutation, func() (bool, error) {
		claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{GenerateName: "try-", Namespace: s.ns}}
		claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
		claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
		err := s.Create(s.Context(), claim, client.DryRunAll)
		return err == nil && claim.Labels[injected] != "", err
	})
}
