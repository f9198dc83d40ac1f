package membership

import (
	"fmt"
	"slices"
	"strings"
)

// The rules of a restore in place (EtcdRestore). All members of a cluster that has formed are
// stopped, their volumes are set aside, and new first members start from a snapshot: with ordinals,
// a token and so a cluster ID that none had before. From then on it is a first start like every
// other. Nothing of the former members is deleted before the new members have formed a cluster, and
// until then the EtcdRestore can be taken back.

// InPlace is a restore in place. The zero InPlace: none is asked for.
type InPlace struct {
	// Name and UID of the EtcdRestore.
	Name, UID string
	// Withdrawn: it was deleted after it was begun, and that is not written down yet.
	Withdrawn bool
	// Begun: the former members are no Instances any more, and are to be stopped.
	Begun bool
	// Reverted: the EtcdRestore was deleted before the new members had formed a cluster. They go,
	// and the former ones come back.
	Reverted bool
	// Suspended: it does not begin while this is true.
	Suspended bool
	// Anyway: a cluster that serves is restored as well.
	Anyway bool
	// OnLoss: it was created because a majority was lost, and is only for as long as that is so.
	OnLoss bool
	// LostLately: the data of a majority was there again since it was created for that loss, and
	// has been gone for less than Desired.LossPatience.
	LostLately bool
	// Lately: the cluster stopped serving too lately to call that lasting.
	Lately bool
	// Problem is why it cannot be begun, as was found out beside the plan; empty where nothing is
	// known.
	Problem string
	// Passes: the problem does so without a person.
	Passes bool
}

// asked reports whether a restore in place is asked for, and not begun.
func (p InPlace) asked() bool { return p.Name != "" && !p.Begun && !p.Reverted }

// InPlaceRefused reports whether a restore in place is refused for good, whatever becomes of the
// cluster later: it serves, and all that was written since the snapshot would be lost.
func InPlaceRefused(o Observed) bool {
	return o.InPlace.asked() && o.Formed() && o.Reach == ReachQuorum && !o.InPlace.Anyway
}

// mayServe reports whether a cluster serves as far as a kubelet knows, which may not have looked
// lately, or served lately.
func (o Observed) mayServe() bool {
	return o.InPlace.Lately || slices.ContainsFunc(o.Instances, func(i Instance) bool { return i.Pod.Ready && !i.Pod.Terminating })
}

// InPlaceWaits is why a restore in place that is asked for is not begun yet; empty where nothing is
// against it. passes: that changes without a person.
func InPlaceWaits(d Desired, o Observed) (why string, passes bool) {
	const bootstrap = "to start from a snapshot, delete the EtcdCluster and its PersistentVolumeClaims, and apply it with spec.bootstrap.restore"
	switch {
	case !o.InPlace.asked():
		return "", false
	case InPlaceRefused(o):
		return "the cluster serves, and all that was written since the snapshot would be lost: if that is wanted, create another EtcdRestore, with another name and spec.whenServing: Replace", false
	case o.InPlace.OnLoss && !MajorityLost(o):
		return "the data of a majority is there again: its members are waited for", true
	case o.InPlace.OnLoss && o.InPlace.LostLately:
		return "the data of a majority was there again, and is gone once more: it is given " + d.LossPatience + " to come back (spec.recovery.quorumLossAfter)", true
	case o.InPlace.OnLoss && !o.Remembered:
		return "it is not certain any more that the data of a majority is gone, because the status of the EtcdCluster was lost: if it is, delete the EtcdRestore, and apply one of your own", false
	case d.Suspended:
		return "spec.suspend of the EtcdCluster is true: set it to false", false
	case d.Ephemeral:
		return "spec.storage.medium of the EtcdCluster is Memory: its members would lose their data as they stop, before it is known whether the restore succeeds; " + bootstrap, false
	case !o.Formed():
		return "the EtcdCluster has not formed yet, so there is nothing to restore in place; " + bootstrap, false
	case d.Size == 0:
		return "spec.replicas of the EtcdCluster is 0: set it to the number of members that the restored cluster is to have", false
	case o.mayServe() && !o.InPlace.Anyway:
		return "the cluster may still serve: one of its Pods is ready, or a quorum answered a moment ago. The restore begins when neither holds any more", true
	case o.Search.Problem != "":
		return "no snapshot to restore: " + o.Search.Problem, false
	case o.Search.Found != Snapshot{} && unusable(d, o, o.Search.Found) != "":
		return unusable(d, o, o.Search.Found), false
	default:
		return o.InPlace.Problem, o.InPlace.Passes
	}
}

// restoreDeleted: nothing more is done for a restore that is about to be taken back.
func restoreDeleted(_ Desired, o Observed) (Step, bool) {
	return Step{Action: Wait, Reason: Reverting, Message: "EtcdRestore " + o.InPlace.Name + " was deleted: the former members come back"}, o.InPlace.Withdrawn
}

// stopFormerMembers: no process of a former member ever runs again, nor beside the new members.
// Their volumes are set aside once none runs, and nothing new is made before that.
func stopFormerMembers(d Desired, o Observed) (Step, bool) {
	if o.InPlace.Reverted {
		return Step{}, false
	}
	step := Step{Action: StopFormer, Reason: Restoring}
	ours := func(i Instance) bool { return i.Pod.Exists() && !i.Pod.Foreign }
	step.Members = names(o.Former, func(i Instance) bool { return ours(i) && !i.Pod.Terminating })
	step.Message = "stopping the former members (" + list(step.Members) + "); their volumes are kept"
	if len(step.Members) > 0 {
		return step, true
	}
	if step.Members = names(o.Former, ours); len(step.Members) > 0 {
		step.Action, step.Message = Wait, "waiting for the former members to stop ("+list(step.Members)+")"
		if away := names(o.Former, func(i Instance) bool { return ours(i) && i.Pod.AwayLong }); len(away) > 0 {
			step.Action = Stall
			step.Message += fmt.Sprintf(". Nothing is heard of the nodes of %s: once they are off, delete the Pods (kubectl -n %s delete pod %s --force)", list(away), d.Namespace, strings.Join(away, " "))
		}
		return step, true
	}
	step.Members = names(o.Former, toSetAside)
	step.Action, step.Message = SetAside, "setting aside the volumes of the former members ("+list(step.Members)+")"
	return step, len(step.Members) > 0 && o.InPlace.Begun
}

// toSetAside reports whether a member has a volume that is not set aside yet.
func toSetAside(i Instance) bool { return i.Volume.Stays() && i.Volume.Aside == "" }

// InPlaceSetsAside are the members whose volumes a restore in place would set aside now: all that
// have one.
func InPlaceSetsAside(o Observed) []string {
	return append(names(o.Former, toSetAside), names(o.Instances, toSetAside)...)
}

// revertRestore: the new members go with their volumes, which nothing but the snapshot was ever
// written to, and then the former ones come back. Clients are let in by neither until that is done.
func revertRestore(_ Desired, o Observed) (Step, bool) {
	if !o.InPlace.Reverted {
		return Step{}, false
	}
	step := Step{Action: Stop, Reason: Reverting}
	step.Members = names(o.Instances, func(i Instance) bool { return i.Pod.Exists() && !i.Pod.Terminating })
	step.Message = "stopping the members that were started from the snapshot (" + list(step.Members) + "): the EtcdRestore was deleted"
	if len(step.Members) > 0 {
		return step, true
	}
	step.Members = names(o.Instances, func(i Instance) bool { return i.Volume.Stays() })
	step.Action, step.Message = Discard, "deleting the volumes of the members that were started from the snapshot ("+list(step.Members)+")"
	if len(step.Members) > 0 {
		return step, true
	}
	step.Members = names(o.Instances, func(i Instance) bool { return i.Pod.Exists() || i.Volume.Exists() })
	step.Action, step.Message = Wait, "waiting for the members that were started from the snapshot to be gone ("+list(step.Members)+")"
	if len(step.Members) > 0 {
		return step, true
	}
	step.Members = names(o.Former, func(i Instance) bool { return i.Volume.Stays() && i.Volume.asideFor(o.InPlace.UID) })
	step.Action, step.Message = Readmit, "taking back the volumes of the former members ("+list(step.Members)+")"
	if len(step.Members) > 0 {
		return step, true
	}
	return Step{Action: Revert, Reason: Reverting, Message: "going on with the former members"}, true
}

// Copy is what has become of the copy that is made of a former member's data, on the volume of the
// first member.
type Copy struct {
	Begun, Done bool
	// Problem is why it is not done, in words that a person can act on. It is tried again.
	Problem string
}

// copyData: where the cluster starts from the data of a former member, the first member has its
// data before it has a Pod.
func copyData(d Desired, o Observed) (Step, bool) {
	f := first(d, o)
	s := ParseSnapshot(f.Snapshot)
	waiting := names(firstMembers(f, o), func(i Instance) bool { return !i.Pod.Exists() })
	if s.member() == "" || len(waiting) == 0 || o.Copy.Done {
		return Step{}, false
	}
	step := Step{Action: Wait, Members: waiting, First: f, Version: d.Version, Reason: Restoring}
	step.Message = fmt.Sprintf("copying %s to the volume of %s", s, list(waiting))
	switch {
	case !o.InPlace.Begun:
		step.Action, step.Reason = Stall, DataLost
		step.Message = fmt.Sprintf("%s was to start from %s, and nothing tells any more of the restore in place for which that was to be copied: %s", list(waiting), s, o.startOver())
	case !chosenIsThere(o, s):
		step.Action, step.Reason = Stall, RestoreFailed
		step.Message += ": the volume of " + s.member() + " is gone, or is another object than the one that was chosen; " + o.startOver()
	case o.Copy.Problem != "":
		step.Action, step.Reason = Stall, RestoreFailed
		step.Message += ": " + o.Copy.Problem + ". Its volume is as it was, and the copy is tried again; if it cannot succeed, " + o.startOver()
	case !o.Copy.Begun:
		step.Action = CopyData
	}
	return step, true
}

// chosenIsThere reports whether the former volume is there of which the data is to be copied, that
// very one.
func chosenIsThere(o Observed, s Snapshot) bool {
	return slices.ContainsFunc(o.Former, func(i Instance) bool {
		return i.Name == s.member() && i.Volume.Exists() && i.Volume.UID == s.SHA256
	})
}

// orphanedVolumes: volumes were set aside, and nothing tells for what: the EtcdCluster was deleted,
// or its status, while it was restored in place. Which data it is to have only a person can know.
func orphanedVolumes(d Desired, o Observed) (Step, bool) {
	aside := names(o.Former, func(i Instance) bool { return i.Volume.Stays() && i.Volume.Aside != "" })
	return Step{
		Action: Stall, Reason: DataLost, Members: aside,
		Message: fmt.Sprintf("a restore in place was interrupted, and Quorate does not know which data the cluster is to have. The data from before the restore is on the volumes of %[1]s. To use that: delete all other PersistentVolumeClaims of the cluster (kubectl -n %[2]s get pvc -L etcd.quorate.dev/cluster shows the cluster of each), and then run kubectl -n %[2]s annotate pvc %[3]s etcd.quorate.dev/set-aside-. To use a snapshot, and lose the data from before the restore: delete the EtcdCluster and all its PersistentVolumeClaims, and apply it with spec.bootstrap.restore. See docs/restore.md#which-way-back",
			list(aside), d.Namespace, strings.Join(aside, " ")),
	}, len(aside) > 0 && !o.InPlace.Begun && !o.InPlace.Reverted && !o.Formed()
}

// readmitVolumes: the mark of a restore in place that was taken back was asked for before that, and
// has come since, on the volume of a member. Nothing would start there. What belongs to another
// restore is no member's by now.
func readmitVolumes(_ Desired, o Observed) (Step, bool) {
	late := names(o.Instances, func(i Instance) bool {
		return i.Volume.Stays() && i.Volume.Aside != "" && i.Volume.Recorded() && i.Volume.ClusterID == o.ID()
	})
	return Step{
		Action: Readmit, Members: late, Reason: Reverting,
		Message: "taking the volumes of " + list(late) + " back, which were set aside for a restore in place that was taken back meanwhile",
	}, len(late) > 0
}

// restoreInPlace: the snapshot is found while the cluster goes on, and only then it is written down
// that all members are replaced.
func restoreInPlace(d Desired, o Observed) (Step, bool) {
	why, _ := InPlaceWaits(d, o)
	switch {
	case !o.InPlace.asked() || why != "":
		return Step{}, false
	case !o.Search.Begun:
		return Step{Action: Find, Reason: Restoring, Message: "looking for the snapshot that EtcdRestore " + o.InPlace.Name + " asks for"}, true
	case o.Search.Found == Snapshot{}, o.InPlace.Suspended:
		return Step{}, false
	}
	return Step{
		Action: Replace, Snapshot: o.Search.Found, Reason: Restoring,
		Message: fmt.Sprintf("restoring %s in place, as EtcdRestore %s asks for: all members are stopped, and their volumes set aside", o.Search.Found, o.InPlace.Name),
	}, true
}

// asideFor reports whether the volume was set aside for that EtcdRestore. What was set aside for an
// earlier one stays as it is.
func (v Volume) asideFor(uid string) bool { return uid != "" && v.Aside == uid }

// Discarded reports whether the volume was set aside for that EtcdRestore, and is not kept for a
// person as that of a member that was removed before.
func (v Volume) Discarded(uid string) bool { return v.asideFor(uid) && !v.Retired }

// discardFormerVolumes: the volumes of former members go where the EtcdRestore asks for that, once
// all is well without them. Those that are left when another EtcdRestore is asked for stay: they
// may be the last copies of the data.
func discardFormerVolumes(d Desired, o Observed) (Step, bool) {
	gone := names(o.Former, func(i Instance) bool { return i.Volume.Stays() && i.Volume.Discarded(d.DiscardFormer) })
	return Step{
		Action: DiscardFormer, Members: gone, Reason: Retiring,
		Message: "deleting the volumes of the former members (" + list(gone) + ")",
	}, len(gone) > 0 && o.Reach == ReachQuorum && !o.Loss.Another
}

// startOver is what a person can do about a first start that cannot succeed.
func (o Observed) startOver() string {
	if o.InPlace.Begun {
		return "delete EtcdRestore " + o.InPlace.Name + ": the former members come back with their data"
	}
	return "delete the EtcdCluster and its PersistentVolumeClaims, and apply it again"
}
