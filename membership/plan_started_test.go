package membership

import "testing"

func TestPlanStarted(t *testing.T) {
	testPlan(t, map[string]planCase{
		// startMembers
		"Start": {
			reason: "A deleted Pod comes back on its volume at once",
			base:   formed3,
			args:   []change{on(1, noPod)},
			want: Step{
				Action: Start, Members: []string{"m-1"}, Version: etcd36, Reason: Starting,
				Message: "starting m-1 on the volumes that hold their data",
			},
		},
		"StartAll": {
			reason: "All of them together, with nothing but the volumes to go by",
			base:   formed3,
			args:   []change{noLatch, nobodyAnswers, onAll(noPod), onAll(func(i *Instance) { i.ID = i.Volume.MemberID })},
			want: Step{
				Action: Start, Members: []string{"m-0", "m-1", "m-2"}, Version: etcd36, Reason: Starting,
				Message: "starting m-0, m-1, m-2 on the volumes that hold their data",
			},
		},
		"StartRetainedUnderNewToken": {
			reason: "An EtcdCluster that is applied again over retained volumes has their data, and is not bootstrapped",
			base:   formed3,
			args:   []change{noLatch, nobodyAnswers, onAll(noPod), func(d *Desired, _ *Observed) { d.Token = "newer" }},
			want: Step{
				Action: Start, Members: []string{"m-0", "m-1", "m-2"}, Version: etcd36, Reason: Starting,
				Message: "starting m-0, m-1, m-2 on the volumes that hold their data",
			},
		},
		"StartVersionOfVolume": {
			reason: "The version that ran on the volume can read it; the others follow in the next pass",
			base:   formed3,
			args: []change{
				nobodyAnswers, onAll(noPod), func(d *Desired, _ *Observed) { d.Version = etcd37 },
				on(2, func(i *Instance) { i.Volume.Version = etcd37 }),
			},
			want: Step{
				Action: Start, Members: []string{"m-0", "m-1"}, Version: etcd36, Reason: Starting,
				Message: "starting m-0, m-1 on the volumes that hold their data",
			},
		},
		"StartVersionUnknown": {
			reason: "A volume that does not say gets what the spec says",
			base:   formed3,
			args:   []change{on(1, noPod), on(1, func(i *Instance) { i.Volume.Version = Version{} })},
			want: Step{
				Action: Start, Members: []string{"m-1"}, Version: etcd36, Reason: Starting,
				Message: "starting m-1 on the volumes that hold their data",
			},
		},
		"StartUnrecorded": {
			reason: "A volume of a known member whose record got lost is started: empty, it would refuse to",
			base:   formed3,
			args:   []change{on(1, noPod), on(1, unrecorded)},
			want: Step{
				Action: Start, Members: []string{"m-1"}, Version: etcd36, Reason: Starting,
				Message: "starting m-1 on the volumes that hold their data",
			},
		},
		"StartNotUnrecordedOfAnotherStart": {
			reason: "A volume that was made for another first start is not this member's",
			base:   formed3,
			args:   []change{on(1, noPod), on(1, earlierVolume)},
			want: Step{
				Action: Remove, Members: []string{"m-1"}, ID: 0xa1, Reason: MemberLost,
				Message: "removing m-1, whose data is gone; a new member takes its place",
			},
		},
		"StartNotRemovedEarlier": {
			reason: "The only member is stopping and is not asked, and etcd's list was read without the other one: that would exit at once",
			base:   formed1,
			args:   []change{leftover(1), on(1, noPod), nobodyAnswers, on(1, forgottenID), on(0, stopping)},
			want:   Step{Action: Wait, Reason: Unreachable, Message: "no member answers: m-0 is terminating"},
		},
		"StartNotListed": {
			reason: "Where those of the last list do not come, that list may have been an early one",
			base:   formed1,
			args:   []change{leftover(1), on(1, noPod), nobodyAnswers, on(1, forgottenID), on(0, overdue)},
			want: Step{
				Action: Start, Members: []string{"m-1"}, Version: etcd36, Reason: Starting,
				Message: "starting m-1 on the volumes that hold their data",
			},
		},
		"StartNotListedBesideOneThatAnswers": {
			reason: "All those of the last list answer, and are no quorum",
			base:   formed1,
			args:   []change{leftover(1), on(1, noPod), noQuorum, on(1, forgottenID)},
			want: Step{
				Action: Start, Members: []string{"m-1"}, Version: etcd36, Reason: Starting,
				Message: "starting m-1 on the volumes that hold their data",
			},
		},
		"StartNotGoing": {
			reason: "A Pod on a volume that is being deleted would only lose it later",
			base:   formed3,
			args:   []change{on(1, noPod), on(1, going)},
			want: Step{
				Action: Remove, Members: []string{"m-1"}, ID: 0xa1, Reason: MemberLost,
				Message: "removing m-1, whose data is gone; a new member takes its place",
			},
		},
		"StartNotWhileStopping": {
			reason: "The earlier Pod must be gone first",
			base:   formed3,
			args:   []change{on(1, silent), on(1, stopping)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-1 is terminating"},
		},
		"StartNotRemoved": {
			reason: "etcd would exit at once, for ever",
			base:   formed3,
			args:   []change{on(2, noPod), removed(2)},
			want: Step{
				Action: Discard, Members: []string{"m-2"}, Reason: Retiring,
				Message: "deleting the volumes of m-2, no members any more",
			},
		},
		"StartNotAnotherMember": {
			reason: "The volume is of a member that etcd's list has under another ID",
			base:   formed3,
			args:   []change{on(1, noPod), on(1, func(i *Instance) { i.Volume.MemberID = 0xff })},
			want: Step{
				Action: Remove, Members: []string{"m-1"}, ID: 0xa1, Reason: MemberLost,
				Message: "removing m-1, whose data is gone; a new member takes its place",
			},
		},
		"StartWithStaleID": {
			reason: "A remembered ID may be of an earlier cluster; the record on the volume counts",
			base:   formed3,
			args:   []change{nobodyAnswers, onAll(noPod), onAll(func(i *Instance) { i.ID = 0xff })},
			want: Step{
				Action: Start, Members: []string{"m-0", "m-1", "m-2"}, Version: etcd36, Reason: Starting,
				Message: "starting m-0, m-1, m-2 on the volumes that hold their data",
			},
		},
		"StartBeforeLostMajority": {
			reason: "What has data is started even where it cannot be a quorum: a person may want to look at it",
			base:   formed3,
			args:   []change{nobodyAnswers, on(0, noPod), on(1, gone), on(2, gone)},
			want: Step{
				Action: Start, Members: []string{"m-0"}, Version: etcd36, Reason: Starting,
				Message: "starting m-0 on the volumes that hold their data",
			},
		},

		// recordMembers
		"Record": {
			reason: "A member that answers proves whose data its volume holds",
			base:   formed3,
			args:   []change{on(1, unrecorded)},
			want: Step{
				Action: Record, Members: []string{"m-1"}, Reason: Recording,
				Message: "recording the member and cluster ID on the volumes of m-1",
			},
		},
		"RecordVersion": {
			reason: "The version that runs now is the one to start next time",
			base:   formed3,
			args: []change{
				func(d *Desired, _ *Observed) { d.Version = etcd37 },
				on(2, func(i *Instance) { i.Endpoint.Version = etcd37 }),
			},
			want: Step{
				Action: Record, Members: []string{"m-2"}, Reason: Recording,
				Message: "recording the member and cluster ID on the volumes of m-2",
			},
		},
		"RecordNotGoing": {
			reason: "What is being deleted is not written to",
			base:   formed3,
			args:   []change{on(1, unrecorded), on(1, going)},
			want: Step{
				Action: Provision, Members: []string{"m-3"}, Version: etcd36, Reason: Moving,
				Message: "preparing the volume of m-3, to take the place of m-1, whose volume is being deleted",
			},
		},
		"RecordNotWithoutQuorum": {
			reason: "Only a linearizable list says which members there are",
			base:   formed3,
			args:   []change{noQuorum, on(1, unrecorded)},
			want: Step{
				Action: Wait, Reason: QuorumLost,
				Message: "no quorum answers: m-0 knows no leader; m-1 knows no leader; m-2 knows no leader",
			},
		},
	})
}
