package node

// Every version that is built or pulled. They are known to work together: change one, and the
// recipe that carries it is built anew under another name.
const (
	// Kubernetes is of the same minor as the node image that the kind library defaults to.
	Kubernetes = "1.37.1"

	// kubernetesStaging is the version under which the staging modules of Kubernetes are published.
	kubernetesStaging = "v0.37.1"

	// Etcd35, Etcd36 and Etcd37 are the newest patches of the supported minors.
	Etcd35 = "3.5.35"
	Etcd36 = "3.6.16"
	Etcd37 = "3.7.3"

	kindVersion       = "v0.33.0"
	containerdVersion = "v2.3.7"
	cniPluginsVersion = "v1.9.1"
	corednsVersion    = "v1.14.7"
	localPathVersion  = "v0.0.30"
	debianSuite       = "bookworm"
	etcdRepository    = "gcr.io/etcd-development/etcd"
	nodeRepository    = "quorate-node"
)

// EtcdVersions are the supported etcd versions, oldest first.
func EtcdVersions() []string {
	return []string{Etcd35, Etcd36, Etcd37}
}
