//go:build e2e

package e2e

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"quorate.dev/render"
)

// TestMetrics: a client that the API server lets read /metrics gets them over HTTPS, and no other.
func TestMetrics(t *testing.T) {
	t.Parallel()
	story := func(name string, allowed bool, status int) features.Feature {
		return features.New(name).Assess("asks for the operator's metrics", step(func(s *stage) {
			operating.RLock()
			defer operating.RUnlock()
			account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}}
			s.create(account)
			if allowed {
				binding := &rbacv1.ClusterRoleBinding{
					ObjectMeta: metav1.ObjectMeta{Name: s.ns},
					RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "quorate-metrics-reader"},
					Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.ns, Name: name}},
				}
				s.create(binding)
				s.Cleanup(func() {
					if err := kube.Delete(context.WithoutCancel(s.Context()), binding); err != nil {
						s.Error(err)
					}
				})
				s.mayRead(account, "/metrics")
			}
			token := &authenticationv1.TokenRequest{}
			if err := s.SubResource("token").Create(s.Context(), account, token); err != nil {
				s.Fatal(err)
			}
			got, body := s.scrape(token.Status.Token)
			// The lease is what the alert QuorateOperatorAbsent asks for.
			for _, series := range []string{"controller_runtime_reconcile_total", `leader_election_master_status{name="quorate"} 1`} {
				if got != status || allowed != strings.Contains(body, series) {
					s.Errorf("status %d, want %d; %s there: want %t; body:\n%.300s", got, status, series, allowed, body)
				}
			}
		})).Feature()
	}
	testenv.TestInParallel(t,
		story("scraper", true, http.StatusOK),
		story("stranger", false, http.StatusForbidden),
	)
}

// mayRead waits until the API server has taken notice of the binding that lets an account read a
// path: the operator, which asks it, would remember a refusal for a while.
func (s *stage) mayRead(account *corev1.ServiceAccount, path string) {
	s.Helper()
	err := wait.PollUntilContextTimeout(s.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:                  "system:serviceaccount:" + account.Namespace + ":" + account.Name,
			NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "get"},
		}}
		err := kube.Create(ctx, review)
		return review.Status.Allowed, err
	})
	if err != nil {
		s.Fatalf("wait until %s may read %s: %v", account.Name, path, err)
	}
}

// scrape asks the operator that leads, and another one where that is gone by then.
func (s *stage) scrape(token string) (status int, body string) {
	s.Helper()
	var failed error // of a connection that breaks, as one through the API server may while much else begins
	err := wait.PollUntilContextTimeout(s.Context(), 200*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		status, body, failed = s.scrapeOnce(ctx, token)
		return failed == nil, nil
	})
	if err != nil {
		s.Fatalf("ask for metrics: %v: %v", err, failed)
	}
	return status, body
}

func (s *stage) scrapeOnce(ctx context.Context, token string) (status int, body string, err error) {
	lease := &coordinationv1.Lease{}
	if err := s.Get(ctx, client.ObjectKey{Namespace: render.InstallNamespace, Name: "quorate"}, lease); err != nil {
		return 0, "", err
	}
	// The name of the Pod, and an ID of its process.
	pod, _, _ := strings.Cut(ptr.Deref(lease.Spec.HolderIdentity, ""), "_")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+pod+":8443/metrics", nil)
	if err != nil {
		return 0, "", err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	response, err := podHTTP(render.InstallNamespace).Do(request)
	if err != nil {
		return 0, "", err
	}
	defer func() { _ = response.Body.Close() }() // only read from
	raw, err := io.ReadAll(response.Body)
	return response.StatusCode, string(raw), err
}
