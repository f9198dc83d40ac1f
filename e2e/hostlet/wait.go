package hostlet

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"quorate.dev/e2e/await"
)

// WaitFor reads obj afresh at every change of it until done says so. done
// looks at obj, which has no UID while it does not exist, and says what it saw.
// When ctx ends first the error has that, what was awaited, the states of the
// Pods of that namespace and the tails of their logs.
func (h *Hostlet) WaitFor(ctx context.Context, c client.WithWatch, obj client.Object, awaited string, done func() (ok bool, seen string)) error {
	key := client.ObjectKeyFromObject(obj)
	seen := "nothing"
	for {
		ok, err := await.Change(ctx, c, obj, func() bool {
			var ok bool
			ok, seen = done()
			return ok
		})
		switch {
		case ok:
			return nil
		case ctx.Err() != nil:
			pods := h.describe(context.WithoutCancel(ctx), key.Namespace)
			return fmt.Errorf("wait for %T %s to be %s, last seen %s: %w\n%s", obj, key, awaited, seen, context.Cause(ctx), pods)
		case err != nil:
			return fmt.Errorf("wait for %T %s: %w", obj, key, err)
		}
	}
}

// describe the Pods of a namespace for a failure message.
func (h *Hostlet) describe(ctx context.Context, namespace string) string {
	pods := &corev1.PodList{}
	if err := h.client.List(ctx, pods, client.InNamespace(namespace)); err != nil {
		return fmt.Sprintf("list Pods: %v", err)
	}
	var b strings.Builder
	for i := range pods.Items {
		pod := &pods.Items[i]
		fmt.Fprintf(&b, "--- Pod %s: %s", pod.Name, pod.Status.Phase)
		for _, c := range pod.Status.ContainerStatuses {
			fmt.Fprintf(&b, ", ready %t, restarts %d, state %s, last %s", c.Ready, c.RestartCount, state(c.State), state(c.LastTerminationState))
		}
		fmt.Fprintf(&b, "\n%s\n", h.Log(namespace, pod.Name))
	}
	return b.String()
}

func state(s corev1.ContainerState) string {
	switch {
	case s.Running != nil:
		return "running"
	case s.Waiting != nil:
		return fmt.Sprintf("waiting (%s: %s)", s.Waiting.Reason, s.Waiting.Message)
	case s.Terminated != nil:
		return fmt.Sprintf("terminated (%s, exit code %d)", s.Terminated.Reason, s.Terminated.ExitCode)
	default:
		return "none"
	}
}
