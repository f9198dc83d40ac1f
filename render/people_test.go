package render

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// TestRolesForPeople: a user who may view, edit or administer a namespace may do so with every kind
// of the API, and no one may write a status. Kubernetes finds the rules by these labels.
func TestRolesForPeople(t *testing.T) {
	const aggregate = "rbac.authorization.k8s.io/aggregate-to-"
	cases := map[string]struct {
		reason string
		want   []string // verbs on each kind
	}{
		"view":  {reason: "who looks on changes nothing", want: []string{"get", "list", "watch"}},
		"edit":  {reason: "who edits does all but write a status", want: []string{"create", "delete", "get", "list", "patch", "update", "watch"}},
		"admin": {reason: "who gives rights away may do no more", want: []string{"create", "delete", "get", "list", "patch", "update", "watch"}},
	}
	for _, install := range []string{"cluster", "namespaced"} {
		manifests, err := Install(installations[install].args)
		if err != nil {
			t.Fatal(err)
		}
		objects := decode(t, manifests)
		var kinds []*apiextensionsv1.CustomResourceDefinition
		for _, o := range objects {
			if kind, ok := o.(*apiextensionsv1.CustomResourceDefinition); ok {
				kinds = append(kinds, kind)
			}
		}
		if len(kinds) == 0 {
			t.Fatal("the installation defines no kind")
		}
		for name, tc := range cases {
			t.Run(install+"/"+name, func(t *testing.T) {
				verbs := map[string][]string{}
				for _, o := range objects {
					role, ok := o.(*rbacv1.ClusterRole)
					if !ok || role.Labels[aggregate+name] != "true" {
						continue
					}
					for _, rule := range role.Rules {
						if !slices.Equal(rule.APIGroups, []string{"etcd.quorate.dev"}) {
							t.Errorf("%s: %v", role.Name, rule)
						}
						for _, resource := range rule.Resources {
							verbs[resource] = append(verbs[resource], rule.Verbs...)
						}
					}
				}
				for _, kind := range kinds {
					got := slices.Sorted(slices.Values(verbs[kind.Spec.Names.Plural]))
					if diff := cmp.Diff(tc.want, got); diff != "" {
						t.Errorf("%s: %s: -want, +got:\n%s", tc.reason, kind.Spec.Names.Plural, diff)
					}
				}
				for resource, verbs := range verbs {
					if strings.HasSuffix(resource, "/status") && !slices.Equal(verbs, []string{"get"}) {
						t.Errorf("%s: %v of %s", tc.reason, verbs, resource)
					}
				}
			})
		}
	}
}
