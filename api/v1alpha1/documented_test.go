package v1alpha1

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// minimalRestore is the smallest good EtcdRestore.
const minimalRestore = `
apiVersion: etcd.quorate.dev/v1alpha1
kind: EtcdRestore
metadata: {name: a, namespace: default}
spec: {clusterRef: {name: db}}
`

// TestDocumentedManifests: the API server takes every manifest that people are told to apply, in samples and in documents.
func TestDocumentedManifests(t *testing.T) {
	t.Parallel()
	samples, err := filepath.Glob("../../templates/samples/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	accepted := func(name, base, manifest string) {
		var is struct{ APIVersion, Kind string }
		if err := yaml.Unmarshal([]byte(manifest), &is); err != nil {
			t.Errorf("%s: %v", name, err)
			return
		}
		if base == "" || is.Kind != "" { // otherwise it is a part of an object
			base = manifest
		}
		if is.Kind != "" && is.APIVersion != SchemeGroupVersion.String() {
			return
		}
		found[is.Kind] = true
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if errs := admit(t, base, args{object: manifest}); len(errs) > 0 {
				t.Errorf("refused: %s", strings.Join(errs, "; "))
			}
		})
	}
	for _, file := range samples {
		for n, document := range strings.Split(content(t, file), "\n---\n") {
			accepted(fmt.Sprintf("%s/%d", filepath.Base(file), n+1), "", document)
		}
	}
	for page, of := range map[string]string{"restore.md": minimalRestore, "backups.md": minimal, "tls.md": minimal} {
		for n, after := range strings.Split(content(t, "../../docs/"+page), "\n```yaml\n")[1:] {
			block, _, _ := strings.Cut(after, "\n```")
			accepted(fmt.Sprintf("%s/%d", page, n+1), of, block)
		}
	}
	for _, kind := range []string{"EtcdCluster", "EtcdBackup", "EtcdBackupSchedule", "EtcdRestore"} {
		if !found[kind] {
			t.Errorf("no document has a %s", kind)
		}
	}
}

func content(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}
