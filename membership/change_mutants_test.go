package membership

import (
	"strings"
	"testing"
)

// rollMutant is one thing that is wrong.
type rollMutant struct {
	reason string
	bound  string // one of rollBounds
	safety bool   // look for that only
	mutant rollPlanner
	want   string // how the violation begins
}

// rollMutants are rules missing or weakened, and package reconcile careless: what is named here is
// what keeps a cluster serving while its versions change, with the invariant that falls without it.
var rollMutants = map[string]rollMutant{
	"WithoutRollback": {
		reason: "A member stays down with an image that does not come up",
		bound:  "Broken", mutant: rollWithout("rollback"), want: "L",
	},
	"WithoutUpdateFailed": {
		reason: "What was rolled back is tried again and again",
		bound:  "Broken", mutant: rollWithout("updateFailed"), want: "L1: it goes round",
	},
	"WithoutWaitForUpdate": {
		reason: "The next member is changed while the last one still runs what it ran before",
		bound:  "Down", mutant: rollWithout("waitForUpdate"), want: "S8",
	},
	"NotCaughtUp": {
		reason: "The next member is changed while the last one needs a snapshot",
		bound:  "Lagging", mutant: rollReplace("waitForUpdate", func(d Desired, o Observed) (Step, bool) {
			return waitForUpdate(d, each(o, func(i *Instance) { i.Endpoint.Applied = i.Endpoint.RaftIndex }))
		}), want: "S7: a member is changed while another one has not caught up",
	},
	"WithoutMemberDown": {
		reason: "That a member is down keeps nothing up, and is not told",
		bound:  "Down", safety: true, mutant: func() rollPlanner {
			p := rollWithout("memberDown")
			p.phases = replaced(p.phases, "waitForUpdate", func(d Desired, o Observed) (Step, bool) {
				return waitForUpdate(d, each(o, func(i *Instance) { i.Endpoint.Applied = i.Endpoint.RaftIndex; i.Endpoint.RaftIndex = 0 }))
			})
			return p
		}(), want: "it says that all is well",
	},
	"AlarmRaisedLast": {
		reason: "A member is changed while an alarm is raised",
		bound:  "Lost", mutant: func() rollPlanner {
			p := rollLast("alarmRaised")
			p.phases = replaced(p.phases, "updateMember", func(d Desired, o Observed) (Step, bool) {
				return updateMember(d, each(o, func(i *Instance) { i.Endpoint.Alarms = nil }))
			})
			return p
		}(), want: "S7: a member is changed while an alarm",
	},
	"WaitForLearnerLast": {
		reason: "A member is changed while another one learns",
		bound:  "LostOfFive", mutant: rollLast("waitForLearner"), want: "S7: a member is changed while another one learns",
	},
	"TwoAllowed": {
		reason: "One of two is changed, and no member serves meanwhile",
		bound:  "Two", safety: true, mutant: rollReplace("updateMember", func(d Desired, o Observed) (Step, bool) {
			step, ok := updateMember(d, o)
			if step.Reason == ChangeNotSupported {
				return Step{Action: Update, Members: []string{o.voters()[0].Name}, Version: Hop(d, o), Change: ChangeImage, Reason: Changing}, true
			}
			return step, ok
		}), want: "S7: one of two",
	},
	"TwoAtOnce": {
		reason: "Two members are changed in one step",
		bound:  "Down", safety: true, mutant: rollReplace("updateMember", func(d Desired, o Observed) (Step, bool) {
			step, ok := updateMember(d, o)
			if step.Action == Update {
				step.Members = names(o.voters(), func(i Instance) bool { return i.Pod.Change != ChangeNone && !i.Leads() })
			}
			return step, ok
		}), want: "S8",
	},
	"TwoPrepared": {
		reason: "A downgrade is begun that cannot be carried out",
		bound:  "Two", mutant: rollReplace("prepareDowngrade", func(d Desired, o Observed) (Step, bool) {
			if hop := Hop(d, o); o.downgrade() == (Version{}) && hop.Minor < o.voters()[0].Endpoint.Version.Minor {
				return Step{Action: Downgrade, Version: hop, Reason: Downgrading}, true
			}
			return Step{}, false
		}), want: "L1: it stalls in the middle of a downgrade",
	},
	"LeaderFirst": {
		reason: "The leader is changed first, and leads again as a mixed cluster's earliest version",
		bound:  "Down", mutant: rollReplace("updateMember", func(d Desired, o Observed) (Step, bool) {
			led := ID(0)
			for _, i := range o.voters() {
				if i.Leads() {
					led = i.ID
				}
			}
			return updateMember(d, each(o, func(i *Instance) { // as if all led but the leader
				i.Endpoint.Leader = i.ID
				if i.ID == led {
					i.Endpoint.Leader = 0xff
				}
			}))
		}), want: "S15: the leader is changed",
	},
	"WithoutVersionNotAllowed": {
		reason: "A way that there is not is called done",
		bound:  "One", mutant: rollWithout("versionNotAllowed"), want: "it says that all is well",
	},
	"WithoutPrepareDowngrade": {
		reason: "A member is changed to an earlier minor of which etcd knows nothing",
		bound:  "Down", safety: true, mutant: rollWithout("prepareDowngrade"), want: "S13: a member is changed to 3.6.16, which is earlier",
	},
	"WithoutWaitForData": {
		reason: "A member is changed to an earlier minor that cannot read its data",
		bound:  "Down", safety: true, mutant: rollReplace("prepareDowngrade", func(d Desired, o Observed) (Step, bool) {
			step, ok := prepareDowngrade(d, o)
			return step, ok && step.Action != Wait
		}), want: "S13",
	},
	"OthersDataUnready": {
		reason: "The first member is changed to an earlier minor when its own data can be read, and the others' not yet",
		bound:  "Down", mutant: rollReplace("prepareDowngrade", func(d Desired, o Observed) (Step, bool) {
			step, ok := prepareDowngrade(d, o)
			waits := ok && step.Action == Wait && o.downgrade() != (Version{})
			next, _ := updateMember(d, o)
			if i, known := o.Instance(strings.Join(next.Members, "")); waits && known && i.Endpoint.Storage.Minor == Hop(d, o).Minor {
				return Step{}, false
			}
			return step, ok
		}), want: "S13: a member is changed to an earlier minor before all data",
	},
	"WithoutCancelDowngrade": {
		reason: "A new member comes while etcd is being downgraded",
		bound:  "Lost", mutant: rollWithout("cancelDowngrade"), want: "S13: ",
	},
	"WithoutFinishUpdateFirst": {
		reason: "The cluster's version rises before a member arrives that is being changed back",
		bound:  "Lost", mutant: rollWithout("finishUpdateFirst"), want: "S13: m-1 is started with",
	},
	"Unraised": {
		reason: "The next minor comes before etcd uses the one that all run",
		bound:  "Up", safety: true, mutant: rollReplace("updateMember", func(d Desired, o Observed) (Step, bool) {
			return updateMember(d, each(o, func(i *Instance) {
				i.Endpoint.Storage, i.Volume.Replays = Version{3, i.Endpoint.Version.Minor, 0}, ""
			}))
		}), want: "S13: a member is changed to 3.7.3, which is more than one minor",
	},
	"DowngradedUnraised": {
		reason: "etcd is asked to go back from a version to which it has not come",
		bound:  "Up", mutant: rollReplace("prepareDowngrade", func(d Desired, o Observed) (Step, bool) {
			return prepareDowngrade(d, each(o, func(i *Instance) {
				if i.Endpoint.Downgrade == (Version{}) {
					i.Endpoint.Storage = Version{3, i.Endpoint.Version.Minor, 0}
				}
			}))
		}), want: "S13: etcd refuses this downgrade",
	},
	"WithoutRewriteWAL": {
		reason: "3.7 is started on a log of 3.5",
		bound:  "Up", safety: true, mutant: rollWithout("rewriteWAL"), want: "S13: a member is changed to 3.7.3, which cannot read the log",
	},
	"WithoutVersionMismatch": {
		reason: "An image that holds something else comes to all members",
		bound:  "Mislabelled", mutant: rollWithout("versionMismatch"), want: "what does not come up touches a second member",
	},
	"BackupIgnored": {
		reason: "A change begins without its snapshot",
		bound:  "OneGuarded", mutant: rollPlanner{phases: Phases, see: func(d Desired, o Observed) (Desired, Observed) {
			d.BackUp = false
			return d, o
		}}, want: "a change of version begins without",
	},
	"BackupTakenForGood": {
		reason: "A snapshot that has failed is taken for one that is verified",
		bound:  "Guarded", mutant: rollPlanner{phases: Phases, see: func(d Desired, o Observed) (Desired, Observed) {
			if o.Backup.State == BackupGivenUp {
				o.Backup.State = BackupVerified
			}
			return d, o
		}}, want: "a change of version begins without",
	},
	"BackupHoldsUp": {
		reason: "A change that is taken back midway waits for a snapshot",
		bound:  "Guarded", mutant: rollReplace("updateMember", func(d Desired, o Observed) (Step, bool) {
			step, ok := updateMember(d, o)
			i, known := o.Instance(strings.Join(step.Members, ""))
			if known && d.BackUp && o.Backup.State != BackupVerified && i.Endpoint.Version != step.Version {
				return Step{Action: BackUp, Reason: BackingUp}, true
			}
			return step, ok
		}), want: "a change midway",
	},
	"BackupOfFailedNotTold": {
		reason: "A snapshot that has failed is waited for, and nothing is said",
		bound:  "GuardedBroken", mutant: rollPlanner{phases: Phases, see: func(d Desired, o Observed) (Desired, Observed) {
			if o.Backup.State == BackupGivenUp {
				o.Backup.State = BackupRuns
			}
			return d, o
		}}, want: "L3: it waits for nothing",
	},

	"ForgetsNext": {
		reason: "A Pod that was to be recreated is made as it was",
		bound:  "Recreated", mutant: rollPlanner{phases: Phases, operator: rollCareless{forgetsNext: true}}, want: "L1: it goes round",
	},
	"ForgetsVersion": {
		reason: "A member whose image was changed in place comes back as what it was before, which etcd refuses",
		bound:  "One", mutant: rollPlanner{phases: Phases, operator: rollCareless{forgetsVersion: true}}, want: "S13: m-0 is started with 3.5",
	},
	"BegunBefore": {
		reason: "A log is taken for one that was rewritten while the downgrade was carried out, and not taken back",
		bound:  "One", mutant: rollPlanner{phases: Phases, see: func(d Desired, o Observed) (Desired, Observed) {
			return d, each(o, func(i *Instance) {
				if d.Version.Minor == 7 && i.Volume.Replays == ReplaysAny && i.Endpoint.Downgrade.Minor == 5 {
					i.Volume.Replays = ReplaysRisen
				}
			})
		}}, want: "S13: m-0 is started with 3.7.3, which cannot read the log",
	},
	"BegunAmongOthers": {
		reason: "A log that was rewritten is taken for one for ever, though another member goes on to 3.5",
		bound:  "Lost", safety: true, mutant: rollReplace("recordMembers", func(d Desired, o Observed) (Step, bool) {
			d.Version.Minor = max(d.Version.Minor, 6)
			return recordMembers(d, o)
		}), want: "S13: a member is changed to 3.7.3, which cannot read the log",
	},
	"ForgetsFailure": {
		reason: "What was rolled back is tried again and again",
		bound:  "Broken", mutant: rollPlanner{phases: Phases, operator: rollCareless{forgetsFailure: true}}, want: "L1: it goes round",
	},
	"KeepsLeader": {
		reason: "The cluster is without a leader for an election",
		bound:  "Lagging", mutant: rollPlanner{phases: Phases, operator: rollCareless{keepsLeader: true}}, want: "S15: the leader is ended",
	},
	"IgnoresVersions": {
		reason: "An operator that is slow puts a member back that runs by then",
		bound:  "SlowBroken", mutant: rollPlanner{phases: Phases, operator: rollCareless{ignoresVersions: true, ignoresUIDs: true}}, want: "a member that runs what it was changed to",
	},
	"IgnoresIntents": {
		reason: "Two operators change a member each",
		bound:  "SlowDown", mutant: rollPlanner{phases: Phases, operator: rollCareless{ignoresIntents: true}}, want: "S",
	},
	"ForgetsCalls": {
		reason: "A downgrade that etcd has not answered for is carried out while members come to run something else",
		bound:  "SlowDown", mutant: rollPlanner{phases: Phases, operator: rollCareless{forgetsCalls: true}}, want: "S",
	},
	"ForgetsSpec": {
		reason: "An operator that is slow changes a member that needs no change any more, while another one is changed",
		bound:  "SlowDown", mutant: rollPlanner{phases: Phases, operator: rollCareless{forgetsSpec: true}}, want: "S8",
	},
	"StartsOver": {
		reason: "An operator that is slow to start a member changes what it runs by then",
		bound:  "OneSlow", safety: true, mutant: rollPlanner{phases: Phases, operator: rollCareless{startsOver: true}}, want: "S13",
	},
}

// TestChangeMutants shows that the exploration would find each of them.
func TestChangeMutants(t *testing.T) { testMutants(t, rollMutants) }

func testMutants(t *testing.T, mutants map[string]rollMutant) {
	t.Helper()
	found := counted(t, "mutants")
	for name, tc := range mutants {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := rollBounds[tc.bound].bound
			b.safety = tc.safety
			x, bad := exploreRoll(b, tc.mutant)
			if bad == nil {
				t.Fatalf("%s: not found in %d states", tc.reason, len(x.states))
			}
			if !strings.HasPrefix(bad.violation, tc.want) {
				t.Errorf("%s: want a violation of %s, got %s", tc.reason, tc.want, bad)
			}
			found.Add(1)
			t.Logf("%.100s: found after %d states, in %d steps", bad.violation, len(x.states), len(bad.lines))
		})
	}
}

func rollWithout(name string) rollPlanner { return rollPlanner{phases: dropped(Phases, name)} }

// rollLast asks a rule last.
func rollLast(name string) rollPlanner {
	return rollPlanner{phases: moved(Phases, name, "discardFormerVolumes")}
}

func rollReplace(name string, by decide) rollPlanner {
	return rollPlanner{phases: replaced(Phases, name, by)}
}
