package reconcile

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// lossRestore is the EtcdRestore that is created for a loss at lostAt.
const lossRestore = "db-lost-20261001t030000z"

var lostAt = metav1.NewTime(time.Date(2026, 10, 1, 3, 0, 0, 0, time.UTC))

// onLoss is a cluster that asks for what is done where its majority is lost.
func onLoss(policy api.QuorumLossPolicy, after api.Duration, loss *api.QuorumLoss) *api.EtcdCluster {
	c := &api.EtcdCluster{ObjectMeta: metav1.ObjectMeta{Name: "db"}}
	c.Spec.Recovery = &api.Recovery{QuorumLoss: policy}
	if after != "" {
		c.Spec.Recovery.QuorumLossAfter = &after
	}
	c.Status.ClusterID, c.Status.QuorumLoss = "c1", loss
	return c
}

// TestLossFacts: what is known of a loss from earlier looks.
func TestLossFacts(t *testing.T) {
	t.Parallel()
	since, made := &api.QuorumLoss{ClusterID: "c1", Since: lostAt}, &api.QuorumLoss{ClusterID: "c1", Since: lostAt, Restore: lossRestore}
	for name, tc := range map[string]struct {
		reason string
		args   *api.EtcdCluster
		at     time.Duration // since the loss
		want   membership.Loss
	}{
		"Manual":    {reason: "nothing is asked for", args: onLoss(api.QuorumLossManual, "", since), at: time.Hour},
		"Unset":     {reason: "that is the default", args: onLoss("", "", since), at: time.Hour},
		"None":      {reason: "nothing is lost", args: onLoss(api.QuorumLossFromBackup, "", nil)},
		"Early":     {reason: "ten minutes by default", args: onLoss(api.QuorumLossFromBackup, "", since), at: 10*time.Minute - time.Second, want: membership.Loss{Restore: lossRestore}},
		"Long":      {reason: "they are over", args: onLoss(api.QuorumLossFromBackup, "", since), at: 10 * time.Minute, want: membership.Loss{Restore: lossRestore, Long: true}},
		"Own":       {reason: "as the spec says", args: onLoss(api.QuorumLossFromSurvivor, "30s", since), at: 30 * time.Second, want: membership.Loss{Restore: lossRestore, Long: true}},
		"Made":      {reason: "once for one loss", args: onLoss(api.QuorumLossFromSurvivor, "30s", made), at: time.Hour, want: membership.Loss{Restore: lossRestore, Long: true, Made: true}},
		"Another":   {reason: "it was the loss of another cluster ID", args: onLoss(api.QuorumLossFromBackup, "", &api.QuorumLoss{ClusterID: "c0", Since: lostAt, Restore: "db-c0"}), at: time.Hour},
		"ClockBack": {reason: "the clock was set back: it takes longer", args: onLoss(api.QuorumLossFromSurvivor, "30s", since), at: -time.Hour, want: membership.Loss{Restore: lossRestore}},
		"NoTime":    {reason: "what the schema refuses is waited with for a day", args: onLoss(api.QuorumLossFromSurvivor, "soon", since), at: 23 * time.Hour, want: membership.Loss{Restore: lossRestore}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := lossFacts(tc.args, limits{now: lostAt.Add(tc.at), seen: asWritten(tc.args)})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// lostFacts are those of a cluster of three that has lost two, or whose quorum answers.
func lostFacts(reach membership.Reach) observed {
	seen := observed{}
	seen.ClusterID, seen.Reach, seen.Remembered = 0xc1, reach, true
	for n, name := range []string{"db-0", "db-1", "db-2"} {
		i := membership.Instance{Name: name, Ordinal: n, ID: membership.ID(0xa0 + n)}
		if n == 1 || reach == membership.ReachQuorum {
			i.Volume = membership.Volume{UID: name, ClusterID: 0xc1, MemberID: i.ID}
		}
		seen.Instances = append(seen.Instances, i)
		seen.Members = append(seen.Members, membership.Member{ID: i.ID, Name: name})
	}
	return seen
}

// TestSetQuorumLoss: since when a majority is lost, and what was created for that.
func TestSetQuorumLoss(t *testing.T) {
	t.Parallel()
	now := metav1.NewTime(lostAt.Add(time.Hour))
	since := &api.QuorumLoss{ClusterID: "c1", Since: lostAt, LostSince: &lostAt}
	made, back := since.DeepCopy(), since.DeepCopy()
	made.Restore, back.Restore, back.LostSince = lossRestore, lossRestore, nil
	again := back.DeepCopy()
	again.LostSince = &now
	notFormed := lostFacts(membership.ReachSome)
	notFormed.ClusterID = 0
	for n := range notFormed.Instances {
		notFormed.Instances[n].Volume = membership.Volume{}
	}
	unproved := lostFacts(membership.ReachSome)
	unproved.Instances[2].Volume = membership.Volume{UID: "db-2", ClusterID: 0xc1, MemberID: 0xa2}
	of := func(reach membership.Reach, loss membership.Loss) observed {
		seen := lostFacts(reach)
		seen.Loss = loss
		return seen
	}
	for name, tc := range map[string]struct {
		reason string
		loss   *api.QuorumLoss
		seen   observed
		want   *api.QuorumLoss
	}{
		"First":  {reason: "it is seen for the first time", seen: lostFacts(membership.ReachSome), want: &api.QuorumLoss{ClusterID: "c1", Since: now, LostSince: &now}},
		"GoesOn": {reason: "its time goes on", loss: since, seen: of(membership.ReachNone, membership.Loss{Restore: lossRestore, Long: true}), want: since},
		"Made":   {reason: "an EtcdRestore was created, and seen", loss: since, seen: of(membership.ReachSome, membership.Loss{Restore: lossRestore, Made: true}), want: made},
		"Another": {
			reason: "another cluster ID was lost before", loss: &api.QuorumLoss{ClusterID: "c0", Since: lostAt, Restore: "db-c0"}, seen: lostFacts(membership.ReachSome),
			want: &api.QuorumLoss{ClusterID: "c1", Since: now, LostSince: &now},
		},
		"MayBeOver": {
			reason: "the Pod of a member whose volume is empty was recreated, and has yet to say so. What was created was deleted by a person: not again",
			loss:   made, seen: unproved, want: back,
		},
		"MayBeOverUnwritten": {
			reason: "the same, before it was written down that it was created",
			loss:   since, seen: func() observed {
				seen := unproved
				seen.Loss = membership.Loss{Restore: lossRestore, Made: true}
				return seen
			}(), want: back,
		},
		"Again":           {reason: "it was not over, or is lost once more: it may come back", loss: back, seen: lostFacts(membership.ReachSome), want: again},
		"AgainLong":       {reason: "its time goes on", loss: made, seen: lostFacts(membership.ReachNone), want: made},
		"MayBeOverBefore": {reason: "nothing was created: the volumes may be there", loss: since, seen: unproved},
		"Over":            {reason: "a quorum answers", loss: made, seen: lostFacts(membership.ReachQuorum)},
		"Restored":        {reason: "it is being restored: where that is taken back, it is the same loss", loss: made, seen: notFormed, want: made},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := *onLoss(api.QuorumLossFromSurvivor, "", tc.loss).Status.DeepCopy()
			setQuorumLoss(&s, tc.seen, now)
			if diff := cmp.Diff(tc.want, s.QuorumLoss); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestLostLately: a restore that was created for a loss waits where the data of a majority was
// there again since.
func TestLostLately(t *testing.T) {
	t.Parallel()
	at := func(since time.Duration) *api.QuorumLoss {
		return &api.QuorumLoss{ClusterID: "c1", Since: lostAt, LostSince: new(metav1.NewTime(lostAt.Add(since))), Restore: lossRestore}
	}
	for name, tc := range map[string]struct {
		reason string
		loss   *api.QuorumLoss
		own    bool // a person has asked for it
		want   bool
	}{
		"First":   {reason: "its time was over when it was created", loss: at(0)},
		"Again":   {reason: "it was gone for as long as before, and then was there", loss: at(55 * time.Minute), want: true},
		"Long":    {reason: "that is over as well", loss: at(50 * time.Minute)},
		"Back":    {reason: "that it is lost again is not written down yet", loss: &api.QuorumLoss{ClusterID: "c1", Since: lostAt, Restore: lossRestore}, want: true},
		"Own":     {reason: "a person knows that it does not come back", loss: at(55 * time.Minute), own: true},
		"Another": {reason: "it was the loss of another cluster ID", loss: &api.QuorumLoss{ClusterID: "c0", Since: lostAt}},
		"None":    {reason: "nothing is known of it: another reason keeps the restore from beginning"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := onLoss(api.QuorumLossFromSurvivor, "10m", tc.loss)
			c.Status.Restore = inPhase(api.RestorePending, func(r *api.ClusterRestore) {
				r.Name, r.OnQuorumLoss = lossRestore, !tc.own
			})
			if got := inPlace(c, limits{now: lostAt.Add(time.Hour), seen: asWritten(c)}).LostLately; got != tc.want {
				t.Errorf("%s: want %t, got %t", tc.reason, tc.want, got)
			}
		})
	}
}

// TestSoonRecovered: the end of the patience is not slept through.
func TestSoonRecovered(t *testing.T) {
	t.Parallel()
	since := &api.QuorumLoss{ClusterID: "c1", Since: lostAt}
	for name, tc := range map[string]struct {
		reason string
		args   *api.EtcdCluster
		seen   observed
		at     time.Duration
		want   time.Duration
	}{
		"Manual": {reason: "nothing is done by itself", args: onLoss(api.QuorumLossManual, "20s", since), seen: lostFacts(membership.ReachSome), want: atRest},
		"Serves": {reason: "nothing is lost", args: onLoss(api.QuorumLossFromBackup, "20s", nil), seen: lostFacts(membership.ReachQuorum), want: atRest},
		"First":  {reason: "it was just seen", args: onLoss(api.QuorumLossFromBackup, "20s", nil), seen: lostFacts(membership.ReachSome), want: min(atRest, 20*time.Second)},
		"Left":   {reason: "what is left of it", args: onLoss(api.QuorumLossFromBackup, "20s", since), seen: lostFacts(membership.ReachSome), at: 15 * time.Second, want: 5 * time.Second},
		"Over":   {reason: "at once", args: onLoss(api.QuorumLossFromBackup, "20s", since), seen: lostFacts(membership.ReachSome), at: time.Minute, want: afterChange},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := untilRecoveryLook(tc.args, tc.seen, asWritten(tc.args).loss.since, lostAt.Add(tc.at)); got != tc.want {
				t.Errorf("%s: %s, want %s", tc.reason, got, tc.want)
			}
		})
	}
}
