package membership

import "testing"

// readyLong is a member that serves for long, as its kubelet finds; apart is one whose kubelet has
// found it not to serve for long.
func readyLong(i *Instance) { i.Pod.Ready, i.Pod.ReadyLong = true, true }
func apart(i *Instance)     { i.Pod.UnreadyLong = true }

// killed is a member that waits in its kubelet's back-off.
func killed(i *Instance) {
	silent(i)
	i.Pod.Problem, i.Pod.Failing, i.Pod.Damaged, i.Pod.BackOff = "exited with code 137", true, true, true
}

func young(i *Instance) { i.Pod.Young = true }

// emptied is a member whose volume came back empty.
func emptied(i *Instance) {
	silent(i)
	i.Pod.Problem = "has a volume that came back empty"
	i.Pod.Failing, i.Pod.Damaged, i.Pod.Empty, i.Pod.EmptyLong = true, true, true, true
}

func TestPlanQuorum(t *testing.T) {
	recreating := func(members ...string) Step {
		return Step{
			Action: Stop, Members: members, Reason: BackOff,
			Message: "recreating the Pods of " + list(members) + ": there is no quorum, and their kubelets wait before they start etcd again (CrashLoopBackOff)",
		}
	}
	const ports = "Allow ports 2379 and 2381 from the operator to the members, and 2380 among the members (NetworkPolicy, service mesh)"
	const peers = ", enough for a quorum, and does not serve. The members may not reach each other: allow port 2380 among them (NetworkPolicy, service mesh). Or a log says why: kubectl logs m-0"
	crash := func(i *Instance) { killed(i); i.Pod.BackOff, i.Pod.Overdue = false, true }
	testPlan(t, map[string]planCase{
		// recreateBackedOffPod
		"BackedOff": {
			reason: "The quorum depends on two that wait, and both need not",
			base:   formed3,
			args:   []change{noQuorum, on(0, killed), on(2, killed)},
			want:   recreating("m-0", "m-2"),
		},
		"BackedOffAll": {
			reason: "No member answers, and a Pod that is not ready is no sign of a quorum",
			base:   formed3,
			args:   []change{nobodyAnswers, onAll(killed)},
			want:   recreating("m-0", "m-1", "m-2"),
		},
		"BackedOffBesideLost": {
			reason: "One is lost for good, and with the one that waits there is a quorum",
			base:   formed3,
			args:   []change{noQuorum, on(0, gone), on(2, killed)},
			want:   recreating("m-2"),
		},
		"BackedOffYoung": {
			reason: "It was recreated a moment ago: its kubelet has the word",
			base:   formed3,
			args:   []change{noQuorum, on(0, killed), on(0, young), on(2, killed), on(2, young)},
			want:   Step{Action: Wait, Reason: QuorumLost, Message: "no quorum answers: m-0 exited with code 137; m-1 knows no leader; m-2 exited with code 137"},
		},
		"BackedOffOneYoung": {
			reason: "The other one's Pod is old enough, and its return is enough",
			base:   formed3,
			args:   []change{noQuorum, on(0, killed), on(0, young), on(2, killed)},
			want:   recreating("m-2"),
		},
		"BackedOffNotWithQuorum": {
			reason: "Nothing depends on it, and its kubelet does what is right",
			base:   formed3,
			args:   []change{on(2, killed)},
			want:   Step{Action: Wait, Reason: PodPending, Message: "waiting for members that do not serve: m-2 exited with code 137"},
		},
		"BackedOffNotWhileEnoughAnswer": {
			reason: "They elect a leader, or are slow: what waits is not what they lack",
			base:   formed3,
			args:   []change{noQuorum, on(2, killed)},
			want:   Step{Action: Wait, Reason: QuorumLost, Message: "no quorum answers: m-0 knows no leader; m-1 knows no leader; m-2 exited with code 137"},
		},
		"BackedOffBesideLearner": {
			reason: "A learner answers, and has no vote",
			base:   formed3,
			args:   []change{learner(3), noQuorum, on(0, killed), on(2, killed)},
			want:   recreating("m-0", "m-2"),
		},
		"BackedOffNotUnseenQuorum": {
			reason: "The operator reaches none of them, and their kubelets find that two serve",
			base:   formed3,
			args:   []change{nobodyAnswers, on(0, func(i *Instance) { i.Pod.Ready = true }), on(1, func(i *Instance) { i.Pod.Ready = true }), on(2, killed)},
			want:   Step{Action: Wait, Reason: Unreachable, Message: "no member answers: m-0 does not answer; m-1 does not answer; m-2 exited with code 137"},
		},
		"BackedOffNotInVain": {
			reason: "With it there would be no quorum either",
			base:   formed3,
			args:   []change{nobodyAnswers, on(0, crash), on(1, crash), on(2, killed)},
			want: Step{
				Action: Stall, Reason: Unreachable,
				Message: "no member answers: m-0 exited with code 137; m-1 exited with code 137; m-2 exited with code 137. Waiting has not helped: remove the cause; where a member's data is gone, bring its volume back, or restore it: docs/restore.md#which-way-back",
			},
		},
		"BackedOffNotGoing": {
			reason: "Its volume goes with its Pod",
			base:   formed3,
			args:   []change{noQuorum, on(0, killed), on(0, going), on(2, crash)},
			want: Step{
				Action: Stall, Reason: QuorumLost,
				Message: "no quorum answers: m-0 exited with code 137; m-1 knows no leader; m-2 exited with code 137. Waiting has not helped: remove the cause; where a member's data is gone, bring its volume back, or restore it: docs/restore.md#which-way-back",
			},
		},
		"BackedOffNotInMemory": {
			reason: "Its data goes with its Pod",
			base:   formed3,
			args:   []change{ephemeral, noQuorum, on(0, killed), on(2, killed)},
			want:   Step{Action: Wait, Reason: QuorumLost, Message: "no quorum answers: m-0 exited with code 137; m-1 knows no leader; m-2 exited with code 137"},
		},
		"BackedOffNotStopping": {
			reason: "They are on their way already",
			base:   formed3,
			args:   []change{noQuorum, on(0, killed), on(0, stopping), on(2, killed), on(2, stopping)},
			want:   Step{Action: Wait, Reason: QuorumLost, Message: "no quorum answers: m-0 exited with code 137; m-1 knows no leader; m-2 exited with code 137"},
		},

		// disconnected, of a cluster that has formed
		"Disconnected": {
			reason: "Kubelets find that they serve, and none answers the operator",
			base:   formed3,
			args:   []change{nobodyAnswers, onAll(readyLong)},
			want: Step{
				Action: Stall, Reason: Unreachable,
				Message: "no member answers the operator, and kubelets report that etcd serves in m-0, m-1, m-2. " + ports,
			},
		},
		"DisconnectedFromMost": {
			reason: "One that serves is enough to tell, for it does so with a quorum",
			base:   formed3,
			args:   []change{nobodyAnswers, on(1, readyLong), on(2, stuck)},
			want: Step{
				Action: Stall, Reason: Unreachable,
				Message: "no member answers the operator, and kubelets report that etcd serves in m-1. " + ports,
			},
		},
		"DisconnectedLately": {
			reason: "It may be over in a moment",
			base:   formed3,
			args:   []change{nobodyAnswers, onAll(func(i *Instance) { i.Pod.Ready = true })},
			want:   Step{Action: Wait, Reason: Unreachable, Message: "no member answers: m-0 does not answer; m-1 does not answer; m-2 does not answer"},
		},
		"Apart": {
			reason: "etcd runs, and its members do not find each other",
			base:   formed3,
			args:   []change{noQuorum, onAll(apart)},
			want: Step{
				Action: Stall, Reason: QuorumLost,
				Message: "no quorum answers: m-0 knows no leader; m-1 knows no leader; m-2 knows no leader. etcd runs in m-0, m-1, m-2" + peers,
			},
		},
		"ApartTooFew": {
			reason: "One of three is no quorum whatever it reaches",
			base:   formed3,
			args:   []change{noQuorum, on(0, apart), on(1, stuck), on(2, stuck)},
			want:   Step{Action: Wait, Reason: QuorumLost, Message: "no quorum answers: m-0 knows no leader; m-1 cannot pull the image etcd:v3.6.16; m-2 cannot pull the image etcd:v3.6.16"},
		},

		// disconnected, of first members
		"DisconnectedFirst": {
			reason: "The first members have found each other, and the operator has found none",
			base:   fresh,
			args:   []change{intended, onAll(blankVolume), onAll(newPod), onAll(readyLong)},
			want: Step{
				Action: Stall, Reason: Unreachable,
				Message: "no member answers the operator, and kubelets report that etcd serves in m-0, m-1, m-2. " + ports,
			},
		},
		"DisconnectedFirstLately": {
			reason: "They have just begun",
			base:   fresh,
			args:   []change{intended, onAll(blankVolume), onAll(newPod)},
			want:   Step{Action: Wait, Reason: Bootstrapping, Message: "waiting for the first members to form a cluster: m-0 does not answer; m-1 does not answer; m-2 does not answer"},
		},
		"ApartFirst": {
			reason: "They run, and do not find each other",
			base:   fresh,
			args:   []change{intended, onAll(blankVolume), onAll(newPod), onAll(apart)},
			want: Step{
				Action: Stall, Reason: Bootstrapping,
				Message: "waiting for the first members to form a cluster: m-0 does not answer; m-1 does not answer; m-2 does not answer. etcd runs in m-0, m-1, m-2" + peers,
			},
		},

		// replaceFailedVoter, of a volume that came back empty
		"Emptied": {
			reason: "Its successor's volume comes first",
			base:   formed3,
			args:   []change{on(1, emptied)},
			want:   Step{Action: Provision, Members: []string{"m-3"}, Version: etcd36, Reason: ScalingUp, Message: "preparing the volumes of m-3"},
		},
		"EmptiedAndPrepared": {
			reason: "Now it goes",
			base:   formed3,
			args:   []change{on(1, emptied), spare(3)},
			want: Step{
				Action: Remove, Members: []string{"m-1"}, ID: 0xa1, Reason: MemberFailed,
				Message: "removing m-1, which has a volume that came back empty; a new member takes its place",
			},
		},
		"EmptiedLately": {
			reason: "A mount may have been late",
			base:   formed3,
			args: []change{
				func(d *Desired, _ *Observed) { d.Patience, d.EmptyPatience = "5m", "30s" },
				on(1, emptied), on(1, func(i *Instance) { i.Pod.EmptyLong = false }),
			},
			want: Step{
				Action: Wait, Reason: PodPending,
				Message: "waiting for members that do not serve: m-1 has a volume that came back empty; a member whose volume came back empty is replaced after 30s (spec.recovery.replaceEmptyAfter)",
			},
		},
		"EmptiedUnrecorded": {
			reason: "It may never have had data: waiting is for longer then",
			base:   formed3,
			args:   []change{on(1, emptied), on(1, unrecorded)},
			want:   Step{Action: Wait, Reason: PodPending, Message: "waiting for members that do not serve: m-1 has a volume that came back empty"},
		},
		"EmptiedUnfenced": {
			reason: "What it said was said when it was told something else",
			base:   formed3,
			args:   []change{on(1, emptied), on(1, unfenced)},
			want:   Step{Action: Wait, Reason: PodPending, Message: "waiting for members that do not serve: m-1 has a volume that came back empty"},
		},
		"EmptiedLearner": {
			reason: "A learner that joins says the same of a network that is closed",
			base:   formed3,
			args:   []change{size(4), learner(3), on(3, emptied)},
			want:   Step{Action: Wait, Reason: Joining, Message: "waiting for the learner to catch up: m-3 has a volume that came back empty"},
		},
		"EmptiedTwo": {
			reason: "Two of three: those that serve are no quorum without either",
			base:   formed3,
			args:   []change{on(1, emptied), on(2, silent)},
			want:   Step{Action: Wait, Reason: PodPending, Message: "waiting for members that do not serve: m-1 has a volume that came back empty; m-2 does not answer"},
		},
		"EmptiedAndServing": {
			reason: "It has come back since",
			base:   formed3,
			args: []change{on(1, func(i *Instance) {
				e := i.Endpoint
				emptied(i)
				i.Endpoint = e
			})},
			want: Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},

		// a node that is away, and a member that answers from there
		"ForsakenAndServing": {
			reason: "Its kubelet is away, and etcd is not",
			base:   formed3,
			args: []change{spare(3), on(1, func(i *Instance) {
				e := i.Endpoint
				forsaken(i)
				i.Endpoint = e
			})},
			want: Step{Action: Stop, Members: []string{"m-3"}, Reason: Retiring, Message: "stopping m-3, no members any more"},
		},
	})
}
