package render

import (
	"os"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
)

// TestUninstallDocumented: what docs/install.md deletes "to remove the operator alone" is all that
// an installation has outside of its namespace, but for the API.
func TestUninstallDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/install.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Uninstall\n")
	section, _, _ = strings.Cut(section, "\n### ")
	var deleted []string
	for line := range strings.Lines(section) {
		if kinds, ok := strings.CutPrefix(line, "kubectl delete "); ok && strings.Contains(line, " --selector=app.kubernetes.io/part-of=quorate") {
			kinds, _, _ = strings.Cut(kinds, " ")
			deleted = append(deleted, strings.Split(kinds, ",")...)
		}
	}
	for name, options := range map[string]InstallOptions{"cluster": {Monitoring: true}, "namespaces": {WatchNamespaces: []string{"a"}}} {
		manifests, err := Install(options)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range decode(t, manifests) {
			kind := o.GetObjectKind().GroupVersionKind()
			_, role := o.(*rbacv1.Role)
			_, binding := o.(*rbacv1.RoleBinding)
			if kind.Kind == "Namespace" || kind.Kind == "CustomResourceDefinition" || !clusterScoped(o) && !role && !binding {
				continue
			}
			plural, _ := meta.UnsafeGuessKindToResource(kind)
			if !slices.Contains(deleted, plural.Resource) {
				t.Errorf("%s: docs/install.md#uninstall leaves %s %s", name, kind.Kind, o.GetName())
			}
			if o.GetLabels()["app.kubernetes.io/part-of"] != "quorate" {
				t.Errorf("%s: %s %s has no label by which it is deleted", name, kind.Kind, o.GetName())
			}
		}
	}
}
