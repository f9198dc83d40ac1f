package membership

// A rule looks at the facts and either decides, or leaves the decision to the rules after it.
type rule func(Desired, Observed) (Step, bool)

// rules in the order of their authority: the first that decides wins, so the order is the policy.
var rules = []rule{
	deleting,         // what is being deleted gets nothing new
	foreignInstance,  // a volume or Pod with a name of ours has another owner: touch nothing
	withdrawn,        // a restore in place that was deleted does nothing more
	formerStopped,    // former members, which a restore in place has replaced, never run again, and their volumes are set aside
	revertedTo,       // a restore in place is taken back
	strayFormer,      // volumes that were set aside, and nothing tells for what
	mixedClusters,    // two cluster IDs under one name: no choice between them is ours
	hibernated,       // zero replicas: stop all, keep all volumes
	replaced,         // a restore in place begins, once there is a snapshot for it
	outgrown,         // a later minor has run on a member's data, unseen: it is written down
	expired,          // members that trust expired authorities alone start again, all at once
	putBack,          // a changed member that does not come up gets back what it ran before
	unarmed,          // a change that a silent node has yet to hear of is taken back, where the spec was set back
	unstuck,          // a Pod that runs nothing and has ended, or was made from an older spec: recreate it
	withheld,         // a Pod that has yet to start on a volume that is not its member's goes
	lostWhileForming, // a first member's volume was exchanged: it may have voted already
	chosen,           // the snapshot from which a new cluster starts is chosen once
	provisioned,      // first members get their volumes, all at once
	copied,           // the first member gets the data of a former one, where that is restored
	bootstrapped,     // first members start together, and only while the cluster has never formed
	formed,           // all first members agree on the cluster and its members: write it down
	forming,          // wait for the first members to find each other
	started,          // a Pod for every volume that holds a member's data, all at once: no membership change
	markedLate,       // the mark of a restore in place that was taken back has come late
	recorded,         // a member that answers proves whose data its volume holds
	backedOff,        // no kubelet's back-off is waited for while there is no quorum
	replacedMajority, // a quorum depends on volumes that only a person can accept
	lostMajority,     // too few volumes are left for a quorum: start nothing empty, ever
	quorumLost,       // the volumes are there, the members not yet: only wait
	foreignMember,    // etcd lists a member that Quorate did not make: report it, do not remove it
	corrupt,          // members whose data differs from that of a quorum go; an alarm is only an accusation
	retired,          // the Pods and volumes of former members go
	halfway,          // a member that is being changed is back before members come or go
	interrupted,      // no downgrade while a member is missing
	lostVoter,        // one voter's data is gone: remove it before anything is added
	givenUp,          // a learner that is wanted no more, or that cannot become a voter, goes
	joined,           // a learner gets its Pod
	promoted,         // a learner that has caught up becomes a voter
	joining,          // one learner at a time
	prepared,         // the volumes of all members to come, at once
	failedVoter,      // a member that has been down for long goes, once its successor can be made
	shrunk,           // too many voters: the least valuable one goes
	added,            // too few: the next learner
	preparing,        // wait for the volumes of members to come
	disarmed,         // every member has room: the alarm NOSPACE is taken back
	alarmed,          // etcd refuses writes, and nothing is under way that gives room
	volumeReplaced,   // a volume is another object than the recorded one: accept it, or give its member up
	memberDown,       // a voter does not answer: wait, and say why
	cramped,          // a database that is too large for the volumes that members are to move to
	mislabelled,      // what runs is not what the image's name says
	underWay,         // the member that was changed last must be back first
	abandoned,        // a change that did not work is not tried again
	quotaTooSmall,    // a database that would be full with what the spec asks for
	logRewritten,     // a log with entries that the next minor cannot read is rewritten
	downgraded,       // back to an earlier minor: etcd prepares its data first
	noPath,           // a version that cannot be reached from the one that runs
	grownFirst,       // while the database is full: volumes, before a quota that needs them
	updated,          // members that do not run yet what the spec asks for, one after the other
	grown,            // volumes that are to be larger, all at once
	growing,          // and they are
	formerDiscarded,  // the volumes of former members go, where that is asked for
	healthy,          // nothing to do
}

// Plan decides the one next step. It is total and deterministic: the same facts give the same step.
// While the cluster is suspended, a step that is not at rest becomes the remark that it would come
// next.
func Plan(d Desired, o Observed) Step { return plan(rules, d, o) }

func plan(rules []rule, d Desired, o Observed) Step {
	for _, decide := range rules {
		step, ok := decide(d, o)
		if !ok {
			continue
		}
		if d.Suspended && step.Action != None {
			return Step{Action: None, Reason: Suspended, Message: "suspended by spec.suspend; without it: " + step.Message}
		}
		return step
	}
	panic("membership: the last rule decides always")
}
