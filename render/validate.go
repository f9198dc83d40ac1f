package render

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"

	api "quorate.dev/api/v1alpha1"
)

// ValidateFlags says what is wrong with spec.options.flags on the etcd of spec.version, which no
// schema knows. What the schema says is said by package crd, and by an API server: a spec that it
// refuses is not to be rendered. The values of flags with which members have served are right,
// whatever this release of Quorate would say of new ones. The text of the error is stable, in one
// line, and says what to write instead.
func ValidateFlags(c *api.EtcdCluster, served map[string]string) error {
	v, err := parseVersion(c.Spec.Version)
	if err != nil {
		return fmt.Errorf("spec.version: %w", err)
	}
	flags := flagsOf(c)
	return join(slices.Concat(flagProblems(flags, v), uselessProblems(flags, served)))
}

// ValidateServed says which part of the spec to make smaller where it is too large for a volume to
// keep what its member has served with: a member that is changed to it could not be rolled back,
// and its Pod would be made of whatever the spec says. Without volumes nothing is kept.
func ValidateServed(c *api.EtcdCluster) error {
	if c.Spec.Storage.Medium == api.MediumMemory {
		return nil
	}
	return tooLarge(c)
}

// validateFlagsFor is ValidateFlags for a Pod that may run another version than spec.version until
// a change is carried out. That version gets the flags that it knows, under the names that it knows
// them by; only their values can be wrong for it. Values that are of no use are refused where the
// spec is judged: a member may have served with them.
func validateFlagsFor(c *api.EtcdCluster, v *version.Version) error {
	flags := flagsOf(c)
	if sameVersion(v.String(), c.Spec.Version) {
		return join(flagProblems(flags, v))
	}
	known := map[string]string{}
	for name, value := range flags {
		if on, ok := nameOn(v, name); ok {
			known[on] = value
		}
	}
	return join(flagProblems(known, v))
}

// join makes one error of all problems; nil of none.
func join(problems []string) error {
	if len(problems) == 0 {
		return nil
	}
	return errors.New(strings.Join(problems, "; "))
}

func flagsOf(c *api.EtcdCluster) map[string]string {
	if c.Spec.Options == nil {
		return nil
	}
	return c.Spec.Options.Flags
}

// parseVersion reads a version of etcd of which the flags are known here.
func parseVersion(text string) (*version.Version, error) {
	v, err := version.ParseSemantic(text)
	if err != nil || v.PreRelease() != "" || v.BuildMetadata() != "" || v.Major() != 3 || v.Minor() < 5 || v.Minor() > 7 {
		return nil, fmt.Errorf("%q is no release of etcd 3.5, 3.6 or 3.7", text)
	}
	return v, nil
}
