package render

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/kustomize/api/types"
)

// installations are the cases that every test of the installation looks at; the name is that of the
// golden file.
var installations = map[string]struct {
	reason string
	args   InstallOptions
}{
	"cluster": {
		reason: "Without options it is one operator for the whole cluster",
	},
	"cluster-elsewhere": {
		reason: "The operator's namespace is followed by every subject of a binding",
		args:   InstallOptions{Namespace: "ops", Image: "registry.example:5000/quorate:v1@sha256:" + strings.Repeat("a", 64)},
	},
	"namespaced": {
		reason: "Watched namespaces are sorted and taken once, and there is no cluster-wide right",
		args:   InstallOptions{WatchNamespaces: []string{"team-b", "team-a", "team-b"}},
	},
	"namespaced-elsewhere": {
		reason: "The operator may watch its own namespace, and its rights there are those of any other",
		args:   InstallOptions{Namespace: "ops", WatchNamespaces: []string{"ops"}},
	},
	"monitoring-elsewhere": {
		reason: "The Prometheus operator finds its objects beside the Service that they are about",
		args:   InstallOptions{Namespace: "ops", Monitoring: true},
	},
	"without-secrets": {
		reason: "No rule names Secrets",
		args:   InstallOptions{WithoutSecrets: true},
	},
	"without-secrets-namespaced": {
		reason: "So it is with watched namespaces",
		args:   InstallOptions{Namespace: "ops", WatchNamespaces: []string{"team-a"}, WithoutSecrets: true},
	},
}

func TestInstall(t *testing.T) {
	for name, tc := range installations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			first, err := Install(tc.args)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			second, err := Install(tc.args)
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(string(first), string(second)); diff != "" {
				t.Errorf("two renderings differ: -first, +second:\n%s", diff)
			}
			golden(t, "install/"+name+".yaml", withoutDefinitions(t, first))
		})
	}
}

// TestInstallParts: each part has what its name says, and all of them together are the whole, so
// that deleting the operator deletes no kind and no namespace, and with these no EtcdCluster.
func TestInstallParts(t *testing.T) {
	for name, tc := range installations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole, err := Install(tc.args)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string][]string{}
			for _, doc := range documents(t, whole) {
				part := PartOperator
				switch {
				case bytes.Contains(doc, []byte("\nkind: CustomResourceDefinition\n")):
					part = PartDefinitions
				case bytes.Contains(doc, []byte("\nkind: Namespace\n")):
					part = PartNamespace
				}
				want[part] = append(want[part], string(doc))
			}
			got := map[string][]string{}
			for _, part := range InstallParts() {
				args := tc.args
				args.Only = part
				manifests, err := Install(args)
				if err != nil {
					t.Fatal(err)
				}
				for _, doc := range documents(t, manifests) {
					got[part] = append(got[part], string(doc))
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: documents by part: -want +got:\n%s", tc.reason, diff)
			}
			if len(got[PartDefinitions]) != 6 || len(got[PartNamespace]) != 1 || len(got[PartOperator]) < 5 {
				t.Errorf("%s: %d definitions, %d namespaces, %d others", tc.reason, len(got[PartDefinitions]), len(got[PartNamespace]), len(got[PartOperator]))
			}
		})
	}
}

func TestInstallRefuses(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   InstallOptions
		want   string
	}{
		"Namespace": {
			reason: "The namespace goes into paths and patches, so it must be one",
			args:   InstallOptions{Namespace: "../ops"},
			want:   `namespace "../ops"`,
		},
		"WatchNamespace": {
			reason: "An empty name, as of a trailing comma, is not taken for the whole cluster",
			args:   InstallOptions{WatchNamespaces: []string{""}},
			want:   `namespace ""`,
		},
		"Only": {
			reason: "A part that there is not is not taken for the whole",
			args:   InstallOptions{Only: "crd"},
			want:   `--only "crd": want one of crds, namespace, operator`,
		},
		"Monitoring": {
			reason: "Rules for metrics that are not served would alert on nothing but their absence",
			args:   InstallOptions{WatchNamespaces: []string{"team-a"}, Monitoring: true},
			want:   "add the components templates/install/metrics and templates/install/monitoring",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Install(tc.args); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// TestOverlays builds what a person builds with kustomize alone.
func TestOverlays(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   types.Kustomization
	}{
		"overlay-namespaced": {
			reason: "An operator for its own namespace needs no patch",
			args:   types.Kustomization{Resources: []string{"install/namespaced"}},
		},
		"overlay-namespaced-metrics": {
			reason: "Metrics are added to it as a component, and everything follows the namespace",
			args: types.Kustomization{
				Namespace:  "ops",
				Resources:  []string{"install/namespaced"},
				Components: []string{"install/metrics"},
			},
		},
		"overlay-without-secrets": {
			reason: "The same installation without the rights on Secrets",
			args:   types.Kustomization{Resources: []string{"install/cluster"}},
		},
		"overlay-tls-cluster": {
			reason: "The rights on Secrets are applied by themselves, beside an installation that lacks them",
			args:   types.Kustomization{Resources: []string{"install/tls/cluster"}},
		},
		"overlay-tls-watch": {
			reason: "So they are in one namespace, which kubectl --namespace gives",
			args:   types.Kustomization{Resources: []string{"install/tls/watch"}},
		},
		"overlay-namespaced-monitoring": {
			reason: "So is what the Prometheus operator scrapes and alerts by",
			args: types.Kustomization{
				Namespace:  "ops",
				Resources:  []string{"install/namespaced"},
				Components: []string{"install/metrics", "install/monitoring"},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifests, err := build(map[string]types.Kustomization{".": tc.args}, "")
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			decode(t, manifests)
			golden(t, "install/"+name+".yaml", withoutDefinitions(t, manifests))
		})
	}
}

// TestInstallObjects holds every installation to what must be true of all of them.
func TestInstallObjects(t *testing.T) {
	for name, tc := range installations {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifests, err := Install(tc.args)
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range decode(t, manifests) {
				name := o.GetObjectKind().GroupVersionKind().Kind + " " + client.ObjectKeyFromObject(o).String()
				if clusterScoped(o) != (o.GetNamespace() == "") {
					t.Errorf("%s: wrong scope", name)
				}
				for _, rule := range rules(o) {
					checkRule(t, name, rule)
					if slices.Contains(rule.Resources, "secrets") && tc.args.WithoutSecrets {
						t.Errorf("%s: %v of secrets, which are to be left out", name, rule.Verbs)
					}
				}
				if _, bound := o.(*rbacv1.ClusterRoleBinding); bound && len(tc.args.WatchNamespaces) > 0 {
					t.Errorf("%s: an operator for named namespaces has cluster-wide rights", name)
				}
				for _, s := range subjects(o) {
					want := rbacv1.Subject{Kind: "ServiceAccount", Name: "quorate", Namespace: operatorNamespace(tc.args)}
					if diff := cmp.Diff(want, s); diff != "" {
						t.Errorf("%s: subject: -want, +got:\n%s", name, diff)
					}
				}
			}
		})
	}
}

func checkRule(t *testing.T, name string, rule rbacv1.PolicyRule) {
	t.Helper()
	if all := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs); slices.ContainsFunc(all, isWildcard) {
		t.Errorf("%s: wildcard in %v", name, rule)
	}
	if extra := slices.DeleteFunc(slices.Clone(rule.Verbs), func(verb string) bool { return slices.Contains([]string{"get", "create", "patch"}, verb) }); slices.Contains(rule.Resources, "secrets") && (len(extra) > 0 || !strings.HasSuffix(name, "/quorate-secrets")) {
		t.Errorf("%s: %v of secrets", name, rule.Verbs)
	}
	for _, refused := range []string{"pods/exec", "serviceaccounts/token"} {
		if slices.Contains(rule.Resources, refused) {
			t.Errorf("%s: %s in %v", name, refused, rule)
		}
	}
	for _, refused := range []string{"escalate", "bind", "impersonate", "deletecollection"} {
		if slices.Contains(rule.Verbs, refused) {
			t.Errorf("%s: %s in %v", name, refused, rule)
		}
	}
}

func isWildcard(s string) bool { return strings.Contains(s, "*") }

func operatorNamespace(o InstallOptions) string {
	if o.Namespace == "" {
		return InstallNamespace
	}
	return o.Namespace
}

func clusterScoped(o client.Object) bool {
	switch o.(type) {
	case *corev1.Namespace, *apiextensionsv1.CustomResourceDefinition, *rbacv1.ClusterRole, *rbacv1.ClusterRoleBinding,
		*schedulingv1.PriorityClass, *admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding:
		return true
	default:
		return false
	}
}

func rules(o client.Object) []rbacv1.PolicyRule {
	switch o := o.(type) {
	case *rbacv1.Role:
		return o.Rules
	case *rbacv1.ClusterRole:
		return o.Rules
	default:
		return nil
	}
}

func subjects(o client.Object) []rbacv1.Subject {
	switch o := o.(type) {
	case *rbacv1.RoleBinding:
		return o.Subjects
	case *rbacv1.ClusterRoleBinding:
		return o.Subjects
	default:
		return nil
	}
}

// decode reads every object as the API server would with strict field validation.
func decode(t *testing.T, manifests []byte) []client.Object {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1.AddToScheme, appsv1.AddToScheme, corev1.AddToScheme, rbacv1.AddToScheme, apiextensionsv1.AddToScheme, monitoringv1.AddToScheme,
		policyv1.AddToScheme, schedulingv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	decoder := serializer.NewCodecFactory(scheme, serializer.EnableStrict).UniversalDeserializer()

	var objects []client.Object
	for _, doc := range documents(t, manifests) {
		decoded, _, err := decoder.Decode(doc, nil, nil)
		if err != nil {
			t.Fatalf("decode: %v\n%s", err, doc)
		}
		objects = append(objects, decoded.(client.Object))
	}
	return objects
}

// withoutDefinitions leaves out what is generated and checked as such.
func withoutDefinitions(t *testing.T, manifests []byte) []byte {
	t.Helper()
	var rest [][]byte
	for _, doc := range documents(t, manifests) {
		if !bytes.Contains(doc, []byte("\nkind: CustomResourceDefinition\n")) {
			rest = append(rest, doc)
		}
	}
	return bytes.Join(rest, []byte("---\n"))
}

func documents(t *testing.T, manifests []byte) [][]byte {
	t.Helper()
	var docs [][]byte
	for reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(manifests))); ; {
		doc, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return docs
		}
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, doc)
	}
}
