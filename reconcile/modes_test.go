package reconcile

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// asks is the spec of a cluster that asks for these modes; empty: it says nothing of that port.
func asks(c *api.EtcdCluster, clientMode, peer api.TLSMode) *api.EtcdCluster {
	c.Spec.TLS = &api.TLS{}
	if clientMode != "" {
		c.Spec.TLS.Client = &api.ClientTLS{Mode: clientMode}
	}
	if peer != "" {
		c.Spec.TLS.Peer = &api.PeerTLS{Mode: peer}
	}
	return c
}

// madeWith is the Pod of db-0 as it is made for a cluster with these modes.
func madeWith(t *testing.T, clientMode, peer api.TLSMode) *corev1.Pod {
	t.Helper()
	c := asks(newCluster(), clientMode, peer)
	c.Status.TLS = nil
	want, err := render.Pod(c, render.Member{Name: "db-0", Version: "3.6.16"})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(want)
	if err != nil {
		t.Fatal(err)
	}
	pod := newPod("db-0")
	if err := json.Unmarshal(raw, pod); err != nil {
		t.Fatal(err)
	}
	return ownedBy("cluster", pod)
}

// TestModesOfWhatIsThere: what is written into a status that says nothing.
func TestModesOfWhatIsThere(t *testing.T) {
	t.Parallel()
	recorded := func(name, tls string) *corev1.PersistentVolumeClaim {
		claim := newClaim(name)
		claim.Annotations[api.AnnotationTLS] = tls
		return claim
	}
	const managed, none = "client=Managed,peer=Managed", "client=Disabled,peer=Disabled"
	type want struct {
		Client, Peer api.TLSMode
		NextOrdinal  int32
	}
	for name, tc := range map[string]struct {
		reason string
		spec   [2]api.TLSMode
		claims []*corev1.PersistentVolumeClaim
		pods   []*corev1.Pod
		want   want
	}{
		"New":         {reason: "nothing is there", want: want{api.TLSManaged, api.TLSManaged, 0}},
		"NewDisabled": {reason: "the spec says so", spec: [2]api.TLSMode{api.TLSDisabled, api.TLSDisabled}, want: want{api.TLSDisabled, api.TLSDisabled, 0}},
		"NewHalf":     {reason: "each port is by itself", spec: [2]api.TLSMode{api.TLSDisabled, ""}, want: want{api.TLSDisabled, api.TLSManaged, 0}},
		"Volumes": {
			reason: "they were made by a release that recorded nothing",
			claims: []*corev1.PersistentVolumeClaim{newClaim("db-0"), newClaim("db-4")}, want: want{api.TLSDisabled, api.TLSDisabled, 5},
		},
		"VolumesPlain":   {reason: "they say so", claims: []*corev1.PersistentVolumeClaim{recorded("db-0", none)}, want: want{api.TLSDisabled, api.TLSDisabled, 1}},
		"VolumesManaged": {reason: "they say so", claims: []*corev1.PersistentVolumeClaim{recorded("db-0", managed)}, want: want{api.TLSManaged, api.TLSManaged, 1}},
		"VolumesSecret": {
			reason: "which Secrets these are the spec has to say", claims: []*corev1.PersistentVolumeClaim{recorded("db-0", "client=Secret,peer=Secret")},
			want: want{api.TLSSecret, api.TLSSecret, 1},
		},
		"VolumesUnequal": {
			reason: "the safe one", claims: []*corev1.PersistentVolumeClaim{recorded("db-0", none), recorded("db-1", managed), newClaim("db-2")},
			want: want{api.TLSManaged, api.TLSManaged, 3},
		},
		"VolumesHostile": {
			reason: "what Quorate does not write says nothing", claims: []*corev1.PersistentVolumeClaim{recorded("db-0", "client=,peer=Issuer,,=,peer")},
			want: want{api.TLSDisabled, api.TLSDisabled, 1},
		},
		"PeerDisabledOverManaged": {
			reason: "the data has https addresses", spec: [2]api.TLSMode{api.TLSDisabled, api.TLSDisabled},
			claims: []*corev1.PersistentVolumeClaim{recorded("db-0", managed)}, want: want{api.TLSDisabled, api.TLSManaged, 1},
		},
		"PeerManagedOverPlain": {
			reason: "the data has http addresses", spec: [2]api.TLSMode{api.TLSManaged, api.TLSManaged},
			claims: []*corev1.PersistentVolumeClaim{recorded("db-0", none)}, want: want{api.TLSManaged, api.TLSDisabled, 1},
		},
		"PeerSecretOverManaged": {
			reason: "the addresses are the same", spec: [2]api.TLSMode{"", api.TLSSecret},
			claims: []*corev1.PersistentVolumeClaim{recorded("db-0", managed)}, want: want{api.TLSManaged, api.TLSSecret, 1},
		},
		"PeerManagedOverUnrecorded": {
			reason: "an earlier release had TLS, and recorded nothing", spec: [2]api.TLSMode{api.TLSManaged, api.TLSManaged},
			claims: []*corev1.PersistentVolumeClaim{newClaim("db-0")}, want: want{api.TLSManaged, api.TLSManaged, 1},
		},
		"RunsPlain": {
			reason: "a cluster in memory whose status was lost",
			pods:   []*corev1.Pod{madeWith(t, api.TLSDisabled, api.TLSDisabled)}, want: want{api.TLSDisabled, api.TLSDisabled, 1},
		},
		"RunsManaged": {reason: "the same", pods: []*corev1.Pod{madeWith(t, api.TLSManaged, api.TLSManaged)}, want: want{api.TLSManaged, api.TLSManaged, 1}},
		"RunsMixed":   {reason: "each port is by itself", pods: []*corev1.Pod{madeWith(t, api.TLSSecret, api.TLSDisabled)}, want: want{api.TLSSecret, api.TLSDisabled, 1}},
		"RunsOtherwise": {
			reason: "among members what runs is in force, whatever the spec says; for clients it is changed", spec: [2]api.TLSMode{api.TLSManaged, api.TLSManaged},
			pods: []*corev1.Pod{madeWith(t, api.TLSDisabled, api.TLSDisabled)}, want: want{api.TLSManaged, api.TLSDisabled, 1},
		},
		"Others": {
			reason: "of another owner, or of the EtcdCluster before, and about to go",
			claims: []*corev1.PersistentVolumeClaim{owned(newClaim("db-0"), "apps/v1", "StatefulSet", "db", "other")},
			pods:   []*corev1.Pod{ownedBy("earlier", newPod("db-1"))}, want: want{api.TLSManaged, api.TLSManaged, 0},
		},
		"Terminating": {
			reason: "a volume that is being deleted is not started on", claims: []*corev1.PersistentVolumeClaim{terminates(newClaim("db-0"))},
			want: want{api.TLSManaged, api.TLSManaged, 0},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := asks(newCluster(), tc.spec[0], tc.spec[1])
			c.Status.TLS = nil
			seen := observed{pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{}}
			for _, claim := range tc.claims {
				seen.claims[claim.Name] = claim
			}
			for _, pod := range tc.pods {
				seen.pods[pod.Name] = pod
			}
			s := withModes(c, seen)
			if diff := cmp.Diff(tc.want, want{s.TLS.Client.Mode, s.TLS.Peer.Mode, s.NextOrdinal}); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func terminates[T client.Object](o T) T {
	o.SetDeletionTimestamp(new(metav1.Now()))
	return o
}

// TestAsksAnotherMode: the status of a cluster that is well says what the spec asks for in vain.
func TestAsksAnotherMode(t *testing.T) {
	t.Parallel()
	healthy := membership.Step{Action: membership.None, Reason: membership.Healthy}
	for name, tc := range map[string]struct {
		reason string
		spec   [2]api.TLSMode
		step   membership.Step
		want   membership.Step
	}{
		"Unsaid":  {reason: "nothing is asked for", step: healthy, want: healthy},
		"InForce": {reason: "it is what is asked for", spec: [2]api.TLSMode{api.TLSManaged, api.TLSManaged}, step: healthy, want: healthy},
		"Peer": {
			reason: "created again over volumes of another mode", spec: [2]api.TLSMode{"", api.TLSDisabled}, step: healthy,
			want: membership.Step{
				Action: membership.Stall, Reason: membership.ChangeNotSupported,
				Message: "spec.tls.peer.mode is Disabled, but the members were made with Managed, which stays in force: write Managed. To have Disabled, create another EtcdCluster with it, and restore a snapshot of this one into it (spec.bootstrap.restore)",
			},
		},
		"Busy": {
			reason: "what is done is told first", spec: [2]api.TLSMode{"", api.TLSDisabled},
			step: membership.Step{Action: membership.Start, Members: []string{"db-0"}}, want: membership.Step{Action: membership.Start, Members: []string{"db-0"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := asks(newCluster(), tc.spec[0], tc.spec[1])
			c.Status.ClusterID = "c0"
			c.Status.TLS = &api.TLSStatus{Client: api.TLSPlaneStatus{Mode: api.TLSManaged}, Peer: api.TLSPlaneStatus{Mode: api.TLSManaged}}
			if diff := cmp.Diff(tc.want, asksAnotherPeerMode(c, tc.step)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
