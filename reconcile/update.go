package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// update changes what one member runs, after it was written down and looked at again: two
// operators, or one with an old view, must never have two members away at a time.
func (r *Reconciler) update(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	if err := r.drain(ctx, c, seen); err != nil {
		return err
	}
	// A member may have left the Service while another one was changed, before it was tried.
	if isOut(seen.pods[step.Members[0]]) && !r.intended(c, seen, step) {
		if err := r.rehearse(ctx, c, seen, step); err != nil {
			return err
		}
	}
	if err := r.begin(ctx, c, seen, step, podUID); err != nil {
		return err
	}
	name := step.Members[0]
	pod, m := seen.pods[name], member(c, seen, name)
	m.Version = step.Version.String()
	if step.Change != membership.ChangeResources {
		r.handOver(ctx, c, seen, name)
	}
	var err error
	switch step.Change {
	case membership.ChangeResources:
		err = r.resize(ctx, c, pod)
	case membership.ChangeImage:
		if err = r.announce(ctx, c, seen, m, step); err == nil {
			err = r.changeImage(ctx, c, pod, m, render.Image(c, m.Version), previous(c, pod))
		}
	default:
		if err = r.announce(ctx, c, seen, m, step); err == nil {
			err = r.deletePod(ctx, c, pod, step) // it is recreated in the next pass
		}
	}
	if err == nil {
		r.event(c, step, step.Message)
	}
	return err
}

// handOver moves the leadership away from a member that is about to go, to the one that has most of
// the log. Where that fails etcd does it by itself when it ends, to one of its own choice; so it
// never keeps a change up.
func (r *Reconciler) handOver(ctx context.Context, c *api.EtcdCluster, seen observed, name string) {
	leader, _ := seen.Instance(name)
	heir, ok := seen.Heir(name)
	if !leader.Leads() || !ok {
		return
	}
	ctx, cancel, err := r.inTime(ctx, c)
	if err == nil {
		defer cancel()
		err = r.atLeader(c, seen, func(etcd membership.Client) error { return etcd.MoveLeader(ctx, heir.ID) })
	}
	if err != nil {
		log.FromContext(ctx).Info("Leadership not handed over", "from", name, "to", heir.Name, "error", err.Error())
	}
}

// changeImage changes the image of this very Pod as it was seen, and with it the flags of its
// version.
func (r *Reconciler) changeImage(ctx context.Context, c *api.EtcdCluster, pod *corev1.Pod, m render.Member, image, previous string) error {
	m.Previous = previous
	_, err := keepingLabels(c, pod, func(of *api.EtcdCluster) error {
		changed, err := render.PodImage(pod, of, m, image)
		if err != nil {
			return &invalidError{err}
		}
		return r.applyPod(ctx, of, pod, changed)
	})
	return err
}

// previous is what a Pod runs now, as AnnotationPrevious says it.
func previous(c *api.EtcdCluster, pod *corev1.Pod) string {
	id, asked, runs := "", render.AppliedImage(c, pod), etcdImage(pod)
	if s := containerStatus(pod); s != nil {
		id = s.ContainerID
	}
	if asked == runs {
		return id + " " + asked
	}
	return id + " " + asked + " " + runs
}

// ranBefore reads that: the container that ran before a Pod was changed under it, and the image
// that was asked for then, and whether that changed what the Pod runs. It does not where a policy
// makes the same of both images: then no container is restarted.
func ranBefore(pod *corev1.Pod) (container, image string, changed bool) {
	container, images, _ := strings.Cut(pod.Annotations[api.AnnotationPrevious], " ")
	image, ran, _ := strings.Cut(images, " ")
	return container, image, images != "" && cmp.Or(ran, image) != etcdImage(pod)
}

// announce writes on the volume of a member what is to run on it: its Pod is recreated with that,
// for whatever reason. Once etcd has run what it is changed to, it may never start with what ran
// before. A Pod that is recreated is made of what the spec says.
func (r *Reconciler) announce(ctx context.Context, c *api.EtcdCluster, seen observed, m render.Member, step membership.Step) error {
	m, news := announcement(c, seen, m, step)
	if !news {
		return nil
	}
	return r.writeVolume(ctx, c, seen.claims[m.Name], m)
}

// announcement is the member with what is to run on its volume; false where that is no news.
func announcement(c *api.EtcdCluster, seen observed, m render.Member, step membership.Step) (_ render.Member, news bool) {
	i, _ := seen.Instance(m.Name)
	claim := seen.claims[m.Name]
	if claim == nil || step.Version == i.Volume.Version && step.Change != membership.ChangePod {
		return m, false
	}
	m.Next, m.NextWith = step.Version.String(), nextWith(c, claim, step.Change)
	return m, true
}

// putBack gives a member back what it ran before a change that does not work, and remembers that
// the spec asks for that change: it is not tried again before the spec asks for something else.
func (r *Reconciler) putBack(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	name := step.Members[0]
	i, _ := seen.Instance(name)
	pod := seen.pods[name]
	if pod == nil && i.Pod.Exists() {
		return apply.ErrChanged
	}
	if err := r.tryPutBack(ctx, c, seen, name); err != nil {
		return err
	}
	if i.StillWanted() {
		failed := c.Status.DeepCopy()
		failed.FailedChange = &api.FailedChange{Generation: c.Generation, Message: tried(step)}
		if err := r.report(ctx, c, *failed); err != nil {
			return err
		}
	}
	if err := r.intend(ctx, c, seen, step, podUID); err != nil {
		return err
	}
	// The Pod first: one that comes up after all, and serves, must not be recreated as what it was
	// before.
	m := member(c, seen, name)
	switch {
	case pod == nil: // the API server takes none
	case !i.Pod.Changing && c.Spec.Storage.Medium == api.MediumMemory: // nothing is made of what a person has written there
		return apply.ErrChanged
	case i.Pod.Changing:
		_, image, _ := ranBefore(pod)
		back := m
		back.Version, _ = render.ImageVersion(image)
		served, ok := render.AsServed(c, said(seen.claims[name]))
		if !ok {
			served = c
		}
		var err error
		if r.passesBy(ctx, served, pod, back, image) {
			err = r.deletePod(ctx, c, pod, step)
		} else {
			err = r.changeImage(ctx, served, pod, back, image, "")
		}
		if err != nil {
			return err
		}
	default:
		if err := r.deletePod(ctx, c, pod, step); err != nil {
			return err
		}
	}
	r.event(c, step, step.Message)
	claim := seen.claims[name]
	if claim == nil || i.Volume.Next == (membership.Version{}) {
		return nil
	}
	m.Next = ""
	return r.writeVolume(ctx, c, claim, m)
}

// tryPutBack asks the API server for what a put-back writes on the volume, and does nothing (dry
// run): where that is refused, the Pod would be made again of what does not come up, and deleted
// again.
func (r *Reconciler) tryPutBack(ctx context.Context, c *api.EtcdCluster, seen observed, name string) error {
	i, _ := seen.Instance(name)
	claim, m := seen.claims[name], member(c, seen, name)
	if claim == nil || i.Volume.Next == (membership.Version{}) {
		return nil
	}
	m.Next = ""
	if err := r.tryVolume(ctx, c, claim, m); refuses(err) {
		return fmt.Errorf("try to write on PersistentVolumeClaim %s: %w", name, err)
	}
	return nil // anything else is found out by the put-back itself
}

// tried says what was tried in vain, within what the status has room for: etcd's own last words may
// be part of it.
func tried(step membership.Step) string {
	_, what, _ := strings.Cut(step.Message, ": ")
	return podstatus.Within(step.Members[0]+": "+what, mostSaid)
}

// expand asks for larger volumes.
func (r *Reconciler) expand(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	if err := r.refused.pending(c, step, time.Now()); err != nil {
		return err
	}
	err := each(step.Members, func(name string) error { return r.writeVolume(ctx, c, seen.claims[name], larger(c, seen, name)) })
	if err == nil {
		r.event(c, step, step.Message)
	}
	return err
}
