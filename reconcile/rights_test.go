package reconcile

import (
	"crypto/tls"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestNoCertificateToAskWith: an operator that was started again without its rights asks no member.
// That is told, and not that ports are closed.
func TestNoCertificateToAskWith(t *testing.T) {
	t.Parallel()
	const none = "the kubelets find that etcd serves in most Pods, and the operator has no certificate to ask the members with"
	for name, tc := range map[string]struct {
		reason string
		found  *credentials
		want   string
	}{
		"None": {reason: "it may read no Secret", found: &credentials{}, want: api.ReasonCertificates + ": " + none},
		"Some": {
			reason: "it asks, and something is in the way", found: &credentials{config: &tls.Config{MinVersion: tls.VersionTLS12}},
			want: api.ReasonUnreachable + ": the kubelets find that etcd serves in most Pods, and no member answers the operator: ports 2379 and 2381 must be open from the operator to the members",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := healthy()
			unreachable(&seen, "db-0", "db-1", "db-2")
			seen.credentials = tc.found
			c := managed()
			c.Status = status(c, seen, membership.Step{Action: membership.Stall, Reason: api.ReasonCertificates, Message: "message"})
			got := meta.FindStatusCondition(c.Status.Conditions, api.ConditionAvailable)
			if got.Status != metav1.ConditionUnknown || got.Reason+": "+got.Message != tc.want {
				t.Errorf("%s: Available is %s, %s: %s", tc.reason, got.Status, got.Reason, got.Message)
			}
		})
	}
}
