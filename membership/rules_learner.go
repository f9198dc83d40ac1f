package membership

import "slices"

// The rules of a learner: how one that was added becomes a voter, or goes again. There is one at
// most, and no other membership change but the removal of what is lost until it is one or the
// other.

// removeLearner: a learner that is wanted no more, or that cannot become a voter. Removing it takes
// nothing from the quorum.
func removeLearner(d Desired, o Observed) (Step, bool) {
	_, moves := moving(d, o)
	for _, i := range o.learners() {
		step := Step{Action: Remove, Members: []string{i.Name}, ID: i.ID}
		switch {
		case i.Volume.Unfit != "":
			step.Reason, step.Message = Moving, "removing the learner "+i.Name+", whose volume "+i.Volume.Unfit
		case len(o.voters()) >= d.Size && !moves && len(o.undecided()) == 0:
			step.Reason, step.Message = ScalingDown, "removing the learner "+i.Name+", which is not needed any more"
		case lostLearner(d, o, i):
			step.Reason, step.Message = MemberLost, "removing the learner "+i.Name+", whose data is gone; another one takes its place"
		case i.Pod.Forsaken && i.Endpoint.Member() == 0:
			step.Reason, step.Message = MemberFailed, "removing the learner "+i.Name+", which "+problem(i)+"; another one takes its place"
		default:
			continue
		}
		return step, true
	}
	return Step{}, false
}

// lostLearner: neither has it data, nor is there a volume on which it has yet to start. On a volume
// that was given to it it may start as often as it likes until it is known to hold its data: it has
// no vote yet.
func lostLearner(d Desired, o Observed, i Instance) bool {
	if o.holds(i) && !i.Volume.Terminating {
		return false
	}
	if i.Volume.InDoubt() {
		return !i.Pod.Exists() // it has no vote, and nothing of its volume is touched
	}
	if d.Ephemeral {
		return i.Volume.Terminating || !i.Pod.Exists() && o.Member(i.ID).Name != ""
	}
	return !i.Volume.Stays() || i.Volume.Recorded() || !i.Volume.Spare && i.Volume.Joins != i.ID
}

// startLearner: a learner gets its Pod, told of all members as etcd lists them now. Earlier it
// would exit: etcd has to list a member before it can join.
func startLearner(d Desired, o Observed) (Step, bool) {
	for _, i := range o.learners() {
		if o.holds(i) || i.Pod.Exists() && (!i.Pod.Provisions || i.Pod.Terminating) {
			continue
		}
		return Step{
			Action: Join, Members: []string{i.Name}, ID: i.ID, Version: runningVersion(d, o), Reason: Joining,
			Message: "starting the learner " + i.Name,
		}, true
	}
	return Step{}, false
}

// promoteLearner: etcd itself judges whether the learner has caught up. It does not ask whether it
// still runs, nor what becomes of the quorum if it does not; and a voter must never start empty.
// One that follows the leader need not serve clients yet: it counts as failing for those that come
// after it until it does. The second of two must, for without it nothing is decided. A learner
// cannot be compared itself (etcd answers HashKV on voters alone): its data is right if the voters
// are equal still after it has got it.
func promoteLearner(d Desired, o Observed) (Step, bool) {
	for _, i := range o.learners() {
		fit := i.Serves() || i.Publishes() && len(o.voters()) > 1
		if !fit || !i.Volume.Recorded() || i.Volume.Replaced || i.Pod.Unfenced || i.Pod.Terminating || !o.mayGrow() {
			continue
		}
		step := Step{
			Action: Promote, Members: []string{i.Name}, ID: i.ID, Reason: Joining,
			Message: "making the learner " + i.Name + " a voter",
		}
		_, moves := moving(d, o)
		if undecided := o.undecided(); len(undecided) > 0 && len(o.voters()) >= d.Size && !moves {
			return untilDecided(undecided, "the learner "+i.Name+" becomes a voter, or goes"), true
		}
		if unproved := o.unproved(o.voters()); unproved != "" {
			return Step{Action: Wait, Reason: Joining, Message: "waiting until " + unproved + ", before " + step.Message}, true
		}
		return step, true
	}
	return Step{}, false
}

func waitForLearner(d Desired, o Observed) (Step, bool) {
	learners := o.learners()
	if i, ok := failed(d, o); ok && !o.mayGrow() && learners[0].Serves() {
		return replaces(i), true // neither would ever come to an end otherwise, and the learner is its successor
	}
	inDoubt := func(i Instance) bool { return i.Volume.InDoubt() && !i.Serves() }
	if learners[0].Volume.InDoubt() || !o.mayGrow() && slices.ContainsFunc(o.voters(), inDoubt) {
		return volumeReplaced(d, o) // time does not help
	}
	step := Step{Action: Wait, Reason: Joining, Message: "waiting for the learner to catch up: " + problems(learners)}
	waiting := learners
	if !o.mayGrow() {
		for _, i := range o.voters() {
			if !i.Serves() {
				waiting = append(waiting, i)
			}
		}
		step.Message = "waiting for voters that do not serve, before the learner becomes one: " + problems(waiting)
	}
	return needsPerson(step, waiting), true
}
