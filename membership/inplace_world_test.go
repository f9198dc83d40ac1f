package membership

// The model of what surrounds Plan while a cluster is restored in place: its status, the
// EtcdRestores, the Service for clients, the store, and the former and new members with their
// claims, Pods and disks. Members come and go by restores alone here.

// most ordinals that the model has.
const swapMost = 6

// lineage is the identity of an etcd cluster, as etcd hashes it from token and members: of which
// EtcdRestore it comes, and the ordinal of its first member.
type lineage uint8

// original is the cluster that was there before any restore.
const original lineage = 1 << 4

func lineageOf(f First) lineage {
	if f.Size == 0 {
		return 0
	}
	e := lineage(f.Token[0]-'0')<<4 | lineage(f.Base)
	if f.Size == 1 && ParseSnapshot(f.Snapshot).member() != "" {
		e |= alone
	}
	return e
}

func (e lineage) token() uint8 { return uint8(e >> 4) }
func (e lineage) base() int    { return int(e & 7) }

// has reports whether a member with that ordinal is one of the cluster, which has so many unless it
// is alone.
func (e lineage) has(size, ordinal int) bool {
	return e != 0 && ordinal >= e.base() && ordinal < e.base()+e.size(size)
}

func (e lineage) clusterID() ID { return ID(e) }

func (e lineage) memberID(size, ordinal int) ID {
	if !e.has(size, ordinal) {
		return 0
	}
	return ID(e)<<8 | ID(ordinal+1)
}

// swap is the truth, of which an operator sees a look.
type swap struct {
	status  swapStatus
	asked   [swapRestores]swapRestore // the EtcdRestores, by their UIDs
	service bool                      // the Service for clients leads to what is ready
	search  swapSearch
	newest  uint8 // snapshot in the store
	broken  bool  // the store cannot be read any more
	copy    swapCopy
	copier  swapCopier
	clock   swapClock
	uids    uint8 // how many EtcdRestores there have been

	served lineage         // the cluster that has served clients last
	marks  [swapMost]uint8 // what was set aside when the restore began that goes on
	hurt   bool            // a person has taken something away, or a disk was wiped
	wiped  bool            // the status was lost

	members [swapMost]swapMember
}

// swapRestores bounds the UIDs: 0 and 1 are of none.
const swapRestores = 6

// swapRestore is an EtcdRestore.
type swapRestore struct {
	there    bool
	name     uint8
	done     bool  // its status says that it was carried out
	held     bool  // it is suspended
	survivor bool  // it takes the data of a member
	bySelf   bool  // it was created because a majority was lost
	since    uint8 // for which loss
	noted    bool  // the EtcdCluster has told of it
	snapshot uint8 // that was chosen for it
}

// swapSearch is the Job that looks for a snapshot.
type swapSearch struct {
	of    uint8 // UID of the EtcdRestore; 0: there is no Job
	named uint8 // the snapshot that is looked for; 0: the newest
	found uint8 // 0 while there is no result
}

// swapStatus is the status of the EtcdCluster.
type swapStatus struct {
	latch       lineage // clusterID
	phase       swapPhase
	restore     uint8 // UID of the EtcdRestore that is carried out
	first, next uint8 // firstOrdinal, nextOrdinal
	chosen      uint8 // restored
	planned     uint8 // the snapshot of the plan, before it begins; 0: there is none
	former      swapFormer
	remembered  lineage // whose members it has
	intent      bool    // operation is a first start
	targets     [swapMost]uint8
	carried     uint8 // names of EtcdRestores, as bits
	loss        swapLoss
	turn        uint8 // stands for the resource version: a status that comes again is another one
}

// swapFormer is what status.restore has of before.
type swapFormer struct {
	latch  lineage
	first  uint8
	chosen uint8
}

type swapPhase uint8

const (
	swapNone swapPhase = iota
	swapPending
	swapRefused
	swapRestoring
	swapReverting
	swapCompleted
)

type swapMember struct {
	claim swapClaim
	made  uint8 // how many volumes it has had
	pod   swapPod
	disk  lineage // whose data is on the volume; 0: it is blank
	from  uint8   // the snapshot of which that was made

	hidden lineage // whose data is on a volume that seems to be blank
}

type swapClaim struct {
	uid         uint8 // 0: there is none
	terminating bool
	record      lineage
	first       lineage
	snapshot    uint8
	aside       uint8 // UID of the EtcdRestore for which it was set aside
	patched     uint8 // how often that was written, as the resource version tells
}

type swapPod struct {
	phase       phase
	terminating bool
	told        lineage
	restores    bool  // it has an init container
	restored    bool  // that is done, since the Pod has been on its node
	snapshot    uint8 // that this is told to restore from, where there is no data
	late        bool  // the request to create it came late
	off         bool  // its node is off: nothing of it runs or is heard of, and the object stays
	emptyLong   bool  // etcd has found no data where its own should be, for as long as the spec wants to wait
}

func (p swapPod) runs() bool   { return !p.off && (p.phase == starting || p.phase == up) }
func (p swapPod) serves() bool { return !p.off && p.phase == up }
func (p swapPod) empty() bool  { return p.phase == exited && p.snapshot == 0 }

// quorate reports whether those members of a cluster that run, and answer, could elect a leader.
func (w *swap) quorate(size int, e lineage) bool {
	n := 0
	for _, m := range w.members {
		if m.pod.serves() && m.disk == e {
			n++
		}
	}
	return e != 0 && n >= Quorum(e.size(size))
}

// launch starts the container of a Pod, for the first time or again.
func (w *swap) launch(n int) (violation string) {
	m := &w.members[n]
	if m.disk == 0 {
		m.pod.phase = exited // none is told to start empty
		if m.pod.snapshot != 0 {
			return "R5: a new member starts without the data that was chosen for it"
		}
		return ""
	}
	m.pod.phase = starting
	if token := m.pod.told.token(); token > 1 && (m.disk != m.pod.told || m.claim.record == 0 && m.from != w.asked[token].snapshot) {
		return "R5: a new member starts with other data than that of the chosen snapshot"
	}
	return ""
}

// fetch runs the init container of a Pod. It leaves data alone that it finds, and fails where that
// is of another snapshot.
//
// Where the data is that of a member, it makes none itself.
func (w *swap) fetch(n int, op swapCareless) (violation string, done bool) {
	m := &w.members[n]
	switch {
	case m.pod.snapshot == 0:
	case memberOf(m.pod.snapshot) >= 0:
		if (m.disk != m.pod.told || m.from != m.pod.snapshot) && !op.expectsNothing {
			return "", false
		}
	case w.broken, m.disk != 0 && m.from != m.pod.snapshot:
		return "", false
	case m.disk == 0:
		if w.served == m.pod.told {
			violation = "S2: a member is restored from the snapshot that had newer data"
		}
		m.disk, m.from = m.pod.told, m.pod.snapshot
	}
	m.pod.restored = true
	return violation, true
}

// kill deletes a Pod. A process takes its time to stop.
func (w *swap) kill(n int) {
	if p := &w.members[n].pod; p.runs() || p.off {
		p.terminating = true
	} else {
		w.vanish(n)
	}
}

// vanish removes a Pod that has stopped, and the volume with it that is being deleted.
func (w *swap) vanish(n int) {
	m := &w.members[n]
	m.pod = swapPod{}
	if m.claim.terminating && !w.mounts(n) {
		m.claim, m.disk, m.from, m.hidden = swapClaim{}, 0, 0, 0
	}
}

// deleteClaim marks a claim for deletion: it goes when no Pod has it.
func (w *swap) deleteClaim(n int) {
	m := &w.members[n]
	m.claim.terminating = true
	if m.pod.phase == absent {
		w.vanish(n)
	}
}

// serve lets clients in where the Service leads to them, and judges what they see.
func (w *swap) serve(size int) (violation string) {
	if !w.service {
		return ""
	}
	var reached lineage
	for _, m := range w.members {
		switch {
		case !m.pod.serves() || m.pod.terminating || m.pod.late || !w.quorate(size, m.disk) || m.disk == reached:
		case reached != 0:
			return "R2: clients reach two clusters"
		default:
			reached = m.disk
		}
	}
	switch st := w.status; {
	case reached == 0:
	case reached.token() < w.served.token():
		return "R4: clients reach the former cluster after the new one has served"
	case reached != w.served && reached != st.latch && reached != st.former.latch:
		return "R3: clients reach a cluster that may yet be reverted"
	default:
		w.served = reached
	}
	return ""
}

// faulty is the invariant that the world breaks, if any. A Pod of a former member whose request
// came late is judged apart: it must go.
func (w *swap) faulty() string {
	var running lineage
	for _, m := range w.members {
		if !m.pod.runs() || m.pod.late {
			continue
		}
		if m.claim.aside != 0 && m.disk != w.status.latch { // a mark that came late, on a member, is judged apart: it must go
			return "R6: a process runs on a volume that was set aside"
		}
		if running != 0 && m.disk != running {
			return "R1: a former member runs beside a new one"
		}
		running = m.disk
	}
	if c := w.copier.job; c.of != 0 {
		if p := w.members[memberOf(c.data)].pod; p.runs() && !p.late {
			return "R10: data is copied that a process writes"
		}
	}
	return ""
}
