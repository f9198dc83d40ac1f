package reconcile

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// TestClientModeOverData: of what the Pod of a member is made at the clients' port over a volume
// that says with which it has served. The Secrets of an EtcdCluster that was deleted are gone.
func TestClientModeOverData(t *testing.T) {
	t.Parallel()
	const managed, own = `{"version":"3.6.16","tls":{"mode":"Managed"}}`, `{"version":"3.6.16","tls":{"mode":"Secret","secretRef":{"name":"server"},"operatorSecretRef":{"name":"operator"}}}`
	for name, tc := range map[string]struct {
		reason string
		spec   api.ClientTLS // its mode is empty: the spec says nothing, and Managed is in force
		said   string        // with what the member has served
		next   string        // to what it was being changed
		formed bool
		want   api.ClientTLS
	}{
		"Disabled":     {reason: "created again without TLS", spec: portPlain, said: managed, want: portPlain},
		"DisabledNext": {reason: "the same in the middle of a change", spec: portPlain, said: firstServed, next: managed, want: portPlain},
		"DisabledOwn":  {reason: "others may have deleted their Secret too", spec: portPlain, said: own, want: portPlain},
		"Managed":      {reason: "the mode of before", spec: portManaged, said: managed, want: portManaged},
		"ManagedOwn":   {reason: "created again with certificates of Quorate", spec: portManaged, said: own, want: portManaged},
		"Own":          {reason: "created again with those of others", spec: portOwn, said: managed, want: portOwn},
		"Plain":        {reason: "plain text needs no Secret; it is changed when it serves", spec: portManaged, said: firstServed, want: portPlain},
		"Unsaid":       {reason: "which Secrets these are only the volume says", said: own, want: portOwn},
		"Formed":       {reason: "other members serve clients so, and the Secrets are there", spec: portPlain, said: managed, formed: true, want: portManaged},
		"FormedNext":   {reason: "it is being changed", spec: portPlain, said: firstServed, next: managed, formed: true, want: portManaged},
		"Old":          {reason: "a build of before did not say", spec: portPlain, said: `{"version":"3.6.16"}`, formed: true, want: portManaged},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := ported(tc.spec)
			c.Status.TLS.Client.Mode = tc.spec.Mode
			if tc.spec.Mode == "" {
				c.Spec.TLS, c.Status.TLS.Client.Mode = nil, api.TLSManaged
			}
			if tc.formed {
				c.Status.ClusterID = "c0"
			}
			claim := newClaim("db-0")
			claim.Annotations = map[string]string{
				api.AnnotationClusterID: "c0", api.AnnotationMemberID: "a0", api.AnnotationTLS: "client=Managed,peer=Disabled", api.AnnotationServed: tc.said,
			}
			if tc.next != "" {
				claim.Annotations[api.AnnotationNext], claim.Annotations[api.AnnotationNextWith] = "3.6.16", tc.next
			}
			claims := map[string]*corev1.PersistentVolumeClaim{"db-0": claim}
			of, proved := made(c, claims, membership.Instance{Name: "db-0", Volume: volume(c, claim)})
			if !proved {
				t.Errorf("%s: what has served may be refused", tc.reason)
			}
			if diff := cmp.Diff(tc.want, of.ClientPort()); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
			// What is written down is the same when the cluster has formed.
			m := member(c, observed{Observed: membership.Observed{Instances: []membership.Instance{{Name: "db-0", Volume: volume(c, claim)}}}, claims: claims}, "db-0")
			claim.Annotations[api.AnnotationServed], claim.Annotations[api.AnnotationNextWith] = m.Served, m.NextWith
			c.Status.ClusterID = "c0"
			of, _ = made(c, claims, membership.Instance{Name: "db-0", Volume: volume(c, claim)})
			if diff := cmp.Diff(tc.want, of.ClientPort()); diff != "" {
				t.Errorf("%s, when the cluster has formed: -want, +got\n%s", tc.reason, diff)
			}
			if tc.next != "" {
				return
			}
			pod := podWith(t, "db-0", of.ClientPort())
			if parts := untried(c, claim, pod); len(parts) > 0 {
				t.Errorf("%s: it would be rolled back for %v", tc.reason, parts)
			}
			if got := render.ClientPort(c, pod).Mode; got != tc.want.Mode {
				t.Errorf("%s: the Pod serves %s, want %s", tc.reason, got, tc.want.Mode)
			}
		})
	}
}
