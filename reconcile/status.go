package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	api "quorate.dev/api/v1alpha1"
	apiac "quorate.dev/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// report writes the status where it differs, under the condition that the object has not changed
// since it was read: a status made of an old look must not take back what a newer one has written.
func (r *Reconciler) report(ctx context.Context, c *api.EtcdCluster, next api.EtcdClusterStatus) error {
	if equality.Semantic.DeepEqual(c.Status, next) {
		return nil
	}
	desired := apiac.EtcdCluster(c.Name, c.Namespace).WithResourceVersion(c.ResourceVersion)
	err := apply.Status(ctx, r.Client, next, desired.WithStatus)
	if clusterGone(err) {
		return nil
	}
	if err != nil {
		return err
	}
	c.Status, c.ResourceVersion = next, *desired.ResourceVersion
	r.written.remember(c)
	return nil
}

// status is what users see of a cluster in which these facts were seen and this step was decided.
func status(c *api.EtcdCluster, seen observed, step membership.Step) api.EtcdClusterStatus {
	s := *c.Status.DeepCopy()
	s.ObservedGeneration = c.Generation
	s.Selector = labels.SelectorFromSet(render.Selector(c)).String()
	s.Operation = pendingOperation(c.Status.Operation, seen, time.Since(seen.begun))
	if s.FailedChange != nil && s.FailedChange.Generation != c.Generation {
		s.FailedChange = nil
	}
	s.ClusterID = seen.ID().String()
	if c.Status.ClusterID == "" && s.ClusterID != "" && s.FirstOrdinal == 0 { // it was lost: what is set aside stays so
		s.FirstOrdinal = firstOrdinal(seen)
	}
	if s.Restored == nil {
		s.Restored = restoredFrom(seen, step)
	}
	if step.Reason == membership.Formed {
		i, _ := seen.Instance(step.Members[0])
		s.Operation, s.ClusterID = nil, i.Endpoint.ClusterID.String()
	}
	if seen.Formed() || step.Reason == membership.Formed {
		s.NextOrdinal = int32(nextOrdinal(c, seen.Instances))
	}
	s.TLS = tlsStatus(c, seen.credentials)
	if seen.access != nil {
		s.Auth = seen.access.status
	}
	setQuorumLoss(&s, seen, metav1.Now())
	setRestore(&s, c, seen, metav1.Now())
	setHeld(&s, seen, step)
	setMembers(&s, seen, metav1.Now())
	s.Ready = readyOf(c, s.ReadyReplicas)
	s.Endpoints = []string{clientURL(c, seen)}
	setConditions(&s, c, seen, step)
	return s
}

// mostRemembered is how many members the schema has room for. Where claims or Pods have more of our
// names, those that etcd has listed come first.
const mostRemembered = 32

// setMembers lists the members, and what is said of all of them together.
func setMembers(s *api.EtcdClusterStatus, seen observed, now metav1.Time) {
	before := map[string]api.MemberStatus{}
	for _, m := range s.Members {
		before[m.Name] = m
	}
	s.Members, s.Replicas, s.ReadyReplicas, s.Leader = nil, 0, 0, ""
	var lowest membership.Version
	crowded := len(names(seen.Instances, func(i membership.Instance) bool { return isMember(i, seen) })) > mostRemembered
	for _, i := range seen.Instances {
		if !isMember(i, seen) || crowded && i.ID == 0 || len(s.Members) == mostRemembered {
			continue
		}
		if i.Pod.Exists() && !i.Pod.Terminating {
			s.Replicas++
		}
		m := memberStatus(i, seen)
		m.DownSince, m.EmptySince = sinceWhen(before[i.Name], i, now)
		s.Members = append(s.Members, m)
		if m.Health == api.HealthHealthy && m.Role != api.RoleLearner {
			s.ReadyReplicas++
		}
		if m.Role == api.RoleLeader {
			s.Leader = i.Name
		}
		if v := i.Endpoint.Version; i.Endpoint.Answered() && (lowest == membership.Version{} || v.Compare(lowest) < 0) {
			lowest = v
		}
	}
	if lowest != (membership.Version{}) {
		s.Version = lowest.String()
		s.DBSize = largestDatabase(s.DBSize, seen)
	}
}

// largestDatabase is the size of the largest member's database, rounded up. It does not fall while
// a member does not answer, for it may have been that member's.
func largestDatabase(before *resource.Quantity, seen observed) *resource.Quantity {
	var largest int64
	silent := false
	for _, i := range seen.Instances {
		switch {
		case !isMember(i, seen):
		case i.Endpoint.Answered():
			largest = max(largest, i.Endpoint.DBSize)
		default:
			silent = true
		}
	}
	now := roundedUp(largest)
	if silent && before != nil && before.Cmp(*now) > 0 {
		return before
	}
	return now
}

// isMember reports whether an instance is a member, as far as is known, or is to be one of the
// first: not one that was asked for and of which nothing is there yet, a volume for a member to
// come, or what a member has left behind.
func isMember(i membership.Instance, seen observed) bool {
	if seen.Formed() && seen.Reach == membership.ReachQuorum {
		return seen.Member(i.ID) != nil
	}
	return (i.ID != 0 || i.Pod.Exists() || i.Volume.Exists()) && !i.Volume.Spare && !i.Volume.Retired
}

// sinceWhen a member is down, and its volume is found empty. A process that runs for a moment
// between two crashes is no end of that: its kubelet must find it ready, or it must
// answer.
func sinceWhen(before api.MemberStatus, i membership.Instance, now metav1.Time) (down, empty *metav1.Time) {
	switch {
	case i.Endpoint.Member() != 0, i.Pod.Ready:
	case before.DownSince != nil:
		down = before.DownSince
	case i.Pod.Problem != "":
		down = &now
	}
	switch {
	case !i.Pod.Empty:
	case before.EmptySince != nil:
		empty = before.EmptySince
	default:
		empty = &now
	}
	return down, empty
}

func memberStatus(i membership.Instance, seen observed) api.MemberStatus {
	m := api.MemberStatus{Name: i.Name, Role: api.RoleUnknown, Version: i.Endpoint.Version.String()}
	if seen.Reach == membership.ReachQuorum || seen.Remembered {
		m.ID = i.ID.String() // what only a volume says is no member list, and must not be taken for one later
	}
	if i.Volume.Exists() && i.Volume.UID != i.Pod.UID {
		m.Volume = i.Name
	}
	e := i.Endpoint
	listed := seen.Member(i.ID)
	switch {
	case e.Learner || listed != nil && listed.Learner: // it has no vote, whether it answers yet or not
		m.Role = api.RoleLearner
	case e.Answered() && e.Leader == e.MemberID:
		m.Role = api.RoleLeader
	case e.Answered():
		m.Role = api.RoleFollower
	}
	switch {
	case e.Healthy():
		m.Health = api.HealthHealthy
	case len(e.Alarms) > 0:
		m.Health = api.HealthAlarm
	case e.Answered():
		m.Health = api.HealthNoLeader
	case seen.Formed() && seen.Lost(i):
		m.Health = api.HealthLost
	case i.Pod.Exists():
		m.Health = api.HealthUnreachable
	default:
		m.Health = api.HealthStopped
	}
	if m.Health != api.HealthHealthy {
		m.Message = podstatus.Within(i.Pod.Problem, mostSaid)
	}
	if pod := seen.pods[i.Name]; pod != nil {
		m.Node, m.Zone = pod.Spec.NodeName, podstatus.Within(pod.Labels[corev1.LabelTopologyZone], mostLabel)
	}
	return m
}

// mostSaid and mostLabel are how long what is said of a member, or of a change that failed on one,
// may be, as the schema has it.
const (
	mostSaid  = 1024
	mostLabel = 63
)

// readyOf is status.ready, with so many healthy voters.
func readyOf(c *api.EtcdCluster, healthy int32) string { return fmt.Sprintf("%d/%d", healthy, size(c)) }

// roundedUp is a size that changes seldom, so that a cluster at work does not write its status at
// every look: from 8 MiB on at most one eighth more than the true one.
func roundedUp(size int64) *resource.Quantity {
	unit := int64(1 << 20)
	size = min(size, 1<<60) // a member may say anything
	for size/unit > 16 {
		unit *= 2
	}
	return resource.NewQuantity((size+unit-1)/unit*unit, resource.BinarySI)
}

// mostMessage is how long the message of a condition may be, as the schema has it. A longer one
// would keep all of the status from being written.
const mostMessage = 32 << 10

// setConditions says the same in the words of kstatus: Ready, Available and Degraded always;
// Reconciling or Stalled only while True.
func setConditions(s *api.EtcdClusterStatus, c *api.EtcdCluster, seen observed, step membership.Step) {
	set := func(kind string, value metav1.ConditionStatus, reason, message string) {
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: kind, Status: value, Reason: reason, Message: podstatus.Within(message, mostMessage), ObservedGeneration: c.Generation,
		})
	}
	only := func(kind string, holds bool) {
		if holds {
			set(kind, metav1.ConditionTrue, string(step.Reason), step.Message)
		} else {
			meta.RemoveStatusCondition(&s.Conditions, kind)
		}
	}
	ready := step.Action == membership.None && (step.Reason == membership.Healthy || step.Reason == membership.Hibernated)
	set(api.ConditionReady, truth(ready), string(step.Reason), step.Message)

	available, reason, message := availability(c, seen, step)
	set(api.ConditionAvailable, available, reason, message)

	degraded, reason, message := degradation(s, c, seen, step)
	set(api.ConditionDegraded, degraded, reason, message)
	only(api.ConditionReconciling, step.Acts() || step.Action == membership.Wait)
	only(api.ConditionStalled, step.Action == membership.Stall)
}

// degradation is whether the cluster has less than its spec asks for. That data differs, or that
// etcd says so, is told also where the step is about something else: an EtcdBackup waits for the
// end of that.
func degradation(s *api.EtcdClusterStatus, c *api.EtcdCluster, seen observed, step membership.Step) (metav1.ConditionStatus, string, string) {
	lacks := func(m api.MemberStatus) bool {
		i, _ := seen.Instance(m.Name)
		return m.ID != "" && m.Role != api.RoleLearner && m.Health != api.HealthHealthy && !i.Publishes()
	}
	switch {
	case !seen.Formed():
		return metav1.ConditionFalse, api.ReasonNotFormed, "the cluster has not formed yet"
	case size(c) == 0:
		return metav1.ConditionFalse, api.ReasonHibernated, "spec.replicas is 0"
	case seen.Differ() && step.Reason != membership.CorruptMember && step.Reason != membership.DataDiffers:
		return metav1.ConditionTrue, api.ReasonDataDiffers, "the data of the members differs; " + step.Message
	case slices.Contains(alarms(seen), string(membership.AlarmCorrupt)) && step.Reason != membership.CorruptMember && step.Reason != membership.DataDiffers:
		if step.Reason == membership.AlarmRaised { // which says so
			return metav1.ConditionTrue, api.ReasonDataDiffers, step.Message
		}
		return metav1.ConditionTrue, api.ReasonDataDiffers, "etcd says that the data of the members differs (alarm CORRUPT); " + step.Message
	case seen.Differ(), slices.ContainsFunc(s.Members, lacks), meta.IsStatusConditionTrue(s.Conditions, api.ConditionDegraded) && int(s.ReadyReplicas) < size(c):
		// Where data differs, one member is not healthy, whichever it is. Once it lacks a member it
		// stays degraded until it has another one. Growing because the spec says so is no such
		// lack, nor is a member that follows and does not serve yet.
		return metav1.ConditionTrue, string(step.Reason), step.Message
	case seen.credentials.warns() != nil:
		return metav1.ConditionTrue, seen.credentials.warning.reason, seen.credentials.warning.message
	default:
		return metav1.ConditionFalse, api.ReasonHealthy, "every member is healthy"
	}
}

// availability is whether linearizable reads and writes are served now. Listing the members was
// such a read.
func availability(c *api.EtcdCluster, seen observed, step membership.Step) (metav1.ConditionStatus, string, string) {
	switch {
	case !seen.Formed() && (seen.InPlace.Begun || seen.InPlace.Reverted):
		return metav1.ConditionFalse, api.ReasonRestoring, "EtcdRestore " + seen.InPlace.Name + " is being carried out, or taken back: clients are shut out"
	case !seen.Formed():
		return metav1.ConditionFalse, api.ReasonNotFormed, "the cluster has not formed yet"
	case step.Reason == membership.Hibernated || step.Reason == membership.Hibernating:
		return metav1.ConditionFalse, string(step.Reason), step.Message
	case len(alarms(seen)) > 0:
		return metav1.ConditionFalse, api.ReasonAlarm, "etcd has raised the alarm " + strings.Join(alarms(seen), " and ")
	case seen.Reach == membership.ReachQuorum:
		return metav1.ConditionTrue, api.ReasonServing, "a quorum of the members answers"
	case seen.denied:
		return metav1.ConditionUnknown, api.ReasonAccessDenied, "etcd authenticates clients, and denies access to the operator"
	case seen.Reach == membership.ReachNone && foundServing(seen)*2 > len(seen.pods) && c.ClientTLS() && seen.credentials != nil && len(seen.credentials.configs) == 0:
		return metav1.ConditionUnknown, api.ReasonCertificates, "the kubelets find that etcd serves in most Pods, and the operator has no certificate to ask the members with"
	case seen.Reach == membership.ReachNone && foundServing(seen)*2 > len(seen.pods):
		return metav1.ConditionUnknown, api.ReasonUnreachable, "the kubelets find that etcd serves in most Pods, and no member answers the operator: ports 2379 and 2381 must be open from the operator to the members"
	default:
		return metav1.ConditionFalse, api.ReasonQuorumLost, "no quorum of the members answers"
	}
}

// alarms that any member knows of. With NOSPACE etcd refuses writes, with CORRUPT reads as well.
func alarms(seen observed) []string {
	var raised []string
	for _, i := range seen.Instances {
		for _, alarm := range i.Endpoint.Alarms {
			raised = append(raised, string(alarm.Kind))
		}
	}
	slices.Sort(raised)
	return slices.Compact(raised)
}

// readyPods counts those that the kubelet has found ready and that are to stay.
func readyPods(seen observed) int {
	n := 0
	for _, pod := range seen.pods {
		if pod.DeletionTimestamp.IsZero() && isReady(pod) {
			n++
		}
	}
	return n
}

// foundServing counts the members that serve as their kubelets find, whatever else is in their
// Pods.
func foundServing(seen observed) int {
	n := 0
	for _, i := range seen.Instances {
		if i.Pod.Ready {
			n++
		}
	}
	return n
}

func isReady(pod *corev1.Pod) bool {
	ready := podstatus.Condition(pod, corev1.PodReady)
	return ready != nil && ready.Status == corev1.ConditionTrue
}

func truth(b bool) metav1.ConditionStatus {
	if b {
		return metav1.ConditionTrue
	}
	return metav1.ConditionFalse
}

// clusterGone: the EtcdCluster went away while we worked on it.
func clusterGone(err error) bool { return apierrors.IsNotFound(err) || meta.IsNoMatchError(err) }
