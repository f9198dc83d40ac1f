package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
)

// TestClientPort: what a Pod serves is known from the Pod, whatever the spec says by now.
func TestClientPort(t *testing.T) {
	t.Parallel()
	managed, both := api.ClientTLS{Mode: api.TLSManaged}, api.ClientTLS{Mode: api.TLSManaged, Plaintext: api.PlaintextAllowed}
	plain, own := api.ClientTLS{Mode: api.TLSDisabled}, ownSecrets("server", "operator")
	unrecorded := func(pod *corev1.Pod) {
		pod.Annotations[api.AnnotationRevision] = revisionOf(pod).with(parts{{PartClientPort, ""}}, PartClientPort).String()
	}
	cases := map[string]struct {
		reason    string
		made, now api.ClientTLS
		pod       func(*corev1.Pod)
		want      api.ClientTLS
	}{
		"Plain":        {reason: "while TLS is on its way", made: plain, now: managed, want: plain},
		"Managed":      {reason: "while it goes", made: managed, now: plain, want: managed},
		"Both":         {reason: "two schemes at one port", made: both, now: managed, want: both},
		"Own":          {reason: "with the name of the operator's Secret, which no Pod mounts", made: own, now: managed, want: own},
		"OwnRenamed":   {reason: "members accept whatever an authority in their own Secret has issued", made: own, now: ownSecrets("server", "other"), want: ownSecrets("server", "other")},
		"OwnToOther":   {reason: "the same while others are named", made: own, now: ownSecrets("others", "other"), want: own},
		"OwnLikeOurs":  {reason: "others may give theirs such a name", made: ownSecrets("mini-server-tls", "a"), now: managed, want: ownSecrets("mini-server-tls", "a")},
		"Unrecorded":   {reason: "a Pod of before the mode could be changed", made: managed, now: plain, pod: unrecorded, want: managed},
		"UnrecordedAs": {reason: "the same with others' Secrets, as the spec has them", made: own, now: own, pod: unrecorded, want: own},
		"UnrecordedOwn": {
			reason: "and as it has them no more: there is nothing to connect with", made: own, now: managed, pod: unrecorded,
			want: ownSecrets("server", ""),
		},
		"NoContainer": {reason: "people may make Pods of any form", made: managed, now: managed, pod: func(pod *corev1.Pod) { pod.Spec.Containers = nil }, want: plain},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, "minimal")
			clients(tc.made)(c)
			pod := livePod(t, c, firstMember(c))
			if tc.pod != nil {
				tc.pod(pod)
			}
			clients(tc.now)(c)
			if diff := cmp.Diff(tc.want, ClientPort(c, pod)); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOperatorRenamed: a Pod that runs records the name that the operator's Secret has by now, so
// that it is known when the mode changes later.
func TestOperatorRenamed(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason    string
		made, now api.ClientTLS
		want      api.ClientTLS
	}{
		"Renamed": {reason: "the members' Secret is the same", made: ownSecrets("server", "operator"), now: ownSecrets("server", "other"), want: ownSecrets("server", "other")},
		"Changes": {reason: "the Pod is to be recreated", made: ownSecrets("server", "operator"), now: ownSecrets("others", "other"), want: ownSecrets("server", "operator")},
		"Leaves":  {reason: "the same for another mode", made: ownSecrets("server", "operator"), now: api.ClientTLS{Mode: api.TLSManaged}, want: ownSecrets("server", "operator")},
		"Managed": {reason: "there is no such name", made: api.ClientTLS{Mode: api.TLSManaged}, now: api.ClientTLS{Mode: api.TLSManaged}, want: api.ClientTLS{Mode: api.TLSManaged}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, "minimal")
			clients(tc.made)(c)
			m := firstMember(c)
			pod := livePod(t, c, m)
			clients(tc.now)(c)
			metadata, err := PodMetadata(pod, c, m)
			if err != nil {
				t.Fatal(err)
			}
			pod.Annotations = metadata.Annotations
			if diff := cmp.Diff(tc.want, ClientPortAsMade(c, pod)); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestConnecting: a Job has one certificate, and goes to the members that take it.
func TestConnecting(t *testing.T) {
	t.Parallel()
	managed, plain, own := api.ClientTLS{Mode: api.TLSManaged}, api.ClientTLS{Mode: api.TLSDisabled}, ownSecrets("server", "operator")
	type want struct {
		Endpoints []string
		Secret    string // that it mounts
	}
	const zero, one, two = "mini-0.mini.demo.svc:2379", "mini-1.mini.demo.svc:2379", "mini-2.mini.demo.svc:2379"
	cases := map[string]struct {
		reason string
		asked  api.ClientTLS
		pods   []api.ClientTLS
		want   want
	}{
		"Plain":   {reason: "all alike", asked: plain, pods: []api.ClientTLS{plain, plain, plain}, want: want{Endpoints: []string{"http://" + zero, "http://" + one, "http://" + two}}},
		"Managed": {reason: "all alike", asked: managed, pods: []api.ClientTLS{managed, managed, managed}, want: want{Endpoints: []string{"https://" + zero, "https://" + one, "https://" + two}, Secret: "mini-operator-tls"}},
		"Begun":   {reason: "most are as before", asked: managed, pods: []api.ClientTLS{plain, plain, managed}, want: want{Endpoints: []string{"http://" + zero, "http://" + one}}},
		"Far":     {reason: "most are as asked for", asked: managed, pods: []api.ClientTLS{plain, managed, managed}, want: want{Endpoints: []string{"https://" + one, "https://" + two}, Secret: "mini-operator-tls"}},
		"Half":    {reason: "as asked for where nothing speaks against it", asked: own, pods: []api.ClientTLS{managed, own}, want: want{Endpoints: []string{"https://" + one}, Secret: "operator"}},
		"Off":     {reason: "the Secrets of before are still there", asked: plain, pods: []api.ClientTLS{managed, managed, plain}, want: want{Endpoints: []string{"https://" + zero, "https://" + one}, Secret: "mini-operator-tls"}},
		"Renamed": {reason: "the operator's certificate is the one that the spec names", asked: ownSecrets("server", "other"), pods: []api.ClientTLS{own, own, own}, want: want{Endpoints: []string{"https://" + zero, "https://" + one, "https://" + two}, Secret: "other"}},
		"None":    {reason: "without a Pod there is nothing better to do", asked: managed, want: want{Endpoints: []string{"https://" + zero, "https://" + one, "https://" + two}, Secret: "mini-operator-tls"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, "minimal")
			var pods []corev1.Pod
			for n := range 3 {
				c.Status.Members = append(c.Status.Members, api.MemberStatus{Name: c.MemberName(n), ID: "a", Role: api.RoleFollower})
				if n < len(tc.pods) {
					clients(tc.pods[n])(c)
					m := firstMember(c)
					m.Name = c.MemberName(n)
					pods = append(pods, *livePod(t, c, m))
				}
			}
			clients(tc.asked)(c)
			to := Connecting(c, pods)
			got := want{Endpoints: endpoints(to)}
			if to.ClientTLS() {
				got.Secret = to.OperatorSecret()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}
