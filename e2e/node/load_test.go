package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestImageListed(t *testing.T) {
	t.Parallel()
	const listing = `REF                                 TYPE                                                 DIGEST      SIZE     PLATFORMS   LABELS
gcr.io/etcd-development/etcd:v3.6.16 application/vnd.oci.image.manifest.v1+json sha256:aaa 59.8 MiB linux/amd64 -
docker.io/library/quorate:dev application/vnd.oci.image.manifest.v1+json sha256:bbb 40.1 MiB linux/amd64 -
sha256:111 application/vnd.oci.image.manifest.v1+json sha256:aaa 59.8 MiB linux/amd64 -
sha256:222 application/vnd.oci.image.manifest.v1+json sha256:bbb 40.1 MiB linux/amd64 -
`
	type args struct{ image, id string }
	cases := map[string]struct {
		reason string
		args   args
		want   bool
	}{
		"Same":           {"name and ID lead to one digest", args{"gcr.io/etcd-development/etcd:v3.6.16", "sha256:111"}, true},
		"ShortName":      {"Docker leaves the default registry out", args{"quorate:dev", "sha256:222"}, true},
		"Rebuilt":        {"the name is there with an older image", args{"quorate:dev", "sha256:333"}, false},
		"NameOfAnother":  {"the image is there under another name only", args{"quorate:new", "sha256:222"}, false},
		"DigestAsItsID":  {"a Docker that stores images in containerd names them so", args{"quorate:dev", "sha256:bbb"}, true},
		"NeitherIsThere": {"a new image", args{"example.org/new:v1", "sha256:444"}, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := imageListed(listing, tc.args.image, tc.args.id); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}

func TestFullName(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, image, want string }{
		"NoRegistry":   {"official images", "busybox", "docker.io/library/busybox:latest"},
		"NoRegistry2":  {"images of a user", "kindest/node:v1", "docker.io/kindest/node:v1"},
		"Registry":     {"a name with a dot is a registry", "gcr.io/etcd-development/etcd:v3.6.16", "gcr.io/etcd-development/etcd:v3.6.16"},
		"RegistryPort": {"a port is no tag", "localhost:5000/quorate", "localhost:5000/quorate:latest"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, fullName(tc.image)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
