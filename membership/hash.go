package membership

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Hash is what the data of a member amounts to (HashKV of etcd): every key and value up to a
// revision, and since the compacted one. Only hashes of the same two revisions can be compared. The
// zero Hash means that the member was not compared.
type Hash struct {
	Revision, Compacted int64
	Sum                 uint32
}

// comparable reports whether the sums of two hashes are of the same revisions.
func (h Hash) comparable(other Hash) bool {
	return h.Revision == other.Revision && h.Compacted == other.Compacted
}

// compared are the voters that were compared, in groups of equal data, the largest first; and the
// other voters. Hashes that cannot be compared with each other say nothing.
func (o Observed) compared() (groups [][]Instance, rest []Instance) {
	var of Hash
	for _, i := range o.voters() {
		if i.Hash == (Hash{}) {
			rest = append(rest, i)
			continue
		}
		if of == (Hash{}) {
			of = i.Hash
		}
		if !of.comparable(i.Hash) {
			return nil, o.voters()
		}
		n := slices.IndexFunc(groups, func(g []Instance) bool { return g[0].Hash == i.Hash })
		if n < 0 {
			n = len(groups)
			groups = append(groups, nil)
		}
		groups[n] = append(groups[n], i)
	}
	slices.SortStableFunc(groups, func(a, b []Instance) int { return cmp.Compare(len(b), len(a)) })
	return groups, rest
}

// right are the voters whose data is equal, where they are a quorum of all voters; else nil.
func (o Observed) right() []Instance {
	groups, _ := o.compared()
	voters := 0
	for _, m := range o.Members {
		if !m.Learner {
			voters++
		}
	}
	if len(groups) == 0 || len(groups[0]) < Quorum(voters) {
		return nil
	}
	return groups[0]
}

// Right reports whether the data of a voter is known to be that of a quorum. An only voter has no
// other to differ from.
func (o Observed) Right(i Instance) bool {
	right := slices.ContainsFunc(o.right(), func(j Instance) bool { return j.Name == i.Name })
	return right || len(o.voters()) == 1
}

// Differ reports whether two voters are known to have different data.
func (o Observed) Differ() bool {
	groups, _ := o.compared()
	return len(groups) > 1
}

// unproved is what is still to be shown before members come, or more go than have to, in words that
// follow "waiting until"; empty where nothing is. Those that stay may feed a learner: the leader,
// and each voter that serves, which may lead next. They have to be among a quorum of equal ones. A
// voter that is away is compared when it is back, and an only one has no other to differ from.
// Where one has gone wrong, has fed a learner, and is away before they are compared again, the
// learner gets its vote: those that are right are a quorum beside it (mayGrow), so that it is found
// then, and goes.
func (o Observed) unproved(stay []Instance) string {
	if len(o.voters()) == 1 {
		return ""
	}
	right := o.right()
	leads := func(i Instance) bool {
		return slices.ContainsFunc(o.voters(), func(j Instance) bool { return j.Serves() && j.Endpoint.Leader == i.ID })
	}
	missing := names(stay, func(i Instance) bool {
		equal := slices.ContainsFunc(right, func(j Instance) bool { return j.Name == i.Name })
		return !equal && (right == nil || i.Serves() || leads(i))
	})
	if len(missing) == 0 {
		return ""
	}
	return "the data of " + list(missing) + " has been compared with that of the other voters"
}

// corruptAlarms are the members that the alarm CORRUPT names; 0 is among them where it names none.
func (o Observed) corruptAlarms() []ID {
	var named []ID
	for _, i := range o.Instances {
		for _, a := range i.Endpoint.Alarms {
			if a.Kind == AlarmCorrupt {
				named = append(named, a.Member)
			}
		}
	}
	slices.Sort(named)
	return slices.Compact(named)
}

// camps says which voters agree with which, for messages.
func camps(groups [][]Instance, rest []Instance) string {
	var parts []string
	for _, group := range groups {
		members := make([]string, 0, len(group))
		for _, i := range group {
			members = append(members, i.Name+" ("+i.ID.String()+")")
		}
		verb := " has"
		if len(group) > 1 {
			verb = " have"
		}
		parts = append(parts, fmt.Sprintf("%s%s the hash %08x", list(members), verb, group[0].Hash.Sum))
	}
	if len(rest) > 0 {
		parts = append(parts, "not compared: "+problems(rest))
	}
	return strings.Join(parts, "; ")
}
