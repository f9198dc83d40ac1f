package backup

import (
	"cmp"
	"slices"
	"strings"
	"time"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/snapshot"
)

// atOnce is how many EtcdBackups of a schedule are being deleted at the same time: each has a Job.
// When one is gone the next follows.
const atOnce = 3

// dropped are the EtcdBackups of a schedule that its retention does not keep, by the same rules as
// "quorate snapshot prune". One that runs, or is being deleted, or that a restore needs, is left
// alone.
func dropped(o Scheduled, zone *time.Location) []api.EtcdBackup {
	r := o.Schedule.Spec.Retention
	if r == nil {
		return nil
	}
	rules := snapshot.Retention{Last: int(r.Last), Daily: int(r.Daily), Weekly: int(r.Weekly), Monthly: int(r.Monthly), Location: zone}
	if r.MaxAge != nil {
		age, err := time.ParseDuration(string(*r.MaxAge))
		if err != nil {
			return nil // the schema refuses it; nothing is deleted on a guess
		}
		rules.MaxAge = age
	}
	newestFirst := slices.Clone(o.Backups) // by the API server's clock, which has no part of a second, and then by the time in the name
	slices.SortFunc(newestFirst, func(a, b api.EtcdBackup) int {
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), strings.Compare(b.Name, a.Name))
	})
	byName := map[string]api.EtcdBackup{}
	var stored []snapshot.Stored
	next := o.Now // when the one after it was made
	for _, b := range newestFirst {
		made := b.CreationTimestamp.Time
		if settled(&b) && b.DeletionTimestamp.IsZero() {
			byName[b.Name] = b
			s := snapshot.Stored{Manifest: snapshot.Manifest{Name: b.Name, ClusterID: b.Status.ClusterID, TakenAt: made}}
			// The clock of the node may be wrong: what cannot be true does not count.
			if taken := b.Status.TakenAt; taken != nil && !taken.Time.Before(made) && !taken.After(next) {
				s.Manifest.TakenAt = taken.Time
			}
			if b.Status.VerifiedAt != nil {
				s.Verification = &snapshot.Verification{}
			}
			stored = append(stored, s)
		}
		next = made
	}
	_, drop := snapshot.Retain(stored, rules, o.Now)
	drop = slices.DeleteFunc(drop, func(s snapshot.Stored) bool { return o.Needed[s.Manifest.Name] })
	left := atOnce
	for _, b := range o.Backups {
		if !b.DeletionTimestamp.IsZero() {
			left--
		}
	}
	var backups []api.EtcdBackup
	for _, s := range drop[:min(len(drop), max(left, 0))] {
		backups = append(backups, byName[s.Manifest.Name])
	}
	return backups
}
