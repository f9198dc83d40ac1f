package node

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kind/pkg/apis/config/defaults"
)

// A cluster must not depend on whether a registry answered: what is pulled and what is built are of
// one minor.
func TestOneKubernetesMinor(t *testing.T) {
	t.Parallel()
	if _, tag, _ := strings.Cut(defaults.Image, ":"); Minor(tag) != Minor(Kubernetes) {
		t.Errorf("kind pulls %s, but %s is built", defaults.Image, Kubernetes)
	}
}

// The newest Kubernetes shares what the compiler has made of the project's own dependencies.
func TestSharesWithTheProject(t *testing.T) {
	t.Parallel()
	if want := (module{"k8s.io/client-go", newest.staging()}); !slices.Contains(projectRequires, want) {
		t.Errorf("the project does not require %s: write the Kubernetes of its libraries into versions.go", want)
	}
}

// TestReleases: every minor from the oldest that the README claims to the newest has a release,
// each with an etcd that is built.
func TestReleases(t *testing.T) {
	t.Parallel()
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	claim := regexp.MustCompile(`Kubernetes 1\.([0-9]+) or newer`).FindSubmatch(readme)
	if claim == nil {
		t.Fatal("the README claims no Kubernetes")
	}
	var oldest, last int
	for text, n := range map[string]*int{string(claim[1]): &oldest, strings.TrimPrefix(Minor(Kubernetes), "1."): &last} {
		if _, err := fmt.Sscan(text, n); err != nil {
			t.Fatal(err)
		}
	}
	var want []string
	for n := oldest; n <= last; n++ {
		want = append(want, fmt.Sprintf("1.%d", n))
	}
	if diff := cmp.Diff(want, KubernetesMinors()); diff != "" {
		t.Errorf("minors that can be built: -want +got:\n%s", diff)
	}
	for _, r := range releases {
		if !slices.Contains(EtcdVersions(), r.Etcd) {
			t.Errorf("Kubernetes %s is with etcd %s, which is none of %v", r.Kubernetes, r.Etcd, EtcdVersions())
		}
	}
}

func TestReleaseOf(t *testing.T) {
	t.Parallel()
	type want struct{ kubernetes, staging string }
	cases := map[string]struct {
		reason  string
		minor   string
		want    want
		wantErr bool
	}{
		"Oldest":  {reason: "a minor is found by its name", minor: "1.33", want: want{"1.33.13", "v0.33.13"}},
		"Default": {reason: "no minor is the newest one", want: want{Kubernetes, "v0" + strings.TrimPrefix(Kubernetes, "1")}},
		"TooOld":  {reason: "a minor that is not claimed cannot be had", minor: "1.32", wantErr: true},
		"Patch":   {reason: "there is one patch of each minor, and another one is not silently replaced by it", minor: "1.33.4", wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, err := releaseOf(tc.minor)
			if (err != nil) != tc.wantErr {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			if got := (want{r.Kubernetes, r.staging()}); err == nil && got != tc.want {
				t.Errorf("%s: got %v, want %v", tc.reason, got, tc.want)
			}
		})
	}
}

// Releases share what is not of Kubernetes, and nothing that is.
func TestReleasesAreApart(t *testing.T) {
	t.Parallel()
	images, servers := map[string]bool{}, map[string]bool{}
	for _, r := range releases {
		images[r.builtImage()] = true
		servers[fingerprint(r.apiserver())] = true
	}
	if len(images) != len(releases) || len(servers) != len(releases) {
		t.Errorf("%d releases have %d node images and %d API servers", len(releases), len(images), len(servers))
	}
}

func TestMinor(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, version, want string }{
		"Version": {reason: "as Kubernetes says it", version: "v1.33.5", want: "1.33"},
		"Tag":     {reason: "as kubeadm says it of etcd", version: "3.5.21-0", want: "3.5"},
		"Digest":  {reason: "as kind says it of a node image", version: "v1.37.0@sha256:a1ed", want: "1.37"},
		"Minor":   {reason: "as it is", version: "1.33", want: "1.33"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := Minor(tc.version); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}

func TestCheckEtcd(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		tag     string
		wantErr bool
	}{
		"SameMinor":    {reason: "a patch changes no flags", tag: "3.5.21-0"},
		"AnotherMinor": {reason: "etcd does not start with flags of another minor", tag: "3.6.5-0", wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := release{Kubernetes: "1.33.5", Etcd: Etcd35}.checkEtcd(imageNames{"etcd": "registry.example.org/etcd:" + tc.tag})
			if (err != nil) != tc.wantErr {
				t.Errorf("%s: error %v", tc.reason, err)
			}
		})
	}
}
