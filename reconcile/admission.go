package reconcile

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/render"
)

// tryImage finds out which images cannot be changed under their Pods. A policy that has rewritten
// the image of a Pod may act when Pods are created alone. It would not see a change in place, which
// then writes the very name that the policy keeps Pods from. So the API server is asked what it
// would make of the change, and does nothing (dry run). Where it would leave the image as it is
// asked for, the Pod is recreated, unless it has that image already.
func (r *Reconciler) tryImage(c *api.EtcdCluster, seen observed) []try {
	if givenUp(c) != "" { // it is not asked for again
		return nil
	}
	hop := membership.Hop(desired(c), seen.Observed).String()
	var tries []try
	for n, i := range seen.Instances {
		pod := seen.pods[i.Name]
		if i.Pod.Change != membership.ChangeImage || !render.Rewritten(c, pod) {
			continue
		}
		asked, leaves := render.Image(c, hop), false
		ask := func(ctx context.Context) error {
			m := member(c, seen, i.Name)
			m.Version = hop
			changed, err := r.tryChange(ctx, c, pod, m, asked)
			leaves = err == nil && render.Asks(changed, asked)
			return err
		}
		learn := func(seen *observed, answer error) error {
			p := &seen.Instances[n].Pod
			p.Undecided = inconclusive(answer) != nil
			if leaves && asked != etcdImage(pod) {
				p.Change = membership.ChangePod
			}
			return inconclusive(answer)
		}
		tries = append(tries, try{"the image of Pod " + i.Name, ask, learn})
	}
	return tries
}

// tryChange is what the API server would make of another image of a Pod (dry run).
func (r *Reconciler) tryChange(ctx context.Context, c *api.EtcdCluster, pod *corev1.Pod, m render.Member, image string) (*corev1ac.PodApplyConfiguration, error) {
	var changed *corev1ac.PodApplyConfiguration
	_, err := keepingLabels(c, pod, func(of *api.EtcdCluster) (err error) {
		if changed, err = render.PodImage(pod, of, m, image); err != nil {
			return &invalidError{err}
		}
		if err = r.dryRun(ctx, changed.WithUID(pod.UID)); err != nil {
			return fmt.Errorf("try to change the image of Pod %s: %w", pod.Name, err)
		}
		return nil
	})
	return changed, err // an apply leaves the answer in what was applied
}

// rehearse asks the API server for what a change would write, and does nothing (dry run), before
// the member leaves the Service for clients and the change is announced: what is refused costs no
// write. What a dry run passes and the API server refuses in earnest all the same is paused.
func (r *Reconciler) rehearse(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	name := step.Members[0]
	pod, m := seen.pods[name], member(c, seen, name)
	if pod == nil || step.Change == membership.ChangeResources {
		return nil
	}
	m.Version = step.Version.String()
	err := r.tryAnnouncement(ctx, c, seen, m, step)
	if err == nil {
		err = r.tryUpdate(ctx, c, pod, m, step)
	}
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) { // it is another object by now, as the change itself finds out
		return nil
	}
	return err
}

// tryUpdate is what the API server says to the change of a Pod (dry run).
func (r *Reconciler) tryUpdate(ctx context.Context, c *api.EtcdCluster, pod *corev1.Pod, m render.Member, step membership.Step) error {
	if step.Change == membership.ChangePod {
		err := r.Client.Delete(ctx, pod, client.Preconditions{UID: &pod.UID}, client.DryRunAll)
		if err != nil {
			return fmt.Errorf("try to delete Pod %s: %w", pod.Name, err)
		}
		return nil
	}
	m.Previous = previous(c, pod)
	asked := render.Image(c, m.Version)
	changed, err := r.tryChange(ctx, c, pod, m, asked)
	if err != nil {
		return err
	}
	if render.Rewritten(c, pod) && asked != etcdImage(pod) && render.Asks(changed, asked) { // tryImage was told otherwise a moment ago
		return apply.ErrChanged
	}
	return nil
}

// tryAnnouncement is what the API server says to what a change writes on the claim (dry run).
func (r *Reconciler) tryAnnouncement(ctx context.Context, c *api.EtcdCluster, seen observed, m render.Member, step membership.Step) error {
	m, news := announcement(c, seen, m, step)
	if !news {
		return nil
	}
	if err := r.tryVolume(ctx, c, seen.claims[m.Name], m); err != nil {
		return fmt.Errorf("try to write on PersistentVolumeClaim %s: %w", m.Name, err)
	}
	return nil
}

// passesBy reports whether an image that is rolled back would be the very name that a policy keeps
// Pods from: the Pod ran another one than was asked for, and the API server would leave it as it is
// asked for, or does not tell. The Pod is recreated then, and the policy sees it. With
// storage.medium Memory the data would go with the Pod.
func (r *Reconciler) passesBy(ctx context.Context, c *api.EtcdCluster, pod *corev1.Pod, m render.Member, image string) bool {
	_, images, _ := strings.Cut(pod.Annotations[api.AnnotationPrevious], " ")
	_, ran, rewritten := strings.Cut(images, " ")
	if !rewritten || ran == image || c.Spec.Storage.Medium == api.MediumMemory {
		return false
	}
	changed, err := r.tryChange(ctx, c, pod, m, image)
	return err != nil || render.Asks(changed, image)
}
