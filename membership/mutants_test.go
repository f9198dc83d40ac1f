package membership

import (
	"slices"
	"strings"
	"testing"
)

// TestMutants shows that the exploration would find each rule missing or weakened, and package
// reconcile careless: what is named here is what keeps data safe, with the invariant that falls
// without it.
func TestMutants(t *testing.T) {
	one := bound{sizes: []uint8{0, 1}, first: 1, states: 200_000}
	three := bound{sizes: []uint8{0, 3}, first: 3, states: 200_000}
	with := func(b bound, faults budget) bound { b.budget = faults; return b }
	stale := bound{sizes: []uint8{1}, first: 1, states: 400_000, budget: budget{wipes: 1, delays: 1}}
	spec := func(b bound) bound { b.stalls = true; return b }
	from := func(b bound) bound { b.restore, b.kills, b.sizes = true, true, b.sizes[1:]; return b } // a stored snapshot
	safety := func(b bound) bound { b.safety = true; return b }

	cases := map[string]struct {
		reason string
		bound  bound
		mutant planner
		want   string // how the violation begins
	}{
		"WithoutNameConflict": {
			reason: "What has another owner is waited for instead of reported",
			bound:  with(one, budget{foreign: 1}),
			mutant: without("nameConflict"),
			want:   "L",
		},
		"WithoutClusterIDMismatch": {
			reason: "A volume of another cluster decides which data is served",
			bound:  safety(with(three, budget{deletions: 1, restores: 1})),
			mutant: without("clusterIDMismatch"),
			want:   "S12",
		},
		"NobodyIsTold": {
			reason: "The first members have found each other, and the operator, that reaches none, waits for them without end",
			bound:  three,
			mutant: replace("waitForForming", func(d Desired, o Observed) (Step, bool) {
				return waitForForming(d, each(o, func(i *Instance) { i.Pod.ReadyLong = false }))
			}),
			want: "L4",
		},
		"WithoutHibernate": {
			reason: "Zero replicas are no longer a size",
			bound:  one,
			mutant: without("hibernate"),
			want:   "L3",
		},
		"WithoutRecreateStuckPod": {
			reason: "A Pod that cannot pull its image, or was evicted, stays for ever",
			bound:  spec(one),
			mutant: without("recreateStuckPod"),
			want:   "L1",
		},
		"RecreatesWhateverIsOutdated": {
			reason: "Members that serve are stopped, all at once, because the spec has changed",
			bound:  spec(three),
			mutant: replace("recreateStuckPod", func(d Desired, o Observed) (Step, bool) {
				return recreateStuckPod(d, each(o, func(i *Instance) { i.Pod.Problem, i.Endpoint = "none", Endpoint{} }))
			}),
			want: "S15",
		},
		"VotelessLeft": {
			reason: "etcd that has ended before it had voted runs for ever, and no leader is elected",
			bound:  with(one, budget{mutes: 1}),
			mutant: replace("recreateStuckPod", func(d Desired, o Observed) (Step, bool) {
				return recreateStuckPod(d, each(o, func(i *Instance) { i.Pod.IdleLong = false }))
			}),
			want: "L",
		},
		"VotelessNotCleared": {
			reason: "Its Pod is recreated, again and again, over what it has left",
			bound:  with(one, budget{mutes: 1}), mutant: planner{phases: Phases, operator: careless{clearsNothing: true}}, want: "L",
		},
		"VotelessStopped": {
			reason: "So is a member that serves",
			bound:  with(one, budget{mutes: 1}),
			mutant: replace("recreateStuckPod", func(d Desired, o Observed) (Step, bool) {
				return recreateStuckPod(d, each(o, func(i *Instance) { i.Pod.IdleLong, i.Endpoint = i.Pod.Unfenced, Endpoint{} }))
			}),
			want: "S15",
		},
		"WithoutVolumeLostWhileForming": {
			reason: "A first member starts empty though it may have voted",
			bound:  safety(with(three, budget{losses: 1})),
			mutant: without("volumeLostWhileForming"),
			want:   "a volume is provisioned while another one has data",
		},
		"LostWhileFormingWithoutIntent": {
			reason: "That a volume was exchanged shows only in the intent",
			bound:  with(three, budget{losses: 1}),
			mutant: replace("volumeLostWhileForming", func(d Desired, o Observed) (Step, bool) {
				o.Bootstrapping = nil
				return volumeLostWhileForming(d, o)
			}),
			want: "a volume is provisioned while another one has data",
		},
		"LostWhileFormingForgetsEarlierStart": {
			reason: "A first start that an earlier EtcdCluster began goes on with an empty volume",
			bound:  with(three, budget{losses: 1, deletions: 1}),
			mutant: replace("volumeLostWhileForming", func(d Desired, o Observed) (Step, bool) {
				d.Token = first(d, o).Token
				return volumeLostWhileForming(d, o)
			}),
			want: "a volume is provisioned while another one has data",
		},
		"WithoutProvisionVolumes": {
			reason: "First members wait for volumes that are never made",
			bound:  one,
			mutant: without("provisionVolumes"),
			want:   "L",
		},
		"ProvisionedAgain": {
			reason: "A lost volume of a formed cluster is made again, empty",
			bound:  safety(with(three, budget{losses: 1})),
			mutant: insert("hibernate", func(d Desired, o Observed) (Step, bool) { return provisionVolumes(d, unformed(o)) }),
			want:   "a volume is provisioned while another one has data",
		},
		"BootstrappedAgain": {
			reason: "A formed cluster is bootstrapped when no Pod is there",
			bound:  safety(one),
			mutant: insert("provisionVolumes", func(d Desired, o Observed) (Step, bool) { return bootstrap(d, unformed(o)) }),
			want:   "S3",
		},
		"LatchForgotten": {
			reason: "No volume means that there has never been one",
			bound:  safety(with(one, budget{losses: 1})),
			mutant: seeing(func(o Observed) Observed { o.ClusterID = 0; return o }),
			want:   "S3",
		},
		"WithoutBootstrap": {
			reason: "First members have volumes, and never a Pod",
			bound:  one,
			mutant: without("bootstrap"),
			want:   "L",
		},
		"WithoutRecordFormed": {
			reason: "It is never written down that the cluster has formed",
			bound:  one,
			mutant: without("recordFormed"),
			want:   "L3",
		},
		"FormedByMajority": {
			reason: "The latch is set before the last first member has its data: it could never start then",
			bound:  three,
			mutant: replace("recordFormed", func(d Desired, o Observed) (Step, bool) {
				step, _ := recordFormed(d, o)
				return step, !o.Formed() && o.Reach == ReachQuorum
			}),
			want: "L1",
		},
		"FormedByOneVolume": {
			reason: "One recorded volume stands for all of a first start",
			bound:  with(three, budget{}),
			mutant: seeing(func(o Observed) Observed {
				for _, i := range o.Instances {
					o.ClusterID = max(o.ClusterID, i.Volume.ClusterID)
				}
				return o
			}),
			want: "L1",
		},
		"DeletedVolumesCount": {
			reason: "The volumes that a user has deleted with the EtcdCluster haunt the next one",
			bound:  with(one, budget{losses: 1, deletions: 1}),
			mutant: seeing(func(o Observed) Observed {
				for _, i := range o.Instances {
					if i.Volume.Terminating {
						o.ClusterID = max(o.ClusterID, i.Volume.ClusterID)
					}
				}
				return o
			}),
			want: "the status takes over",
		},
		"WithoutStartMembers": {
			reason: "A deleted Pod does not come back",
			bound:  one,
			mutant: without("startMembers"),
			want:   "L3",
		},
		"WithoutRecordMembers": {
			reason: "A record that could not be written the first time is never written",
			bound:  one,
			mutant: planner{phases: dropped(Phases, "recordMembers"), operator: careless{reportsFailedRecord: true}},
			want:   "it says that all is well",
		},
		"WithoutLostMajority": {
			reason: "A quorum is waited for that can never come",
			bound:  with(one, budget{losses: 1}),
			mutant: without("lostMajority"),
			want:   "L3",
		},
		"WithoutRemoveLostVoter": {
			reason: "A member is waited for whose data is gone",
			bound:  with(three, budget{losses: 1}),
			mutant: without("removeLostVoter"),
			want:   "L3",
		},
		"WithoutMemberDown": {
			reason: "A cluster with a member that does not run is called healthy",
			bound:  with(three, budget{wipes: 1}),
			mutant: without("memberDown"),
			want:   "it says that all is well",
		},
		"WithoutPrepareVolumes": {
			reason: "A size that is never grown to is called healthy",
			bound:  bound{sizes: []uint8{1, 3}, first: 1, states: 200_000},
			mutant: without("prepareVolumes"),
			want:   "it says that all is well",
		},
		"WithoutRemoveSurplusVoter": {
			reason: "A size that is never shrunk to is called healthy",
			bound:  bound{sizes: []uint8{1, 3}, first: 3, states: 200_000},
			mutant: without("removeSurplusVoter"),
			want:   "it says that all is well",
		},

		"LetsClientsInEarly": {
			reason: "A write is acknowledged by a member that would start empty",
			bound:  with(one, budget{wipes: 1}),
			mutant: planner{phases: Phases, operator: careless{letsClientsInEarly: true}},
			want:   "S2",
		},
		"FirstPodsAppliedFromCache": {
			reason: "A Pod that serves is told again to start empty, by an operator that does not know of it",
			bound:  stale, mutant: planner{phases: Phases, operator: careless{bootstrapsFromCache: true, appliesFirstPods: true}}, want: "S2",
		},
		"FirstPodsCreatedFromCache": {
			reason: "A member that serves, and whose Pod is away for a moment, is told again to start empty",
			bound:  stale, mutant: planner{phases: Phases, operator: careless{bootstrapsFromCache: true}}, want: "S2",
		},
		"FirstVolumesAppliedFromCache": {
			reason: "What a retained volume says of its data is overwritten, by an operator that does not know of it",
			bound:  with(one, budget{deletions: 1, delays: 1}), mutant: planner{phases: Phases, operator: careless{provisionsFromCache: true}}, want: "what a volume says",
		},
		"ReplacedIsTrusted": {
			reason: "A member is started on what was restored",
			bound:  safety(with(one, budget{copies: 1})), mutant: seeing(func(o Observed) Observed {
				return each(o, func(i *Instance) { i.Volume.Replaced = false })
			}),
			want: "S18",
		},
		"WithoutQuorumOnReplacedVolumes": {
			reason: "A cluster that was restored as a whole waits for ever",
			bound:  with(one, budget{copies: 1}), mutant: without("quorumOnReplacedVolumes"), want: "L3",
		},
		"ReplacedIsLost": {
			reason: "A cluster that was restored as a whole is called lost",
			bound:  with(one, budget{copies: 1}), mutant: seeing(func(o Observed) Observed {
				return each(o, func(i *Instance) { i.Volume.Retired = i.Volume.Replaced })
			}),
			want: "it calls lost",
		},
		"ReplacedSaysNothing": {
			reason: "A namespace that was restored as a whole begins empty",
			bound:  safety(with(one, budget{copies: 1, deletions: 1})), mutant: seeing(func(o Observed) Observed {
				return each(o, func(i *Instance) {
					if i.Volume.Replaced {
						i.Volume.ClusterID, i.Volume.MemberID = 0, 0
					}
				})
			}),
			want: "S18",
		},
		"StartedFromCache": {
			reason: "A member is started on what was restored since an operator has looked",
			bound:  with(one, budget{copies: 1, delays: 1}), mutant: planner{phases: Phases, operator: careless{startsFromCache: true}}, want: "S18",
		},
		"WithoutChooseSnapshot": {
			reason: "No snapshot is looked for, and the cluster starts without it",
			bound:  from(one), mutant: without("chooseSnapshot"), want: "S20",
		},
		"ChosenAgain": {
			reason: "A newer snapshot takes the place of the one that was chosen, while members are restored from that",
			bound:  safety(from(with(three, budget{kills: 1}))),
			mutant: planner{phases: choosingAgain.phases, operator: careless{choosesAgain: true}, see: func(o Observed) Observed {
				return each(o, func(i *Instance) { // the volumes are not asked
					if i.Volume.First.Size > 0 {
						i.Volume.First.Snapshot = o.Snapshot.ID()
					}
				})
			}},
			want: "S21",
		},
		"EachFromTheNewest": {
			reason: "Each member is restored from what is the newest snapshot when its Pod is made",
			bound:  safety(from(with(three, budget{kills: 1}))), mutant: planner{phases: Phases, operator: careless{restoresNewest: true}}, want: "S21",
		},
		"InitContainerDropped": {
			reason: "The first Pods have no init container: etcd finds no data, and exits",
			bound:  from(one), mutant: planner{phases: Phases, operator: careless{restoresNothing: true}}, want: "L1",
		},
		"InitContainerDroppedAndNew": {
			reason: "The same, and etcd may start empty",
			bound:  from(one), mutant: planner{phases: Phases, operator: careless{restoresNothing: true, startsBlank: true}}, want: "S20",
		},
		"InitContainerStoppedEarly": {
			reason: "Pods are told to find their data before they have any",
			bound:  from(one), mutant: planner{phases: Phases, operator: careless{stopsRestoring: true}}, want: "L1",
		},
		"InitContainerKept": {
			reason: "A member whose disk comes back empty is restored from the snapshot, though it has voted since",
			bound:  safety(from(with(one, budget{wipes: 1}))), mutant: planner{phases: Phases, operator: careless{keepsRestoring: true}}, want: "S2",
		},
		"RestoringLetsClientsInEarly": {
			reason: "A write is acknowledged by a member that would be restored from the snapshot",
			bound:  safety(from(with(one, budget{wipes: 1}))), mutant: planner{phases: Phases, operator: careless{letsClientsInEarly: true}}, want: "S2",
		},
		"ForgetsToIntend": {
			reason: "It is not known on which volumes the first members have voted",
			bound:  with(three, budget{losses: 1}),
			mutant: planner{phases: Phases, operator: careless{forgetsToIntend: true}},
			want:   "a volume is provisioned while another one has data",
		},
	}
	found := counted(t, "mutants")
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x, bad := explore(tc.bound, tc.mutant)
			if bad == nil {
				t.Fatalf("%s: not found in %d states", tc.reason, len(x.states))
			}
			if !strings.HasPrefix(bad.violation, tc.want) {
				t.Errorf("%s: want a violation of %s, got %s", tc.reason, tc.want, bad)
			}
			found.Add(1)
			t.Logf("%.70s: found after %d states, in %d steps", bad.violation, len(x.states), len(bad.story))
		})
	}
}

// choosingAgain is without the rule that a choice is for ever.
var choosingAgain = replace("chooseSnapshot", func(d Desired, o Observed) (Step, bool) {
	if found := o.Search.Found; !o.Formed() && found != o.Snapshot && found != (Snapshot{}) {
		return Step{Action: Choose, Snapshot: found}, true
	}
	if !o.Formed() && !o.Search.Begun {
		return Step{Action: Find}, true
	}
	return chooseSnapshot(d, o)
})

// without one rule.
func without(name string) planner { return planner{phases: dropped(Phases, name)} }

// replace a rule.
func replace(name string, by decide) planner { return planner{phases: replaced(Phases, name, by)} }

// insert a rule behind another one, and ask it whatever the condition of that one's phase.
func insert(behind string, r decide) planner { return planner{phases: inserted(Phases, behind, r)} }

// seeing other facts than those that are there.
func seeing(see func(Observed) Observed) planner { return planner{phases: Phases, see: see} }

// unformed is the same without anything that tells that the cluster has formed.
func unformed(o Observed) Observed {
	o.ClusterID = 0
	return each(o, func(i *Instance) { i.Volume.ClusterID, i.Volume.MemberID = 0, 0 })
}

// each instance changed.
func each(o Observed, change func(*Instance)) Observed {
	o.Instances = slices.Clone(o.Instances)
	for n := range o.Instances {
		change(&o.Instances[n])
	}
	return o
}
