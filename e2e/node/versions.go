package node

import (
	"fmt"
	"strings"
)

// Every version that is built or pulled. They are known to work together: change one, and the
// recipe that carries it is built under another name.
const (
	// Kubernetes is the newest one, of the same minor as the node image that the kind library
	// defaults to, and of the patch whose libraries the project is compiled with.
	Kubernetes = "1.37.2"

	// Etcd35, Etcd36 and Etcd37 are the newest patches of the supported minors.
	Etcd35 = "3.5.35"
	Etcd36 = "3.6.16"
	Etcd37 = "3.7.3"

	kindVersion       = "v0.33.0"
	containerdVersion = "v2.3.7"
	cniPluginsVersion = "v1.9.1"
	corednsVersion    = "v1.14.7"
	localPathVersion  = "v0.0.30"
	versitygwVersion  = "v1.8.0"
	fakeGCSVersion    = "v1.56.1"
	debianSuite       = "bookworm"
	etcdRepository    = "gcr.io/etcd-development/etcd"
	nodeRepository    = "quorate-node"

	// publishedRepository is where the authors of kind publish node images.
	publishedRepository = "kindest/node"
)

// EtcdVersions are the supported etcd versions, oldest first.
func EtcdVersions() []string {
	return []string{Etcd35, Etcd36, Etcd37}
}

// release is a version of Kubernetes, and the etcd whose minor its kubeadm installs: the flags that
// kubeadm gives to etcd are of that minor.
type release struct{ Kubernetes, Etcd string }

// releases has one version of each Kubernetes minor that Quorate is claimed to run on, oldest
// first.
var releases = []release{
	{Kubernetes: "1.33.13", Etcd: Etcd35},
	{Kubernetes: "1.34.4", Etcd: Etcd36},
	{Kubernetes: "1.35.4", Etcd: Etcd36},
	{Kubernetes: "1.36.4", Etcd: Etcd36},
	newest,
}

var newest = release{Kubernetes: Kubernetes, Etcd: Etcd37}

// KubernetesMinors are the minors of Kubernetes that Quorate is claimed to run on, oldest first.
func KubernetesMinors() []string {
	minors := make([]string, 0, len(releases))
	for _, r := range releases {
		minors = append(minors, Minor(r.Kubernetes))
	}
	return minors
}

// Minor is the minor of a version of Kubernetes, as in 1.33 of v1.33.13.
func Minor(version string) string {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	return major + "." + minor
}

// releaseOf finds the release of a minor. An empty minor is the newest one.
func releaseOf(minor string) (release, error) {
	if minor == "" {
		return newest, nil
	}
	for _, r := range releases {
		if Minor(r.Kubernetes) == minor {
			return r, nil
		}
	}
	return release{}, fmt.Errorf("unknown minor of Kubernetes %s: write one of %s", minor, strings.Join(KubernetesMinors(), ", "))
}

// staging is the version under which the staging modules of this Kubernetes are published.
func (r release) staging() string {
	return "v0" + strings.TrimPrefix(r.Kubernetes, "1")
}
