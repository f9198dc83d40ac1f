package membership

import "testing"

// trustsExpired is a member that trusts expired authorities alone.
func trustsExpired(i *Instance) { i.Pod.Expired = "the authority in Secret db-peer-ca expired" }

func TestPlanExpired(t *testing.T) {
	recreating := func(members ...string) Step {
		return Step{
			Action: Stop, Members: members, Reason: Changing,
			Message: "recreating the Pods of " + list(members) + " at once: the authority in Secret db-peer-ca expired",
		}
	}
	testPlan(t, map[string]planCase{
		"All": {
			reason: "One alone would not reach the others",
			base:   formed3,
			args:   []change{nobodyAnswers, onAll(trustsExpired), onAll(readyLong)},
			want:   recreating("m-0", "m-1", "m-2"),
		},
		"StillConnected": {
			reason: "What was connected before is not cut off, and each connection that breaks is the last one",
			base:   formed3,
			args:   []change{onAll(trustsExpired)},
			want:   recreating("m-0", "m-1", "m-2"),
		},
		"Rest": {
			reason: "The others trust the next one by now",
			base:   formed3,
			args:   []change{noQuorum, on(1, trustsExpired), on(2, trustsExpired)},
			want:   recreating("m-1", "m-2"),
		},
		"Going": {
			reason: "It is on its way, and the next start is with all others",
			base:   formed3,
			args:   []change{nobodyAnswers, onAll(trustsExpired), on(0, stopping)},
			want:   recreating("m-1", "m-2"),
		},
		"Doomed": {
			reason: "The data of one goes with its Pod",
			base:   formed3,
			args:   []change{nobodyAnswers, onAll(trustsExpired), on(0, going)},
			want:   recreating("m-1", "m-2"),
		},
		"Memory": {
			reason: "The data of all goes with their Pods",
			base:   formed3,
			args:   []change{ephemeral, nobodyAnswers, onAll(trustsExpired)},
			want: Step{
				Action: Stall, Reason: ChangeNotSupported,
				Message: "the authority in Secret db-peer-ca expired, and m-0, m-1, m-2 trust no other one. With spec.storage.medium Memory a member's data goes with its Pod: restore the newest snapshot into another EtcdCluster",
			},
		},
		"MemoryOfOne": {
			reason: "The others are a quorum, and it is replaced as any member that is down",
			base:   formed3,
			args:   []change{ephemeral, on(2, silent), on(2, trustsExpired)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-2 does not answer"},
		},
		"Suspended": {
			reason: "A person works by hand",
			base:   formed3,
			args:   []change{suspended, nobodyAnswers, onAll(trustsExpired)},
			want: Step{
				Action: None, Reason: Suspended,
				Message: "suspended by spec.suspend; without it: recreating the Pods of m-0, m-1, m-2 at once: the authority in Secret db-peer-ca expired",
			},
		},
	})
}
