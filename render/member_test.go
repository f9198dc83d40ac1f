package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	api "quorate.dev/api/v1alpha1"
)

func TestInitialCluster(t *testing.T) {
	t.Parallel()
	c := load(t, "minimal")
	cases := map[string]struct {
		reason string
		got    string
		want   string
	}{
		"BootstrapByOrdinal": {
			reason: "All members are told the same, whatever the order they come in, and 10 is more than 9",
			got:    Bootstrap(c, []string{"mini-10", "mini-0", "mini-9"}),
			want:   "mini-0=http://mini-0.mini.demo.svc:2380,mini-9=http://mini-9.mini.demo.svc:2380,mini-10=http://mini-10.mini.demo.svc:2380",
		},
		"BootstrapOfOne": {
			reason: "A single member is a cluster",
			got:    Bootstrap(c, []string{"mini-0"}),
			want:   "mini-0=http://mini-0.mini.demo.svc:2380",
		},
		"Join": {
			reason: "All members verbatim as etcd lists them, in an order that stays the same, with all their peer URLs",
			got: Join(map[string]string{
				"http://mini-3.mini.demo.svc:2380": "mini-3", "http://10.0.0.9:2380": "mini-0", "http://mini-0.mini.demo.svc:2380": "mini-0", "https://elsewhere:2380": "x",
			}),
			want: "mini-0=http://10.0.0.9:2380,mini-0=http://mini-0.mini.demo.svc:2380,mini-3=http://mini-3.mini.demo.svc:2380,x=https://elsewhere:2380",
		},
		"JoinNobody": {reason: "No member to join", got: Join(nil), want: ""},
		"Resume": {
			reason: "No member to join: an empty member cannot start",
			got:    Resume(c, "mini-2"),
			want:   "mini-2=http://mini-2.mini.demo.svc:2380",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, tc.got); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}

	members := []string{"mini-1", "mini-0"}
	Bootstrap(c, members)
	if diff := cmp.Diff([]string{"mini-1", "mini-0"}, members); diff != "" {
		t.Errorf("Bootstrap changed its argument: -want, +got\n%s", diff)
	}
}

func TestImage(t *testing.T) {
	t.Parallel()
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	pinned := func(versions ...string) *api.Image {
		image := &api.Image{}
		for _, version := range versions {
			image.Digests = append(image.Digests, api.ImageDigest{Version: version, Digest: digest})
		}
		return image
	}
	cases := map[string]struct {
		reason  string
		image   *api.Image
		version string
		want    string
	}{
		"Default":  {reason: "The project's own image", version: "3.6.16", want: "gcr.io/etcd-development/etcd:v3.6.16"},
		"LeadingV": {reason: "One v, not two", version: "v3.6.16", want: "gcr.io/etcd-development/etcd:v3.6.16"},
		"Port": {
			reason: "A port is no tag", image: &api.Image{Repository: "reg:5000/etcd"}, version: "3.6.16",
			want: "reg:5000/etcd:v3.6.16",
		},
		"Digest": {
			reason: "The digest of its version", image: pinned("3.6.16"), version: "3.6.16",
			want: "gcr.io/etcd-development/etcd:v3.6.16@" + digest,
		},
		"DigestOfAnotherVersion": {
			reason: "A member that still runs another version must not silently get this one", image: pinned("3.6.16"), version: "3.5.35",
			want: "gcr.io/etcd-development/etcd:v3.5.35",
		},
		"DigestOnTheWay": {
			reason: "A walk over minors runs several images, each pinned", image: pinned("3.5.35", "3.6.16", "3.7.3"), version: "v3.5.35",
			want: "gcr.io/etcd-development/etcd:v3.5.35@" + digest,
		},
		"Tag": {
			reason: "Made of the template", image: &api.Image{Repository: "reg:5000/etcd", Tag: "etcd-{version}-r2"}, version: "v3.6.16",
			want: "reg:5000/etcd:etcd-3.6.16-r2",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, "minimal")
			c.Spec.Image = tc.image
			if diff := cmp.Diff(tc.want, Image(c, tc.version)); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}
