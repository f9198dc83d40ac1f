//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"quorate.dev/render"
)

// right is one verb on one resource.
type right struct{ group, name, verb string }

func (r right) resource() string { return strings.TrimPrefix(r.group+"/"+r.name, "/") }
func (r right) String() string   { return r.verb + " " + r.resource() }

// unseen are rights that no request shows, with the reason why they are granted.
var unseen = map[right]string{
	{"etcd.quorate.dev", "etcdclusters/finalizers", "update"}: "the admission plugin OwnerReferencesPermissionEnforcement asks for it, where it is on",
	{"etcd.quorate.dev", "etcdbackups/finalizers", "update"}:  "the admission plugin OwnerReferencesPermissionEnforcement asks for it, where it is on",
	{"batch", "jobs", "get"}:                                  "whose a Job is that has a name of ours",
	{"etcd.quorate.dev", "etcdbackups", "list"}:               lists,
	{"etcd.quorate.dev", "etcdbackupschedules", "list"}:       lists,
	{"etcd.quorate.dev", "etcdrestores", "get"}:               "whether one was deleted that is carried out, where the cache does not have it",
	{"etcd.quorate.dev", "etcdrestores", "list"}:              lists,
	{"batch", "jobs", "list"}:                                 lists,
	{"etcd.quorate.dev", "etcdroles", "list"}:                 lists,
	{"etcd.quorate.dev", "etcdusers", "list"}:                 lists,
	{"events.k8s.io", "events", "patch"}:                      "an event that repeats is counted up, minutes later",
	{"", "events", "patch"}:                                   "an event that repeats is counted up",
	{"etcd.quorate.dev", "etcdclusters", "list"}:              lists,
	{"", "pods", "list"}:                                      lists,
	{"", "persistentvolumeclaims", "list"}:                    lists,
	{"", "services", "list"}:                                  lists,
	{"policy", "poddisruptionbudgets", "list"}:                lists,
}

const lists = "an API server that cannot stream a list through a watch is asked for it"

var suiteStarted = time.Now()

// checkRights compares what the operator was allowed with what it asked for in all stories
// together: nothing was refused, nothing is allowed that must not be, and, where every kind of
// story was told, nothing is allowed that was never used.
func checkRights(ctx context.Context, everything bool) int {
	problems, err := rightsProblems(ctx, everything)
	if err != nil {
		problems = append(problems, err.Error())
	}
	if len(problems) == 0 {
		return 0
	}
	fmt.Fprintf(os.Stderr, "The rights of the operator:\n  %s\n", strings.Join(problems, "\n  "))
	return 1
}

func rightsProblems(ctx context.Context, everything bool) ([]string, error) {
	made, err := requests(ctx, suiteStarted)
	if err != nil {
		return nil, err
	}
	used := map[right]bool{}
	var problems []string
	for _, r := range made {
		used[r.right()] = true
		if r.created() { // an apply of what is not there yet takes both rights
			used[right{r.right().group, r.right().name, "create"}] = true
		}
		if r.Annotations["authorization.k8s.io/decision"] == "forbid" {
			problems = append(problems, "refused: "+r.String())
		}
	}
	granted, err := grantedRights(installed)
	if err != nil {
		return nil, err
	}
	for _, r := range granted {
		switch {
		case r.name == "secrets" && !slices.Contains([]string{"get", "create", "patch"}, r.verb), strings.Contains(r.String(), "*"):
			problems = append(problems, "must not be allowed: "+r.String())
		case everything && !used[r] && unseen[r] == "":
			problems = append(problems, "allowed and never used: "+r.String())
		}
	}
	slices.Sort(problems)
	return slices.Compact(problems), nil
}

// grantedRights are those of the operator's own ServiceAccount in an installation.
func grantedRights(options render.InstallOptions) ([]right, error) {
	objects, err := manifests(options)
	if err != nil {
		return nil, err
	}
	rules := map[string][]rbacv1.PolicyRule{}
	var bound []string
	for _, o := range objects {
		switch o.GetKind() {
		case "Role", "ClusterRole":
			var role rbacv1.ClusterRole
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &role); err != nil {
				return nil, err
			}
			rules[role.Kind+"/"+role.Name] = role.Rules
		case "RoleBinding", "ClusterRoleBinding":
			var binding rbacv1.ClusterRoleBinding
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &binding); err != nil {
				return nil, err
			}
			bound = append(bound, binding.RoleRef.Kind+"/"+binding.RoleRef.Name)
		}
	}
	var granted []right
	for _, role := range bound {
		for _, rule := range rules[role] {
			for _, group := range rule.APIGroups {
				for _, name := range rule.Resources {
					for _, verb := range rule.Verbs {
						granted = append(granted, right{group, name, verb})
					}
				}
			}
		}
	}
	if len(granted) == 0 {
		return nil, fmt.Errorf("the installation grants nothing: roles %v", bound)
	}
	return granted, nil
}

// TestRest: a healthy cluster costs no write, and its operator none but of its lease.
func TestRest(t *testing.T) {
	t.Parallel()
	const window, windows = time.Minute, 3
	testenv.Test(t, features.New("a cluster at rest").
		Setup(step(func(s *stage) {
			c := s.cluster("db", 3)
			s.create(c)
			s.ready(c)
		})).
		Assess("nothing is written in a minute", step(func(s *stage) {
			// On a busy machine a leader may change or a member be late, and then the status has to
			// say so.
			for n := range windows {
				writes, leases := s.writesWithin(window)
				if leases == 0 {
					s.Error("the audit log has not even the operator's lease")
				}
				s.Logf("minute %d: %d writes of the lease, and %d others: %v", n+1, leases, len(writes), writes)
				if len(writes) == 0 {
					return
				}
			}
			s.Errorf("in none of %d minutes was nothing written", windows)
		})).
		Feature())
}

// writesWithin looks on for a while, and returns what the operator wrote here and in its own
// namespace, its lease apart. Stories that kill the operator wait meanwhile.
func (s *stage) writesWithin(window time.Duration) (writes []request, leases int) {
	s.Helper()
	operating.RLock()
	defer operating.RUnlock()
	since := time.Now()
	select {
	case <-time.After(window): // that nothing happens can only be seen over time
	case <-s.Context().Done():
		s.Fatal(context.Cause(s.Context()))
	}
	made, err := requests(s.Context(), since)
	if err != nil {
		s.Fatal(err)
	}
	for _, r := range made {
		ours := r.ObjectRef.Namespace == s.ns || r.ObjectRef.Namespace == render.InstallNamespace
		switch {
		case !ours || !r.mutates():
		case r.ObjectRef.Resource == "leases":
			leases++
		default:
			writes = append(writes, r)
		}
	}
	return writes, leases
}
