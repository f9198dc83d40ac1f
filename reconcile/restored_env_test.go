//go:build env

package reconcile_test

import (
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/e2e/contract"
)

// saved is what a tool for backups has of a claim: its labels and annotations, its spec, and its
// data.
type saved struct {
	claim corev1.PersistentVolumeClaim
	data  string // a directory
}

// save the volumes of the cluster.
func (s *stage) save(c *api.EtcdCluster, names ...string) (all []saved) {
	s.Helper()
	for _, claim := range s.claims(c) {
		if !slices.Contains(names, claim.Name) {
			continue
		}
		of := saved{claim: claim, data: s.TempDir()}
		s.must(s.hostlet.Spoil(s.Context(), s.ns, claim.Name, func(dir string) error { return os.CopyFS(of.data, os.DirFS(dir)) }))
		all = append(all, of)
	}
	return all
}

// restore them in place of those that there are, each as another object. The Pods are gone.
func (s *stage) restore(all []saved) {
	s.Helper()
	for _, of := range all {
		old := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: of.claim.Name, Namespace: s.ns}}
		s.must(client.IgnoreNotFound(s.Delete(s.Context(), old)))
		s.gone(old)
		claim := &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: of.claim.Name, Namespace: s.ns, Labels: of.claim.Labels, Annotations: of.claim.Annotations},
			Spec:       of.claim.Spec,
		}
		claim.Spec.VolumeName = ""
		s.create(claim)
		s.must(s.hostlet.Spoil(s.Context(), s.ns, claim.Name, func(dir string) error { return os.CopyFS(dir, os.DirFS(of.data)) }))
	}
}

// accept removes the record of which object the claims of the cluster were.
func (s *stage) accept(c *api.EtcdCluster) {
	s.Helper()
	for _, claim := range s.claims(c) {
		s.change(&claim, func() { delete(claim.Annotations, api.AnnotationVolumeUID) })
	}
}

// current fails unless each claim names itself.
func (s *stage) current(c *api.EtcdCluster) {
	s.Helper()
	for _, claim := range s.claims(c) {
		if uid := claim.Annotations[api.AnnotationVolumeUID]; uid != string(claim.UID) {
			s.Errorf("claim %s with UID %s says that it is %q", claim.Name, claim.UID, uid)
		}
	}
}

// says fails unless the message has the commands.
func (s *stage) says(message string, commands ...string) {
	s.Helper()
	for _, command := range commands {
		if !strings.Contains(message, command) {
			s.Errorf("the message does not say %q: %s", command, message)
		}
	}
}

// TestRestoredMember: a claim that comes back beside members that serve is not started, and goes
// only when a person says so.
func TestRestoredMember(t *testing.T) {
	s := newStage(t)
	crash := s.operate()
	c := s.cluster("db", 3)
	kept := s.born(c)
	s.current(c)
	crash()
	backup := s.save(c, "db-1")
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "db-1", Namespace: s.ns}}
	s.must(s.Delete(t.Context(), pod))
	s.gone(pod)
	s.restore(backup)
	before := s.written(c)

	s.operate()
	message := s.stalled(c, api.ReasonVolumeReplaced)
	s.says(message, "kubectl delete pvc --wait=false db-1 -n "+s.ns, "kubectl annotate pvc db-1 -n "+s.ns+" "+api.AnnotationVolumeUID+"-")
	uid := s.podUIDs(c)["db-2"]
	s.deletePod("db-2") // the others are cared for all the same
	s.awaitRecreated("db-2", types.UID(uid))
	s.write(c, kept) // what was restored lacks it
	after := s.written(c)
	if key := slices.IndexFunc(slices.Collect(maps.Keys(after)), func(key string) bool { return strings.HasPrefix(key, "Pod db-1 ") }); key >= 0 {
		t.Error("a Pod of db-1 was made")
	}
	for key, annotations := range before {
		if diff := cmp.Diff(annotations, after[key]); strings.HasPrefix(key, "claim db-1 ") && diff != "" {
			t.Errorf("what was restored was written on: -before +after:\n%s", diff)
		}
	}
	s.must(s.Delete(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "db-1", Namespace: s.ns}}))
	s.settled(c, kept)
	if diff := cmp.Diff([]string{"db-0", "db-2", "db-3"}, memberNames(c)); diff != "" {
		t.Errorf("members -want +got:\n%s", diff)
	}
	s.current(c)
}

// TestRestoredNamespace: a cluster that was restored as a whole never begins empty, and comes back
// by one act.
func TestRestoredNamespace(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		status bool // was restored as well
	}{
		"WithoutStatus": {reason: "the volumes alone tell that it has formed"},
		"WithStatus":    {reason: "the status tells so, too", status: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			crash := s.operate()
			c := s.cluster("db", 3)
			kept := s.born(c)
			s.ready(c)
			id := identityOf(c)
			backup, status := s.save(c, "db-0", "db-1", "db-2"), c.Status.DeepCopy()
			crash()
			s.must(s.Delete(t.Context(), c))
			for _, pod := range s.pods(c) {
				s.must(client.IgnoreNotFound(s.Delete(t.Context(), &pod)))
				s.gone(&pod)
			}
			s.gone(c)
			s.restore(backup)
			c = s.cluster("db", 3)
			contract.Watch(s, c)
			s.create(c)
			if tc.status {
				c.Status = *status
				s.must(s.Status().Update(t.Context(), c))
			}

			s.operate()
			message := s.stalled(c, api.ReasonVolumeReplaced)
			s.says(message, "Do not delete it", "kubectl annotate pvc db-0 db-1 db-2 -n "+s.ns+" "+api.AnnotationVolumeUID+"-")
			if pods := s.pods(c); len(pods) > 0 {
				t.Errorf("%s: Pods were made: %v", tc.reason, pods)
			}
			s.accept(c)
			s.settled(c, kept)
			if diff := cmp.Diff(id, identityOf(c)); diff != "" {
				t.Errorf("%s: it came back as another one: -want +got:\n%s", tc.reason, diff)
			}
			s.current(c)
		})
	}
}
