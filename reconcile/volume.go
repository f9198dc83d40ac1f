package reconcile

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/render"
)

// unfit is why a volume is not what the spec asks for, and cannot become that by growing; empty
// where it is or can, and where the spec does not want its member to be replaced for that. A spec
// that names no class is content with any: which one is the default may change, and is no reason to
// move data. Nor is what the API server has made of this very spec.
func unfit(c *api.EtcdCluster, claim *corev1.PersistentVolumeClaim) string {
	if !replaces(c) || claim.Annotations[api.AnnotationStorage] == render.MadeOf(c) {
		return ""
	}
	wanted, has := c.Spec.Storage.Size, claim.Spec.Resources.Requests.Storage()
	if small := claim.Status.Capacity.Storage(); claim.Status.Phase == corev1.ClaimBound && !small.IsZero() && small.Cmp(*has) < 0 && wanted.Cmp(*has) < 0 {
		has = small // it was asked to grow, and has not: to take that back moves no member
	}
	class := ptr.Deref(claim.Spec.StorageClassName, "")
	switch other := c.Spec.Storage.StorageClassName; {
	case other != nil && class == "":
		return "has no storage class, and is to have " + *other
	case other != nil && *other != class:
		return "is of the storage class " + class + ", and is to be of " + *other
	case wanted.Cmp(*has) < 0,
		wanted.Cmp(*has) > 0 && claim.Annotations[api.AnnotationJoin] == api.JoinPending: // nothing is on it yet: another one is as good
		return "has " + has.String() + ", and is to have " + wanted.String()
	default:
		return ""
	}
}

func replaces(c *api.EtcdCluster) bool { return c.Spec.Storage.ChangePolicy == api.ChangeReplace }

// tryGrowth finds out which volumes that are too small cannot grow, where their members are to be
// replaced then. Whether a class can expand its volumes only the API server can tell: a
// StorageClass is none of a namespace's objects. So it is asked for what would be asked for, and
// does nothing (dry run).
func (r *Reconciler) tryGrowth(c *api.EtcdCluster, seen observed) []try {
	if !replaces(c) {
		return nil
	}
	var tries []try
	for n, i := range seen.Instances {
		claim := seen.claims[i.Name]
		if seen.Member(i.ID) == nil || !i.Volume.Small || i.Volume.Unfit != "" || !i.Volume.Stays() || claim.Status.Phase != corev1.ClaimBound {
			continue
		}
		ask := func(ctx context.Context) error {
			if err := r.tryVolume(ctx, c, claim, larger(c, seen, i.Name)); err != nil {
				return fmt.Errorf("try whether PersistentVolumeClaim %s can grow: %w", i.Name, err)
			}
			return nil
		}
		learn := func(seen *observed, answer error) error {
			v := &seen.Instances[n].Volume
			if cannotExpand(answer) {
				v.Unfit = "has " + claim.Spec.Resources.Requests.Storage().String() + ", and cannot grow to " + c.Spec.Storage.Size.String()
				return nil
			}
			v.Undecided = answer != nil
			return inconclusive(answer)
		}
		tries = append(tries, try{"PersistentVolumeClaim " + i.Name, ask, learn})
	}
	return tries
}

// cannotExpand reports whether the API server has refused to let a claim grow because of its class.
// A quota, a policy and missing rights are Forbidden as well, and say nothing of the class.
func cannotExpand(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), mustSupportResize)
}

// mustSupportResize are the words of the admission plugin PersistentVolumeClaimResize for a claim
// whose class does not expand, or that was not made by one
// (plugin/pkg/admission/storage/persistentvolume/resize).
const mustSupportResize = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must support resize"

// larger is a member with a volume of the size that the spec asks for. From then on that is not
// what it was made of.
func larger(c *api.EtcdCluster, seen observed, name string) render.Member {
	m := member(c, seen, name)
	m.VolumeSize, m.Storage = &c.Spec.Storage.Size, ""
	return m
}
