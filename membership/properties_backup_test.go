package membership

import (
	"errors"
	"slices"
)

// promisesBackup: no change of version begins before its snapshot is verified, and nothing else is
// held up for one.
func promisesBackup(d Desired, o Observed, s Step) error {
	var running []Version
	begun, moves := false, s.Action == Downgrade
	for _, i := range o.Instances {
		m := listing(o, i.ID)
		if m == nil || m.Learner {
			continue
		}
		v := i.Endpoint.Version
		running = append(running, v)
		begun = begun || v == d.Version || v.Minor != running[0].Minor || i.Endpoint.Downgrade != Version{} || i.Volume.Next != Version{}
		moves = moves || s.Action == Update && slices.Contains(s.Members, i.Name) && v != s.Version
	}
	held := s.Action == BackUp || s.Reason == BackingUp || s.Reason == BackupFailed
	back := slices.Contains(running, d.Version)
	switch {
	case d.BackUp && o.Backup.State != BackupVerified && moves && !begun:
		return errors.New("a change of version begins without a verified snapshot")
	case held && (!d.BackUp || o.Backup.State == BackupVerified):
		return errors.New("it waits for a snapshot that is verified, or not asked for")
	case held && back:
		return errors.New("a change that has begun, or is taken back, is held up for a snapshot")
	case held && len(running) == 0:
		return errors.New("members that cannot be listed are held up for a snapshot")
	}
	return nil
}
