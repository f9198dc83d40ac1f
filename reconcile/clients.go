package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// Clients that come by the Service notice nothing of a planned change. etcd that is stopping takes
// no new connections while its Pod is still ready, and a client that is led there waits out its
// back-off. So a member leaves the Service before it is restarted, loses its leadership or is
// removed, and comes back when it serves again.
//
// A drain guards nothing, and needs no intent: it writes a label, and a pass that does not go on to
// the change writes it back. It comes before the intent, because that lives only for intentLife,
// and what follows a drain is confirmed on fresh facts.

// drainFor is how long a step waits at most for the Service to be without its member. It bounds
// what a controller of EndpointSlices that is down can hold up.
const drainFor = 5 * time.Second

// touched are the members that the step restarts, takes the leadership from, or removes. While a
// member that was updated has yet to prove that it runs well, it is the one that is updated next.
// Where the cluster shrinks by more than one, all that are to go leave the Service at once, and
// stay out while the Pod and the volume of the first one go: one wait is enough.
func touched(c *api.EtcdCluster, seen observed, step membership.Step) []string {
	removes := step.Action == membership.Remove || step.Action == membership.MoveLeader
	surplus := names(seen.Surplus(size(c)), func(membership.Instance) bool { return true })
	switch {
	case removes && step.Reason == membership.ScalingDown:
		return surplus
	case step.Reason == membership.Retiring:
		return append(surplus, step.Members...)
	case step.Action == membership.MoveLeader:
		return names(seen.Instances, membership.Instance.Leads)
	case step.Action == membership.Wait && step.Reason == membership.Changing, step.Action == membership.Record:
		return membership.UpdatedNext(desired(c), seen.Observed)
	case removes, step.Action == membership.PutBack, step.Action == membership.Stop,
		step.Action == membership.Update && step.Change != membership.ChangeResources: // that restarts nothing
		return step.Members
	default:
		return nil
	}
}

// names of the instances for which keep holds, in order.
func names(instances []membership.Instance, keep func(membership.Instance) bool) []string {
	var names []string
	for _, i := range instances {
		if keep(i) {
			names = append(names, i.Name)
		}
	}
	return names
}

// out reports whether the Service for clients is not to lead to a Pod. A member that was taken out
// stays out while the step that needs it is still the next one, and until it has answered from what
// it was changed to. One that has yet to serve stays out as well. Every other member is in.
func out(c *api.EtcdCluster, seen observed, i membership.Instance, pod *corev1.Pod) bool {
	if slices.Contains(seen.out, i.Name) {
		return true
	}
	if yetToServe(c, seen, i, pod) {
		return true
	}
	return isOut(pod) && (i.Pod.Changing || slices.Contains(seen.touched, i.Name))
}

// isOut reports whether a Pod was taken out of the Service for clients.
func isOut(pod *corev1.Pod) bool {
	return pod != nil && pod.Labels[api.LabelClients] == api.ClientsOut
}

// yetToServe reports whether a member that serves clients with TLS serves none of them yet. It
// stays out until it has answered: its kubelet cannot tell (readinessProbe in package render).
func yetToServe(c *api.EtcdCluster, seen observed, i membership.Instance, pod *corev1.Pod) bool {
	m, port := seen.Member(i.ID), c.ClientPort()
	if pod != nil {
		port = render.ClientPort(c, pod)
	}
	return port.ServesTLS() && lists(seen) && (i.Publishes() || m == nil || m.Learner)
}

// forClients is the step with what clients find meanwhile: of a healthy cluster whether they are
// let in, and of a suspended one which members the Service does not lead to.
func forClients(c *api.EtcdCluster, seen observed, step membership.Step, stallBefore time.Time) membership.Step {
	switch {
	case c.Spec.Suspend:
		return keptOut(c, seen, step)
	case step.Reason == membership.Healthy:
		return letIn(c, seen, step, stallBefore)
	default:
		return step
	}
}

// keptOut is the step of a suspended cluster, with the members that were taken out of the Service
// for clients before it was suspended: nothing is written for it, so they stay out.
func keptOut(c *api.EtcdCluster, seen observed, step membership.Step) membership.Step {
	kept := names(seen.Instances, func(i membership.Instance) bool {
		pod := seen.pods[i.Name]
		return yetToServe(c, seen, i, pod) || isOut(pod)
	})
	if len(kept) == 0 {
		return step
	}
	return meanwhile(step, "Service "+c.ClientServiceName()+" does not lead to "+strings.Join(kept, ", "))
}

// meanwhile is the step of a suspended cluster, with what stays as a change has left it. A cluster
// that is not as it is meant is not Ready.
func meanwhile(step membership.Step, stays string) membership.Step {
	if step.Reason == membership.Healthy {
		step = membership.Step{Action: membership.None, Reason: membership.Suspended, Message: "suspended by spec.suspend"}
	}
	step.Message += "; meanwhile " + stays
	return step
}

// labelled reports whether the Service for clients can select by LabelClients: every ready Pod has
// the label, for at least labelSettles unless the Service selects no Pod yet. A controller of
// EndpointSlices may see the Service before it sees the labels, and would find no Pod. A Service
// that selects by the label goes on with that while a ready Pod has it.
func labelled(service *corev1.Service, pods map[string]*corev1.Pod, now time.Time) bool {
	leads := selects(service.Spec.Selector)
	asked := leads && service.Spec.Selector[api.LabelClients] != ""
	in, without := 0, 0
	for _, pod := range pods {
		switch {
		case !pod.DeletionTimestamp.IsZero() || !isReady(pod):
		case pod.Labels[api.LabelClients] == "" || !asked && leads && now.Sub(appliedAt(pod)) < labelSettles:
			without++
		case pod.Labels[api.LabelClients] == api.ClientsIn:
			in++
		}
	}
	return without == 0 || asked && in > 0
}

// labelSettles is how long a label is there before the Service asks for it.
const labelSettles = 2 * time.Second

// appliedAt is when Quorate applied a Pod or claim last; zero where its managedFields do not say.
func appliedAt(o client.Object) time.Time {
	var last time.Time
	for _, entry := range o.GetManagedFields() {
		if entry.Manager == api.Manager && entry.Time != nil && entry.Time.After(last) {
			last = entry.Time.Time
		}
	}
	return last
}

// drainingError: a step waits for the Service for clients to lead to others than the members that
// it touches.
type drainingError struct {
	members []string // to be out of it; nil while they are the last that it leads to
	message string
	again   time.Duration // when to look again
}

func (e *drainingError) Error() string { return e.message }

// drain reports a drainingError until the Service for clients leads to none of the members that are
// about to be touched, and to another one. Where no other one serves it stays as it is: clients are
// better off with a member that is restarted than with none.
func (r *Reconciler) drain(ctx context.Context, c *api.EtcdCluster, seen observed) error {
	going := slices.DeleteFunc(slices.Clone(seen.touched), func(name string) bool {
		pod := seen.pods[name]
		return pod == nil || !pod.DeletionTimestamp.IsZero()
	})
	others := slices.ContainsFunc(seen.Instances, func(i membership.Instance) bool {
		return i.Serves() && !slices.Contains(seen.touched, i.Name) && seen.pods[i.Name] != nil
	})
	if len(going) == 0 || !others {
		return nil
	}
	led, err := r.led(ctx, c)
	if err != nil || led == nil { // without EndpointSlices there is nothing to see
		return err
	}
	leads := slices.ContainsFunc(going, func(name string) bool { return led[seen.pods[name].UID] })
	left := slices.ContainsFunc(going, func(name string) bool { return isOut(seen.pods[name]) })
	for _, name := range going {
		delete(led, seen.pods[name].UID)
	}
	key, service := client.ObjectKeyFromObject(c), c.ClientServiceName()
	waits := &drainingError{members: going, message: "taking " + strings.Join(going, ", ") + " out of Service " + service, again: whileDraining}
	switch {
	case leads && len(led) > 0:
	case left && len(led) == 0: // the others have stopped being ready meanwhile: it comes back, and they get their time from then on
		r.draining.forget(key)
		fallthrough
	case leads:
		waits.members, waits.message = nil, "waiting for Service "+service+" to lead to another member than "+strings.Join(going, ", ")
	case left:
		if waits.again = r.ProxiesFollow - r.draining.gone(key, going); waits.again > 0 {
			return waits
		}
		return nil
	default:
		return nil
	}
	if r.draining.lasts(key, going) > drainFor {
		log.FromContext(ctx).Info("EndpointSlices did not follow: taking the step, clients may still connect to the member", "members", going, "waited", drainFor, "for", waits.message)
		return nil
	}
	return waits
}

// led are the Pods to which the Service for clients leads now, as the API server itself says; nil
// where it has no EndpointSlice, or where the operator may not know.
func (r *Reconciler) led(ctx context.Context, c *api.EtcdCluster) (map[types.UID]bool, error) {
	list := &discoveryv1.EndpointSliceList{}
	err := r.Reader.List(ctx, list, client.InNamespace(c.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: c.ClientServiceName()})
	if apierrors.IsForbidden(err) { // the installation is of an earlier release
		log.FromContext(ctx).Error(err, "EndpointSlices cannot be listed: members are changed without leaving the Service for clients first; apply the output of quorate manifests of this version")
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list EndpointSlices of Service %s: %w", c.ClientServiceName(), err)
	}
	if len(list.Items) == 0 {
		return nil, nil
	}
	led := map[types.UID]bool{}
	for _, s := range list.Items {
		for _, e := range s.Endpoints {
			if e.TargetRef != nil && ptr.Deref(e.Conditions.Ready, true) {
				led[e.TargetRef.UID] = true
			}
		}
	}
	return led, nil
}

// drains remembers since when a cluster waits for its Service to be without members, and since when
// it is. It bounds these waits and guards nothing.
type drains struct {
	begun sync.Map // drained by types.NamespacedName
	ended sync.Map // the same
}

type drained struct {
	members []string
	since   time.Time
}

// lasts is for how long the Service has been waited for to be without these members, and gone for
// how long it has been seen without them.
func (d *drains) lasts(key types.NamespacedName, members []string) time.Duration {
	return since(&d.begun, key, members)
}

func (d *drains) gone(key types.NamespacedName, members []string) time.Duration {
	return since(&d.ended, key, members)
}

// since is how long ago it was asked first about these members, and maybe others that are gone by
// now.
func since(asked *sync.Map, key types.NamespacedName, members []string) time.Duration {
	now := drained{members, time.Now()}
	if before, known := asked.Load(key); known {
		of := before.(drained)
		if !slices.ContainsFunc(members, func(name string) bool { return !slices.Contains(of.members, name) }) {
			return now.since.Sub(of.since)
		}
	}
	asked.Store(key, now)
	return 0
}

func (d *drains) forget(key types.NamespacedName) {
	d.begun.Delete(key)
	d.ended.Delete(key)
}
