package membership

// Phases in the order of their authority: the first rule that decides wins, so the order is the
// policy.
var Phases = []Phase{
	{"guards", "", nil, []Rule{
		{"deleting", "Nothing is created for an EtcdCluster that is being deleted.", deleting},
		{"nameConflict", "A Pod or PersistentVolumeClaim with the name of a member has another owner.", nameConflict},
		{"restoreDeleted", "A restore in place takes no further step when its EtcdRestore is deleted.", restoreDeleted},
		{"stopFormerMembers", "A restore in place stops the former members and sets their volumes aside before anything new is created.", stopFormerMembers},
		{"revertRestore", "If the EtcdRestore of a restore in place is deleted, the new members are removed before the former ones return.", revertRestore},
		{"orphanedVolumes", "Volumes were set aside for a restore in place that the status does not name.", orphanedVolumes},
		{"clusterIDMismatch", "Volumes and members report several etcd cluster IDs, and only an administrator can choose one.", clusterIDMismatch},
		{"hibernate", "With spec.replicas 0 all Pods are deleted and all volumes are kept.", hibernate},
		{"restoreInPlace", "An EtcdRestore begins once its snapshot is found.", restoreInPlace},
	}},
	{"repairs", "", nil, []Rule{
		{"recordLaterMinor", "A member on whose data a later minor of etcd has run is recorded as such; with its data in memory, its Pod gets that minor in place.", recordLaterMinor},
		{"recreateExpired", "Members that trust only an authority that has expired are recreated together.", recreateExpired},
		{"rollback", "A member that does not come up after an update gets its earlier image and options back.", rollback},
		{"cancelUpdate", "An update of a Pod on a silent node is reverted when the spec no longer asks for it.", cancelUpdate},
		{"recreateStuckPod", "A Pod that has ended for good, or cannot start and was created from an earlier spec, is recreated.", recreateStuckPod},
		{"repairInPlace", "A Pod that does not serve, and has its data in memory, gets the corrected image, or cpu and memory, in place.", repairInPlace},
		{"stopOnReplacedVolume", "A Pod that has not started yet is deleted when its PersistentVolumeClaim is not the recorded one.", stopOnReplacedVolume},
	}},
	{"forming", "The cluster has never formed.", neverFormed, []Rule{
		{"volumeLostWhileForming", "The volume of a first member is gone, and that member may have voted already.", volumeLostWhileForming},
		{"chooseSnapshot", "The snapshot that all first members start from is chosen once.", chooseSnapshot},
		{"provisionVolumes", "The volumes of all first members are created together.", provisionVolumes},
		{"copyData", "In a restore in place from a member, the first new member gets a copy of its data before its Pod is created.", copyData},
		{"bootstrap", "The Pods of all first members are created together.", bootstrap},
		{"recordFormed", "The status records that the cluster has formed when etcd lists exactly the first members.", recordFormed},
		{"waitForForming", "The first members have not found each other yet.", waitForForming},
	}},
	{"starts", "The cluster has formed.", nil, []Rule{
		{"startMembers", "A volume that holds a member's data gets its Pod.", startMembers},
		{"readmitVolumes", "A volume of a current member loses the mark of a restore in place that was reverted.", readmitVolumes},
		{"recordMembers", "The member ID and cluster ID that a member reports are recorded on its volume.", recordMembers},
	}},
	{"quorum", "No quorum answers.", withoutQuorum, []Rule{
		{"recreateBackedOffPod", "A Pod in CrashLoopBackOff is recreated, because a new Pod starts at once.", recreateBackedOffPod},
		{"quorumOnReplacedVolumes", "A quorum depends on restored or copied volumes, which only an administrator can accept.", quorumOnReplacedVolumes},
		{"lostMajority", "Too few members have their data for a quorum.", lostMajority},
		{"quorumLost", "Enough members for a quorum have their data, and do not answer yet.", quorumLost},
	}},
	{"cleanup", "A quorum answers.", nil, []Rule{
		{"unmanagedMember", "etcd lists a member that Quorate did not create.", unmanagedMember},
		{"corruptMember", "A member whose data differs from that of a quorum is removed.", corruptMember},
		{"cleanUpRemovedMembers", "Pods and volumes of members that etcd no longer lists are deleted.", cleanUpRemovedMembers},
	}},
	{"membership", "Members are to be added or removed.", incomplete, []Rule{
		{"finishUpdateFirst", "A member that is being updated comes back before membership changes.", finishUpdateFirst},
		{"cancelDowngrade", "etcd adds no member during a downgrade.", cancelDowngrade},
		{"removeLostVoter", "A voter whose data is gone is removed before its successor is added.", removeLostVoter},
	}},
	{"learner", "A learner exists.", hasLearner, []Rule{
		{"removeLearner", "A learner that is not needed, or cannot become a voter, is removed.", removeLearner},
		{"startLearner", "A learner that etcd lists gets its Pod.", startLearner},
		{"promoteLearner", "A learner that has caught up becomes a voter.", promoteLearner},
		{"waitForLearner", "Other members are added or removed only after the learner votes or is removed.", waitForLearner},
	}},
	{"size", "No learner exists.", nil, []Rule{
		{"prepareVolumes", "The volumes of all new members are created together.", prepareVolumes},
		{"replaceFailedVoter", "A voter that is down for spec.recovery.replaceAfter is removed once the volume of its successor is ready.", replaceFailedVoter},
		{"removeSurplusVoter", "The least healthy voter is removed when there are more voters than spec.replicas.", removeSurplusVoter},
		{"addLearner", "The next member joins as a learner when there are fewer voters than spec.replicas.", addLearner},
		{"waitForVolumes", "The volume of the next member is not ready yet.", waitForVolumes},
	}},
	{"alarms", "An alarm of etcd is raised.", hasAlarm, []Rule{
		{"disarmNoSpace", "The alarm NOSPACE is disarmed when every member has room.", disarmNoSpace},
		{"alarmRaised", "etcd refuses writes because of the alarm NOSPACE, and no update that makes room is under way.", alarmRaised},
	}},
	{"waits", "", nil, []Rule{
		{"volumeReplaced", "A PersistentVolumeClaim is not the recorded one, and only an administrator can accept it.", volumeReplaced},
		{"memberDown", "A voter does not answer.", memberDown},
	}},
	{"updates", "All voters serve.", nil, []Rule{
		{"volumeTooSmall", "The database is larger than a new volume allows.", volumeTooSmall},
		{"versionMismatch", "An image runs another version of etcd than its tag says.", versionMismatch},
		{"waitForUpdate", "The member that was updated last is ready before the next one is updated.", waitForUpdate},
		{"expandVolumesMeanwhile", "Volumes grow although an update failed or cannot be carried out.", expandVolumesMeanwhile},
		{"updateFailed", "An update that was rolled back is not tried again before the spec changes.", updateFailed},
		{"quotaTooSmall", "The database would reach the quota that the spec asks for.", quotaTooSmall},
		{"rewriteWAL", "Members save a snapshot, so that their WAL has no entries of etcd 3.5, which 3.7 cannot read.", rewriteWAL},
		{"prepareDowngrade", "etcd makes its data readable for the earlier minor before a member runs it.", prepareDowngrade},
		{"versionNotAllowed", "No path leads from the running version to spec.version.", versionNotAllowed},
		{"expandVolumesFirst", "The volumes of a full database grow before members get a quota that needs them.", expandVolumesFirst},
		{"updateMember", "One member at a time is updated to the spec, the leader last.", updateMember},
		{"expandVolumes", "Volumes that are smaller than spec.storage.size grow together.", expandVolumes},
		{"waitForExpansion", "A volume has not reached its new size yet.", waitForExpansion},
	}},
	{"rest", "", nil, []Rule{
		{"discardFormerVolumes", "An EtcdRestore asks for the volumes of the former members to be deleted.", discardFormerVolumes},
		{"waitForTerminatingPods", "A voter whose Pod is being deleted still answers, but not for long.", waitForTerminatingPods},
		{"healthy", "Nothing is left to do.", healthy},
	}},
}

func neverFormed(_ Desired, o Observed) bool { return !o.Formed() }

func withoutQuorum(_ Desired, o Observed) bool { return o.Reach != ReachQuorum }

func hasLearner(_ Desired, o Observed) bool { return len(o.learners()) > 0 }

func hasAlarm(_ Desired, o Observed) bool { return len(o.alarms()) > 0 }
