package membership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// planCase is a row of the tables of Plan: facts, and the step that they lead to, all of it but for
// the name of the rule.
type planCase struct {
	reason string
	base   func() (Desired, Observed)
	args   []change
	want   Step
}

func testPlan(t *testing.T, cases map[string]planCase) {
	t.Helper()
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, o := tc.base()
			for _, change := range tc.args {
				change(&d, &o)
			}
			if diff := cmp.Diff(tc.want, Plan(d, o), cmpopts.IgnoreFields(Step{}, "Rule")); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPlan(t *testing.T) {
	testPlan(t, map[string]planCase{
		"Healthy": {
			reason: "A formed cluster at rest needs nothing",
			base:   formed3,
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},

		// deleting
		"Deleting": {
			reason: "What is being deleted gets nothing new",
			base:   fresh,
			args:   []change{deleted},
			want:   Step{Action: None, Reason: Deleting, Message: "the cluster is being deleted"},
		},
		"DeletingBeforeForeign": {
			reason: "Nothing has to be cleared for a cluster that goes",
			base:   formed3,
			args:   []change{deleted, on(0, foreignPod)},
			want:   Step{Action: None, Reason: Deleting, Message: "the cluster is being deleted"},
		},

		// nameConflict
		"ForeignPod": {
			reason: "A Pod with a name of ours has another owner",
			base:   fresh,
			args:   []change{on(1, newPod), on(1, foreignPod)},
			want: Step{
				Action: Stall, Reason: ForeignObject,
				Message: "the Pods m-1 have another owner; delete them if nothing needs them, or create this EtcdCluster under another name",
			},
		},
		"ForeignVolumeBeforeHibernated": {
			reason: "Nothing is touched, not even to hibernate",
			base:   formed3,
			args:   []change{size(0), on(1, foreignVolume), on(2, foreignVolume), on(2, foreignPod)},
			want: Step{
				Action: Stall, Reason: ForeignObject,
				Message: "the Pods m-2 and the PersistentVolumeClaims m-1, m-2 have another owner; delete them if nothing needs them, or create this EtcdCluster under another name",
			},
		},

		// clusterIDMismatch
		"MixedVolume": {
			reason: "The status and a volume disagree about the cluster",
			base:   formed3,
			args:   []change{on(2, func(i *Instance) { gone(i); i.Volume = Volume{UID: "x", ClusterID: 0xc2, MemberID: 1} })},
			want: Step{
				Action: Stall, Reason: ClusterIDMismatch,
				Message: "data of several etcd clusters meets here, cluster IDs c1 (the status, the volume of m-0, m-0, the volume of m-1, m-1) and c2 (the volume of m-2); nothing is started or changed until only one is left. Find out which is right, keep what you need of the others, and delete them: kubectl delete pvc,pod NAME",
			},
		},
		"MixedEndpointBeforeHibernated": {
			reason: "A member answers for another cluster: stopping it would hide that",
			base:   formed3,
			args:   []change{size(0), on(2, func(i *Instance) { i.Endpoint.ClusterID = 0xc2 })},
			want: Step{
				Action: Stall, Reason: ClusterIDMismatch,
				Message: "data of several etcd clusters meets here, cluster IDs c1 (the status, the volume of m-0, m-0, the volume of m-1, m-1, the volume of m-2) and c2 (m-2); nothing is started or changed until only one is left. Find out which is right, keep what you need of the others, and delete them: kubectl delete pvc,pod NAME",
			},
		},
		"MixedWithoutStatus": {
			reason: "Without the status, no volume outvotes another",
			base:   formed3,
			args:   []change{noLatch, nobodyAnswers, onAll(noPod), on(2, func(i *Instance) { i.Volume.ClusterID = 0xc2 })},
			want: Step{
				Action: Stall, Reason: ClusterIDMismatch,
				Message: "data of several etcd clusters meets here, cluster IDs c1 (the volume of m-0, the volume of m-1) and c2 (the volume of m-2); nothing is started or changed until only one is left. Find out which is right, keep what you need of the others, and delete them: kubectl delete pvc,pod NAME",
			},
		},

		// hibernate
		"HibernatedStops": {
			reason: "Zero replicas: all Pods go at once, except those that are going",
			base:   formed3,
			args:   []change{size(0), on(1, stopping)},
			want:   Step{Action: Stop, Members: []string{"m-0", "m-2"}, Reason: Hibernating, Message: "stopping m-0, m-2; the volumes are kept"},
		},
		"HibernatedNotWithoutVolume": {
			reason: "What would be gone when it wakes is not stopped",
			base:   formed3,
			args:   []change{size(0), on(2, going)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-2"},
				Message: "the volume of m-2 is being deleted, and would go with its Pod; revert spec.replicas first: another member then takes its place",
			},
		},
		"HibernatedNotWithoutClaim": {
			reason: "A claim that is gone from under its Pod leaves nothing when that ends",
			base:   formed3,
			args:   []change{size(0), on(2, noVolume)},
			want: Step{
				Action: Stall, Reason: DataLost, Members: []string{"m-2"},
				Message: "the volume of m-2 is gone, and would go with its Pod; revert spec.replicas first: another member then takes its place",
			},
		},
		"HibernatedWaits": {
			reason: "It is not at rest before the last Pod is gone",
			base:   formed3,
			args:   []change{size(0), nobodyAnswers, on(0, noPod), on(1, stopping), on(2, noPod)},
			want:   Step{Action: Wait, Reason: Hibernating, Message: "waiting for m-1 to stop"},
		},
		"HibernatedBeforeStarted": {
			reason: "Volumes alone are the goal",
			base:   formed3,
			args:   []change{size(0), nobodyAnswers, onAll(noPod)},
			want:   Step{Action: None, Reason: Hibernated, Message: "spec.replicas is 0: nothing runs, the volumes are kept"},
		},
		"HibernatedFresh": {
			reason: "Nothing is provisioned for a cluster that begins with zero replicas",
			base:   fresh,
			args:   []change{size(0)},
			want:   Step{Action: None, Reason: Hibernated, Message: "spec.replicas is 0: nothing runs, the volumes are kept"},
		},
		"HibernatedEphemeral": {
			reason: "Data in memory would go with the Pods",
			base:   formed3,
			args:   []change{size(0), ephemeral},
			want:   Step{Action: Stall, Reason: InvalidSpec, Message: "spec.replicas 0 would lose the data of spec.storage.medium Memory; revert it"},
		},

		// recreateStuckPod
		"StuckPod": {
			reason: "Pods that cannot run and were made from an earlier spec are recreated, together",
			base:   fresh,
			args:   []change{intended, onAll(blankVolume), onAll(newPod), on(0, stuck), on(0, outdated), on(2, stuck), on(2, outdated)},
			want: Step{
				Action: Stop, Members: []string{"m-0", "m-2"}, Reason: Replacing,
				Message: "replacing the Pods m-0, m-2, which do not serve and never will: they have ended for good, or were made from an earlier spec",
			},
		},
		"StuckPodNotCurrent": {
			reason: "A new Pod of the same spec would be stuck as well",
			base:   formed3,
			args:   []change{on(2, stuck)},
			want:   Step{Action: Wait, Reason: PodPending, Message: "waiting for members that do not serve: m-2 cannot pull the image etcd:v3.6.16"},
		},
		"StuckPodNotServing": {
			reason: "A member that answers is not stopped because its Pod has a problem",
			base:   formed3,
			args:   []change{on(2, outdated), on(2, func(i *Instance) { i.Pod.Problem = "exited with code 137" })},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
		"StuckPodNotWithoutProblem": {
			reason: "A member that only starts slowly is left alone",
			base:   formed3,
			args:   []change{on(2, outdated), on(2, silent)},
			want:   Step{Action: Wait, Reason: MemberDown, Message: "waiting for members that do not serve: m-2 does not answer"},
		},
		"StuckPodNotTerminating": {
			reason: "It is going already",
			base:   formed3,
			args:   []change{on(2, outdated), on(2, stuck), on(2, stopping)},
			want:   Step{Action: Wait, Reason: PodPending, Message: "waiting for members that do not serve: m-2 cannot pull the image etcd:v3.6.16"},
		},
		"StuckPodNotEphemeralThatRan": {
			reason: "A Pod that has run holds its data in memory",
			base:   formed3,
			args:   []change{ephemeral, on(2, outdated), on(2, stuck), on(2, func(i *Instance) { i.Pod.NeverRan = false })},
			want:   Step{Action: Wait, Reason: PodPending, Message: "waiting for members that do not serve: m-2 cannot pull the image etcd:v3.6.16"},
		},
		"StuckPodEphemeral": {
			reason: "One that has never run holds nothing",
			base:   fresh,
			args:   []change{ephemeral, onAll(newPod), on(2, stuck), on(2, outdated)},
			want: Step{
				Action: Stop, Members: []string{"m-2"}, Reason: Replacing,
				Message: "replacing the Pods m-2, which do not serve and never will: they have ended for good, or were made from an earlier spec",
			},
		},

		// suspended
		"SuspendedAct": {
			reason: "What would come next becomes a remark",
			base:   formed3,
			args:   []change{suspended, on(1, noPod)},
			want: Step{
				Action: None, Reason: Suspended,
				Message: "suspended by spec.suspend; without it: starting m-1 on the volumes that hold their data",
			},
		},
		"SuspendedStall": {
			reason: "So does a stall",
			base:   formed3,
			args:   []change{suspended, mislabel(1)},
			want: Step{
				Action: None, Reason: Suspended,
				Message: "suspended by spec.suspend; without it: the image tag of m-1 is for etcd 3.6.1, and etcd in it says that it is 3.6.16: set spec.version to what etcd says, or push the right image under this tag, or pin the right one with spec.image.digests",
			},
		},
		"SuspendedAtRest": {
			reason: "Where nothing would come next, it is as healthy as without",
			base:   formed3,
			args:   []change{suspended},
			want:   Step{Action: None, Reason: Healthy, Message: "3 healthy members"},
		},
	})
}
