package membership

import (
	"errors"
	"slices"
)

// promisesMove are those about members that are replaced because of its volume.
func promisesMove(d Desired, o Observed, s Step) error {
	serving, voters := others(o, 0)
	leaves, large := false, false
	for _, i := range o.Instances {
		if m := listing(o, i.ID); m != nil && !m.Learner {
			leaves = leaves || i.Volume.Unfit != "" || (!i.Volume.Stays() || i.Volume.Retired) && i.Pod.Exists() && !i.Pod.Terminating
			large = large || d.Room > 0 && i.Endpoint.DBSize >= d.Room
		}
	}
	open, taken := len(o.undecided()) > 0, false // it is not known whether a volume can grow, and one too many is taken away for it
	for _, i := range o.Instances {
		named := slices.Contains(s.Members, i.Name)
		spare := s.Reason == Retiring && i.Volume.Spare && i.Volume.Unfit == "" && listing(o, i.ID) == nil
		surplus := s.Action == Remove && s.Reason == ScalingDown && o.leaves(i) == "" && (i.Serves() || learns(o, i.ID))
		taken = taken || named && (spare || surplus)
	}
	comes := s.Action == Provision && s.Reason == Moving || s.Action == AddLearner && voters >= d.Size
	switch {
	case open && taken:
		return errors.New("what may be a successor goes")
	case open && s.Action == Promote && voters >= d.Size && !leaves:
		return errors.New("one more member than wanted votes, and maybe in no other's place")
	case s.Action == Update && s.Change == ChangeImage && slices.ContainsFunc(o.Instances, func(i Instance) bool {
		return slices.Contains(s.Members, i.Name) && i.Pod.Undecided
	}):
		return errors.New("a policy may be passed by")
	case comes && (voters != d.Size || !leaves):
		return errors.New("one more member than wanted comes, in no other's place")
	case comes && large:
		return errors.New("the database is too large for the new volume")
	case comes && s.Action == AddLearner && serving < voters:
		return errors.New("a successor comes while a voter does not serve")
	case (s.Action == Remove || s.Action == MoveLeader) && s.Reason == Moving && voters <= d.Size && !learns(o, s.ID):
		return errors.New("a member goes before its successor votes")
	case s.Action == Remove && serves(o, s.ID) && !learns(o, s.ID) && voters <= d.Size && s.Reason != CorruptMember:
		return errors.New("a member that serves goes, and fewer than wanted stay")
	case (s.Action == AddLearner || s.Action == Promote) && slices.ContainsFunc(o.Instances, func(i Instance) bool {
		return slices.Contains(s.Members, i.Name) && i.Volume.Unfit != ""
	}):
		return errors.New("a member comes to a volume that the spec does not ask for")
	default:
		return nil
	}
}

func serves(o Observed, id ID) bool {
	return slices.ContainsFunc(o.Instances, func(i Instance) bool {
		return i.ID == id && i.Serves() && i.Pod.Exists() && !i.Pod.Terminating && !i.Pod.Ended
	})
}

func learns(o Observed, id ID) bool {
	m := listing(o, id)
	return m != nil && m.Learner
}
