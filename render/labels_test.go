package render

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	api "quorate.dev/api/v1alpha1"
)

// TestUntracked: Argo CD with the tracking method "label" takes an object for its own that has this
// label and no owner, and prunes it where it is not in Git. Nothing that a golden case renders is
// such an object, and it is told to keep each claim in any case.
func TestUntracked(t *testing.T) {
	t.Parallel()
	seen := map[string]int{} // objects by kind
	err := filepath.WalkDir("testdata", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			if entry.Name() == "install" || entry.Name() == "offline" { // these are applied by a person
				return fs.SkipDir
			}
			return err
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for document := range bytes.SplitSeq(raw, []byte("---\n")) {
			o := &metav1.PartialObjectMetadata{}
			if yaml.Unmarshal(document, o) != nil || o.Name == "" { // no manifest
				continue
			}
			seen[o.Kind]++
			if _, has := o.Labels["app.kubernetes.io/instance"]; has && len(o.OwnerReferences) == 0 {
				t.Errorf("%s: %s %s has the label app.kubernetes.io/instance and no owner", path, o.Kind, o.Name)
			}
			if o.Kind != "PersistentVolumeClaim" {
				continue
			}
			if diff := cmp.Diff("Prune=false,Delete=false", o.Annotations["argocd.argoproj.io/sync-options"]); diff != "" {
				t.Errorf("%s: sync options of %s: -want +got:\n%s", path, o.Name, diff)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"PersistentVolumeClaim", "Pod", "Service", "PodDisruptionBudget", "Job", "EtcdBackup"} {
		if seen[kind] == 0 {
			t.Errorf("no golden case has a %s: %v", kind, seen)
		}
	}
	c := load(t, "minimal")
	c.UID = "c0"
	owners := map[string]int{ // of what no golden case has
		"Secret":      len(Secret(c, "db-client-tls", nil).OwnerReferences),
		"EtcdRestore": len(RestoreAfterLoss(c, api.QuorumLossFromSurvivor).OwnerReferences),
	}
	if diff := cmp.Diff(map[string]int{"Secret": 1, "EtcdRestore": 1}, owners); diff != "" {
		t.Errorf("owners: -want +got:\n%s", diff)
	}
}
