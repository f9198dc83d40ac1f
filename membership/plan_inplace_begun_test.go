package membership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPlanInPlaceBeginsAndEnds(t *testing.T) {
	testPlan(t, map[string]planCase{
		// restoreInPlace
		"Find": {
			reason: "The snapshot is found while the cluster goes on",
			base:   formed3,
			args:   []change{asks(anyway)},
			want:   Step{Action: Find, Reason: Restoring, Message: "looking for the snapshot that EtcdRestore back asks for"},
		},
		"Finding": {
			reason: "All else is done meanwhile",
			base:   formed3,
			args:   []change{asks(anyway), found(Snapshot{}), on(1, noPod)},
			want:   Step{Action: Start, Members: []string{"m-1"}, Version: etcd36, Reason: Starting, Message: "starting m-1 on the volumes that hold their data"},
		},
		"Replace": {
			reason: "It is written down before anything is stopped",
			base:   formed3,
			args:   []change{asks(anyway), found(monday)},
			want: Step{
				Action: Replace, Snapshot: monday, Reason: Restoring,
				Message: "restoring snapshot db-monday (revision 4711, taken 2026-11-23T07:50:00Z) in place, as EtcdRestore back asks for: all members are stopped, and their volumes set aside",
			},
		},
		"ReplaceLost": {
			reason: "A cluster that does not serve is restored without more ado",
			base:   formed3,
			args:   []change{nobodyAnswers, on(0, gone), on(1, gone), asks(), found(monday)},
			want: Step{
				Action: Replace, Snapshot: monday, Reason: Restoring,
				Message: "restoring snapshot db-monday (revision 4711, taken 2026-11-23T07:50:00Z) in place, as EtcdRestore back asks for: all members are stopped, and their volumes set aside",
			},
		},
		"Held": {
			reason: "One that is suspended begins nothing, and the cluster is looked after",
			base:   formed3,
			args:   []change{asks(anyway, held), found(monday), on(1, noPod)},
			want:   Step{Action: Start, Members: []string{"m-1"}, Version: etcd36, Reason: Starting, Message: "starting m-1 on the volumes that hold their data"},
		},
		"HeldFinds": {
			reason: "Its snapshot is found all the same",
			base:   formed3,
			args:   []change{asks(anyway, held)},
			want:   Step{Action: Find, Reason: Restoring, Message: "looking for the snapshot that EtcdRestore back asks for"},
		},
		"ReplaceWaits": {
			reason: "What is against it holds up nothing else",
			base:   formed3,
			args:   []change{asks(), found(monday)},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
		"ReplaceNotWhileMixed": {
			reason: "Data of two clusters is not for us to choose between",
			base:   formed3,
			args:   []change{asks(anyway), found(monday), on(1, func(i *Instance) { i.Volume.ClusterID = 0xc9 })},
			want: Step{
				Action: Stall, Reason: ClusterIDMismatch,
				Message: "data of several etcd clusters meets here, cluster IDs c1 (the status, the volume of m-0, m-0, m-1, the volume of m-2, m-2) and c9 (the volume of m-1); nothing is started or changed until only one is left. Find out which is right, keep what you need of the others, and delete them: kubectl delete pvc,pod NAME",
			},
		},
		"ReplaceNotHibernated": {
			reason: "Nothing is restored into a cluster of no members",
			base:   formed3,
			args:   []change{asks(anyway), found(monday), size(0), nobodyAnswers, onAll(noPod)},
			want:   Step{Action: None, Reason: Hibernated, Message: "spec.replicas is 0: nothing runs, the volumes are kept"},
		},

		// startMembers, readmitVolumes
		"NothingStartsAside": {
			reason: "An operator whose EtcdCluster is of before the restore takes former members for its own",
			base:   formed3,
			args:   []change{nobodyAnswers, onAll(stoppedAside), on(1, unmarked)},
			want:   Step{Action: Start, Members: []string{"m-1"}, Version: etcd36, Reason: Starting, Message: "starting m-1 on the volumes that hold their data"},
		},
		"MarkedLate": {
			reason: "A mark that has come after the restore was taken back would keep a member from coming back",
			base:   formed3,
			args:   []change{on(1, func(i *Instance) { i.Volume.Aside = "back-uid" })},
			want: Step{
				Action: Readmit, Members: []string{"m-1"}, Reason: Reverting,
				Message: "taking the volumes of m-1 back, which were set aside for a restore in place that was taken back meanwhile",
			},
		},
		"MarkedLateGoing": {
			reason: "One that is being deleted, or is of no member, is left as it is",
			base:   formed3,
			args:   []change{on(1, func(i *Instance) { stoppedAside(i); going(i) }), on(2, func(i *Instance) { i.Volume.Aside = "back-uid"; unrecorded(i) })},
			want:   Step{Action: Record, Members: []string{"m-2"}, Reason: Recording, Message: "recording the member and cluster ID on the volumes of m-2"},
		},
		"MarkedByHand": {
			reason: "A person has set the volume of no member aside: it stays",
			base:   formed3,
			args:   []change{leftover(3), on(3, noPod), on(3, unrecorded), on(3, func(i *Instance) { i.Volume.Aside = "by hand" })},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},

		// discardFormerVolumes
		"Discard": {
			reason: "What this restore has set aside goes, and not what an earlier one has",
			base:   restoredInPlace,
			args:   []change{discarding, former(0, asideEarlier), former(1, going)},
			want:   Step{Action: DiscardFormer, Members: []string{"m-2"}, Reason: Retiring, Message: "deleting the volumes of the former members (m-2)"},
		},
		"DiscardKept": {
			reason: "The volume of a member that was removed before is kept for a person (whenScaled Retain): it is none of a former member",
			base:   restoredInPlace,
			args:   []change{discarding, former(0, keptFor), former(1, gone), former(2, keptFor)},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
		"DiscardNotBesideNext": {
			reason: "Another EtcdRestore is asked for: what is left may be the last copies",
			base:   restoredInPlace,
			args:   []change{discarding, func(_ *Desired, o *Observed) { o.Loss.Another = true }},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
		"DiscardLast": {
			reason: "It goes once all is well without it",
			base:   restoredInPlace,
			args:   []change{discarding, on(1, noPod)},
			want:   Step{Action: Start, Members: []string{"m-4"}, Version: etcd36, Reason: Starting, Message: "starting m-4 on the volumes that hold their data"},
		},
		"Discarded": {
			reason: "What is gone, or a person has unmarked, is not deleted",
			base:   restoredInPlace,
			args:   []change{discarding, former(0, gone), former(1, going), former(2, unmarked)},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
		"Retained": {
			reason: "Otherwise it stays",
			base:   restoredInPlace,
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
	})
}

func keptFor(i *Instance) { i.Volume.Retired = true }

func discarding(d *Desired, _ *Observed) { d.DiscardFormer = "back-uid" }

// TestPlanBesideFormer: former members whose volumes are set aside change nothing of what is
// decided about the others.
func TestPlanBesideFormer(t *testing.T) {
	t.Parallel()
	for name, changes := range map[string][]change{
		"Healthy":      {},
		"PodGone":      {on(1, noPod)},
		"Unrecorded":   {on(1, unrecorded)},
		"VolumeGone":   {on(1, gone)},
		"VolumeGoing":  {on(1, going)},
		"NoQuorum":     {noQuorum},
		"NobodyAnswer": {nobodyAnswers, onAll(noPod)},
		"MajorityLost": {nobodyAnswers, on(0, gone), on(1, gone)},
		"Forgotten":    {forgotten, noLatch, nobodyAnswers, onAll(noPod)},
		"Smaller":      {size(1)},
		"Larger":       {size(5)},
		"Hibernated":   {size(0)},
		"Removed":      {removed(2)},
		"Restored":     {on(1, restored)},
		"Suspended":    {suspended, on(1, noPod)},
		"Deleted":      {deleted},
		"Foreign":      {on(1, foreignPod)},
		"Outdated":     {onAll(outdated), on(1, func(i *Instance) { i.Pod.Change, i.Pod.Parts = ChangePod, []string{"options"} })},
		"Corrupt":      {hash(1, 0xbad)},
		"Alarm":        {alarm(0, AlarmNoSpace, 0xb0)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, o := restoredInPlace()
			for _, change := range changes {
				change(&d, &o)
			}
			with := Plan(d, o)
			o.Former = nil
			if diff := cmp.Diff(Plan(d, o), with); diff != "" {
				t.Errorf("what was set aside changes the step: -without, +with:\n%s", diff)
			}
		})
	}
}
