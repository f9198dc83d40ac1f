package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// resize gives a running container other cpu and memory. To the API server an applier is another
// one for each subresource, so both own them from then on, and what the Pod was made of is applied
// after that.
func (r *Reconciler) resize(ctx context.Context, c *api.EtcdCluster, pod *corev1.Pod) error {
	if err := r.askResize(ctx, c, pod, pod.ResourceVersion); err != nil {
		return err
	}
	again, err := render.PodResources(pod, c) // what is applied is overwritten with what has come of it
	if err != nil {
		return &invalidError{err}
	}
	_, err = r.apply(ctx, c, again.WithUID(pod.UID))
	return err
}

// askResize asks the API server for other cpu and memory of this very Pod, as it was in that
// resource version; empty is any.
func (r *Reconciler) askResize(ctx context.Context, c *api.EtcdCluster, pod *corev1.Pod, version string, options ...client.SubResourceApplyOption) error {
	resized, err := render.PodResources(pod, c)
	if err != nil {
		return &invalidError{err}
	}
	if resized.WithUID(pod.UID); version != "" {
		resized.WithResourceVersion(version)
	}
	err = r.Client.SubResource("resize").Apply(ctx, resized, append(options, client.FieldOwner(api.Manager), client.ForceOwnership)...)
	if err != nil {
		return fmt.Errorf("resize Pod %s: %w", pod.Name, err)
	}
	return nil
}

// tryResize finds out whose node has less than is asked for, whatever else runs there: that Pod is
// recreated, on any node with room. The kubelet says so when it has been asked (render.Infeasible).
// A newer API server, which knows the nodes, does not let that come to the kubelet
// (plugin/pkg/admission/podresize), so it is asked for what would be asked for, and does nothing
// (dry run).
func (r *Reconciler) tryResize(c *api.EtcdCluster, seen observed) []try {
	if givenUp(c) != "" { // it is not asked for again
		return nil
	}
	var tries []try
	for n, i := range seen.Instances {
		if i.Pod.Change != membership.ChangeResources {
			continue
		}
		ask := func(ctx context.Context) error {
			return r.askResize(ctx, c, seen.pods[i.Name], "", client.DryRunAll)
		}
		learn := func(seen *observed, answer error) error {
			if apierrors.HasStatusCause(answer, nodeCapacity) {
				seen.Instances[n].Pod.Change = membership.ChangePod
			}
			return inconclusive(answer)
		}
		tries = append(tries, try{"the resources of Pod " + i.Name, ask, learn})
	}
	return tries
}

// nodeCapacity is podresize.ReasonNodeCapacity: the node of a Pod has less than it asks for.
const nodeCapacity metav1.CauseType = "NodeCapacity"

// deferredSince is what the kubelet says where, since before then, its node has had no room for the
// cpu and memory that a Pod asks for, or it could not set them; else empty.
func deferredSince(pod *corev1.Pod, then time.Time) string {
	for _, of := range []struct {
		kind   corev1.PodConditionType
		reason string
	}{{corev1.PodResizePending, corev1.PodReasonDeferred}, {corev1.PodResizeInProgress, corev1.PodReasonError}} {
		c := podstatus.Condition(pod, of.kind)
		if c != nil && c.Status == corev1.ConditionTrue && c.Reason == of.reason && c.LastTransitionTime.Time.Before(then) {
			return cmp.Or(podstatus.FirstLine(c.Message), c.Reason)
		}
	}
	return ""
}
