package membership

import (
	"fmt"
	"strings"
)

func (e lineage) String() string {
	if e == 0 {
		return "none"
	}
	return fmt.Sprintf("%d/%d", e.token(), e.base())
}

func (w *swap) copyWords() string {
	var b strings.Builder
	for _, job := range []struct {
		what string
		of   swapCopy
	}{{"Job", w.copy}, {"its Pod", w.copier.job}} {
		if c := job.of; c.of != 0 {
			fmt.Fprintf(&b, ", %s of restore %d copies m-%d to volume %d of m-%d for %s (done %v, failed %v)", job.what, c.of, memberOf(c.data), c.volume, c.to, c.makes, c.done, c.failed)
		}
	}
	if w.copier.going {
		b.WriteString(" terminating")
	}
	return b.String()
}

func (w *swap) String() string {
	var b strings.Builder
	st := w.status
	fmt.Fprintf(&b, "clusterID %s, restore %d %s, ordinals from %d, next %d, snapshot %d", st.latch, st.restore,
		[...]string{"none", "Pending", "Refused", "Restoring", "Reverting", "Completed"}[st.phase], st.first, st.next, st.chosen)
	if st.planned != 0 {
		fmt.Fprintf(&b, ", planned %d", st.planned)
	}
	if st.intent {
		fmt.Fprintf(&b, ", first start on %v", st.targets)
	}
	for uid, r := range w.asked {
		if r.there {
			fmt.Fprintf(&b, ", EtcdRestore %d called %d", uid, r.name)
			if r.held {
				b.WriteString(" suspended")
			}
			if r.survivor {
				b.WriteString(" from a survivor")
			}
		}
	}
	fmt.Fprintf(&b, ", search for %d found %d, Service %v, served %s", w.search.of, w.search.found, w.service, w.served)
	b.WriteString(w.copyWords())
	b.WriteString(w.lossWords())
	for n, m := range w.members {
		if m == (swapMember{}) {
			continue
		}
		fmt.Fprintf(&b, "; m-%d: volume %d", n, m.claim.uid)
		for _, flag := range []struct {
			text string
			on   bool
		}{
			{"terminating", m.claim.terminating}, {fmt.Sprintf("aside for %d", m.claim.aside), m.claim.aside != 0},
			{fmt.Sprintf("first start %s of snapshot %d", m.claim.first, m.claim.snapshot), m.claim.first != 0},
			{"recorded " + m.claim.record.String(), m.claim.record != 0}, {fmt.Sprintf("data %s of snapshot %d", m.disk, m.from), m.disk != 0},
			{fmt.Sprintf("Pod %s told %s", [...]string{"", "pending", "starting", "up", "exited", "ended"}[m.pod.phase], m.pod.told), m.pod.phase != absent},
			{fmt.Sprintf("restores snapshot %d", m.pod.snapshot), m.pod.snapshot != 0}, {"Pod terminating", m.pod.terminating},
			{"node off", m.pod.off}, {"empty for long", m.pod.emptyLong}, {"seems empty, has " + m.hidden.String(), m.hidden != 0},
		} {
			if flag.on {
				b.WriteString(" " + flag.text)
			}
		}
	}
	return b.String()
}
