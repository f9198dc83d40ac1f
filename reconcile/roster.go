package reconcile

import (
	"cmp"
	"slices"
	"strings"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
)

// roster is the members that are known from anywhere.
type roster struct {
	cluster   *api.EtcdCluster
	instances map[string]*membership.Instance
}

// at puts a member on the roster, and adds what is known of it. A name that can be none of ours is
// passed over.
func (r roster) at(name string, add func(*membership.Instance)) {
	ordinal, ok := r.cluster.Ordinal(name)
	if !ok {
		return
	}
	if r.instances[name] == nil {
		r.instances[name] = &membership.Instance{Name: name, Ordinal: ordinal}
	}
	if add != nil {
		add(r.instances[name])
	}
}

// expect puts those on the roster that a first start began with, and before the cluster has formed
// those that the spec asks for.
func (r roster) expect(formed bool) {
	var starts []membership.First
	if !formed {
		of := size(r.cluster)
		if shutsClientsOut(r.cluster) {
			of = firstSize(r.cluster)
		}
		starts = append(starts, membership.First{Base: int(r.cluster.Status.FirstOrdinal), Size: of})
	}
	for _, i := range r.instances {
		starts = append(starts, i.Volume.First)
	}
	for _, f := range starts {
		for n := range f.Size {
			r.at(r.cluster.MemberName(f.Base+n), nil)
		}
	}
}

// identify gives each member the ID that etcd knows it by: from etcd's list, or else from what the
// status remembers of it, or else, where it remembers none, from its volume. No two members have
// one ID.
func (r roster) identify(members []membership.Member, remembered bool) {
	ids, has := map[string]membership.ID{}, map[membership.ID]string{} // has: the member that has an ID, as etcd lists it
	for _, m := range r.cluster.Status.Members {
		ids[m.Name] = membership.ParseID(m.ID)
	}
	for _, m := range members {
		if _, ours := addressee(r.cluster, m); !ours {
			ids[m.Name] = m.ID // what a process says of itself counts only where no peer URL says otherwise
		}
	}
	for _, m := range members {
		if name, ours := addressee(r.cluster, m); ours {
			ids[name], has[m.ID] = m.ID, name
		}
	}
	for name, id := range ids {
		if of := has[id]; of != "" && of != name {
			continue // the status remembers the copy of a volume as a member
		}
		r.at(name, func(i *membership.Instance) { i.ID = id })
	}
	r.fromVolumes(members != nil, remembered)
}

// fromVolumes gives the ID on its volume to each member of which nothing else tells one. A claim
// may be copied to another name, annotations and all: one voter must not count as two, of which the
// second is removed by the ID of the first. Where etcd's list is known, a volume that is not the
// recorded one tells nothing, and one whose member has another volume is a copy. Without a list,
// volumes that were restored are all there may be: each ID goes to one of them, and to the recorded
// one first.
func (r roster) fromVolumes(listed, remembered bool) {
	known := map[membership.ID]bool{}
	var unknown []*membership.Instance
	for _, i := range r.instances {
		known[i.ID] = true
		if i.ID == 0 && i.Volume.MemberID != 0 {
			unknown = append(unknown, i)
		}
	}
	slices.SortFunc(unknown, func(a, b *membership.Instance) int {
		return cmp.Or(one(a.Volume.Replaced)-one(b.Volume.Replaced), cmp.Compare(a.Ordinal, b.Ordinal))
	})
	for _, i := range unknown {
		switch id := i.Volume.MemberID; {
		case known[id]:
			i.Volume.Replaced = true
		case listed && !i.Volume.Replaced, !listed && !remembered:
			i.ID, known[id] = id, true
		}
	}
}

func one(b bool) int {
	if b {
		return 1
	}
	return 0
}

// addressee is whose peer URL a member of etcd's list has; false where it is none of ours.
func addressee(c *api.EtcdCluster, m membership.Member) (string, bool) {
	for _, url := range m.PeerURLs {
		host, _, _ := strings.Cut(url[strings.LastIndex(url, "/")+1:], ".")
		if _, ok := c.Ordinal(host); ok && c.PeerURL(host) == url {
			return host, true
		}
	}
	return "", false
}

// sorted are the members by ordinal.
func (r roster) sorted() []membership.Instance {
	sorted := make([]membership.Instance, 0, len(r.instances))
	for _, i := range r.instances {
		sorted = append(sorted, *i)
	}
	slices.SortFunc(sorted, func(a, b membership.Instance) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return sorted
}

// fresh are the names of members to come: those behind all that were ever seen. One that was
// written down for a member without a volume, and of which nothing is known since, is the first of
// them still.
func (r roster) fresh(seen []membership.Instance) []string {
	next := nextOrdinal(r.cluster, seen)
	if op := r.cluster.Status.Operation; op != nil && op.Step == string(membership.AddLearner) {
		for _, t := range op.Targets {
			if n, _ := r.cluster.Ordinal(t.Member); t.UID == "" && r.instances[t.Member] == nil && n == next-1 {
				next = n
			}
		}
	}
	var names []string
	for n := next; n < min(next+mostMembers, api.MaxOrdinal+1); n++ {
		names = append(names, r.cluster.MemberName(n))
	}
	return names
}

// nextOrdinal is the high-water mark of ordinals: what the status says, or more where more was
// seen.
func nextOrdinal(c *api.EtcdCluster, instances []membership.Instance) int {
	next := int(c.Status.NextOrdinal)
	for _, i := range instances {
		next = max(next, i.Ordinal+1)
	}
	return next
}
