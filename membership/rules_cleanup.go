package membership

import (
	"fmt"
	"slices"
	"strings"
)

// The rules for what does not belong to the cluster: members of others, and what is left of
// removed members.

func unmanagedMember(d Desired, o Observed) (Step, bool) {
	var foreign, commands []string
	for _, m := range o.Members {
		known := names(o.Instances, func(i Instance) bool { return i.ID == m.ID })
		if len(known) == 0 {
			foreign = append(foreign, strings.TrimSpace(fmt.Sprintf("%s %s (%s)", shown(m.Name), m.ID, shown(list(m.PeerURLs)))))
			commands = append(commands, d.etcdctl(o.anyVoter(), "member remove "+m.ID.String()))
		}
	}
	slices.Sort(foreign)
	slices.Sort(commands)
	return Step{
		Action: Stall, Reason: ForeignMember,
		Message: "etcd lists members that Quorate did not make: " + strings.Join(foreign, ", ") + ". To remove them, run: " + strings.Join(commands, "; "),
	}, len(foreign) > 0
}

// cleanUpRemovedMembers deletes the Pods of removed members, and their volumes as
// spec.storage.retention says, once all voters serve. The same goes for prepared volumes that are
// not needed any more.
func cleanUpRemovedMembers(d Desired, o Observed) (Step, bool) {
	surplus := map[string]bool{}
	wanted := wanting(d, o) + len(names(o.voters(), o.lost)) // what was made for the place of a lost member is needed when it is removed
	for n, i := range o.spares() {
		surplus[i.Name] = n >= wanted && len(o.undecided()) == 0 || i.Volume.Unfit != ""
	}
	var former []Instance
	for _, i := range o.Instances {
		if o.Member(i.ID) == nil && (!i.Volume.Spare || surplus[i.Name]) {
			former = append(former, i)
		}
	}
	step := Step{Reason: Retiring}
	if running := names(former, func(i Instance) bool { return i.Pod.Exists() && !i.Pod.Terminating }); len(running) > 0 {
		step.Action, step.Members = Stop, running
		step.Message = "stopping " + list(running) + ", no members any more"
		return step, true
	}
	discard := names(former, func(i Instance) bool {
		return i.Volume.Stays() && !i.Volume.Retired && !i.Volume.Replaced && i.Volume.Aside == "" && (i.Volume.Spare || o.allServe())
	})
	step.Action, step.Members = Discard, discard
	step.Message = "deleting the volumes of " + list(discard) + ", no members any more"
	if d.Retain {
		step.Message = "retiring the volumes of " + list(discard) + ", no members any more; they are kept"
	}
	return step, len(discard) > 0
}
