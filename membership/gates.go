package membership

import "fmt"

// Gate is what is known of one minor of etcd, and what has to hold for a cluster to come to it or
// to leave it.
type Gate struct {
	Minor int // of etcd 3
	// Newest patch that is known, by way of which a cluster passes through this minor on its way to
	// another one.
	Newest int
	// Leave is the lowest patch from which the next minor may be reached, Enter the lowest one at
	// which a cluster may arrive from another minor. Source says why.
	Leave, Enter int
	Source       string
}

// Gates of the minors that are supported, in order. A cluster changes its minor one at a time, in
// either direction (the upgrade guides, and isValidDowngrade in server/etcdserver/version).
var Gates = []Gate{
	{
		Minor: 5, Newest: 35, Leave: 32, Enter: 32,
		Source: "upgrade_3_6.md: before 3.5.32 learners and removed members may be lost track of on the way to 3.6 (etcd#19557, etcd#20793, etcd#20967)",
	},
	{
		Minor: 6, Newest: 16, Leave: 11, Enter: 11,
		Source: "upgrade_3_7.md and downgrade_3_7.md: 3.6.11 or later on either way; before 3.6.4 a member may not start that was promoted (etcd#20793)",
	},
	{
		Minor: 7, Newest: 3, Leave: 0, Enter: 0,
		Source: "the newest minor that is supported",
	},
}

func gate(minor int) (Gate, bool) {
	for _, g := range Gates {
		if g.Minor == minor {
			return g, true
		}
	}
	return Gate{}, false
}

func (g Gate) newest() Version { return Version{3, g.Minor, g.Newest} }

// Path is the way of a cluster to a version: the versions that all its members run, one after the
// other, the last of which is the one that is asked for; empty where all run it. running are the
// versions that its members run now. An error says which way there is instead.
func Path(running []Version, target Version) ([]Version, error) {
	lowest, highest := span(running)
	if lowest == (Version{}) || lowest == target && highest == target {
		return nil, nil
	}
	for _, v := range []Version{lowest, highest, target} {
		if _, ok := gate(v.Minor); v.Major != 3 || !ok {
			return nil, fmt.Errorf("etcd %s is not supported: set spec.version to a patch of 3.5, 3.6 or 3.7", v)
		}
	}
	if highest.Minor-lowest.Minor > 1 {
		return nil, fmt.Errorf("members run %s and %s, which etcd does not support beside each other: put the Pods back to one minor by hand", lowest, highest)
	}
	switch {
	case target.Minor < lowest.Minor-1 || target.Minor < lowest.Minor && highest.Minor > lowest.Minor:
		back, _ := gate(highest.Minor - 1)
		return nil, fmt.Errorf("from %s to %s is a downgrade over two minors: set spec.version to %s first, and to %s when that is done", highest, target, back.newest(), target)
	case target.Minor < highest.Minor: // back, or down
		return []Version{target}, arrives(highest, target)
	}
	var path []Version
	at := lowest
	for at.Minor < target.Minor {
		here, _ := gate(at.Minor)
		if at.Patch < here.Leave && highest.Minor == at.Minor {
			path = append(path, here.newest())
		}
		next, _ := gate(at.Minor + 1)
		at = next.newest()
		if next.Minor == target.Minor {
			at = target
		}
		if err := arrives(Version{3, next.Minor - 1, 0}, at); err != nil {
			return nil, err
		}
		path = append(path, at)
	}
	if len(path) == 0 {
		path = append(path, target) // another patch
	}
	return path, nil
}

// arrives reports whether a cluster may come from one minor to that version of another.
func arrives(from, to Version) error {
	g, _ := gate(to.Minor)
	if from.Minor == to.Minor || to.Patch >= g.Enter {
		return nil
	}
	return fmt.Errorf("etcd %s cannot be reached from 3.%d: set spec.version to %s or later, best %s", to, from.Minor, Version{3, g.Minor, g.Enter}, g.newest())
}

// span is the lowest and the highest of versions; zero of none.
func span(versions []Version) (lowest, highest Version) {
	for n, v := range versions {
		if n == 0 || v.Compare(lowest) < 0 {
			lowest = v
		}
		if n == 0 || v.Compare(highest) > 0 {
			highest = v
		}
	}
	return lowest, highest
}
