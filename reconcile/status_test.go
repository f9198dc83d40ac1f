package reconcile

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

var ignoreTimes = cmpopts.IgnoreFields(metav1.Condition{}, "LastTransitionTime")

// conditions in the order in which status sets them.
func conditions(all ...metav1.Condition) []metav1.Condition {
	for n := range all {
		all[n].ObservedGeneration = 7
	}
	return all
}

func condition(kind string, value metav1.ConditionStatus, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: value, Reason: reason, Message: message}
}

// healthyStatus is the status of healthy.
func healthyStatus() api.EtcdClusterStatus {
	member := func(name, id string, role api.MemberRole) api.MemberStatus {
		return api.MemberStatus{Name: name, ID: id, Version: "3.6.16", Role: role, Health: api.HealthHealthy, Volume: name}
	}
	return api.EtcdClusterStatus{
		ObservedGeneration: 7, Replicas: 3, ReadyReplicas: 3, Selector: "etcd.quorate.dev/cluster=db",
		ClusterID: "c0", Version: "3.6.16", Leader: "db-1", DBSize: resource.NewQuantity(1<<20, resource.BinarySI),
		NextOrdinal: 3,
		Members: []api.MemberStatus{
			member("db-0", "a0", api.RoleFollower), member("db-1", "a1", api.RoleLeader), member("db-2", "a2", api.RoleFollower),
		},
		Conditions: conditions(
			condition(api.ConditionReady, metav1.ConditionTrue, "Healthy", "3 healthy members"),
			condition(api.ConditionAvailable, metav1.ConditionTrue, "Serving", "a quorum of the members answers"),
			condition(api.ConditionDegraded, metav1.ConditionFalse, "Healthy", "every member is healthy"),
		),
	}
}

// down takes a member's answer away.
func down(seen *observed, n int) { seen.Instances[n].Endpoint = membership.Endpoint{} }

// unreachable makes no member answer, while the kubelet finds some Pods ready.
func unreachable(seen *observed, ready ...string) {
	seen.Reach, seen.Members = membership.ReachNone, nil
	for n := range seen.Instances {
		down(seen, n)
		seen.Instances[n].Pod.Ready = slices.Contains(ready, seen.Instances[n].Name)
	}
}

// empty makes it a cluster of which there is nothing yet.
func empty(seen *observed) {
	*seen = observed{Observed: membership.Observed{Instances: []membership.Instance{
		{Name: "db-0"}, {Name: "db-1", Ordinal: 1}, {Name: "db-2", Ordinal: 2},
	}}}
}

func gone(s *api.EtcdClusterStatus, n int, health api.MemberHealth) {
	s.Members[n].Role, s.Members[n].Health, s.Members[n].Version = api.RoleUnknown, health, ""
}

// different has no quorum of members with equal data.
func different(seen *observed) {
	for n, sum := range []uint32{1, 2, 3} {
		seen.Instances[n].Hash = membership.Hash{Revision: 7, Sum: sum}
	}
}

func TestStatus(t *testing.T) {
	step := func(action membership.Action, reason membership.Reason, message string, members ...string) membership.Step {
		return membership.Step{Action: action, Reason: reason, Message: message, Members: members}
	}
	serves := condition(api.ConditionAvailable, metav1.ConditionTrue, "Serving", "a quorum of the members answers")
	notFormed := condition(api.ConditionAvailable, metav1.ConditionFalse, "NotFormed", "the cluster has not formed yet")
	allWell := condition(api.ConditionDegraded, metav1.ConditionFalse, "Healthy", "every member is healthy")
	noRisk := condition(api.ConditionDegraded, metav1.ConditionFalse, "NotFormed", "the cluster has not formed yet")
	ready := func(value metav1.ConditionStatus, reason, message string) metav1.Condition {
		return condition(api.ConditionReady, value, reason, message)
	}

	stopping := &api.Operation{Step: "Stop", Since: new(metav1.Now()), Targets: []api.OperationTarget{
		{Member: "db-0", UID: "pod-of-db-0"}, {Member: "db-1", UID: "pod-of-db-1"},
	}}

	cases := map[string]struct {
		reason  string
		cluster func(*api.EtcdCluster)
		seen    func(*observed)
		step    membership.Step
		want    func(*api.EtcdClusterStatus)
	}{
		"Healthy": {
			reason: "all is well",
			step:   step(membership.None, membership.Healthy, "3 healthy members"),
			want:   func(*api.EtcdClusterStatus) {},
		},
		"LeavesTransient": {
			reason: "what is no longer so is not said",
			cluster: func(c *api.EtcdCluster) {
				c.Status.Conditions = conditions(
					ready(metav1.ConditionFalse, "Starting", "x"), condition(api.ConditionReconciling, metav1.ConditionTrue, "Starting", "x"),
					condition(api.ConditionStalled, metav1.ConditionTrue, "Starting", "x"),
				)
				c.Status.Leader, c.Status.ReadyReplicas = "db-2", 1
			},
			step: step(membership.None, membership.Healthy, "3 healthy members"),
			want: func(*api.EtcdClusterStatus) {},
		},
		"Fresh": {
			reason: "nothing is there; the volumes are being made",
			seen:   empty,
			step:   step(membership.Provision, membership.Provisioning, "creating", "db-0", "db-1", "db-2"),
			want: func(s *api.EtcdClusterStatus) {
				*s = api.EtcdClusterStatus{ObservedGeneration: 7, Selector: s.Selector, Conditions: conditions(
					ready(metav1.ConditionFalse, "Provisioning", "creating"), notFormed, noRisk,
					condition(api.ConditionReconciling, metav1.ConditionTrue, "Provisioning", "creating"),
				)}
			},
		},
		"Bootstrapping": {
			reason:  "the intent stays until the cluster has formed",
			cluster: func(c *api.EtcdCluster) { c.Status.Operation = &api.Operation{Step: "Bootstrap", Generation: 6} },
			seen: func(seen *observed) {
				empty(seen)
				seen.Instances[0].Volume.UID, seen.Instances[0].Pod.UID = "claim", "pod"
				seen.Instances[1].Volume.UID = "claim"
			},
			step: step(membership.Wait, membership.Bootstrapping, "waiting"),
			want: func(s *api.EtcdClusterStatus) {
				*s = api.EtcdClusterStatus{
					ObservedGeneration: 7, Selector: s.Selector, Replicas: 1, Operation: &api.Operation{Step: "Bootstrap", Generation: 6},
					Members: []api.MemberStatus{
						{Name: "db-0", Role: api.RoleUnknown, Health: api.HealthUnreachable, Volume: "db-0"},
						{Name: "db-1", Role: api.RoleUnknown, Health: api.HealthStopped, Volume: "db-1"},
					},
					Conditions: conditions(
						ready(metav1.ConditionFalse, "Bootstrapping", "waiting"), notFormed, noRisk,
						condition(api.ConditionReconciling, metav1.ConditionTrue, "Bootstrapping", "waiting"),
					),
				}
			},
		},
		"Formed": {
			reason:  "this is where the latch falls and the intent is done with; clients are let in by the next pass",
			cluster: func(c *api.EtcdCluster) { c.Status.Operation = &api.Operation{Step: "Bootstrap"} },
			seen: func(seen *observed) {
				seen.ClusterID = 0
				for n := range seen.Instances {
					seen.Instances[n].Volume.ClusterID, seen.Instances[n].Volume.MemberID = 0, 0
				}
			},
			step: step(membership.Record, membership.Formed, "formed", "db-0", "db-1", "db-2"),
			want: func(s *api.EtcdClusterStatus) {
				s.Conditions = conditions(ready(metav1.ConditionFalse, "Formed", "formed"), notFormed, noRisk,
					condition(api.ConditionReconciling, metav1.ConditionTrue, "Formed", "formed"))
			},
		},
		"FromVolumes": {
			reason: "an EtcdCluster that is created again over retained volumes has their cluster ID",
			seen: func(seen *observed) {
				seen.ClusterID, seen.pods = 0, nil
				unreachable(seen)
				for n := range seen.Instances {
					seen.Instances[n].Pod = membership.Pod{}
				}
			},
			step: step(membership.Start, membership.Starting, "starting", "db-0", "db-1", "db-2"),
			want: func(s *api.EtcdClusterStatus) {
				s.Replicas, s.ReadyReplicas, s.Leader, s.Version, s.DBSize = 0, 0, "", "", nil
				for n := range s.Members {
					gone(s, n, api.HealthStopped)
				}
				s.Conditions = conditions(ready(metav1.ConditionFalse, "Starting", "starting"),
					condition(api.ConditionAvailable, metav1.ConditionFalse, "QuorumLost", "no quorum of the members answers"),
					condition(api.ConditionDegraded, metav1.ConditionTrue, "Starting", "starting"),
					condition(api.ConditionReconciling, metav1.ConditionTrue, "Starting", "starting"))
			},
		},
		"MemberDown": {
			reason: "the others serve; what the lost one ran and its volume are no secret",
			seen:   func(seen *observed) { down(seen, 2) },
			step:   step(membership.Wait, membership.MemberDown, "db-2 does not answer"),
			want: func(s *api.EtcdClusterStatus) {
				s.ReadyReplicas = 2
				gone(s, 2, api.HealthUnreachable)
				s.Conditions = conditions(ready(metav1.ConditionFalse, "MemberDown", "db-2 does not answer"), serves,
					condition(api.ConditionDegraded, metav1.ConditionTrue, "MemberDown", "db-2 does not answer"),
					condition(api.ConditionReconciling, metav1.ConditionTrue, "MemberDown", "db-2 does not answer"))
			},
		},
		"PodDeleted": {
			reason: "a Pod that is going does not count, and its member is not there for long",
			seen: func(seen *observed) {
				down(seen, 2)
				seen.Instances[2].Pod.Terminating = true
			},
			step: step(membership.Wait, membership.MemberDown, "db-2 is terminating"),
			want: func(s *api.EtcdClusterStatus) {
				s.Replicas, s.ReadyReplicas = 2, 2
				gone(s, 2, api.HealthUnreachable)
				s.Conditions = conditions(ready(metav1.ConditionFalse, "MemberDown", "db-2 is terminating"), serves,
					condition(api.ConditionDegraded, metav1.ConditionTrue, "MemberDown", "db-2 is terminating"),
					condition(api.ConditionReconciling, metav1.ConditionTrue, "MemberDown", "db-2 is terminating"))
			},
		},
		"DataLost": {
			reason: "a member without its volume is lost, and a person must act",
			seen: func(seen *observed) {
				down(seen, 0)
				seen.Instances[0].Volume, seen.Instances[0].Pod = membership.Volume{}, membership.Pod{}
			},
			step: step(membership.Stall, membership.DataLost, "the data of db-0 is gone"),
			want: func(s *api.EtcdClusterStatus) {
				s.Replicas, s.ReadyReplicas = 2, 2
				gone(s, 0, api.HealthLost)
				s.Members[0].Volume = ""
				s.Conditions = conditions(ready(metav1.ConditionFalse, "DataLost", "the data of db-0 is gone"), serves,
					condition(api.ConditionDegraded, metav1.ConditionTrue, "DataLost", "the data of db-0 is gone"),
					condition(api.ConditionStalled, metav1.ConditionTrue, "DataLost", "the data of db-0 is gone"))
			},
		},
		"QuorumLost": {
			reason: "one of three answers and knows no leader",
			seen: func(seen *observed) {
				unreachable(seen)
				seen.Reach = membership.ReachSome
				seen.Instances[1].Endpoint = membership.Endpoint{ClusterID: 0xc0, MemberID: 0xa1, Version: membership.Version{Major: 3, Minor: 5, Patch: 35}, DBSize: 1}
			},
			step: step(membership.Wait, membership.QuorumLost, "no quorum answers"),
			want: func(s *api.EtcdClusterStatus) {
				s.ReadyReplicas, s.Leader, s.Version = 0, "", "3.5.35"
				gone(s, 0, api.HealthUnreachable)
				gone(s, 2, api.HealthUnreachable)
				s.Members[1].Role, s.Members[1].Health, s.Members[1].Version = api.RoleFollower, api.HealthNoLeader, "3.5.35"
				s.Conditions = conditions(ready(metav1.ConditionFalse, "QuorumLost", "no quorum answers"),
					condition(api.ConditionAvailable, metav1.ConditionFalse, "QuorumLost", "no quorum of the members answers"),
					condition(api.ConditionDegraded, metav1.ConditionTrue, "QuorumLost", "no quorum answers"),
					condition(api.ConditionReconciling, metav1.ConditionTrue, "QuorumLost", "no quorum answers"))
			},
		},
		"Unreachable": {
			reason: "most Pods are ready: it may well serve, only not the operator; version and size are remembered",
			cluster: func(c *api.EtcdCluster) {
				c.Status.Version, c.Status.DBSize = "3.6.16", resource.NewQuantity(1<<20, resource.BinarySI)
			},
			seen: func(seen *observed) { unreachable(seen, "db-0", "db-2") },
			step: step(membership.Wait, membership.Unreachable, "no member answers"),
			want: func(s *api.EtcdClusterStatus) {
				s.ReadyReplicas, s.Leader = 0, ""
				for n := range s.Members {
					gone(s, n, api.HealthUnreachable)
				}
				s.Conditions = conditions(ready(metav1.ConditionFalse, "Unreachable", "no member answers"),
					condition(api.ConditionAvailable, metav1.ConditionUnknown, "Unreachable", "the kubelets find that etcd serves in most Pods, and no member answers the operator: ports 2379 and 2381 must be open from the operator to the members"),
					condition(api.ConditionDegraded, metav1.ConditionTrue, "Unreachable", "no member answers"),
					condition(api.ConditionReconciling, metav1.ConditionTrue, "Unreachable", "no member answers"))
			},
		},
		"UnreachableMinority": {
			reason: "one ready Pod of three is no quorum",
			seen:   func(seen *observed) { unreachable(seen, "db-0") },
			step:   step(membership.Wait, membership.Unreachable, "no member answers"),
			want: func(s *api.EtcdClusterStatus) {
				s.ReadyReplicas, s.Leader, s.Version, s.DBSize = 0, "", "", nil
				for n := range s.Members {
					gone(s, n, api.HealthUnreachable)
				}
				s.Conditions = conditions(ready(metav1.ConditionFalse, "Unreachable", "no member answers"),
					condition(api.ConditionAvailable, metav1.ConditionFalse, "QuorumLost", "no quorum of the members answers"),
					condition(api.ConditionDegraded, metav1.ConditionTrue, "Unreachable", "no member answers"),
					condition(api.ConditionReconciling, metav1.ConditionTrue, "Unreachable", "no member answers"))
			},
		},
		"Alarm": {
			reason: "with NOSPACE on one member all of them refuse writes, whatever else a person must act upon",
			seen: func(seen *observed) {
				seen.Instances[1].Endpoint.Alarms = []membership.Alarm{{Kind: membership.AlarmNoSpace}}
				seen.Instances[0].Endpoint.Alarms = []membership.Alarm{{Kind: membership.AlarmNoSpace}, {Kind: membership.AlarmCorrupt}}
			},
			step: step(membership.Stall, membership.ChangeNotSupported, "spec.replicas is 5"),
			want: func(s *api.EtcdClusterStatus) {
				s.ReadyReplicas = 1
				s.Members[0].Health, s.Members[1].Health = api.HealthAlarm, api.HealthAlarm
				s.Conditions = conditions(ready(metav1.ConditionFalse, "ChangeNotSupported", "spec.replicas is 5"),
					condition(api.ConditionAvailable, metav1.ConditionFalse, "Alarm", "etcd has raised the alarm CORRUPT and NOSPACE"),
					condition(api.ConditionDegraded, metav1.ConditionTrue, "DataDiffers", "etcd says that the data of the members differs (alarm CORRUPT); spec.replicas is 5"),
					condition(api.ConditionStalled, metav1.ConditionTrue, "ChangeNotSupported", "spec.replicas is 5"))
			},
		},
		"AlarmNoSpace": {
			reason: "of NOSPACE nothing is said about the data: a backup can be taken",
			seen: func(seen *observed) {
				seen.Instances[0].Endpoint.Alarms = []membership.Alarm{{Kind: membership.AlarmNoSpace}}
			},
			step: step(membership.Stall, membership.AlarmRaised, "no room"),
			want: func(s *api.EtcdClusterStatus) {
				s.ReadyReplicas = 2
				s.Members[0].Health = api.HealthAlarm
				s.Conditions = conditions(ready(metav1.ConditionFalse, "Alarm", "no room"),
					condition(api.ConditionAvailable, metav1.ConditionFalse, "Alarm", "etcd has raised the alarm NOSPACE"),
					condition(api.ConditionDegraded, metav1.ConditionTrue, "Alarm", "no room"),
					condition(api.ConditionStalled, metav1.ConditionTrue, "Alarm", "no room"))
			},
		},
		"AlarmNotJudged": {
			reason: "members are to be compared, and one is away: a snapshot that is taken now could be of a wrong one",
			seen: func(seen *observed) {
				seen.Instances[0].Endpoint.Alarms = []membership.Alarm{{Kind: membership.AlarmCorrupt, Member: 0xa0}}
			},
			step: step(membership.Wait, membership.AlarmRaised, "waiting until a quorum has been compared"),
			want: func(s *api.EtcdClusterStatus) {
				s.ReadyReplicas = 2
				s.Members[0].Health = api.HealthAlarm
				s.Conditions = conditions(ready(metav1.ConditionFalse, "Alarm", "waiting until a quorum has been compared"),
					condition(api.ConditionAvailable, metav1.ConditionFalse, "Alarm", "etcd has raised the alarm CORRUPT"),
					condition(api.ConditionDegraded, metav1.ConditionTrue, "DataDiffers", "waiting until a quorum has been compared"),
					condition(api.ConditionReconciling, metav1.ConditionTrue, "Alarm", "waiting until a quorum has been compared"))
			},
		},
		"Different": {
			reason: "they serve, and one of them serves what is wrong",
			seen:   different,
			step:   step(membership.Stall, membership.DataDiffers, "no quorum is equal"),
			want: func(s *api.EtcdClusterStatus) {
				s.Conditions = conditions(ready(metav1.ConditionFalse, "DataDiffers", "no quorum is equal"), serves,
					condition(api.ConditionDegraded, metav1.ConditionTrue, "DataDiffers", "no quorum is equal"),
					condition(api.ConditionStalled, metav1.ConditionTrue, "DataDiffers", "no quorum is equal"))
			},
		},
		"DifferentSuspended": {
			reason:  "an EtcdBackup must know of it also where nothing is done about it",
			cluster: func(c *api.EtcdCluster) { c.Spec.Suspend = true },
			seen:    different,
			step:    step(membership.None, membership.Suspended, "suspended"),
			want: func(s *api.EtcdClusterStatus) {
				s.Conditions = conditions(ready(metav1.ConditionFalse, "Suspended", "suspended"), serves,
					condition(api.ConditionDegraded, metav1.ConditionTrue, "DataDiffers", "the data of the members differs; suspended"))
			},
		},
		"DifferentQueued": {
			reason: "or where that waits for its turn",
			seen:   different,
			step:   step(membership.Wait, api.ReasonQueued, "queued"),
			want: func(s *api.EtcdClusterStatus) {
				s.Conditions = conditions(ready(metav1.ConditionFalse, "Queued", "queued"), serves,
					condition(api.ConditionDegraded, metav1.ConditionTrue, "DataDiffers", "the data of the members differs; queued"),
					condition(api.ConditionReconciling, metav1.ConditionTrue, "Queued", "queued"))
			},
		},
		"Refused": {
			reason: "what the spec asks for cannot be had, and what runs goes on",
			step:   step(membership.Stall, "Refused", "quota"),
			want: func(s *api.EtcdClusterStatus) {
				s.Conditions = conditions(ready(metav1.ConditionFalse, "Refused", "quota"), serves, allWell,
					condition(api.ConditionStalled, metav1.ConditionTrue, "Refused", "quota"))
			},
		},
		"SuspendedHealthy": {
			reason:  "at rest it is as healthy as any other",
			cluster: func(c *api.EtcdCluster) { c.Spec.Suspend = true },
			step:    step(membership.None, membership.Healthy, "3 healthy members"),
			want:    func(*api.EtcdClusterStatus) {},
		},
		"Suspended": {
			reason:  "it is not what the spec asks for, and nothing works on it",
			cluster: func(c *api.EtcdCluster) { c.Spec.Suspend = true },
			seen:    func(seen *observed) { down(seen, 2); seen.Instances[2].Pod = membership.Pod{} },
			step:    step(membership.None, membership.Suspended, "suspended"),
			want: func(s *api.EtcdClusterStatus) {
				s.Replicas, s.ReadyReplicas = 2, 2
				gone(s, 2, api.HealthStopped)
				s.Conditions = conditions(ready(metav1.ConditionFalse, "Suspended", "suspended"), serves,
					condition(api.ConditionDegraded, metav1.ConditionTrue, "Suspended", "suspended"))
			},
		},
		"Hibernating": {
			reason: "clients must not count on it any more; the intent stays until something of it is seen",
			cluster: func(c *api.EtcdCluster) {
				c.Spec.Replicas = new(int32(0))
				c.Status.Operation = stopping
			},
			seen: func(seen *observed) { seen.begun = time.Now() },
			step: step(membership.Wait, membership.Hibernating, "waiting"),
			want: func(s *api.EtcdClusterStatus) {
				s.Operation = stopping
				s.Conditions = conditions(ready(metav1.ConditionFalse, "Hibernating", "waiting"),
					condition(api.ConditionAvailable, metav1.ConditionFalse, "Hibernating", "waiting"),
					condition(api.ConditionDegraded, metav1.ConditionFalse, "Hibernated", "spec.replicas is 0"),
					condition(api.ConditionReconciling, metav1.ConditionTrue, "Hibernating", "waiting"))
			},
		},
		"Hibernated": {
			reason: "that is what the spec asks for; the intent is done with",
			cluster: func(c *api.EtcdCluster) {
				c.Spec.Replicas = new(int32(0))
				c.Status.Operation = stopping
				c.Status.Version = "3.6.16"
			},
			seen: func(seen *observed) {
				unreachable(seen)
				seen.pods = nil
				for n := range seen.Instances {
					seen.Instances[n].Pod = membership.Pod{}
				}
			},
			step: step(membership.None, membership.Hibernated, "nothing runs"),
			want: func(s *api.EtcdClusterStatus) {
				s.Replicas, s.ReadyReplicas, s.Leader, s.DBSize = 0, 0, "", nil
				for n := range s.Members {
					gone(s, n, api.HealthStopped)
				}
				s.Conditions = conditions(ready(metav1.ConditionTrue, "Hibernated", "nothing runs"),
					condition(api.ConditionAvailable, metav1.ConditionFalse, "Hibernated", "nothing runs"),
					condition(api.ConditionDegraded, metav1.ConditionFalse, "Hibernated", "spec.replicas is 0"))
			},
		},
		"Deleting": {
			reason: "nothing is done for it any more, and it is not ready",
			step:   step(membership.None, membership.Deleting, "the cluster is being deleted"),
			want: func(s *api.EtcdClusterStatus) {
				s.Conditions = conditions(ready(metav1.ConditionFalse, "Deleting", "the cluster is being deleted"), serves, allWell)
			},
		},
		"Mixed": {
			reason: "the lowest version is the one that counts, and the largest database; a learner is no ready replica",
			seen: func(seen *observed) {
				seen.Instances[0].Endpoint.Version = membership.Version{Major: 3, Minor: 6, Patch: 9}
				seen.Instances[2].Endpoint.DBSize = 100<<20 + 1
				seen.Instances[2].Endpoint.Learner = true
			},
			step: step(membership.None, membership.Healthy, "3 healthy members"),
			want: func(s *api.EtcdClusterStatus) {
				s.Version, s.Members[0].Version, s.DBSize = "3.6.9", "3.6.9", resource.NewQuantity(104<<20, resource.BinarySI)
				s.ReadyReplicas, s.Members[2].Role = 2, api.RoleLearner
			},
		},
		"LongMessage": {
			reason: "etcd tells of others what they like, and what is larger than the schema is not written at all",
			step:   step(membership.Stall, membership.ForeignMember, strings.Repeat("x", 100_000)),
			want: func(s *api.EtcdClusterStatus) {
				said := strings.Repeat("x", 32765) + "..."
				s.Conditions = conditions(ready(metav1.ConditionFalse, "ForeignMember", said), serves, allWell, condition(api.ConditionStalled, metav1.ConditionTrue, "ForeignMember", said))
			},
		},
		"Crowd": {
			reason: "claims that others have given our label and names must not keep the status from being written",
			seen: func(seen *observed) {
				seen.Reach = membership.ReachSome
				for n := range 100 {
					claim := membership.Instance{Name: fmt.Sprintf("db-%d", n+3), Ordinal: n + 3, Volume: membership.Volume{UID: "x"}}
					seen.Instances = append(seen.Instances, claim)
				}
			},
			step: step(membership.None, membership.Healthy, "3 healthy members"),
			want: func(s *api.EtcdClusterStatus) {
				s.NextOrdinal = 103
				s.Conditions[1] = condition(api.ConditionAvailable, metav1.ConditionFalse, "QuorumLost", "no quorum of the members answers")
				s.Conditions[1].ObservedGeneration = 7
			},
		},
		"HugeDatabase": {
			reason: "a member may say anything",
			seen:   func(seen *observed) { seen.Instances[0].Endpoint.DBSize = math.MaxInt64 },
			step:   step(membership.None, membership.Healthy, "3 healthy members"),
			want:   func(s *api.EtcdClusterStatus) { s.DBSize = resource.NewQuantity(1<<60, resource.BinarySI) },
		},
		"Memory": {
			reason:  "a volume that is the Pod has no name of its own",
			cluster: func(c *api.EtcdCluster) { c.Spec.Storage.Medium = api.MediumMemory },
			seen: func(seen *observed) {
				for n := range seen.Instances {
					seen.Instances[n].Volume.UID = seen.Instances[n].Pod.UID
				}
			},
			step: step(membership.None, membership.Healthy, "3 healthy members"),
			want: func(s *api.EtcdClusterStatus) {
				for n := range s.Members {
					s.Members[n].Volume = ""
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, seen, want := newCluster(), healthy(), healthyStatus()
			if tc.cluster != nil {
				tc.cluster(c)
			}
			if tc.seen != nil {
				tc.seen(&seen)
			}
			tc.want(&want)
			want.TLS, want.Endpoints = plainText(), []string{"http://db-client.ns.svc:2379"}
			want.Ready = fmt.Sprintf("%d/%d", want.ReadyReplicas, size(c))
			got := status(c, seen, tc.step)
			if diff := cmp.Diff(want, got, ignoreTimes, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			c.Status = *got.DeepCopy()
			if diff := cmp.Diff(got, status(c, seen, tc.step)); diff != "" {
				t.Errorf("a second look at the same facts changes the status, -first +second:\n%s", diff)
			}
		})
	}
}

// TestLargestDatabase: a database is no smaller because its member does not answer.
func TestLargestDatabase(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		before *resource.Quantity
		silent bool // one of three
		want   string
	}{
		"All":         {reason: "it was larger before it was defragmented", before: resource.NewQuantity(8<<20, resource.BinarySI), want: "1Mi"},
		"Silent":      {reason: "it may have been that of the member that does not answer", before: resource.NewQuantity(8<<20, resource.BinarySI), silent: true, want: "8Mi"},
		"SilentAgain": {reason: "what was rounded up once is not rounded up in each look", before: resource.NewQuantity(17<<20, resource.BinarySI), silent: true, want: "17Mi"},
		"SilentFirst": {reason: "nothing was known of it", silent: true, want: "1Mi"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen := healthy()
			if tc.silent {
				seen.Instances[2].Endpoint = membership.Endpoint{}
			}
			if got := largestDatabase(tc.before, seen).String(); got != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
