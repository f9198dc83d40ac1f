package membership

// The model of an EtcdRestore that is suspended (spec.suspend), and of the plan that it tells.

// named is the snapshot that a search is for; 0: the newest.
func named(st swapStatus, op swapCareless) uint8 {
	if op.choosesAnew {
		return 0
	}
	return st.planned
}

// is reports whether it is the search of the restore that is asked for, as it is wanted now.
func (j swapSearch) is(st swapStatus, op swapCareless) bool {
	return j.of != 0 && j.of == st.restore && (st.phase != swapPending || j.named == named(st, op))
}

// asPlanned keeps to what the plan has told (fromPlan and asPlanned of package reconcile).
func (l *swapLook) asPlanned(survivor bool, o *Observed) {
	plan := swapSnapshot(l.status.planned)
	switch {
	case l.status.planned == 0:
	case !survivor && o.InPlace.Suspended:
		o.Search = Search{Begun: true, Found: plan}
	case o.Search.Found != Snapshot{} && o.Search.Found.ID() != plan.ID():
		o.InPlace.Problem, o.Search = "the plan was another one: delete the EtcdRestore", Search{}
	}
}

// unplanned is what is wrong with the beginning of a restore.
func (w *swap) unplanned(st swapStatus, t swapDecision) string {
	switch chosen := swapStored(t.step.Snapshot.ID()); {
	case w.asked[st.restore].held:
		return "R15: a restore begins that is suspended"
	case w.asked[st.restore].survivor != (memberOf(chosen) >= 0):
		return "R16: the data of a member is restored in place of a snapshot, or a snapshot in place of that"
	case st.planned != 0 && chosen != st.planned:
		return "R15: another snapshot is restored than the plan has told"
	default:
		return ""
	}
}

// heldWell judges a world in which nothing happens any more and an EtcdRestore is suspended: either
// its plan is told, or why there is none, and the cluster was looked after.
func (x *swapExplorer) heldWell(l swapLook, t Step) string {
	switch d := x.decide(l); {
	case d.waits == "" && l.status.planned == 0:
		return "L2: a restore that is suspended tells no plan"
	case t.Action == Wait:
		return "L3: it waits for nothing: " + t.String()
	case t.Action == Stall && !tellsWhatToDo(t.Message):
		return "its message does not tell what to do: " + t.String()
	default:
		return ""
	}
}
