package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/render"
)

// start creates the Pods of members over their volumes, where there are none: one that is there may
// run something else by now. Where the API server has refused one for long that is made of what the
// member has served with, it is made of what the spec says.
func (r *Reconciler) start(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	for _, name := range step.Members {
		if i, _ := seen.Instance(name); i.Pod.Outdated && i.Pod.Overdue {
			if announced, err := r.announceMended(ctx, c, seen, name); announced || err != nil {
				return cmp.Or(err, apply.ErrChanged)
			}
		}
	}
	// A claim that has come instead of the one that was seen may hold another day's data. The
	// others start meanwhile.
	var changed error
	same := step
	same.Members = slices.DeleteFunc(slices.Clone(step.Members), func(name string) bool {
		claim := seen.claims[name]
		if claim == nil {
			return false
		}
		err := r.stillAs(ctx, claim)
		changed = errors.Join(changed, err)
		return err != nil
	})
	created := func(name string, err error) {
		if claim := seen.claims[name]; claim != nil {
			of, _ := seen.made(c, name)
			r.refusedPods.remember(c, name, madeOf(of, claim), err, time.Now())
		}
	}
	return errors.Join(r.create(ctx, c, same, func(name string) ([]runtime.ApplyConfiguration, error) {
		m := member(c, seen, name)
		of, proved := seen.made(c, name)
		m.Proved = proved
		return absentPod(of, seen, m)
	}, created), changed)
}

// create applies one object for each member of the step, all at once, the first of its forms that
// the API server takes, and hands on what came of each. It tells in one event for which it was not
// there: the API server counts events that differ only in their words as one.
func (r *Reconciler) create(ctx context.Context, c *api.EtcdCluster, step membership.Step, forms func(string) ([]runtime.ApplyConfiguration, error), then ...func(name string, err error)) error {
	created := make([]string, len(step.Members)) // empty for what was there
	err := each(step.Members, func(name string) error {
		desired, err := forms(name)
		if err != nil {
			return &invalidError{err}
		}
		absent, err := r.createOne(ctx, c, desired...)
		for _, tell := range then {
			tell(name, err)
		}
		if object, ok := desired[0].(configuration); ok && absent {
			created[slices.Index(step.Members, name)] = *object.GetKind() + " " + *object.GetName()
		}
		return err
	})
	made := slices.DeleteFunc(created, func(object string) bool { return object == "" })
	if len(made) > 0 {
		r.event(c, step, "Created "+strings.Join(made, ", "))
	}
	return err
}

// createOne applies one object of a member, and reports whether it had to be created. Where there
// is one that is not as was seen, the next pass looks again. One of ours without our label never
// shows in the cache, and gets that back: the next pass would be like this one otherwise, for ever.
func (r *Reconciler) createOne(ctx context.Context, c *api.EtcdCluster, forms ...runtime.ApplyConfiguration) (bool, error) {
	created, err := r.applyFirst(ctx, c, forms...)
	want, ok := forms[0].(configuration)
	if !ok || !apierrors.IsConflict(err) {
		return created, err
	}
	live, getErr := existing(ctx, want, r.Reader)
	if getErr != nil || live == nil || live.GetLabels()[api.LabelCluster] == c.Name || applicable(c, live, *want.GetKind()) != nil {
		return created, err
	}
	patch := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%q:%q}}}`, live.GetUID(), api.LabelCluster, c.Name)
	if patchErr := r.Client.Patch(ctx, live, client.RawPatch(types.MergePatchType, []byte(patch)), client.FieldOwner(api.Manager)); patchErr != nil {
		return created, fmt.Errorf("give %s %s its label back: %w", *want.GetKind(), *want.GetName(), patchErr)
	}
	return created, err
}

// applyFirst applies the first of several forms of one object that the API server takes
// (withTakenMetadata, withVolumeMetadata). Where it takes none, the error is what it says of the
// first. Where it takes a later one, an event has these words: nothing else may ever tell of them,
// as the object may get the labels of the spec once it is there.
func (r *Reconciler) applyFirst(ctx context.Context, c *api.EtcdCluster, forms ...runtime.ApplyConfiguration) (created bool, err error) {
	created, err = r.apply(ctx, c, forms[0])
	for _, other := range forms[1:] {
		if !refuses(err) || exceedsQuota(err) {
			return created, err
		}
		made, refused := r.apply(ctx, c, other)
		if object, ok := other.(configuration); ok && refused == nil {
			refusal := membership.Step{Action: membership.Stall, Reason: membership.Reason(api.ReasonRefused)}
			r.event(c, refusal, fmt.Sprintf("%s %s has labels and annotations that the API server took before, because it refuses those of spec.additionalMetadata and spec.pod.metadata. Correct or revert these: %s", *object.GetKind(), *object.GetName(), refusalOf(err)))
		}
		if !refuses(refused) {
			return made, refused
		}
	}
	return created, err
}

// announceMended writes on the volume of a member that is stuck with what it has served with that
// it is being changed to what the spec asks for, unless that was given up. It reports whether it
// did.
func (r *Reconciler) announceMended(ctx context.Context, c *api.EtcdCluster, seen observed, name string) (bool, error) {
	i, _ := seen.Instance(name)
	claim := seen.claims[name]
	if claim == nil || givenUp(c) != "" {
		return false, nil
	}
	m := member(c, seen, name)
	instead := membership.SubstitutePatch(desired(c), seen.Observed, i).String()
	m.Next, m.NextWith = cmp.Or(instead, runs(c, i)), nextWith(c, claim, membership.ChangePod)
	if i.Volume.Next.String() == m.Next && m.NextWith == claim.Annotations[api.AnnotationNextWith] {
		return false, nil
	}
	return true, r.writeVolume(ctx, c, claim, m)
}

// firstVolume is the claim of a member of a first start: to be created where none was seen, as one
// that is there may say whose data it holds, which applying it would take away; or the one that was
// seen, of an earlier first start, as it was seen.
func firstVolume(c *api.EtcdCluster, seen observed, step membership.Step, name string) runtime.ApplyConfiguration {
	volume := render.Volume(c, firstMember(c, seen, step, name))
	if claim := seen.claims[name]; claim != nil {
		return volume.WithUID(claim.UID).WithResourceVersion(claim.ResourceVersion)
	}
	return volume.WithResourceVersion(apply.OnlyIfAbsent)
}

// absentPod is the Pod of a member, to be created where there is none, in the forms that it may
// have.
func absentPod(c *api.EtcdCluster, seen observed, m render.Member) ([]runtime.ApplyConfiguration, error) {
	if err := refusedUnlessProved(c, seen, m.Proved); err != nil {
		return nil, err
	}
	return podForms(c, seen, m, render.Pod)
}

// podForms are the Pod of a member, to be created where there is none, as withTakenMetadata has it.
func podForms(c *api.EtcdCluster, seen observed, m render.Member, pod func(*api.EtcdCluster, render.Member) (*corev1ac.PodApplyConfiguration, error)) ([]runtime.ApplyConfiguration, error) {
	var forms []runtime.ApplyConfiguration
	for _, of := range seen.withTakenMetadata(c, m.Name) {
		form, err := pod(of, m)
		if err != nil {
			return nil, err
		}
		// One that is there may be a voter's by now.
		forms = append(forms, form.WithResourceVersion(apply.OnlyIfAbsent))
	}
	return forms, nil
}

// withTakenMetadata is the EtcdCluster as it is and, where other labels and annotations are known
// with which the API server took Pods of this cluster, with those: of the member itself, else of
// another one.
func (seen observed) withTakenMetadata(c *api.EtcdCluster, name string) []*api.EtcdCluster {
	all := []*api.EtcdCluster{c}
	for _, of := range append([]string{name}, slices.Sorted(maps.Keys(seen.claims))...) {
		claim := seen.claims[of]
		if claim == nil || of != name && claim.Annotations[api.AnnotationRetired] != "" {
			continue
		}
		if before, ok := render.WithServedMetadata(c, said(claim)); ok {
			return append(all, before)
		}
	}
	return all
}

// withVolumeMetadata is the EtcdCluster as it is, and with the labels and annotations of a volume
// that is there: those of Pods may mean something else on a volume.
func (seen observed) withVolumeMetadata(c *api.EtcdCluster) []*api.EtcdCluster {
	all := []*api.EtcdCluster{c}
	for _, i := range seen.Instances {
		claim := seen.claims[i.Name]
		if claim == nil || len(claim.ManagedFields) == 0 || !i.Volume.Recorded() || i.Volume.Retired || i.Volume.Terminating {
			continue
		}
		if of, err := render.WithLiveMetadata(c, claim); err == nil {
			return append(all, of)
		}
	}
	return all
}

// exceedsQuota reports whether a ResourceQuota has no room. There may be some in a moment, and
// labels are not to blame. The words are those of the admission plugin
// (staging/src/k8s.io/apiserver/pkg/admission/plugin/resourcequota/controller.go).
func exceedsQuota(err error) bool {
	return apierrors.IsForbidden(err) && strings.Contains(err.Error(), "exceeded quota")
}
