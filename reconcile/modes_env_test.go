//go:build env

package reconcile_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// TestModesStay: no cluster gets TLS by the default, nor loses it, whose spec says nothing: neither
// where its status is lost, nor where it is created again over its volumes.
func TestModesStay(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		mode   api.TLSMode
		// earlier: it was made by a release that had no TLS by default, and recorded nothing on
		// claims.
		earlier bool
	}{
		"Plain":   {reason: "its claims say that it has none", mode: api.TLSDisabled},
		"Earlier": {reason: "its claims say nothing", mode: api.TLSDisabled, earlier: true},
		"Managed": {reason: "its claims say that it has", mode: api.TLSManaged},
	} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.unasked = tc.mode == api.TLSManaged
			crash := s.operate()
			c := s.cluster("db", 1)
			s.create(c)
			s.put(s.ready(c), "key", "value")
			was := identityOf(c)
			inForce := func(when string) {
				t.Helper()
				s.want(s.ready(c), "key", "value")
				s.same(c, was)
				if diff := cmp.Diff([]api.TLSMode{tc.mode, tc.mode}, []api.TLSMode{c.Status.TLS.Client.Mode, c.Status.TLS.Peer.Mode}); diff != "" {
					t.Errorf("%s, %s: -want +got:\n%s", when, tc.reason, diff)
				}
			}
			inForce("new")
			crash()
			s.change(c, func() { c.Spec.TLS = nil }) // to say nothing asks for nothing
			forgets := func() {
				claims := s.claims(c)
				for n := range claims {
					if claim := &claims[n]; tc.earlier {
						s.change(claim, func() { delete(claim.Annotations, api.AnnotationTLS) })
					}
				}
			}
			forgets()

			// What is there meets an operator that has another default.
			before := s.podUIDs(c)
			crash = s.operate()
			inForce("as it was")
			crash()
			forgets()
			status := c.DeepCopy()
			status.Status = api.EtcdClusterStatus{ObservedGeneration: -1}
			s.must(s.Status().Update(s.Context(), status))
			crash = s.operate()
			inForce("the status was lost")
			if diff := cmp.Diff(before, s.podUIDs(c)); diff != "" {
				t.Errorf("%s: Pods were recreated: -want +got:\n%s", tc.reason, diff)
			}
			crash()
			forgets()

			s.must(s.Delete(t.Context(), c))
			s.gone(c)
			s.operate()
			c = s.cluster("db", 1)
			c.Spec.TLS = nil
			s.create(c)
			inForce("created again")
		})
	}
}

// TestModesOfAnotherData: a cluster that is created again over its volumes with another mode among
// its members has the one of its data, and says so. It serves.
func TestModesOfAnotherData(t *testing.T) {
	s := newStage(t)
	s.unasked = true
	s.operate()
	c := s.cluster("db", 1)
	s.create(c)
	s.put(s.ready(c), "key", "value")
	s.must(s.Delete(t.Context(), c))
	s.gone(c)
	c = s.cluster("db", 1)
	c.Spec.TLS = &api.TLS{Peer: &api.PeerTLS{Mode: api.TLSDisabled}}
	s.create(c)
	s.stalledWith(c, api.ReasonChangeNotSupported, "spec.tls.peer.mode is Disabled, but the members were made with Managed")
	if !is(c, api.ConditionAvailable, metav1.ConditionTrue) {
		t.Errorf("it does not serve: %+v", c.Status.Conditions)
	}
	s.want(s.etcd(c), "key", "value")
	s.change(c, func() { c.Spec.TLS.Peer.Mode = api.TLSManaged })
	s.want(s.ready(c), "key", "value")
	if err := s.Patch(t.Context(), c.DeepCopy(), client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"tls":{"peer":{"mode":"Disabled"}}}}`))); err == nil {
		t.Error("the mode of members that run could be changed")
	}
}

// TestClientModeOfAnotherData: a cluster that is created again over its volumes serves clients as
// its spec says. The Secrets with which its members have served are gone.
func TestClientModeOfAnotherData(t *testing.T) {
	s := newStage(t)
	s.operate()
	c := s.cluster("db", 1)
	s.clientPort(c, api.ClientTLS{Mode: api.TLSManaged})
	s.create(c)
	s.put(s.ready(c), "key", "value")
	s.must(s.Delete(t.Context(), c))
	s.gone(c)
	c = s.cluster("db", 1)
	s.create(c)
	s.want(s.ready(c), "key", "value")
}
