package membership

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Rules of the phases guards and repairs, which come before all others.

func deleting(d Desired, _ Observed) (Step, bool) {
	return Step{Action: None, Reason: Deleting, Message: "the cluster is being deleted"}, d.Deleting
}

func nameConflict(_ Desired, o Observed) (Step, bool) {
	pods := names(o.Instances, func(i Instance) bool { return i.Pod.Foreign })
	volumes := names(o.Instances, func(i Instance) bool { return i.Volume.Foreign })
	var whose []string
	if len(pods) > 0 {
		whose = append(whose, "the Pods "+list(pods))
	}
	if len(volumes) > 0 {
		whose = append(whose, "the PersistentVolumeClaims "+list(volumes))
	}
	return Step{
		Action: Stall, Reason: ForeignObject,
		Message: strings.Join(whose, " and ") + " have another owner; delete them if nothing needs them, or create this EtcdCluster under another name",
	}, len(whose) > 0
}

// clusterIDMismatch: volumes and members of one EtcdCluster have different etcd cluster IDs, for
// example because a volume was restored from another cluster. Only an administrator knows which one
// is right.
func clusterIDMismatch(d Desired, o Observed) (Step, bool) {
	said := map[ID][]string{}
	if o.ClusterID != 0 {
		said[o.ClusterID] = append(said[o.ClusterID], "the status")
	}
	for _, i := range o.Instances {
		if i.Volume.Recorded() {
			said[i.Volume.ClusterID] = append(said[i.Volume.ClusterID], "the volume of "+i.Name)
		}
		if i.Endpoint.Answered() {
			said[i.Endpoint.ClusterID] = append(said[i.Endpoint.ClusterID], i.Name)
		}
	}
	if len(said) < 2 {
		return Step{}, false
	}
	var parts []string
	for id, members := range said {
		parts = append(parts, id.String()+" ("+list(members)+")")
	}
	slices.Sort(parts)
	return Step{
		Action: Stall, Reason: ClusterIDMismatch,
		Message: "data of several etcd clusters meets here, cluster IDs " + strings.Join(parts, " and ") + "; nothing is started or changed until only one is left. Find out which is right, keep what you need of the others, and delete them: " + d.kubectl("delete pvc,pod", []Instance{{Name: "NAME"}}, ""),
	}, true
}

// hibernate: the volumes must still be there when spec.replicas is raised again. A volume that is
// being deleted would go with its Pod.
func hibernate(d Desired, o Observed) (Step, bool) {
	if d.Size > 0 {
		return Step{}, false
	}
	if d.Ephemeral { // the schema refuses it; stopping would lose every byte
		return Step{Action: Stall, Reason: InvalidSpec, Message: "spec.replicas 0 would lose the data of spec.storage.medium Memory; revert it"}, true
	}
	why := ""
	doomed := names(o.Instances, func(i Instance) bool {
		goes := o.holds(i) && i.Volume.Terminating && i.Pod.Exists() && !i.Pod.Terminating // whether it has started yet or not
		if goes || o.Doomed(i) {
			why = cmp.Or(why, o.leaves(i), "is being deleted")
		}
		return goes || o.Doomed(i)
	})
	if o.Formed() && len(doomed) > 0 {
		return Step{
			Action: Stall, Reason: DataLost, Members: doomed,
			Message: "the volume of " + list(doomed) + " " + why + ", and would go with its Pod; revert spec.replicas first: another member then takes its place",
		}, true
	}
	if running := names(o.Instances, func(i Instance) bool { return i.Pod.Exists() && !i.Pod.Terminating }); len(running) > 0 {
		return Step{Action: Stop, Members: running, Reason: Hibernating, Message: "stopping " + list(running) + "; the volumes are kept"}, true
	}
	if stopping := names(o.Instances, func(i Instance) bool { return i.Pod.Exists() }); len(stopping) > 0 {
		return Step{Action: Wait, Reason: Hibernating, Message: "waiting for " + list(stopping) + " to stop"}, true
	}
	return Step{Action: None, Reason: Hibernated, Message: "spec.replicas is 0: nothing runs, the volumes are kept"}, true
}

// recreateStuckPod recreates three kinds of Pods that do not serve: a Pod that has ended for good,
// some seconds after it was created, since its kubelet may end the next one too; a Pod that cannot
// start, and was made from a spec that has been corrected since (an image, a node, a flag); and a
// Pod whose kubelet delays the start of a container longer than it would in a new Pod.
func recreateStuckPod(d Desired, o Observed) (Step, bool) {
	idle := func(i Instance) bool {
		harmless := !i.Volume.Terminating && !i.Volume.Replaced // no data goes with it, and it can start again
		if d.Ephemeral {
			harmless = i.Pod.NeverRan || !o.Formed() && i.Pod.Outdated && !i.Pod.Ended // nothing was served yet
		}
		return harmless && i.Pod.Exists() && !i.Pod.Terminating && i.Endpoint.Member() == 0
	}
	step := Step{Action: Stop, Reason: Replacing}
	step.Members = names(o.Instances, func(i Instance) bool {
		return idle(i) && (i.Pod.Ended && !i.Pod.Young || !i.changing() && i.Pod.Outdated && (i.Pod.Problem != "" || i.Pod.Idle && !o.Formed()))
	})
	step.Message = "replacing the Pods " + list(step.Members) + ", which do not serve and never will: they have ended for good, or were made from an earlier spec"
	if len(step.Members) == 0 {
		step.Members = names(stuckBootstrap(d, o), idle)
		step.Message = "recreating the Pod of " + list(step.Members) + ": etcd of all first members runs and elects no leader; it may have ended before it wrote a vote to its log"
	}
	if len(step.Members) == 0 {
		step.Members = names(o.Instances, func(i Instance) bool { return idle(i) && i.Pod.PutOff })
		step.Message = "replacing the Pods " + list(step.Members) + ", whose containers would be started later than those of new ones: the same image ran in them lately"
	}
	return step, len(step.Members) > 0
}

// list joins names for messages.
func list(names []string) string { return strings.Join(names, ", ") }

// problems are the reasons why the named instances do not serve, one clause each.
func problems(instances []Instance) string {
	clauses := make([]string, 0, len(instances))
	for _, i := range instances {
		clauses = append(clauses, i.Name+" "+problem(i))
	}
	return strings.Join(clauses, "; ")
}

func problem(i Instance) string {
	if i.Pod.RepairRefused != "" && i.Endpoint.Member() == 0 {
		refused := i.Pod.RepairRefused
		i.Pod.RepairRefused = ""
		return problem(i) + ", and the API server refuses to change its Pod to what the spec asks for (" + refused + "): remove the cause, such as a quota or a policy, or revert the spec"
	}
	switch {
	case i.Pod.IdleLong && !i.Endpoint.Answered() && !i.Pod.Terminating:
		return "runs and does not serve"
	case i.Publishes() && !i.Pod.Terminating:
		return "serves no clients yet: etcd repeats the proposal of its name after 7 s"
	case i.Pod.Problem != "" && !i.Endpoint.Answered():
		return i.Pod.Problem
	case i.Pod.Terminating:
		return "is terminating"
	case i.Endpoint.Fetching != 0:
		return "has not got its data yet"
	case !i.Pod.Exists() && i.Volume.Terminating:
		return "has a volume that is being deleted"
	case !i.Pod.Exists() && i.Volume.InDoubt():
		return "has a volume that is another object than its record names"
	case !i.Pod.Exists():
		return "has no Pod"
	case i.Pod.Provisioned:
		return "is prepared"
	case i.Pod.Provisions:
		return "is being prepared"
	case !i.Endpoint.Answered() && i.Pod.Restoring:
		return "is being restored"
	case !i.Endpoint.Answered() && i.Pod.NeverRan:
		return "has not started yet"
	case !i.Endpoint.Answered():
		return "does not answer"
	case i.Endpoint.Leader == 0:
		return "knows no leader"
	default:
		return "answers"
	}
}

func plural(n int, one string) string {
	if n == 1 {
		return fmt.Sprintf("%d %s", n, one)
	}
	return fmt.Sprintf("%d %ss", n, one)
}
