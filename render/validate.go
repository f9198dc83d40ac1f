package render

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/version"

	api "quorate.dev/api/v1alpha1"
)

// Validate says everything that is wrong with an EtcdCluster by itself: again what the schema
// refuses, because rendering also happens where no schema is, and what the schema cannot know, the
// flags of spec.version. The text of the error is stable, in one line, and says what to write
// instead.
func Validate(c *api.EtcdCluster) error { return ValidateRunning(c, nil) }

// ValidateRunning is Validate for a cluster whose members have served with these flags: their
// values are right, whatever this release of Quorate would say of new ones.
func ValidateRunning(c *api.EtcdCluster, served map[string]string) error {
	return join(append(problemsOf(c), uselessProblems(flagsOf(c), served)...))
}

// problemsOf are those for which no Pod can be made.
func problemsOf(c *api.EtcdCluster) []string {
	problems := specProblems(c)
	if v, err := parseVersion(c.Spec.Version); err == nil {
		problems = append(problems, flagProblems(flagsOf(c), v)...)
	}
	return problems
}

// validateFor is Validate for a Pod that may run another version than spec.version until a change
// is carried out. That version gets the flags that it knows, under the names that it knows them by;
// only their values can be wrong for it. Values that are of no use are refused where the spec is
// judged: a member may have served with them.
func validateFor(c *api.EtcdCluster, v *version.Version) error {
	if sameVersion(v.String(), c.Spec.Version) {
		return join(problemsOf(c))
	}
	known := map[string]string{}
	for name, value := range flagsOf(c) {
		if on, ok := nameOn(v, name); ok {
			known[on] = value
		}
	}
	return join(append(specProblems(c), flagProblems(known, v)...))
}

// join makes one error of all problems, each said once; nil of none.
func join(problems []string) error {
	var once []string
	for _, problem := range problems {
		if !slices.Contains(once, problem) {
			once = append(once, problem)
		}
	}
	if len(once) == 0 {
		return nil
	}
	return errors.New(strings.Join(once, "; "))
}

func flagsOf(c *api.EtcdCluster) map[string]string {
	if c.Spec.Options == nil {
		return nil
	}
	return c.Spec.Options.Flags
}

func specProblems(c *api.EtcdCluster) []string {
	return slices.Concat(
		nameProblems(c.Name),
		replicasProblems(c),
		versionProblems(c.Spec.Version),
		imageProblems(c.Spec.Image),
		storageProblems(c.Spec.Storage),
		resourcesProblems(c.Spec.Resources),
		optionsProblems(c.Spec.Options),
		quotaProblems(c),
		schedulingProblems(c.Spec.Scheduling),
		metadataProblems(c.Spec.AdditionalMetadata),
		bootstrapProblems(c),
		tlsProblems(c.Spec.TLS),
	)
}

func bootstrapProblems(c *api.EtcdCluster) []string {
	if c.Spec.Bootstrap == nil {
		return nil
	}
	var problems []string
	if c.RestoreStore() == nil {
		problems = append(problems, "spec.bootstrap.restore needs a store: set spec.bootstrap.restore.store, or spec.backup.store")
	}
	if r := c.Spec.Bootstrap.Restore; r.Snapshot != "" && r.Before != nil {
		problems = append(problems, "before chooses among snapshots, and snapshot is one: leave one of them out")
	}
	return problems
}

var nameForm = regexp.MustCompile(`^[a-z]([-a-z0-9]*[a-z0-9])?$`)

func nameProblems(name string) []string {
	var problems []string
	if len(name) > api.MaxNameLength {
		problems = append(problems, fmt.Sprintf("metadata.name is too long: at most %d characters, because the Service <name>-client and the Pods <name>-<ordinal> must fit a DNS label of 63", api.MaxNameLength))
	}
	if !nameForm.MatchString(name) {
		problems = append(problems, "metadata.name must be a DNS label that starts with a letter (lower-case letters, digits and '-'): it becomes the name of a Service")
	}
	return problems
}

func replicasProblems(c *api.EtcdCluster) []string {
	n := replicas(c)
	if n < 0 || n > 9 {
		return []string{"spec.replicas must be from 0 to 9"}
	}
	if n == 0 && inMemory(c) {
		return []string{"spec.replicas 0 hibernates the cluster on its volumes, but spec.storage.medium Memory has none: the data would be lost. Delete the EtcdCluster instead, or use spec.storage.medium Disk"}
	}
	return nil
}

var (
	versionForm      = regexp.MustCompile(`^v?(0|[1-9][0-9]*)([.](0|[1-9][0-9]*)){2}$`)
	versionSupported = regexp.MustCompile(`^v?3[.][567][.][0-9]{1,3}$`)
	versionTooOld    = regexp.MustCompile(`^v?3[.]5[.]([0-9]|1[0-8])$`)
)

func versionProblems(v string) []string {
	switch {
	case !versionForm.MatchString(v):
		return []string{"spec.version must be MAJOR.MINOR.PATCH of a release, for example 3.6.16"}
	case !versionSupported.MatchString(v):
		return []string{"spec.version: Quorate runs etcd 3.5, 3.6 and 3.7; write one of their patches, for example 3.5.35, 3.6.16 or 3.7.3"}
	case versionTooOld.MatchString(v):
		return []string{"spec.version: etcd 3.5 is supported from 3.5.19 on (earlier patches lack the readiness check that Quorate relies on, and 3.5.0 to 3.5.2 can corrupt data); write 3.5.35"}
	}
	return nil
}

// parseVersion accepts what spec.version accepts.
func parseVersion(text string) (*version.Version, error) {
	if err := join(versionProblems(text)); err != nil {
		return nil, err
	}
	return version.ParseSemantic(text)
}

var (
	repositoryForm = regexp.MustCompile(`^(([A-Za-z0-9][-A-Za-z0-9.]*|[[][0-9a-fA-F:]+[]])(:[0-9]+)?/)?[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*(/[a-z0-9]+(([.]|_|__|-+)[a-z0-9]+)*)*$`)
	digestForm     = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

func imageProblems(image *api.Image) []string {
	if image == nil {
		return nil
	}
	var problems []string
	if image.Repository != "" && (!repositoryForm.MatchString(image.Repository) || len(image.Repository) > 255) {
		problems = append(problems, "spec.image.repository must be an image name without tag or digest, for example registry.example.com:5000/etcd-development/etcd; the tag is made of spec.version")
	}
	if slices.ContainsFunc(image.Digests, func(d api.ImageDigest) bool { return !digestForm.MatchString(d.Digest) }) {
		problems = append(problems, "spec.image.digests: digest must be sha256: and 64 lower-case hexadecimal digits")
	}
	if !slices.Contains([]corev1.PullPolicy{"", corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}, image.PullPolicy) {
		problems = append(problems, "spec.image.pullPolicy must be Always, IfNotPresent or Never")
	}
	if slices.ContainsFunc(image.PullSecrets, func(s api.SecretReference) bool { return s.Name == "" }) {
		problems = append(problems, "spec.image.pullSecrets: every entry names a Secret")
	}
	return problems
}
