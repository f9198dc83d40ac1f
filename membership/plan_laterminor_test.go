package membership

import "testing"

// outgrownBy is a member that runs what its volume says ran last, and whose etcd has said of which
// minor the data is.
func outgrownBy(minor int) func(*Instance) {
	return func(i *Instance) {
		silent(i)
		failing(i)
		i.Pod.Problem, i.Pod.Outgrown = `exited with code 1: discovery failed: version "3.7.0" is not supported`, minor
	}
}

// TestPlanLaterMinor is for members on whose data a later minor has served unseen.
func TestPlanLaterMinor(t *testing.T) {
	testPlan(t, map[string]planCase{
		"Said": {
			reason: "It was rolled back to what does not read its data any more, as etcd itself says",
			base:   upgrading(etcd36, etcd37),
			args:   []change{only, abandonedChange, on(0, outgrownBy(7)), nobodyAnswers},
			want: Step{
				Action: Raise, Members: []string{"m-0"}, Version: etcd37, Reason: Recording,
				Message: "recording that a later etcd than 3.6.16 has run on the volume of m-0, as etcd itself says. Quorate starts m-0 with etcd 3.7.3",
			},
		},
		"SaidAndReverted": {
			reason: "The spec was set back meanwhile: it has to serve with the later minor before that can be prepared",
			base:   upgrading(etcd36, etcd36),
			args:   []change{only, on(0, outgrownBy(7)), nobodyAnswers},
			want: Step{
				Action: Raise, Members: []string{"m-0"}, Version: etcd37, Reason: Recording,
				Message: "recording that a later etcd than 3.6.16 has run on the volume of m-0, as etcd itself says. Quorate starts m-0 with etcd 3.7.3",
			},
		},
		"SaidBefore": {
			reason: "What ended with these words was of the minor before, to which it was changed in vain",
			base:   upgrading(etcd36, etcd37),
			args:   []change{only, abandonedChange, on(0, outgrownBy(6)), nobodyAnswers},
			want: Step{
				Action: Wait, Reason: Unreachable,
				Message: `no member answers: m-0 exited with code 1: discovery failed: version "3.7.0" is not supported`,
			},
		},
		"SaidInVain": {
			reason: "The others run the earlier minor, so that the version of the cluster cannot have risen",
			base:   upgrading(etcd36, etcd37),
			args:   []change{abandonedChange, on(1, outgrownBy(7))},
			want: Step{
				Action: Wait, Reason: PodPending,
				Message: `waiting for members that do not serve: m-1 exited with code 1: discovery failed: version "3.7.0" is not supported`,
			},
		},
		"SaidAmongLater": {
			reason: "All others run the later minor",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(changedTo(etcd37)), on(1, runs(etcd36)), on(1, outgrownBy(7))},
			want: Step{
				Action: Raise, Members: []string{"m-1"}, Version: etcd37, Reason: Recording,
				Message: "recording that a later etcd than 3.6.16 has run on the volume of m-1, as etcd itself says. Quorate starts m-1 with etcd 3.7.3",
			},
		},
		"SaidOfDowngrade": {
			reason: "It was changed to an earlier minor too early, and is rolled back",
			base:   upgrading(etcd36, etcd35),
			args:   []change{on(1, outgrownBy(6)), on(1, func(i *Instance) { i.Pod.Version, i.Volume.Next = etcd35, etcd35 })},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: `rolling m-1 back: with etcd 3.5.35 it exited with code 1: discovery failed: version "3.7.0" is not supported`,
			},
		},
		"OthersTell": {
			reason: "The data of the others has risen, for which every member has run the later minor: it is not rolled back",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(changedTo(etcd37)), on(1, runs(etcd36)), on(1, broken(etcd37)), on(1, next(etcd37))},
			want: Step{
				Action: Raise, Members: []string{"m-1"}, Version: etcd37, Reason: Recording,
				Message: "recording that etcd 3.7.3 has run on the volume of m-1: the data of other members is of that minor. Quorate does not roll m-1 back to 3.6.16",
			},
		},
		"OthersTellNot": {
			reason: "The last one is changed, and the data of the others is as before",
			base:   upgrading(etcd36, etcd37),
			args:   []change{onAll(changedTo(etcd37)), onAll(stored(Version{3, 6, 0})), on(1, runs(etcd36)), on(1, broken(etcd37)), on(1, next(etcd37))},
			want: Step{
				Action: PutBack, Members: []string{"m-1"}, Version: etcd36, Reason: ChangeFailed,
				Message: "rolling m-1 back: with etcd 3.7.3 it cannot pull the image etcd:v3.6.16",
			},
		},
		"InMemory": {
			reason: "With its Pod its data would go, so that the Pod gets the later minor in place",
			base:   upgrading(etcd36, etcd37),
			args:   []change{only, ephemeral, abandonedChange, on(0, outgrownBy(7)), nobodyAnswers},
			want: Step{
				Action: Raise, Members: []string{"m-0"}, Version: etcd37, Reason: Recording,
				Message: "recording that a later etcd than 3.6.16 has run on the data of m-0, as etcd itself says. Quorate starts m-0 with etcd 3.7.3",
			},
		},
		"OthersTellInMemory": {
			reason: "The data of the others has risen: it goes on with what its Pod has",
			base:   upgrading(etcd36, etcd37),
			args:   []change{ephemeral, onAll(changedTo(etcd37)), on(1, runs(etcd36)), on(1, broken(etcd37)), on(1, func(i *Instance) { i.Pod.Changing = true })},
			want: Step{
				Action: Raise, Members: []string{"m-1"}, Version: etcd37, Reason: Recording,
				Message: "recording that etcd 3.7.3 has run on the data of m-1: the data of other members is of that minor. Quorate does not roll m-1 back to 3.6.16",
			},
		},
	})
}
