package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// act applies what the cluster always has, carries out the step, and brings the metadata of what exists up to date. A
// cluster that is suspended or being deleted is not touched.
func (r *Reconciler) act(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	if c.Spec.Suspend || !c.DeletionTimestamp.IsZero() {
		return nil
	}
	staticErr := r.applyStatic(ctx, c, seen)
	if staticErr != nil && (!seen.Formed() || step.Action == membership.Update) {
		return staticErr // the first members need the Service to find each other, and nobody is changed to what is wrong
	}
	// A Service or budget that cannot be applied must not keep a dead member of a formed cluster down.
	err := r.take(ctx, c, seen, step)
	if err == nil {
		err = r.maintain(ctx, c, seen, step)
	}
	return errors.Join(staticErr, err)
}

// applyStatic applies what the cluster always has.
func (r *Reconciler) applyStatic(ctx context.Context, c *api.EtcdCluster, seen observed) error {
	static, err := render.Static(c, render.State{Formed: admitsClients(c, seen), Voters: voters(seen)})
	if err != nil {
		return &invalidError{err}
	}
	return each(static, func(object runtime.ApplyConfiguration) error {
		_, err := r.apply(ctx, c, object)
		return err
	})
}

// admitsClients reports whether the Service for clients may appear: the latch is written, a quorum answers, and no Pod would
// still start a new member if its disk came back empty. A write that was acknowledged before that could be lost with one disk
// and nobody the wiser.
func admitsClients(c *api.EtcdCluster, seen observed) bool {
	if c.Status.ClusterID == "" || seen.Reach != membership.ReachQuorum {
		return false
	}
	for _, pod := range seen.pods {
		if pod.Annotations[api.AnnotationInitialClusterState] == render.StateNew {
			return false
		}
	}
	return true
}

// take carries out the step.
func (r *Reconciler) take(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	if step.Acts() {
		log.FromContext(ctx).V(1).Info("Taking step", "step", step.Action, "reason", step.Reason, "members", step.Members)
	}
	switch step.Action {
	case membership.None, membership.Wait, membership.Stall:
		return nil
	case membership.AddLearner, membership.Promote, membership.Remove, membership.MoveLeader:
		return r.changeMembership(ctx, c, seen, step)
	case membership.Update:
		return r.update(ctx, c, seen, step)
	case membership.Expand:
		return r.expand(ctx, c, seen, step)
	case membership.PutBack:
		return r.putBack(ctx, c, seen, step)
	case membership.Disarm, membership.Downgrade, membership.CancelDowngrade:
		return r.adjust(ctx, c, seen, step)
	case membership.Join:
		return r.join(ctx, c, seen, step)
	case membership.Discard:
		return r.discard(ctx, c, seen, step)
	case membership.Provision:
		if seen.Formed() {
			return r.prepare(ctx, c, seen, step)
		}
		return r.create(ctx, c, step, func(name string) (runtime.ApplyConfiguration, error) {
			return render.Volume(c, firstMember(c, seen, step, name)), nil
		})
	case membership.Bootstrap:
		if err := r.intend(ctx, c, seen, step, volumeUID); err != nil {
			return err
		}
		return r.create(ctx, c, step, func(name string) (runtime.ApplyConfiguration, error) {
			return render.Pod(c, firstMember(c, seen, step, name))
		})
	case membership.Start:
		return r.create(ctx, c, step, func(name string) (runtime.ApplyConfiguration, error) {
			return absentPod(c, member(c, seen, name)) // one that is there may run something else by now
		})
	case membership.Record:
		return r.record(ctx, c, seen, step)
	case membership.Stop:
		if err := r.intend(ctx, c, seen, step, podUID); err != nil {
			return err
		}
		return each(step.Members, func(name string) error { return r.deletePod(ctx, c, seen.pods[name], step) })
	default:
		return fmt.Errorf("take step %s: it is not known", step.Action)
	}
}

// create applies one object for each member of the step, all at once, and tells in one event for which it was not there: the
// API server counts events that differ only in their words as one.
func (r *Reconciler) create(ctx context.Context, c *api.EtcdCluster, step membership.Step, object func(string) (runtime.ApplyConfiguration, error)) error {
	created := make([]bool, len(step.Members))
	err := each(step.Members, func(name string) error {
		desired, err := object(name)
		if err != nil {
			return &invalidError{err}
		}
		n := slices.Index(step.Members, name)
		created[n], err = r.apply(ctx, c, desired)
		return err
	})
	var names []string
	for n, name := range step.Members {
		if created[n] {
			names = append(names, name)
		}
	}
	if len(names) > 0 {
		r.event(c, step, string(step.Action)+" "+strings.Join(names, ", "))
	}
	return err
}

// event tells what was done.
func (r *Reconciler) event(c *api.EtcdCluster, step membership.Step, note string) {
	r.Recorder.Eventf(c, nil, corev1.EventTypeNormal, string(step.Reason), string(step.Action), "%s", note)
}

// record writes on each volume whose data it holds.
func (r *Reconciler) record(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	// A change that is taken back because nothing has come of it may have been made a moment ago, and the cache not know of it.
	takenBack := slices.ContainsFunc(seen.Instances, func(i membership.Instance) bool {
		next := i.Volume.Next
		return slices.Contains(step.Members, i.Name) && next != (membership.Version{}) && next != i.Endpoint.Version
	})
	if takenBack {
		if err := r.confirm(ctx, c, step); err != nil {
			return err
		}
	}
	err := each(step.Members, func(name string) error {
		i, _ := seen.Instance(name)
		m := member(c, seen, name)
		m.ClusterID, m.MemberID = i.Endpoint.ClusterID.String(), i.Endpoint.MemberID.String()
		m.Ran, m.Next = i.Endpoint.Version.String(), ""
		if i.Volume.Version.Minor == 5 && i.Endpoint.Version.Minor == 6 || i.Rereads() {
			m.Replays = membership.ReplaysAny
		}
		return r.applyMetadata(ctx, c, seen, m)
	})
	if err == nil {
		r.event(c, step, step.Message)
	}
	return err
}

// maintain brings labels, annotations and owners of volumes and Pods up to date, which restarts nothing. For a Pod of the
// first start this is where it learns that from now on it must find its data when it starts (render.Resume).
func (r *Reconciler) maintain(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	if step.Action == membership.Record || step.Reason == membership.ForeignObject {
		return nil
	}
	var names []string
	for _, i := range seen.Instances {
		if (i.Volume.Exists() || i.Pod.Exists()) && !i.Volume.Terminating && !i.Pod.Terminating && !i.Pod.Provisions {
			names = append(names, i.Name)
		}
	}
	return each(names, func(name string) error { return r.applyMetadata(ctx, c, seen, member(c, seen, name)) })
}

// applyClaim changes this very claim as it was seen: the resource version guards against a change since, and the UID against
// a deletion, after which an apply would create the claim anew, an empty one with the name of a full one.
func (r *Reconciler) applyClaim(ctx context.Context, c *api.EtcdCluster, seen *corev1.PersistentVolumeClaim, want *corev1ac.PersistentVolumeClaimApplyConfiguration) error {
	_, err := r.apply(ctx, c, want.WithUID(seen.UID).WithResourceVersion(seen.ResourceVersion))
	return err
}

// applyPod does the same to a Pod.
func (r *Reconciler) applyPod(ctx context.Context, c *api.EtcdCluster, seen *corev1.Pod, want *corev1ac.PodApplyConfiguration) error {
	_, err := r.apply(ctx, c, want.WithUID(seen.UID).WithResourceVersion(seen.ResourceVersion))
	return err
}

// applyMetadata changes the claim and the Pod of a member, these very ones, where they differ from what they are to say.
func (r *Reconciler) applyMetadata(ctx context.Context, c *api.EtcdCluster, seen observed, m render.Member) error {
	if claim := seen.claims[m.Name]; claim != nil {
		volume := render.Volume(c, m)
		current, err := render.VolumeCurrent(claim, volume)
		if err != nil {
			return err
		}
		if !current {
			if err := r.applyClaim(ctx, c, claim, volume); err != nil {
				return err
			}
		}
	}
	pod := seen.pods[m.Name]
	if pod == nil {
		return nil
	}
	metadata, err := render.PodMetadata(pod, c, m)
	if err != nil {
		return &invalidError{err}
	}
	if metadata == nil {
		return nil
	}
	return r.applyPod(ctx, c, pod, metadata)
}

// deletePod deletes this very Pod, with the grace that lets etcd hand over its leadership: no later one of its name, and
// where it was decided by what the Pod does, not one that does something else since. So does one of a member to come, once
// it was let start.
func (r *Reconciler) deletePod(ctx context.Context, c *api.EtcdCluster, pod *corev1.Pod, step membership.Step) error {
	as := client.Preconditions{UID: &pod.UID}
	if step.Reason == membership.Replacing || step.Reason == membership.ChangeFailed || pod.Annotations[api.AnnotationProvisions] != "" {
		as.ResourceVersion = &pod.ResourceVersion
	}
	err := r.Client.Delete(ctx, pod, as)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete Pod %s: %w", pod.Name, err)
	}
	r.Recorder.Eventf(c, pod, corev1.EventTypeNormal, string(step.Reason), string(step.Action), "%s member %s", step.Action, pod.Name)
	return nil
}

func voters(seen observed) int {
	n := 0
	if seen.Reach == membership.ReachQuorum {
		for _, m := range seen.Members {
			if !m.Learner {
				n++
			}
		}
		return n
	}
	for _, i := range seen.Instances {
		if i.ID != 0 {
			n++
		}
	}
	return n
}
