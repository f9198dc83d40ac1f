package membership

// The snapshot before a change of version, in the model of a cluster whose members come to run
// something else.

// rollBackup is how far the EtcdBackup of this generation of the spec has come. A spec that changes
// has another one, unless the one before is under way.
type rollBackup uint8

const (
	backupNone rollBackup = iota
	backupRuns
	backupVerified
	backupFailed
)

func (b rollBackup) facts() Backup {
	return Backup{Name: "before", State: [...]BackupState{BackupNone, BackupRuns, BackupVerified, BackupGivenUp}[b], Says: "said"}
}

// guardBits is how many bits of a seat's word are its own.
const guardBits = 61

func (w *roll) guard() uint64 {
	if !w.guarded {
		return 0
	}
	return 1<<guardBits | uint64(w.backup)<<(guardBits+1)
}

func (w *roll) unguard(bits uint64) {
	w.guarded, w.backup = bits>>guardBits&1 == 1, rollBackup(bits>>(guardBits+1))
}

// backsUp is the world after a snapshot was begun.
func (t *rollDecision) backsUp(w roll) roll {
	if t.step.Action == BackUp && w.backup == backupNone {
		w.backup = backupRuns
	}
	return w
}

// backups end in one way or the other, and people delete them.
func (b *rollBound) backups(s *rollState, visit rollVisit) {
	become := func(what string, state rollBackup) {
		to := *s
		to.roll.backup = state
		visit(what, to, "")
	}
	switch {
	case !s.roll.guarded || s.roll.backup == backupNone:
	case s.roll.backup == backupRuns:
		become("the snapshot is verified", backupVerified)
		become("the snapshot fails", backupFailed)
	default:
		become("the EtcdBackup is deleted", backupNone)
	}
}

// judgeBackup says what is wrong with a decision that begins a change of version, or holds one up.
func (w *roll) judgeBackup(t *rollDecision) string {
	versions := map[rollVersion]bool{}
	for i := range w.seats {
		if s := &w.seats[i]; s.voter() && s.runs != rollNone {
			versions[s.runs] = true
		}
	}
	lowest, highest := w.minors()
	midway := versions[w.spec] || lowest != highest || w.down != 0 && w.down < lowest
	moves := t.step.Action == Downgrade || t.step.Action == Update && t.to != w.seats[t.target].runs
	begun := midway || w.count(func(s *rollSeat) bool { return s.voter() && s.next != rollNone && s.next != s.runs }) > 0
	held := t.step.Action == BackUp || t.step.Reason == BackingUp || t.step.Reason == BackupFailed
	switch {
	case w.guarded && moves && !begun && w.backup != backupVerified:
		return "a change of version begins without a verified snapshot"
	case held && (midway || !w.guarded):
		return "a change midway, or one without a guard, is held up for a snapshot"
	default:
		return ""
	}
}
