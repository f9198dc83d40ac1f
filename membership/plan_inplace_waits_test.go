package membership

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestInPlaceWaits(t *testing.T) {
	t.Parallel()
	type want struct {
		Why             string
		Passes, Refused bool
	}
	const bootstrap = "to start from a snapshot, delete the EtcdCluster and its PersistentVolumeClaims, and apply it with spec.bootstrap.restore"
	for name, tc := range map[string]struct {
		reason string
		base   func() (Desired, Observed)
		args   []change
		want   want
	}{
		"NotAsked":   {reason: "There is nothing to wait for", base: formed3},
		"Begun":      {reason: "What has begun waits for nothing", base: replacing, args: []change{suspended}},
		"Reverted":   {reason: "Nor does what is taken back", base: reverting3, args: []change{suspended}},
		"Anyway":     {reason: "A cluster that serves is restored where that is asked for", base: formed3, args: []change{asks(anyway, lately)}},
		"NotServing": {reason: "One that does not serve is restored", base: formed3, args: []change{noQuorum, asks()}},
		"Suspended": {
			reason: "A cluster that is suspended is left alone", base: formed3, args: []change{asks(anyway), suspended},
			want: want{Why: "spec.suspend of the EtcdCluster is true: set it to false"},
		},
		"Memory": {
			reason: "What is in memory does not outlive its Pod", base: formed3, args: []change{asks(anyway), ephemeral},
			want: want{Why: "spec.storage.medium of the EtcdCluster is Memory: its members would lose their data as they stop, before it is known whether the restore succeeds; " + bootstrap},
		},
		"NotFormed": {
			reason: "There is nothing to put back", base: fresh, args: []change{asks(anyway)},
			want: want{Why: "the EtcdCluster has not formed yet, so there is nothing to restore in place; " + bootstrap},
		},
		"NoMembers": {
			reason: "No member would be restored", base: formed3, args: []change{asks(anyway), size(0)},
			want: want{Why: "spec.replicas of the EtcdCluster is 0: set it to the number of members that the restored cluster is to have"},
		},
		"Serving": {
			reason: "All that was written since would be lost", base: formed3, args: []change{asks()},
			want: want{Refused: true, Why: "the cluster serves, and all that was written since the snapshot would be lost: if that is wanted, create another EtcdRestore, with another name and spec.whenServing: Replace"},
		},
		"ServingSomewhere": {
			reason: "It may serve where we reach none, or have served when its kubelet looked last", base: formed3,
			args: []change{nobodyAnswers, on(1, func(i *Instance) { i.Pod.Ready = true }), asks()},
			want: want{Passes: true, Why: "the cluster may still serve: one of its Pods is ready, or a quorum answered a moment ago. The restore begins when neither holds any more"},
		},
		"ReadyAndStopping": {
			reason: "What is ready and stops serves no longer", base: formed3, args: []change{nobodyAnswers, on(1, func(i *Instance) { i.Pod.Ready, i.Pod.Terminating = true, true }), asks()},
		},
		"Lately": {
			reason: "It may come back by itself", base: formed3, args: []change{noQuorum, asks(lately)},
			want: want{Passes: true, Why: "the cluster may still serve: one of its Pods is ready, or a quorum answered a moment ago. The restore begins when neither holds any more"},
		},
		"NotFound": {
			reason: "There is no snapshot", base: formed3, args: []change{asks(anyway), func(_ *Desired, o *Observed) {
				o.Search = Search{Begun: true, Problem: "the bucket backups does not exist"}
			}},
			want: want{Why: "no snapshot to restore: the bucket backups does not exist"},
		},
		"Unusable": {
			reason: "No member could start from it", base: formed3, args: []change{asks(anyway), found(with(monday, func(s *Snapshot) { s.Version = etcd37 }))},
			want: want{Why: "snapshot db-monday (revision 4711, taken 2026-11-23T07:50:00Z) was taken from etcd 3.7.3, and etcd 3.6.16 cannot read its data: set spec.version to 3.7 or newer, or choose an earlier snapshot"},
		},
		"NoRoomToCopy": {
			reason: "The volume of the first new member is too small for the copy of what a member has", base: formed3,
			args: []change{noQuorum, asks(), found(with(DataOf("m-1", "volume-1"), func(s *Snapshot) { s.Size = 161 << 20 })), volumesOf(512 << 20)},
			want: want{Why: "the data of m-1 has 161 MiB, and the volumes have 512 MiB: set spec.storage.size to at least 514 MiB, twice the data and what the write-ahead log needs"},
		},
		"Held": {
			reason: "Nothing is against one that is suspended: it is not begun for that", base: formed3, args: []change{asks(anyway, held), found(monday)},
		},
		"Refused": {
			reason: "What the API server would refuse is known before any member stops", base: formed3, args: []change{asks(anyway, refusedByServer), found(monday)},
			want: want{Why: "the API server refuses what the new members need: exceeded quota"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, o := tc.base()
			for _, change := range tc.args {
				change(&d, &o)
			}
			var got want
			got.Why, got.Passes = InPlaceWaits(d, o)
			got.Refused = InPlaceRefused(o)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}
