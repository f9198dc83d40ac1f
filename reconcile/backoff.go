package reconcile

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/podstatus"
)

// How members that ended are told apart by their last words and exit codes, and how long a Pod that
// was recreated is left alone.

// noCluster is what etcd says when it was told to join a cluster, has no write-ahead log and
// reaches no member. One that finds its log never says that: it reads no other member's list then
// (NewServer in server/etcdserver/server.go of 3.5, bootstrapExistingClusterNoWAL in bootstrap.go
// since).
const noCluster = "cannot fetch cluster info from peer urls"

// cameBackEmpty reports whether etcd has ended because it found no data where it was told to find
// its own (render.Resume), and has not got any further since. A Pod that is told to join may say
// the same because it does not reach the others.
func cameBackEmpty(pod *corev1.Pod, unfenced bool, now time.Time) bool {
	const noDataExit = 10 * time.Second // etcd ends within one second when it finds no data
	s := containerStatus(pod)
	if s == nil || unfenced || ended(pod) || pod.Annotations[api.AnnotationProvisions] != "" {
		return false
	}
	exit := podstatus.LastExit(s)
	lasts := s.Ready || s.State.Running != nil && s.State.Running.StartedAt.Add(noDataExit).Before(now)
	return exit != nil && exit.ExitCode != 0 && strings.Contains(exit.Message, noCluster) && !lasts
}

// outgrown is how etcd ends on data of a later minor, or where the version of its cluster has risen
// to one: schema.Validate in server/storage/schema, and MustDetectDowngrade in
// server/etcdserver/version. Since 3.6 the latter panics, and the kubelet may keep no more of that
// than the end of the stack trace: what is above its caller, or nothing. Clients can put words into
// the log, but neither a quotation mark nor a line: etcd escapes both there.
var (
	outgrown = regexp.MustCompile(`(?:"msg":"|\t)invalid downgrade; server version is lower than determined cluster version["\t].*"determined-cluster-version": ?"3\.(\d+)"` +
		`|"error": ?"version \\"3\.(\d+)\.0\\" is not supported"`)
	outgrownTrace = regexp.MustCompile(`(?:/downgrade\.go:\d+ \+0x[[:xdigit:]]+\n|\A(?:[^\n]{0,24}\n)?)` +
		`\S*membership\.\(\*RaftCluster\)\.(?:SetVersion|Recover)\([^\n]*\n\t\S*/membership/cluster\.go:\d+`)
)

// saysOutgrown is the minor of etcd of which the data or the cluster is, where etcd has ended for
// that and does not run; else 0.
func saysOutgrown(pod *corev1.Pod) int {
	s := containerStatus(pod)
	if s == nil || s.State.Running != nil {
		return 0
	}
	exit := podstatus.LastExit(s)
	if exit == nil || exit.ExitCode != 1 && exit.ExitCode != 2 { // zap exits with 1, and Go panics with 2
		return 0
	}
	if said := outgrown.FindStringSubmatch(exit.Message); said != nil {
		minor, _ := strconv.Atoi(cmp.Or(said[1], said[2])) // 0 where it is no number
		return minor
	}
	if outgrownTrace.MatchString(exit.Message) {
		return 7 // 3.5 does not panic, and nothing later than 3.7 is known
	}
	return 0
}

// backOff reports whether the kubelet waits before it starts etcd again, though what ended it came
// from outside: a signal, a lack of memory, the end of its node. Its data is as it was then, and a
// new Pod starts at once. What etcd ends of its own accord it would do again: it exits with 1, and
// Go panics with 2.
func backOff(pod *corev1.Pod) bool {
	s := containerStatus(pod)
	if s == nil || s.State.Waiting == nil || s.State.Waiting.Reason != "CrashLoopBackOff" || putOff(pod) || ended(pod) {
		return false
	}
	exit := podstatus.LastExit(s)
	if exit == nil || strings.Contains(exit.Message, `"level":"fatal"`) || strings.Contains(exit.Message, `"level":"panic"`) {
		return false
	}
	const killed, terminated, unknown = 128 + 9, 128 + 15, 255
	switch exit.ExitCode {
	case 0, killed, terminated: // 0 after SIGTERM, as the first process of its container
		return true
	case unknown: // of a container that containerd finds gone, and of one that cannot be executed
		return exit.Reason == "Unknown"
	default:
		return exit.Reason == podstatus.OOMKilled
	}
}

// pause is how old a Pod must be before it is recreated for its kubelet's back-off: three seconds,
// in which etcd starts and is found to serve, and a quarter of the time for which a cluster that
// has formed has not been available, so that what is no help is done ever more seldom. Hibernation
// and the alarm NOSPACE are such time too, and no outage: five minutes are the most, as long as the
// kubelet itself waits at most. The Pod's age and the condition outlive the operator.
func pause(c *api.EtcdCluster, lost time.Duration) time.Duration {
	const least, most = 3 * time.Second, 5 * time.Minute
	if c.Status.ClusterID == "" {
		return least
	}
	return min(max(least, lost/4), most)
}

// unavailableSince is since when a cluster that has formed does not serve, as its status remembers;
// now while it does. The zero time where it has never formed.
func unavailableSince(c *api.EtcdCluster, now time.Time) time.Time {
	available := meta.FindStatusCondition(c.Status.Conditions, api.ConditionAvailable)
	switch {
	case c.Status.ClusterID == "":
		return time.Time{}
	case available == nil || available.Status == metav1.ConditionTrue:
		return now
	default:
		return available.LastTransitionTime.Time
	}
}
