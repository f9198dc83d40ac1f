package membership

import "errors"

// promisesHash are those about whose data is right, counted again.
func promisesHash(o Observed, s Step) error {
	voters, unknown, mixed, most := 0, 0, false, 0
	equal := map[Hash]int{}
	var first Hash
	for _, i := range o.Instances {
		m := listing(o, i.ID)
		if m == nil || m.Learner {
			continue
		}
		voters++
		switch {
		case i.Hash == Hash{}:
			if i.Serves() {
				unknown++
			}
			continue
		case first == Hash{}:
			first = i.Hash
		case first.Revision != i.Hash.Revision || first.Compacted != i.Hash.Compacted:
			mixed = true
		}
		equal[i.Hash]++
		most = max(most, equal[i.Hash])
	}
	proved := !mixed && most >= voters/2+1
	i, _ := o.Instance(append(s.Members, "")[0])
	m := listing(o, i.ID)
	switch {
	case s.Action == Remove && s.Reason == CorruptMember && !m.Learner && (!proved || i.Hash == Hash{} || equal[i.Hash] == most):
		return errors.New("it is not shown to differ from a quorum")
	case s.Action == MoveLeader && s.Reason == CorruptMember && (!proved || equal[i.Hash] != most):
		return errors.New("it is not shown to be right")
	case s.Action == Disarm && s.Alarm == AlarmCorrupt && listing(o, s.ID) != nil && (!proved || len(equal) > 1):
		return errors.New("the alarm is that of a member, and no quorum is equal, or another one differs")
	case (s.Action == AddLearner || s.Action == Promote) && voters > 1 && (!proved || len(equal) > 1 || unknown > 0):
		return errors.New("a learner is fed, or gets a vote, though not all voters that serve are equal")
	case s.ChangesMembership() && s.Reason != CorruptMember && !mixed && len(equal) > 1:
		return errors.New("members come or go while voters differ")
	default:
		return nil
	}
}
