package render

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/utils/ptr"

	api "quorate.dev/api/v1alpha1"
)

// Where a member keeps its data. etcd wants a directory of mode 0700 to itself, and the root of a
// volume is neither: its mode is fsGroup's, and file systems put lost+found into it.
const (
	dataVolume = "data"
	dataMount  = "/var/lib/etcd"
	dataDir    = dataMount + "/data"

	etcdProgram = "/usr/local/bin/etcd" // in its images
)

// The environment of the container that its arguments refer to. The names lack etcd's prefix ETCD_,
// so that etcd itself does not read them.
const (
	envInitialCluster = "INITIAL_CLUSTER"
	// EnvInitialClusterState is what a member to come waits for (see Provisioner).
	EnvInitialClusterState = "INITIAL_CLUSTER_STATE"
	envCheckAtStart        = "CHECK_AT_START"
	envCheckCompacted      = "CHECK_COMPACTED"
)

// snapshotCount is etcd's default from 3.6 on. 3.5 by itself would keep 100000 entries in memory.
const snapshotCount = 10000

// defaultQuota is etcd's own limit of the database's size.
const defaultQuota = 2 << 30

// args are etcd's arguments, one flag each: identity, addresses, the first start, safety, options,
// further flags.
//
// 0.0.0.0 makes etcd, being a Go program, listen on all addresses of both IP families.
func args(c *api.EtcdCluster, m Member, v *version.Version) []string {
	a := []string{
		"--name=" + m.Name,
		"--data-dir=" + dataDir,
		listenClients + strings.Join(clientListeners(c), ","),
		fmt.Sprintf("--listen-peer-urls=%s://0.0.0.0:%d", urlScheme(c.PeerTLS()), api.PortPeer),
		fmt.Sprintf("--listen-metrics-urls=http://0.0.0.0:%d", api.PortMetrics),
		"--advertise-client-urls=" + c.ClientURL(m.Name),
		"--initial-advertise-peer-urls=" + c.PeerURL(m.Name),
		"--initial-cluster=$(" + envInitialCluster + ")",
		"--initial-cluster-state=$(" + EnvInitialClusterState + ")",
	}
	if m.Token != "" { // a member that joins takes the cluster's ID from the others
		a = append(a, "--initial-cluster-token="+m.Token)
	}
	a = append(a, "--strict-reconfig-check=true", "$("+envCheckAtStart+")", "$("+envCheckCompacted+")")
	a = append(a, tlsArgs(c)...)
	a = append(a, smallVolumeArgs(c, m)...)
	return append(a, optionArgs(c.Spec.Options, v)...)
}

const listenClients = "--listen-client-urls="

// clientListeners are the URLs of the clients' port. etcd serves both schemes at one port: it tells
// a client without TLS by its first bytes (serveCtx.serve in server/embed/serve.go).
func clientListeners(c *api.EtcdCluster) []string {
	port, at := c.ClientPort(), fmt.Sprintf("://0.0.0.0:%d", api.PortClient)
	var urls []string
	if port.ServesPlaintext() {
		urls = append(urls, "http"+at)
	}
	if port.ServesTLS() {
		urls = append(urls, "https"+at)
	}
	return urls
}

func urlScheme(encrypted bool) string {
	if encrypted {
		return "https"
	}
	return "http"
}

// integrityFlags make a member compare its data with the others' before it serves, if it is to, and
// the leader the hashes of compacted revisions, so that diverged data raises an alarm instead of
// being served. Both are off in etcd by default.
//
// They are what differs between the versions of etcd, and so no arguments, which never change, but
// annotations: the image of a Pod can be changed under it. From 3.6 on one flag says it all, and
// the other one says what is etcd's own default.
func integrityFlags(atStart bool, v *version.Version) (checkAtStart, checkCompacted string) {
	if v.Minor() < 6 {
		return fmt.Sprintf("--experimental-initial-corrupt-check=%t", atStart), "--experimental-compact-hash-check-enabled=true"
	}
	return fmt.Sprintf("--feature-gates=InitialCorruptCheck=%t,CompactHashCheck=true", atStart), "--compact-hash-check-time=1m"
}

var checksAtStart = regexp.MustCompile(`(?i)corrupt-?check=true`)

// ChecksAtStart reports whether a live Pod is told to compare its data with the others' when it
// starts.
func ChecksAtStart(pod *corev1.Pod) bool {
	return checksAtStart.MatchString(pod.Annotations[api.AnnotationCheckAtStart]) || pod.Annotations[api.AnnotationInitialCorruptCheck] == "true"
}

// smallVolumeArgs limit the database to half of a small volume. etcd's own quota would let it fill
// the disk, which stops a member, where a quota only refuses writes.
func smallVolumeArgs(c *api.EtcdCluster, m Member) []string {
	size := c.Spec.Storage.Size
	leaves := c.Spec.Storage.ChangePolicy == api.ChangeReplace     // a larger one, on which it keeps the limit that it has
	leaves = leaves || m.Proved                                    // or the spec says less since
	if m.Capacity != nil && (leaves || m.Capacity.Cmp(size) < 0) { // or it has yet to grow
		size = *m.Capacity
	}
	half := quotaOn(size)
	if half == defaultQuota || c.Spec.Options != nil && c.Spec.Options.QuotaBackendSize != nil {
		return nil
	}
	return []string{"--quota-backend-bytes=" + strconv.FormatInt(half, 10)}
}

// Room is how large the database may become on a volume that is made of the spec, in bytes: there
// etcd refuses writes.
func Room(c *api.EtcdCluster) int64 {
	if o := c.Spec.Options; o != nil && o.QuotaBackendSize != nil {
		return o.QuotaBackendSize.Value()
	}
	return quotaOn(c.Spec.Storage.Size)
}

// quotaOn is half of a volume, up to etcd's own limit. The size is compared first: that of a volume
// that a driver tells of may be more than fits into 64 bits.
func quotaOn(size resource.Quantity) int64 {
	if size.CmpInt64(2*defaultQuota) >= 0 {
		return defaultQuota
	}
	return size.Value() / 2
}

// MostRequest is the largest request that etcd takes as the spec has it, in bytes; 0 where the spec
// does not say.
func MostRequest(c *api.EtcdCluster) int64 {
	n, _ := strconv.ParseUint(flagsOf(c)["max-request-bytes"], 0, 60) // more than that is as much; anything else is refused
	return int64(n)
}

// optionArgs are the flags of spec.options, defaults written out. The same options give the same
// flags on every version, so that they can also stand for the options in a Pod's revision.
func optionArgs(o *api.Options, v *version.Version) []string {
	if o == nil {
		o = &api.Options{}
	}
	a := []string{
		"--heartbeat-interval=" + milliseconds(o.HeartbeatInterval, defaultHeartbeat),
		"--election-timeout=" + milliseconds(o.ElectionTimeout, defaultElection),
		"--snapshot-count=" + strconv.FormatInt(ptr.Deref(o.SnapshotCount, snapshotCount), 10),
	}
	if o.QuotaBackendSize != nil {
		a = append(a, "--quota-backend-bytes="+strconv.FormatInt(o.QuotaBackendSize.Value(), 10))
	}
	if o.AutoCompaction != nil {
		a = append(a,
			"--auto-compaction-mode="+strings.ToLower(string(o.AutoCompaction.Mode)),
			"--auto-compaction-retention="+o.AutoCompaction.Retention)
	}
	for _, name := range slices.Sorted(maps.Keys(o.Flags)) {
		if on, ok := nameOn(v, name); ok {
			// The kubelet expands $(NAME) in arguments, and reads $$ as one $.
			a = append(a, "--"+on+"="+strings.ReplaceAll(o.Flags[name], "$", "$$"))
		}
	}
	return a
}

// etcd's own, and those of the API.
const (
	defaultHeartbeat = 100 * time.Millisecond
	defaultElection  = time.Second
)

// milliseconds is a duration as etcd's flags take it. The schema has seen to its form.
func milliseconds(d *api.Duration, otherwise time.Duration) string {
	span := otherwise
	if d != nil {
		span, _ = time.ParseDuration(string(*d))
	}
	return strconv.FormatInt(span.Milliseconds(), 10)
}
