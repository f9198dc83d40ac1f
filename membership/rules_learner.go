package membership

import "slices"

// The rules of a learner: it becomes a voter, or is removed again. There is one learner at most.
// Until it votes or is removed, the only other membership change is the removal of a lost member.

// removeLearner removes a learner that is not needed any more, or cannot become a voter. It has no
// vote, so this does not touch the quorum.
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

// lostLearner reports whether a learner has neither data nor a volume on which it can start. Until
// the volume is recorded to hold its data, the learner may start on it empty any number of times:
// it has no vote.
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

// startLearner creates the Pod of a learner, with all listed members as its initial cluster. etcd
// has to list a member before that member starts: otherwise it exits.
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

// promoteLearner: etcd checks whether the learner has caught up. It does not check whether the
// learner still runs and the quorum would hold, so that is checked here; nor may a voter ever start
// empty. A learner that follows the leader is promoted before it serves clients, and later members
// wait until it does. As the second voter of two it must serve first, because without it there is
// no quorum. A learner's data cannot be compared (etcd answers HashKV only on voters): it is right
// if the voters are still equal after the learner got it.
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
	return needsPerson(d, step, waiting), true
}
