package reconcile

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/crd"
	"quorate.dev/membership"
	"quorate.dev/reconcile/pki"
	"quorate.dev/reconcile/podstatus"
)

// schemaTakes fails where the schema refuses the status: then none would be written, and what else
// it has to say stays unseen.
func schemaTakes(t *testing.T, c *api.EtcdCluster, s api.EtcdClusterStatus) {
	t.Helper()
	kind, err := crd.Of(api.EtcdClusterKind.Kind)
	if err != nil {
		t.Fatal(err)
	}
	c = c.DeepCopy()
	c.Status = s
	raw, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{}
	if err := utiljson.Unmarshal(raw, &object); err != nil {
		t.Fatal(err)
	}
	kind.Decode(object)
	for _, err := range kind.Create(object) {
		if strings.HasPrefix(err.Field, "status") {
			t.Errorf("the schema refuses the status: %s", podstatus.Within(err.Error(), 300))
		}
	}
}

// TestStatusTaken: whatever annotations, Pods, manifests and last words of containers say, the
// schema takes the status.
func TestStatusTaken(t *testing.T) {
	long := strings.Repeat("x", 5000)
	cases := map[string]struct {
		reason string
		status func(t *testing.T, w world) api.EtcdClusterStatus
	}{
		"FailedChange": {
			reason: "the line with which a container ended has room, and is not all that is said",
			status: func(_ *testing.T, w world) api.EtcdClusterStatus {
				step := membership.Step{Members: []string{"db-0"}, Message: "rolling db-0 back: with the new spec.options it " + podstatus.Clause("exited with code 2", long)}
				w.cluster.Status.FailedChange = &api.FailedChange{Generation: 7, Message: tried(step)}
				return w.cluster.Status
			},
		},
		"Snapshot": {
			reason: "the annotation of a claim names the snapshot where the status was lost",
			status: func(_ *testing.T, w world) api.EtcdClusterStatus {
				w.claims["db-0"].Annotations[api.AnnotationSnapshot] = "sum " + long
				seen := observed{pods: w.pods, claims: w.claims}
				seen.Observed = facts(w.cluster, w.pods, w.claims, answers{}, limits{})
				return status(w.cluster, seen, membership.Step{Action: membership.Wait, Reason: membership.Bootstrapping})
			},
		},
		"Manifest": {
			reason: "any program may have written what is in a store",
			status: func(_ *testing.T, w world) api.EtcdClusterStatus {
				w.cluster.Spec.Bootstrap = &api.Bootstrap{Restore: api.BootstrapRestore{Store: &api.BackupStore{}}}
				w.cluster.Status.Restored = found(w.cluster, podstatus.Manifest{Name: "db-monday", SHA256: "5a", EtcdVersion: "3.6.16-of-another-origin"}, nil)
				return w.cluster.Status
			},
		},
		"Targets": {
			reason: "others may create any number of Pods with a member's name",
			status: func(t *testing.T, w world) api.EtcdClusterStatus {
				t.Helper()
				seen, step := healthy(), membership.Step{Action: membership.Stop, Reason: membership.Restoring}
				for n := range 100 {
					name := fmt.Sprintf("db-%d", n)
					if n > 2 {
						seen.Instances = append(seen.Instances, membership.Instance{Name: name, Ordinal: n, Pod: membership.Pod{UID: "pod"}})
					}
					step.Members = append(step.Members, name)
				}
				s := newStub(t, nil, w.cluster)
				if err := s.intend(t.Context(), w.cluster, seen, step, podUID); err != nil {
					t.Fatal(err)
				}
				return s.status[0]
			},
		},
		"Trusts": {
			reason: "a Secret may have as many former authorities as one trusts at most, beside the present one",
			status: func(t *testing.T, w world) api.EtcdClusterStatus {
				t.Helper()
				secret := &corev1.Secret{Data: map[string][]byte{}}
				var err error
				if secret.Data[api.SecretCert], secret.Data[api.SecretKey], err = pki.NewAuthority("present", noon, pki.AuthorityLifetime); err != nil {
					t.Fatal(err)
				}
				for n := range mostTrusted {
					former, _, err := pki.NewAuthority(fmt.Sprint(n), noon, pki.AuthorityLifetime)
					if err != nil {
						t.Fatal(err)
					}
					secret.Data[api.SecretPreviousCert] = append(secret.Data[api.SecretPreviousCert], former...)
				}
				h, err := readAuthoritySecret(secret, noon)
				if err != nil {
					t.Fatal(err)
				}
				if h.unreadable == nil {
					t.Error("nothing is said of it")
				}
				rotationReport{known: true, trusts: pki.Fingerprints(h.issues.PEM())}.writeTo(&w.cluster.Status.TLS.Peer)
				return w.cluster.Status
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := serving(t)
			schemaTakes(t, w.cluster, tc.status(t, w))
			if t.Failed() {
				t.Log(tc.reason)
			}
		})
	}
}
