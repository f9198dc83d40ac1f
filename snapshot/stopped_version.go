package snapshot

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/coreos/go-semver/semver"
)

// minor is a minor version of etcd.
type minor struct{ major, minor int64 }

func (m minor) String() string { return fmt.Sprintf("%d.%d", m.major, m.minor) }

func (m minor) compare(n minor) int {
	return cmp.Or(cmp.Compare(m.major, n.major), cmp.Compare(m.minor, n.minor))
}

func parseMinor(version string) (minor, error) {
	v, err := semver.NewVersion(strings.TrimPrefix(version, "v"))
	if err != nil {
		return minor{}, fmt.Errorf("etcd version %q: write it as 3.6.16", version)
	}
	return minor{v.Major, v.Minor}, nil
}

// Refuses says why an etcd of a version is not started on a copy of the data directory: one that is
// older cannot read it, and etcd goes up by one minor at a time.
func (s StoppedState) Refuses(etcdVersion string) error {
	got, err := parseMinor(etcdVersion)
	if err != nil {
		return err
	}
	if s.EtcdVersion == "" {
		return nil
	}
	want, err := parseMinor(s.EtcdVersion + ".0")
	switch next := (minor{want.major, want.minor + 1}); {
	case err != nil:
		return err
	case got.compare(want) < 0:
		return fmt.Errorf("%w: the data is of etcd %s, and this is etcd %s: take an etcd %s, of the newest patch", ErrTooOld, want, etcdVersion, want)
	case got.compare(next) > 0:
		return fmt.Errorf("the data is of etcd %s, and etcd %s skips a minor: take an etcd %s, of the newest patch", want, etcdVersion, want)
	}
	return nil
}

// highestMinor is the minor that reads it all: the versions of the cluster and of the storage
// differ while a cluster is upgraded or downgraded. 3.0 says nothing: every etcd has it for the
// version of its cluster until the leader knows those of all members (MinClusterVersion in
// api/version/version.go).
func highestMinor(versions []string) string {
	highest := minor{}
	for _, version := range versions {
		if m, err := parseMinor(version); err == nil && m.compare(highest) > 0 {
			highest = m
		}
	}
	if highest == (minor{}) || highest == (minor{3, 0}) {
		return ""
	}
	return highest.String()
}
