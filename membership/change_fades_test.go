package membership

import "testing"

// Images that have come up, and do not any more, in the model of a cluster whose members come to
// run something else: a registry is gone, a node has not got them. With them, and with writes that
// are refused, an etcd may have served unseen that does not come back. A member that was rolled
// back over such a one is etcd's to judge: that ends at once where it is too early for the data,
// and says so.

// faded are the voters that are down, and whose image has gone that is known to have served.
func (w *roll) faded() int {
	return w.count(func(s *rollSeat) bool {
		return s.voter() && s.runs == rollNone && w.broken>>s.volume&1 == 1 && (s.next == rollNone || s.next == s.volume) && !w.replaces(s)
	})
}

// replaces reports whether the spec asks for another patch of the minor that a member has run,
// whose image comes up, where that of the member cannot be pulled, or no voter comes up.
func (w *roll) replaces(s *rollSeat) bool {
	path, noWay := Path(append(runningOf(w), rollVersions[s.volume]), rollVersions[w.spec])
	return noWay == nil && len(path) > 0 && path[0] == rollVersions[w.spec] && (w.unpulled || w.count(func(s *rollSeat) bool { return s.voter() && (!s.failing || s.early) }) == 0) && s.failing && !s.early && !w.givenUp && w.spec != s.volume && w.spec.minor() == s.volume.minor() && w.broken>>w.spec&1 == 0
}

// fadesMutants are what keeps a member from staying down with a version that cannot read its data.
var fadesMutants = map[string]rollMutant{
	"WithoutRecordLaterMinor": {
		reason: "A member is rolled back over a minor that has served unseen, and stays down",
		bound:  "OneFades", mutant: rollWithout("recordLaterMinor"), want: "L",
	},
	"WithoutRecordLaterMinorRefused": {
		reason: "The same where the API server has refused its Pod",
		bound:  "OneRefusedUnseen", mutant: rollWithout("recordLaterMinor"), want: "L",
	},
	"WithoutRecordLaterMinorPassing": {
		reason: "The same where etcd has answered now and then while no operator was there",
		bound:  "OnePassing", mutant: rollWithout("recordLaterMinor"), want: "L",
	},
	"OthersUnheard": {
		reason: "The data of other members has risen, so that this one has served as well, and it is rolled back",
		bound:  "Fades", safety: true, mutant: rollReplace("recordLaterMinor", func(d Desired, o Observed) (Step, bool) {
			return recordLaterMinor(d, each(o, func(i *Instance) { i.Endpoint.Storage = Version{} }))
		}), want: "S13: a member is rolled back over a minor that has served",
	},
	"RaisedAnyhow": {
		reason: "What does not come up is taken for what has served",
		bound:  "OneFades", safety: true, mutant: rollReplace("recordLaterMinor", func(d Desired, o Observed) (Step, bool) {
			return recordLaterMinor(d, each(o, func(i *Instance) {
				if i.Pod.Failing {
					i.Pod.Outgrown = i.Pod.Version.Minor + 1
				}
			}))
		}), want: "it is written down that a minor has served",
	},
	"ForgetsLog": {
		reason: "It is written down that 3.6 has run on a volume, and not that the log is of 3.5",
		bound:  "OneFadesEarlier", mutant: rollPlanner{phases: Phases, operator: rollCareless{forgetsLog: true}}, want: "S13: m-0 is started with 3.7.3, which cannot read the log",
	},
	"WithoutInstead": {
		reason: "A member stays down whose image cannot be pulled, though the spec asks for a patch that can be",
		bound:  "OneUnpulled", mutant: rollReplace("recreateStuckPod", func(d Desired, o Observed) (Step, bool) {
			return recreateStuckPod(d, each(o, func(i *Instance) { i.Pod.Outdated = i.Pod.Outdated && SubstitutePatch(d, o, *i) == (Version{}) }))
		}), want: "L",
	},
	"InsteadOfUnpulledAlone": {
		reason: "A member stays down whose etcd ends again and again, though the spec asks for a patch that does not",
		bound:  "OneFadesPatch", mutant: rollReplace("recreateStuckPod", func(d Desired, o Observed) (Step, bool) {
			return recreateStuckPod(d, each(o, func(i *Instance) {
				i.Pod.Outdated = i.Pod.Outdated && (i.Pod.ImageUnavailable || SubstitutePatch(d, o, *i) == (Version{}))
			}))
		}), want: "L",
	},
	"ForgetsInstead": {
		reason: "The Pod of such a member is recreated again and again with the image that cannot be pulled",
		bound:  "OneUnpulled", mutant: rollPlanner{phases: Phases, operator: rollCareless{forgetsInstead: true}}, want: "L1: it goes round",
	},
	"RaisedInVain": {
		reason: "It is rolled back again and again over what it was raised to",
		bound:  "OneFades", mutant: rollPlanner{phases: Phases, operator: rollCareless{raisesNext: true}}, want: "L1: it goes round",
	},
}

// TestChangeFadesMutants shows that the exploration would find each of them.
func TestChangeFadesMutants(t *testing.T) { testMutants(t, fadesMutants) }
