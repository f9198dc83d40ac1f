package membership

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/coreos/go-semver/semver"
)

// Version is the version of an etcd binary. The zero Version means that it is not known.
type Version struct{ Major, Minor, Patch int }

// ParseVersion reads MAJOR.MINOR.PATCH, with or without a leading "v".
func ParseVersion(s string) (Version, error) {
	if len(s) > mostVersion {
		return Version{}, fmt.Errorf("parse etcd version: it has %d characters", len(s))
	}
	v, err := semver.NewVersion(strings.TrimPrefix(s, "v"))
	if err != nil {
		return Version{}, fmt.Errorf("parse etcd version %q: %w", s, err)
	}
	if v.PreRelease != "" || v.Metadata != "" {
		return Version{}, fmt.Errorf("parse etcd version %q: pre-releases and builds are not supported", s)
	}
	if max(v.Major, v.Minor, v.Patch) > mostNumber {
		return Version{}, fmt.Errorf("parse etcd version %q: no release has such a number", s)
	}
	return Version{Major: int(v.Major), Minor: int(v.Minor), Patch: int(v.Patch)}, nil
}

// String is MAJOR.MINOR.PATCH without a "v", and empty for the zero Version.
func (v Version) String() string {
	if v == (Version{}) {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)
}

// Compare is negative where v is older than w, zero where they are the same, positive where v is
// newer.
func (v Version) Compare(w Version) int {
	return cmp.Or(cmp.Compare(v.Major, w.Major), cmp.Compare(v.Minor, w.Minor), cmp.Compare(v.Patch, w.Patch))
}
