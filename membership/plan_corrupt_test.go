package membership

import (
	"strings"
	"testing"
)

func TestPlanCorrupt(t *testing.T) {
	const alarmRaised = "etcd has raised the alarm CORRUPT, and refuses writes: members disagree about the data. "
	undecided := func(members ...string) string {
		var reads, ids []string
		for _, member := range members {
			reads = append(reads, "kubectl exec "+member+" -c etcd -- etcdctl get KEY --consistency=s")
			ids = append(ids, "a"+strings.TrimPrefix(member, "m-")+" for "+member)
		}
		return ". Quorate cannot tell which data is right, and adds and removes no member. 1. Set spec.storage.retention.whenScaled to Retain: the volume of a member that you remove is deleted otherwise. 2. Look at the data of each member: " + strings.Join(reads, "; ") +
			". 3. Remove the members whose data is wrong, one after the other: kubectl exec POD_OF_A_RIGHT_MEMBER -c etcd -- etcdctl member remove ID, where ID is " + strings.Join(ids, ", ") + ". 4. Disarm the alarm, if there is one: kubectl exec POD_OF_A_RIGHT_MEMBER -c etcd -- etcdctl alarm disarm"
	}
	removed2 := Step{
		Action: Remove, Members: []string{"m-2"}, ID: 0xa2, Reason: CorruptMember,
		Message: "removing m-2, whose data differs from that of a quorum (m-0, m-1); a new member takes its place",
	}
	away := func(n int) change { return on(n, func(i *Instance) { silent(i); i.Pod.Problem = "is away" }) }
	testPlan(t, map[string]planCase{
		"MinorityOfThree": {
			reason: "What differs from a quorum of equal ones is wrong, with an alarm or without",
			base:   formed3,
			args:   []change{hash(2, 0xbad)},
			want:   removed2,
		},
		"MinorityNotTheAccused": {
			reason: "The leader is wrong, and etcd names a right follower: the leadership goes first",
			base:   formed3,
			args:   []change{hash(0, 0xbad), corruptAlarm(0xa1), on(2, func(i *Instance) { i.Endpoint.RaftIndex = 10 })},
			want: Step{
				Action: MoveLeader, Members: []string{"m-2"}, ID: 0xa2, Reason: CorruptMember,
				Message: "moving the leadership from m-0 (its data differs from that of a quorum) to m-2",
			},
		},
		"MinorityLedBefore": {
			reason: "Once another one leads it goes",
			base:   formed3,
			args:   []change{hash(0, 0xbad), corruptAlarm(0xa1), leader(2)},
			want: Step{
				Action: Remove, Members: []string{"m-0"}, ID: 0xa0, Reason: CorruptMember,
				Message: "removing m-0, whose data differs from that of a quorum (m-1, m-2); a new member takes its place",
			},
		},
		"MinorityLearnerFirst": {
			reason: "A learner may have been fed by the one that is wrong",
			base:   formed3,
			args:   []change{size(4), learner(3), hash(0, 0xbad)},
			want: Step{
				Action: Remove, Members: []string{"m-3"}, ID: 0xa3, Reason: CorruptMember,
				Message: "removing the learner m-3, which may have got its data from a member whose data differs; another one takes its place",
			},
		},
		"MinorityOfFive": {
			reason: "One of two after the other, the newest first",
			base:   formed5,
			args:   []change{hash(1, 0xbad), hash(4, 0xbad)},
			want: Step{
				Action: Remove, Members: []string{"m-4"}, ID: 0xa4, Reason: CorruptMember,
				Message: "removing m-4, whose data differs from that of a quorum (m-0, m-2, m-3); a new member takes its place",
			},
		},
		"MinorityEachItsOwn": {
			reason: "Those that differ need not be equal",
			base:   formed5,
			args:   []change{hash(1, 0xbad), hash(4, 0xbae)},
			want: Step{
				Action: Remove, Members: []string{"m-4"}, ID: 0xa4, Reason: CorruptMember,
				Message: "removing m-4, whose data differs from that of a quorum (m-0, m-2, m-3); a new member takes its place",
			},
		},
		"MinorityBesideOneAway": {
			reason: "Three of five are equal whatever the one that is away has",
			base:   formed5,
			args:   []change{hash(1, 0xbad), away(4)},
			want: Step{
				Action: Remove, Members: []string{"m-1"}, ID: 0xa1, Reason: CorruptMember,
				Message: "removing m-1, whose data differs from that of a quorum (m-0, m-2, m-3); a new member takes its place",
			},
		},
		"MinorityWithoutQuorumOfTheRest": {
			reason: "Those that are right must serve without it",
			base:   formed3,
			args:   []change{hash(2, 0xbad), on(1, leaderless)},
			want: Step{
				Action: Wait, Reason: CorruptMember,
				Message: "waiting to remove m-2, whose data differs from that of a quorum: without it those that serve would be no quorum; m-1 knows no leader",
			},
		},
		"MajorityIsWhatCounts": {
			reason: "That two of three are wrong in the same way cannot be told from that one is",
			base:   formed3,
			args:   []change{hash(1, 0xbad), hash(2, 0xbad), leader(1)},
			want: Step{
				Action: Remove, Members: []string{"m-0"}, ID: 0xa0, Reason: CorruptMember,
				Message: "removing m-0, whose data differs from that of a quorum (m-1, m-2); a new member takes its place",
			},
		},
		"BeforeNoSpace": {
			reason: "Wrong data is worse than no room",
			base:   formed3,
			args:   []change{alarm(2, AlarmNoSpace, 0xa2), hash(2, 0xbad)},
			want:   removed2,
		},
		"BeforeLost": {
			reason: "Wrong data can be read, and lost data cannot",
			base:   formed5,
			args:   []change{hash(2, 0xbad), on(4, gone)},
			want: Step{
				Action: Remove, Members: []string{"m-2"}, ID: 0xa2, Reason: CorruptMember,
				Message: "removing m-2, whose data differs from that of a quorum (m-0, m-1, m-3); a new member takes its place",
			},
		},

		"ThreeDifferent": {
			reason: "No choice between them is ours",
			base:   formed3,
			args:   []change{hash(1, 0xbad), hash(2, 0xbae)},
			want: Step{
				Action: Stall, Reason: DataDiffers,
				Message: "the data of the members differs, and no quorum of them is equal: at revision 7, compacted at 2, m-0 (a0) has the hash 000000e0; m-1 (a1) has the hash 00000bad; m-2 (a2) has the hash 00000bae" + undecided("m-0", "m-1", "m-2"),
			},
		},
		"OneAgainstOne": {
			reason: "Nor between two",
			base:   formed3,
			args:   []change{hash(1, 0xbad), removed(2), on(2, gone), corruptAlarm(0xa1)},
			want: Step{
				Action: Stall, Reason: DataDiffers,
				Message: "the data of the members differs, and no quorum of them is equal: at revision 7, compacted at 2, m-0 (a0) has the hash 000000e0; m-1 (a1) has the hash 00000bad" + undecided("m-0", "m-1"),
			},
		},
		"TwoAgainstTwo": {
			reason: "Two of four are no quorum",
			base:   formed5,
			args:   []change{size(4), removed(4), on(4, gone), hash(2, 0xbad), hash(3, 0xbad)},
			want: Step{
				Action: Stall, Reason: DataDiffers,
				Message: "the data of the members differs, and no quorum of them is equal: at revision 7, compacted at 2, m-0 (a0), m-1 (a1) have the hash 000000e0; m-2 (a2), m-3 (a3) have the hash 00000bad" + undecided("m-0", "m-1", "m-2", "m-3"),
			},
		},
		"OneAgainstOneAndOneAway": {
			reason: "The third one decides, when it is back",
			base:   formed3,
			args:   []change{hash(1, 0xbad), away(2)},
			want: Step{
				Action: Wait, Reason: DataDiffers,
				Message: "the data of the members differs, and no quorum of them is equal: at revision 7, compacted at 2, m-0 (a0) has the hash 000000e0; m-1 (a1) has the hash 00000bad; not compared: m-2 is away. Waiting for those to be compared",
			},
		},
		"OneAgainstOneAndOneAwayForLong": {
			reason: "Where it does not come back, a person must act",
			base:   formed3,
			args:   []change{hash(1, 0xbad), away(2), on(2, overdue)},
			want: Step{
				Action: Stall, Reason: DataDiffers,
				Message: "the data of the members differs, and no quorum of them is equal: at revision 7, compacted at 2, m-0 (a0) has the hash 000000e0; m-1 (a1) has the hash 00000bad; not compared: m-2 is away" + undecided("m-0", "m-1"),
			},
		},
		"NotOfOneRevision": {
			reason: "Hashes of different revisions say nothing about each other",
			base:   formed3,
			args:   []change{on(2, func(i *Instance) { i.Hash = Hash{Revision: 8, Compacted: 2, Sum: 0xbad} })},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
		"NotOfOneCompaction": {
			reason: "Nor do those of what is left after different compactions",
			base:   formed3,
			args:   []change{on(2, func(i *Instance) { i.Hash = Hash{Revision: 7, Compacted: 3, Sum: 0xbad} })},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},

		"AccusedAndEqual": {
			reason: "An alarm is no finding: a quorum is equal, and none differs",
			base:   formed3,
			args:   []change{corruptAlarm(0xa1)},
			want: Step{
				Action: Disarm, Alarm: AlarmCorrupt, ID: 0xa1, Reason: CorruptMember,
				Message: "taking back the alarm CORRUPT of a1: the data of a quorum is equal (m-0, m-1, m-2), and no voter differs",
			},
		},
		"AccusedAndAway": {
			reason: "It is compared when it is back; until then the others may take writes",
			base:   formed3,
			args:   []change{corruptAlarm(0xa1), away(1)},
			want: Step{
				Action: Disarm, Alarm: AlarmCorrupt, ID: 0xa1, Reason: CorruptMember,
				Message: "taking back the alarm CORRUPT of a1: the data of a quorum is equal (m-0, m-2), and no voter differs",
			},
		},
		"AllAccusedAndEqual": {
			reason: "An alarm without a name goes in the same way",
			base:   formed3,
			args:   []change{corruptAlarm(0)},
			want: Step{
				Action: Disarm, Alarm: AlarmCorrupt, ID: 0, Reason: CorruptMember,
				Message: "taking back the alarm CORRUPT, which names no member: the data of a quorum is equal (m-0, m-1, m-2), and no voter differs",
			},
		},
		"TwoAccused": {
			reason: "One alarm after the other",
			base:   formed3,
			args:   []change{corruptAlarm(0xa1), corruptAlarm(0xa2)},
			want: Step{
				Action: Disarm, Alarm: AlarmCorrupt, ID: 0xa1, Reason: CorruptMember,
				Message: "taking back the alarm CORRUPT of a1: the data of a quorum is equal (m-0, m-1, m-2), and no voter differs",
			},
		},
		"AccusedAndRemoved": {
			reason: "Whose alarm it is was removed: now the alarm goes, before what is left of the member",
			base:   formed3,
			args:   []change{corruptAlarm(0xa1), removed(1)},
			want:   Step{Action: Disarm, Alarm: AlarmCorrupt, ID: 0xa1, Reason: CorruptMember, Message: "taking back the alarm of a1, which is no member any more"},
		},
		"AccusedLearner": {
			reason: "It cannot be compared, and has no vote: it goes, whichever serve",
			base:   formed3,
			args:   []change{size(4), learner(3), corruptAlarm(0xa3), on(1, silent)},
			want: Step{
				Action: Remove, Members: []string{"m-3"}, ID: 0xa3, Reason: CorruptMember,
				Message: "removing the learner m-3, whose data differs from the leader's (alarm CORRUPT); another one takes its place",
			},
		},
		"AccusedUncompared": {
			reason: "Nothing is known yet but that etcd has found a difference",
			base:   formed3,
			args:   []change{corruptAlarm(0xa1), uncompared(0, 1, 2)},
			want:   Step{Action: Wait, Reason: AlarmRaised, Message: alarmRaised + "Waiting until a quorum has been compared"},
		},
		"AccusedWithoutQuorumCompared": {
			reason: "One of three says nothing about the others",
			base:   formed3,
			args:   []change{corruptAlarm(0xa1), uncompared(0), away(1)},
			want:   Step{Action: Wait, Reason: AlarmRaised, Message: alarmRaised + "Waiting until a quorum has been compared: m-1 is away"},
		},
		"AccusedOnly": {
			reason: "There is no other one to compare it with",
			base:   formed1,
			args:   []change{corruptAlarm(0xa0)},
			want: Step{
				Action: Stall, Reason: AlarmRaised,
				Message: alarmRaised + "Only one is left, and there is no other to compare it with: look at its data, and then take back the alarm (kubectl exec m-0 -c etcd -- etcdctl alarm disarm), or restore a snapshot (EtcdRestore)",
			},
		},

		"AddUncompared": {
			reason: "The leader feeds the learner, and may be wrong",
			base:   formed3,
			args:   []change{size(4), spare(3), uncompared(0)},
			want:   Step{Action: Wait, Reason: ScalingUp, Message: "waiting until the data of m-0 has been compared with that of the other voters, before adding m-3 as a learner"},
		},
		"AddWithOneAway": {
			reason: "It is compared when it is back, and is not waited for",
			base:   formed5,
			args:   []change{size(6), spare(5), away(4), on(4, func(i *Instance) { i.Pod.Problem = "" })},
			want:   Step{Action: AddLearner, Members: []string{"m-5"}, Reason: ScalingUp, Message: "adding m-5 as a learner"},
		},
		"AddWhileWhoIsAwayLeads": {
			reason: "A leader that does not answer cannot be compared, and would feed the learner",
			base:   formed5,
			args:   []change{size(6), spare(5), leader(4), away(4), on(4, func(i *Instance) { i.Pod.Problem = "" })},
			want:   Step{Action: Wait, Reason: ScalingUp, Message: "waiting until the data of m-4 has been compared with that of the other voters, before adding m-5 as a learner"},
		},
		"AddToOne": {
			reason: "An only voter differs from none",
			base:   formed1,
			args:   []change{size(2), spare(1), uncompared(0)},
			want:   Step{Action: AddLearner, Members: []string{"m-1"}, Reason: ScalingUp, Message: "adding m-1 as a learner"},
		},
		"PromoteUncompared": {
			reason: "The leader may have gone wrong before it has fed the learner, and would differ now",
			base:   formed3,
			args:   []change{size(4), learner(3), uncompared(0, 1, 2)},
			want:   Step{Action: Wait, Reason: Joining, Message: "waiting until the data of m-0, m-1, m-2 has been compared with that of the other voters, before making the learner m-3 a voter"},
		},
	})
}
