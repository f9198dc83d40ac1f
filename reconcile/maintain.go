package reconcile

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/render"
)

// record writes on each volume whose data it holds, and then tells the Pod of a learner that from
// now on it must find its data.
func (r *Reconciler) record(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	// A change that is taken back because nothing has come of it may have been made a moment ago,
	// and the cache not know of it.
	takenBack := slices.ContainsFunc(seen.Instances, func(i membership.Instance) bool {
		next := i.Volume.Next
		return slices.Contains(step.Members, i.Name) && next != (membership.Version{}) && (next != i.Endpoint.Version || i.Pod.Outdated)
	})
	if takenBack {
		if err := r.confirm(ctx, c, step); err != nil {
			return err
		}
	}
	err := each(step.Members, func(name string) error {
		i, _ := seen.Instance(name)
		i.Volume.ClusterID, i.Volume.MemberID = i.Endpoint.ClusterID, i.Endpoint.Member()
		m := memberAs(c, seen, i, name)
		m.Ran, m.Served = i.Endpoint.Version.String(), serves(c, seen, name)
		if !i.Proving() {
			m.Next = ""
		}
		m.Replays = membership.Replays(desired(c), seen.Observed, i)
		return r.applyMetadata(ctx, c, seen, m)
	})
	if err == nil {
		r.event(c, step, step.Message)
	}
	return err
}

// raise writes on the volume of a member that a later version has run there, after a look past the
// cache. From then on its Pod is made of that version. Where its data is in memory, the Pod is the
// volume: the same write gives it that version.
func (r *Reconciler) raise(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	if err := r.confirm(ctx, c, step); err != nil {
		return err
	}
	name := step.Members[0]
	i, _ := seen.Instance(name)
	claim, m := seen.claims[name], member(c, seen, name)
	if m.Ran = step.Version.String(); i.Volume.Next != step.Version {
		m.Next = ""
	}
	if i.Volume.Version.Minor == 5 { // as where it answers
		m.Replays = membership.ReplaysAny
	}
	var err error
	switch pod := seen.pods[name]; {
	case claim != nil:
		err = r.writeVolume(ctx, c, claim, m)
	case pod != nil && c.Spec.Storage.Medium == api.MediumMemory:
		m.Version = m.Ran
		err = r.changeImage(ctx, c, pod, m, render.Image(c, m.Version), "")
	default:
		err = apply.ErrChanged
	}
	if err == nil {
		r.event(c, step, step.Message)
	}
	return err
}

// maintain brings labels, annotations and owners of volumes and Pods up to date, which restarts
// nothing. For a Pod of the first start this is where it learns that from now on it must find its
// data when it starts (render.Resume).
func (r *Reconciler) maintain(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	return each(maintained(seen, step), func(name string) error { return r.applyMetadata(ctx, c, seen, current(c, seen, name)) })
}

// letBack brings only those members up to date that are out of the Service for clients: while
// certificates are wrong no other Pod is touched.
func (r *Reconciler) letBack(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	isIn := func(name string) bool { return !isOut(seen.pods[name]) }
	return each(slices.DeleteFunc(maintained(seen, step), isIn), func(name string) error { return r.applyMetadata(ctx, c, seen, current(c, seen, name)) })
}

// current is the member as its volume and Pod are to have it.
func current(c *api.EtcdCluster, seen observed, name string) render.Member {
	m := member(c, seen, name)
	if m.ClusterID != "" { // what it has served with is written down with whose data it has
		m.Served = serves(c, seen, name)
	}
	return m
}

// maintained are the members of which volume and Pod are brought up to date beside the step.
func maintained(seen observed, step membership.Step) []string {
	if step.Action == membership.Record || step.Reason == membership.ForeignObject {
		return nil
	}
	var names []string
	for _, i := range seen.Instances {
		if (i.Volume.Exists() || i.Pod.Exists()) && !i.Volume.Terminating && !i.Pod.Terminating && !i.Pod.Provisions {
			names = append(names, i.Name)
		}
	}
	return names
}

// applyClaim changes this very claim as it was seen: the resource version guards against a change
// since, and the UID against a deletion, after which an apply would create the claim again, an
// empty one with the name of a full one. A claim that only others have written on is as it was
// seen: Kubernetes does so whenever a Pod of it comes or goes, and so may a tool for backups, at
// the very moment in which we do.
func (r *Reconciler) applyClaim(ctx context.Context, c *api.EtcdCluster, seen *corev1.PersistentVolumeClaim, want *corev1ac.PersistentVolumeClaimApplyConfiguration) error {
	want.WithUID(seen.UID).WithResourceVersion(seen.ResourceVersion)
	for tries := 3; ; tries-- {
		_, err := r.apply(ctx, c, want)
		if tries == 1 || !apierrors.IsConflict(err) {
			return err
		}
		now := &corev1.PersistentVolumeClaim{}
		if getErr := r.Reader.Get(ctx, client.ObjectKeyFromObject(seen), now); getErr != nil || !sameToUs(seen, now) {
			return err
		}
		want.WithResourceVersion(now.ResourceVersion)
	}
}

// writeVolume writes on the claim of a member what its Pod is made of, or what has become of it.
// Where the API server refuses the labels of the spec, the claim keeps those that it has: no step
// waits for them.
func (r *Reconciler) writeVolume(ctx context.Context, c *api.EtcdCluster, claim *corev1.PersistentVolumeClaim, m render.Member) error {
	_, err := keepingLabels(c, claim, func(of *api.EtcdCluster) error { return r.applyClaim(ctx, c, claim, render.Volume(of, m)) })
	return err
}

// tryVolume is what the API server says to that (dry run).
func (r *Reconciler) tryVolume(ctx context.Context, c *api.EtcdCluster, claim *corev1.PersistentVolumeClaim, m render.Member) error {
	_, err := keepingLabels(c, claim, func(of *api.EtcdCluster) error { return r.dryRun(ctx, render.Volume(of, m).WithUID(claim.UID)) })
	return err
}

// keepingLabels does something with the labels and annotations of the spec and, where the API
// server refuses that, once more with those that the object has now. refused is what it refused
// first, and err what came of it in the end: where both are refused, what it says of the first.
func keepingLabels(c *api.EtcdCluster, live client.Object, do func(*api.EtcdCluster) error) (refused, err error) {
	refused = do(c)
	if !refuses(refused) {
		return nil, refused
	}
	of, err := render.WithLiveMetadata(c, live)
	if err != nil {
		return refused, errors.Join(refused, err)
	}
	if err = do(of); refuses(err) {
		err = refused
	}
	return refused, err
}

// sameToUs reports whether nothing that we write, or go by, has changed on a claim.
func sameToUs(a, b *corev1.PersistentVolumeClaim) bool {
	ours := func(all map[string]string) map[string]string {
		all = maps.Clone(all)
		maps.DeleteFunc(all, func(key, _ string) bool { return !strings.HasPrefix(key, api.GroupName+"/") })
		return all
	}
	return a.UID == b.UID && a.DeletionTimestamp.Equal(b.DeletionTimestamp) && equality.Semantic.DeepEqual(a.Spec, b.Spec) &&
		equality.Semantic.DeepEqual(a.OwnerReferences, b.OwnerReferences) &&
		maps.Equal(ours(a.Labels), ours(b.Labels)) && maps.Equal(ours(a.Annotations), ours(b.Annotations))
}

// applyPod does the same to a Pod.
func (r *Reconciler) applyPod(ctx context.Context, c *api.EtcdCluster, seen *corev1.Pod, want *corev1ac.PodApplyConfiguration) error {
	_, err := r.apply(ctx, c, want.WithUID(seen.UID).WithResourceVersion(seen.ResourceVersion))
	return err
}

// applyMetadata changes the claim and the Pod of a member, these very ones, where they differ from
// what they are to say. What Quorate itself writes (of which member the data is, that the Pod must
// find its data, or is in the Service) does not wait until other labels are taken. That these are
// refused is told all the same.
func (r *Reconciler) applyMetadata(ctx context.Context, c *api.EtcdCluster, seen observed, m render.Member) error {
	i, _ := seen.Instance(m.Name)
	var onClaim error
	if claim := seen.claims[m.Name]; claim != nil && !i.Volume.Replaced { // what was restored stays as it is
		var err error
		if onClaim, err = keepingLabels(c, claim, func(of *api.EtcdCluster) error { return r.applyVolumeMetadata(ctx, of, claim, m) }); err != nil {
			return err
		}
	}
	pod := seen.pods[m.Name]
	if pod == nil {
		return onClaim
	}
	onPod, err := keepingLabels(c, pod, func(of *api.EtcdCluster) error { return r.applyPodMetadata(ctx, of, pod, m) })
	if err != nil && !refuses(err) {
		return err
	}
	return cmp.Or(onClaim, onPod)
}

// applyVolumeMetadata changes the labels and annotations of a claim where the spec, or what is
// known of its data, has others.
func (r *Reconciler) applyVolumeMetadata(ctx context.Context, c *api.EtcdCluster, claim *corev1.PersistentVolumeClaim, m render.Member) error {
	volume := render.Volume(c, m)
	same, err := render.VolumeCurrent(claim, volume)
	if err != nil || same {
		return err
	}
	return r.applyClaim(ctx, c, claim, volume)
}

// applyPodMetadata changes the labels and annotations of a Pod where the spec has others.
func (r *Reconciler) applyPodMetadata(ctx context.Context, c *api.EtcdCluster, pod *corev1.Pod, m render.Member) error {
	metadata, err := render.PodMetadata(pod, c, m)
	if err != nil {
		return &invalidError{err}
	}
	if metadata == nil {
		return nil
	}
	return r.applyPod(ctx, c, pod, metadata)
}
