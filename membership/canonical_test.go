package membership

import (
	"cmp"
	"slices"
)

// packed is a state in which the members that could change places are sorted. States that differ
// only in which member is which pack to the same, and Plan treats them the same
// (TestPlanIgnoresNames), so that one of them is enough to explore.
type packed struct {
	rest    [2]uint64
	members [most]shape
}

// shape is all that a state says about one member: what it is, and what it was in an old look.
type shape [3]uint64

func (b *bound) pack(s *state) packed {
	var p packed
	p.rest = [2]uint64{
		word{}.cluster(&s.world.cluster).cluster(&s.old.cluster).search(s.world.search).search(s.old.search).number(2, uint64(s.world.newest)).flag(s.old.restore).bits,
		word{}.flag(s.world.service).epoch(s.world.formed).flag(s.world.acked).budget(s.budget).number(3, uint64(s.stale)).epoch(s.old.list).bits,
	}
	for n := range most {
		m, g := &s.world.members[n], &s.old.members[n]
		p.members[n] = shape{
			word{}.claim(m.claim).number(3, uint64(m.made)).pod(m.pod).epoch(m.disk).flag(m.holds).number(2, uint64(m.from)).flag(m.wiped).flag(m.mute).bits,
			word{}.remembered(s.world.cluster.status[n]).remembered(s.old.cluster.status[n]).number(16, uint64(m.had)).flag(s.same[n]).bits,
			word{}.claim(g.claim).pod(g.pod).epoch(g.answer).flag(g.led).flag(g.idle).bits,
		}
	}
	for _, block := range b.alike() {
		slices.SortFunc(p.members[block[0]:block[1]], func(x, y shape) int {
			return cmp.Or(cmp.Compare(x[0], y[0]), cmp.Compare(x[1], y[1]), cmp.Compare(x[2], y[2]))
		})
	}
	return p
}

// alike are the ranges of ordinals between which Plan makes no difference: those that are members
// of clusters of the same sizes.
func (b *bound) alike() [][2]int {
	var blocks [][2]int
	from := 0
	for _, size := range b.sizes {
		if to := int(size); to > from {
			blocks = append(blocks, [2]int{from, to})
			from = to
		}
	}
	return blocks
}

// word packs small values into 64 bits.
type word struct{ bits uint64 }

func (w word) number(width int, n uint64) word { return word{w.bits<<width | n} }

func (w word) flag(on bool) word {
	if on {
		return w.number(1, 1)
	}
	return w.number(1, 0)
}

func (w word) epoch(e epoch) word { return w.number(6, uint64(e)) } // tokens 1 to 3

func (w word) claim(c claim) word {
	return w.number(3, uint64(c.uid)).flag(c.terminating).flag(c.foreign).epoch(c.record).epoch(c.first).flag(c.replaced).number(2, uint64(c.snapshot))
}

func (w word) pod(p pod) word {
	return w.number(3, uint64(p.phase)).flag(p.terminating).flag(p.blank).epoch(p.told).flag(p.badImage).flag(p.clears).flag(p.restores).flag(p.restored).number(2, uint64(p.snapshot))
}

func (w word) remembered(r remembered) word {
	return w.epoch(r.id).number(3, uint64(r.target)).flag(r.named)
}

func (w word) cluster(c *cluster) word {
	return w.number(4, uint64(c.size)).flag(c.suspended).flag(c.badImage).number(2, uint64(c.token)).epoch(c.latch).flag(c.intent).number(2, uint64(c.chosen))
}

func (w word) search(s search) word { return w.flag(s.begun).number(2, uint64(s.found)) }

func (w word) budget(b budget) word {
	for _, n := range []uint8{b.losses, b.wipes, b.deletions, b.statusWipes, b.foreign, b.restores, b.delays, b.kills, b.copies, b.mutes} {
		w = w.number(2, uint64(n))
	}
	return w
}
