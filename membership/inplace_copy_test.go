package membership

import "slices"

// The model of a restore in place from the data of a member (spec.source.survivor): the Job that
// copies it to the volume of the first new member, which is alone then, and the Pod of that Job.

// alone marks the identity of a cluster that a copy begins. etcd hashes it from the members, and
// there is one.
const alone lineage = 8

// members of a cluster: as many as those of the bound have, or one.
func (e lineage) size(size int) int {
	if e&alone != 0 {
		return 1
	}
	return size
}

// restored is the cluster that the restore of a status is to begin, and that an operator takes for
// the restored one.
func (st *swapStatus) restored() lineage {
	e := lineage(st.restore<<4 | st.first)
	if memberOf(st.chosen) >= 0 {
		e |= alone
	}
	return e
}

// dataOfMember is what a member has on the volume with that UID, as a snapshot. Those of the store
// are less.
func dataOfMember(n int, volume uint8) uint8 { return 1<<7 | uint8(n)<<4 | volume }

// memberOf is the ordinal of the member whose data a snapshot is; less than 0 where it is of none.
func memberOf(snapshot uint8) int {
	if snapshot < 1<<7 {
		return -1
	}
	return int(snapshot >> 4 & 7)
}

// swapSnapshot and swapStored are a snapshot in the terms of Plan, and of the model.
func swapSnapshot(n uint8) Snapshot {
	if m := memberOf(n); m >= 0 {
		return DataOf(name(m), uid(n&15))
	}
	return inStore(n)
}

func swapStored(id string) uint8 {
	s := ParseSnapshot(id)
	if s.member() == "" {
		return storedAs(id)
	}
	return dataOfMember(int(s.Name[len(s.Name)-1]-'0'), s.SHA256[len(s.SHA256)-1]-'0')
}

// swapCopy is the Job.
type swapCopy struct {
	of     uint8 // UID of the EtcdRestore; 0: there is no Job
	to     uint8 // ordinal of the first member
	volume uint8 // UID of its claim, as it was when the Job was asked for
	data   uint8 // a snapshot: whose data
	makes  lineage
	late   bool // the request came when the restore did not go on any more
	done   bool
	failed bool // at least once; the kubelet tries it again and again
}

// swapCopier is the Pod of a Job, while its process runs.
type swapCopier struct {
	job   swapCopy // as it was made
	going bool     // the Job is gone, and the Pod has yet to stop
}

// newCopy is the Job that a step asks for.
func newCopy(l swapLook, t swapDecision) swapCopy {
	first := 0
	for n := swapMost - 1; n >= 0; n-- {
		if t.members[n] {
			first = n
		}
	}
	return swapCopy{of: l.status.restore, to: uint8(first), volume: l.members[first].claim.uid, data: swapStored(t.step.First.Snapshot), makes: lineageOf(t.step.First)}
}

// begin creates the Job, or makes room for it where there is another one.
func (c swapCopy) begin(w *swap) {
	if w.copy.of == 0 {
		w.copy = c
		return
	}
	w.stopCopy()
}

// begunSince reports whether another restore goes on than that which a Job was asked for.
func (w *swap) begunSince(c swapCopy) bool {
	return c.of != 0 && w.status.phase == swapRestoring && w.status.restore != c.of
}

// stopCopy deletes the Job. Its Pod takes its time to stop.
func (w *swap) stopCopy() {
	w.copy = swapCopy{}
	w.copier.going = w.copier.job.of != 0
}

// mounts reports whether the Pod of a Job holds the volume of that member.
func (w *swap) mounts(n int) bool {
	c := w.copier.job
	return c.of != 0 && (int(c.to) == n || memberOf(c.data) == n)
}

// mountable reports whether the Pod of a Job can start: a scheduler takes no claim that is being
// deleted.
func (c swapCopy) mountable(claim func(n int) swapClaim) bool {
	for _, n := range []int{int(c.to), memberOf(c.data)} {
		if v := claim(n); v.uid == 0 || v.terminating {
			return false
		}
	}
	return true
}

// startCopy starts the Pod of the Job, again if need be.
func (w *swap) startCopy() (possible bool) {
	c := w.copy
	if c.of == 0 || c.done || w.copier.job.of != 0 || !c.mountable(func(n int) swapClaim { return w.members[n].claim }) {
		return false
	}
	c.failed = false
	w.copier.job = c
	return true
}

// endCopy takes the Pod of the Job away, and the volumes that have waited for that.
func (w *swap) endCopy() {
	w.copier = swapCopier{}
	for n, m := range w.members {
		if m.claim.terminating && m.pod.phase == absent {
			w.vanish(n)
		}
	}
}

// copies lets the process run to its end. It makes nothing of what is not the data of the former
// member, and writes over nothing.
func (w *swap) copies() (violation string) {
	c, counts := w.copier.job, !w.copier.going
	from, to := w.members[memberOf(c.data)], &w.members[c.to]
	made := to.disk == c.makes && to.from == c.data // before
	if !made && to.disk == 0 && from.disk != 0 && from.disk == from.claim.record {
		if int(c.to) < int(w.status.first) && to.claim.aside != 0 {
			return "R10: a copy is written to a former volume"
		}
		if w.served == c.makes {
			violation = "S2: a member gets the data of a former one that had newer data"
		}
		to.disk, to.from, made = c.makes, dataOfMember(memberOf(c.data), from.claim.uid), true
	}
	if counts {
		w.copy.done, w.copy.failed = made, !made
	}
	w.endCopy()
	return violation
}

// hasCopy reports whether the data of a first start was copied to a volume, or a Job says so: the
// volume may have lost it since.
func (w *swap) hasCopy(n int, f First) bool {
	m := w.members[n]
	return w.copy.done && int(w.copy.to) == n || m.disk == lineageOf(f) && m.from == swapStored(f.Snapshot)
}

// copied is what an operator sees of the copy.
func (l *swapLook) copied(op swapCareless) Copy {
	st, c := l.status, l.copy
	first := l.members[st.first]
	if st.phase != swapRestoring || c.of == 0 || first.claim.uid == 0 || first.pod.phase != absent {
		return Copy{}
	}
	switch {
	case op.takesAnyCopy:
	case c.of != st.restore || c.makes != first.claim.first || c.data != first.claim.snapshot, c.volume != first.claim.uid && !op.takesEarlierCopy:
		return Copy{}
	}
	f := Copy{Begun: true, Done: c.done}
	if !c.done && (c.failed || l.overdue && !c.mountable(func(n int) swapClaim { return l.members[n].claim })) {
		f.Problem = "the data cannot be read"
	}
	return f
}

// bare reports whether a restore has begun, and no volume of a new member is there.
func (l *swapLook) bare() bool {
	first := int(l.status.first)
	return l.status.phase == swapRestoring && !slices.ContainsFunc(l.members[first:], func(g swapGlimpse) bool { return g.claim.uid != 0 })
}

// takesSurvivor reports whether the EtcdRestore that is carried out takes the data of a member.
func (l *swapLook) takesSurvivor(op swapCareless) bool {
	if op.takesAnySource {
		return slices.ContainsFunc(l.asked[:], func(r swapRestore) bool { return r.there && r.survivor })
	}
	return l.asked[l.status.restore].survivor
}

// survivor is the data that is to be restored, or why there is none (package reconcile has it in
// words of its own).
func (l *swapLook) survivor(b *swapBound, o *Observed) {
	if InPlaceRefused(*o) || !o.Formed() {
		return
	}
	var left []Instance
	for _, i := range o.Instances {
		if v := i.Volume; v.Stays() && !v.Retired && !v.Replaced && v.Recorded() && v.ClusterID == o.ID() && v.Aside == "" && (!b.named || i.Ordinal == 0) && (!b.onLoss || !i.Pod.Empty) {
			left = append(left, i)
		}
	}
	if len(left) != 1 || b.onLoss && !left[0].Endpoint.Answered() {
		o.InPlace.Problem = "there is no one member that is left: delete the EtcdRestore"
		return
	}
	o.Search = Search{Begun: true, Found: DataOf(left[0].Name, left[0].Volume.UID)}
}

// jobs are the Job of the copy and its Pod, and what becomes of them by themselves.
func (x *swapExplorer) jobs(change swapChanger) {
	change("the Pod that copies starts", -1, func(s *swapState) (string, bool) {
		return "", s.world.startCopy()
	})
	change("the copy comes to its end", -1, func(s *swapState) (string, bool) {
		if s.world.copier.job.of == 0 {
			return "", false
		}
		return s.world.copies(), true
	})
	change("the Pod that copies is killed", -1, func(s *swapState) (string, bool) {
		possible := s.world.copier.job.of != 0
		s.world.endCopy()
		return "", possible
	})
	change("the Job of the copy is collected", -1, func(s *swapState) (string, bool) {
		possible := s.world.copy.done && s.flight.action != CopyData // it is kept for ten minutes, and no API server takes that long for a request
		if possible {
			s.world.copy = swapCopy{}
		}
		return "", possible
	})
}

// calmCopy is what becomes of the Job when nothing more goes wrong.
func (w *swap) calmCopy() (violation string) {
	if w.copier.going {
		w.endCopy()
	}
	if w.startCopy(); w.copier.job.of != 0 {
		violation = w.copies()
	}
	return violation
}
