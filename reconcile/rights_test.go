package reconcile

import (
	"crypto/tls"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// TestStartedUnread: a member whose Pod is gone is started on its volume where the operator only
// lacks the right to read certificates, and not where these are wrong.
func TestStartedUnread(t *testing.T) {
	t.Parallel()
	missing := &certificatesError{api.ReasonCertificates, "the operator may not read Secret db-client-ca"}
	for name, tc := range map[string]struct {
		reason string
		found  *credentials
		step   membership.Step
		want   []string
	}{
		"Unread": {
			reason: "a kubelet would start it as well", found: &credentials{blocked: missing, unread: true},
			step: membership.Step{Action: membership.Start, Members: []string{"db-1"}}, want: []string{"db-1"},
		},
		"Wrong": {
			reason: "it would not serve", found: &credentials{blocked: missing},
			step: membership.Step{Action: membership.Start, Members: []string{"db-1"}},
		},
		"First": {
			reason: "a cluster does not begin without certificates", found: &credentials{blocked: missing, unread: true},
			step: membership.Step{Action: membership.Bootstrap, Members: []string{"db-1"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen := managed(), healthy()
			c.Status.ClusterID = seen.ID().String()
			delete(seen.pods, "db-1")
			seen.credentials = tc.found
			live := []client.Object{c}
			for _, claim := range seen.claims {
				live = append(live, claim)
			}
			s := newStub(t, nil, live...)
			err := s.act(t.Context(), c, seen, tc.step)
			if refused := err != nil; refused != (tc.want == nil) {
				t.Errorf("%s: the error is %v", tc.reason, err)
			}
			var got []string
			for _, write := range s.writes {
				if write.Kind == "Pod" && write.UID == "" { // the others' metadata follows
					got = append(got, write.Name)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: Pods that are created: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

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
			reason: "it asks, and something is in the way", found: &credentials{configs: map[string]*tls.Config{"db-operator-tls": {MinVersion: tls.VersionTLS12}}},
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
