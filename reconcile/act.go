package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// act applies what the cluster always has, carries out the step, and brings the metadata of what
// exists up to date. A cluster that is suspended or being deleted is not touched.
func (r *Reconciler) act(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	if !c.DeletionTimestamp.IsZero() {
		return nil
	}
	if err := r.stopJobs(ctx, c, seen, step); err != nil || c.Spec.Suspend {
		return err
	}
	invalid := valid(c, seen)
	var held error // no member is changed for what is refused, or waits for its turn
	if invalid == nil {
		held = r.held(ctx, c, seen, step)
	}
	keepsAll, staticErr := r.applyStatic(ctx, c, seen, step, invalid == nil && held == nil)
	staticErr = errors.Join(invalid, staticErr)
	if staticErr != nil && !seen.Formed() {
		return staticErr // the first members need the Service to find each other
	}
	if seen.touched = touched(c, seen, step); len(seen.touched) == 0 {
		r.draining.forget(client.ObjectKeyFromObject(c))
	}
	// A Service or budget that cannot be applied must not keep a dead member of a formed cluster
	// down. But no member is changed to what is wrong, nor prepared for it.
	err, blocked := held, staticErr != nil && beginsChange(step)
	if !blocked && held == nil {
		err = r.take(ctx, c, seen, step)
		r.refused.remember(c, step, err, time.Now())
		if step.Action == membership.Wait {
			err = cmp.Or(err, r.drain(ctx, c, seen))
		}
	}
	var draining *drainingError
	drains := errors.As(err, &draining)
	if drains {
		seen.out = draining.members
	}
	// What was taken out of the Service comes back, and leaves it again before the next try.
	if blocked || held != nil || refuses(err) {
		seen.touched = nil
		r.draining.forget(client.ObjectKeyFromObject(c))
	}
	if drains && draining.members == nil {
		seen.touched = nil
	}
	if keepsAll && refuses(err) { // a drain does not wait for a person
		err = errors.Join(err, r.applyBudget(ctx, c, seen, false))
	}
	err = r.maintainAfter(ctx, c, seen, step, err)
	return errors.Join(alongside(staticErr, step, err), err)
}

// maintainAfter brings the metadata of members up to date, as far as the error of the step allows.
func (r *Reconciler) maintainAfter(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step, err error) error {
	var draining *drainingError
	switch {
	case err == nil, errors.As(err, &draining):
		if beside := r.maintain(ctx, c, seen, step); beside != nil {
			return &besideError{beside, draining}
		}
		return err
	case follows(err):
		return errors.Join(err, r.maintain(ctx, c, seen, step))
	case errors.Is(err, blockedByCertificates(seen)):
		return errors.Join(err, r.letBack(ctx, c, seen, step))
	default:
		return err
	}
}

// besideError is why labels and annotations of members are not as the spec says, beside a step that
// was taken, or that waits for the Service (draining, not nil).
type besideError struct {
	error
	draining *drainingError
}

func (e *besideError) Unwrap() error { return e.error }

// alongside is the error of the spec, with the step if that was taken all the same.
func alongside(staticErr error, step membership.Step, err error) error {
	var invalid *invalidError
	if err != nil || step.Action == membership.None || beginsChange(step) || !errors.As(staticErr, &invalid) {
		return staticErr
	}
	return &meanwhileError{staticErr}
}

// follows reports whether the metadata of members is brought up to date though the step was not
// taken: it waits for its turn, or is refused, and so it may be for long.
func follows(err error) bool {
	var queued queuedError
	var invalid *invalidError
	return refuses(err) || errors.As(err, &queued) || errors.As(err, &invalid)
}

// valid is why no member can be made of the spec. What belongs to the whole cluster is applied all
// the same.
func valid(c *api.EtcdCluster, seen observed) error {
	err := schemaRefuses(c, seen.claims, seen.former.claims)
	if err == nil { // flags that it refuses are told by it alone
		err = cmp.Or(render.ValidateFlags(c, servedFlags(c, seen)), render.ValidateServed(c))
	}
	if err != nil {
		return &invalidError{err}
	}
	return nil
}

// held is why no member is changed in this pass: its certificates are not as they must be, or hold
// says so. To stop all takes no certificate, and is the way to others.
func (r *Reconciler) held(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	if wrong := blockedByCertificates(seen); wrong != nil && step.Reason != membership.Hibernating && !startsUnread(seen, step) && !startsServed(c, seen, step) {
		return wrong
	}
	return r.hold(ctx, c, seen, step)
}

// startsUnread reports whether the step starts members over the volumes with their data, and their
// certificates are wrong only in that the operator may not read them. A kubelet would start their
// containers again as well. Otherwise quorum would be lost node by node for want of a right.
func startsUnread(seen observed, step membership.Step) bool {
	return step.Action == membership.Start && seen.credentials.unread
}

// hold is why a change is not to begin in this pass: it is not the turn of the cluster, or the API
// server refuses the change.
func (r *Reconciler) hold(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	switch step.Action {
	case membership.Update, membership.Downgrade: // while that is prepared no member can be added: not to wait for its turn in between
	case membership.BackUp:
		if seen.earlier != nil { // it is under way already
			return nil
		}
	default:
		return nil
	}
	if err := r.changing.enter(c, r.MaxChanging); err != nil || step.Action != membership.Update {
		return err
	}
	if err := r.refused.pending(c, step, time.Now()); err != nil || isOut(seen.pods[step.Members[0]]) { // update tries it then
		return err
	}
	return r.rehearse(ctx, c, seen, step)
}

// beginsChange reports whether the step begins a change, or prepares one: no member is away for it
// yet.
func beginsChange(step membership.Step) bool {
	return step.Action == membership.BackUp || step.Action == membership.Update || step.Action == membership.Downgrade
}

// applyStatic applies what the cluster always has, for a step that goes on, or is held up. It
// reports whether the disruption budget keeps all members.
func (r *Reconciler) applyStatic(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step, goesOn bool) (keepAll bool, _ error) {
	service, err := clientService(ctx, r.Client, c)
	if err == nil && !selects(service.Spec.Selector) && !admitsClients(c, seen) {
		service, err = clientService(ctx, r.Reader, c) // clients that were let in are not shut out on the word of the cache
	}
	if err != nil {
		return false, err
	}
	live, err := budget(ctx, r.Client, c)
	if err != nil {
		return false, err
	}
	objects := static(c, seen, service, labelled(service, seen.pods, time.Now()), false)
	if err := r.fenceClients(ctx, c, service, objects); err != nil {
		return false, err
	}
	err = each(slices.DeleteFunc(objects, isBudget), func(object runtime.ApplyConfiguration) error {
		_, err := r.apply(ctx, c, object)
		return err
	})
	if instead, ok := obstacle(err, step); ok && beginsChange(step) { // nor is it begun
		step = instead
	}
	// The budget is not raised again and again for a Pod that was refused in the last look: each
	// change of it is another look.
	again := step.Action == membership.Start && refusal(c) != nil
	keepAll = goesOn && !again && keepsAll(seen, step, raised(c, seen, live))
	return keepAll, errors.Join(err, r.applyBudget(ctx, c, seen, keepAll))
}

// fenceClients makes the Service for clients be changed only as it was seen, and opened only for
// the EtcdCluster as it was seen: an operator with an old view must not let clients in that a
// restore in place has shut out.
func (r *Reconciler) fenceClients(ctx context.Context, c *api.EtcdCluster, seen *corev1.Service, objects []runtime.ApplyConfiguration) error {
	for _, object := range objects {
		service, ok := object.(*corev1ac.ServiceApplyConfiguration)
		if !ok || *service.Name != c.ClientServiceName() {
			continue
		}
		if seen.UID != "" {
			service.WithUID(seen.UID).WithResourceVersion(seen.ResourceVersion)
		}
		if selects(seen.Spec.Selector) || !selects(service.Spec.Selector) {
			continue
		}
		live := &api.EtcdCluster{}
		if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(c), live); err != nil {
			return fmt.Errorf("look at the EtcdCluster again: %w", err)
		}
		if live.UID != c.UID || live.ResourceVersion != c.ResourceVersion {
			return apply.ErrChanged
		}
	}
	return nil
}

// clientService is the Service for clients as it is; the zero Service where there is none.
func clientService(ctx context.Context, reader client.Reader, c *api.EtcdCluster) (*corev1.Service, error) {
	service := &corev1.Service{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.ClientServiceName()}, service)
	if client.IgnoreNotFound(err) != nil {
		return nil, fmt.Errorf("get Service %s: %w", c.ClientServiceName(), err)
	}
	return service, nil
}

// selects reports whether the Service for clients selects Pods.
func selects(selector map[string]string) bool {
	return len(selector) > 0 && selector[api.LabelClients] != api.ClientsShut
}

// static is what the cluster always has. Once the Service for clients selects Pods it goes on to,
// whatever becomes of them, but for a restore in place: it leads to no Pod that is not ready.
func static(c *api.EtcdCluster, seen observed, service *corev1.Service, labelled, keepAll bool) []runtime.ApplyConfiguration {
	admits := admitsClients(c, seen) || selects(service.Spec.Selector) && !shutsClientsOut(c)
	return render.Static(c, render.State{Admits: admits, Shut: len(service.Spec.Selector) > 0, Labelled: labelled, Voters: voters(seen), Listed: lists(seen), KeepAll: keepAll})
}

// admitsClients reports whether clients may come: the latch is written, a quorum answers, and no
// Pod would still start a new member, or restore one, if its disk came back empty. A write that was
// acknowledged before that could be lost with one disk, unnoticed.
func admitsClients(c *api.EtcdCluster, seen observed) bool {
	if c.Status.ClusterID == "" || seen.Reach != membership.ReachQuorum {
		return false
	}
	for _, pod := range seen.pods {
		if pod.Annotations[api.AnnotationInitialClusterState] == render.StateNew || pod.Annotations[api.AnnotationRestore] != "" {
			return false
		}
	}
	return true
}

// letIn is the step of a healthy cluster, or what it waits for until clients can come: a client
// that waits for Ready connects to the Service for clients next, which leads only to members that
// the kubelet has found ready.
func letIn(c *api.EtcdCluster, seen observed, healthy membership.Step, stallBefore time.Time) membership.Step {
	switch {
	case !admitsClients(c, seen):
		return membership.Step{
			Action: membership.Wait, Reason: membership.Bootstrapping,
			Message: "the cluster has formed; clients are let in once its Pods are told to find their data at every later start",
		}
	case readyPods(seen) == 0:
		if step, ok := podsNotReady(seen, stallBefore); ok {
			return step
		}
		return membership.Step{
			Action: membership.Wait, Reason: membership.Starting,
			Message: "the members serve; until the kubelet has found one of them ready, the Service for clients leads to none",
		}
	case c.ClientTLS() && c.ClientPort().ServesPlaintext():
		healthy.Message += "; port 2379 is open to clients without TLS, which need no certificate (spec.tls.client.plaintext)"
		fallthrough
	default:
		return healthy
	}
}

// take carries out the step.
func (r *Reconciler) take(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	if step.Acts() {
		log.FromContext(ctx).V(1).Info("Taking step", "step", step.Action, "rule", step.Rule, "reason", step.Reason, "members", step.Members)
	}
	switch step.Action {
	case membership.None, membership.Wait, membership.Stall:
		return nil
	case membership.AddLearner, membership.Promote, membership.Remove, membership.MoveLeader:
		return r.changeMembership(ctx, c, seen, step)
	case membership.BackUp:
		return r.backUp(ctx, c, seen, step)
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
	case membership.Find:
		return r.find(ctx, c, step)
	case membership.Choose:
		return r.choose(ctx, c, seen, step)
	case membership.Recover:
		return r.recover(ctx, c, step)
	case membership.CopyData:
		return r.copyData(ctx, c, seen, step)
	case membership.Replace, membership.Revert, membership.StopFormer, membership.SetAside, membership.Readmit, membership.DiscardFormer:
		return r.restoreInPlace(ctx, c, seen, step)
	case membership.Provision:
		if seen.Formed() {
			return r.prepare(ctx, c, seen, step)
		}
		return r.create(ctx, c, step, func(name string) ([]runtime.ApplyConfiguration, error) {
			return []runtime.ApplyConfiguration{firstVolume(c, seen, step, name)}, nil
		})
	case membership.Bootstrap:
		// Looked at again: the member may serve by now, and its Pod be away for a moment. A Pod of
		// the first start in its place would start empty on an empty disk.
		if err := r.begin(ctx, c, seen, step, volumeUID); err != nil {
			return err
		}
		return r.create(ctx, c, step, func(name string) ([]runtime.ApplyConfiguration, error) {
			m := firstMember(c, seen, step, name)
			m.AgentImage = r.AgentImage
			m.Again = seen.Bootstrapping[name] != "" // its Pod may have been there before
			return absentPod(c, seen, m)
		})
	case membership.Start:
		return r.start(ctx, c, seen, step)
	case membership.Record:
		return r.record(ctx, c, seen, step)
	case membership.Raise:
		return r.raise(ctx, c, seen, step)
	case membership.Repair:
		return r.repair(ctx, c, seen, step)
	case membership.Stop:
		if err := r.intend(ctx, c, seen, step, podUID); err != nil {
			return err
		}
		return each(step.Members, func(name string) error {
			if i, _ := seen.Instance(name); step.Reason == membership.Replacing && i.Pod.Outdated && !i.Pod.Ended {
				if _, err := r.announceMended(ctx, c, seen, name); err != nil {
					return err
				}
			}
			return r.deletePod(ctx, c, seen.pods[name], step)
		})
	default:
		return fmt.Errorf("take step %s: it is not known", step.Action)
	}
}

// event tells what was done.
func (r *Reconciler) event(c *api.EtcdCluster, step membership.Step, note string) {
	r.Recorder.Eventf(c, nil, eventType(step), string(step.Reason), string(step.Action), "%s", podstatus.FirstLine(note))
}

// eventType is Warning where what a person has asked for does not work.
func eventType(step membership.Step) string {
	if step.Action == membership.PutBack || step.Action == membership.Stall {
		return corev1.EventTypeWarning
	}
	return corev1.EventTypeNormal
}

// deletePod deletes this very Pod, with the grace that lets etcd hand over its leadership, where
// another member can take it: no later one of its name, and where it was decided by what the Pod
// does, not one that does something else since. So does one of a member to come, once it was let
// start.
func (r *Reconciler) deletePod(ctx context.Context, c *api.EtcdCluster, pod *corev1.Pod, step membership.Step) error {
	as := client.Preconditions{UID: &pod.UID}
	if step.Reason == membership.Replacing || step.Reason == membership.BackOff || step.Reason == membership.VolumeReplaced || step.Reason == membership.ChangeFailed || pod.Annotations[api.AnnotationProvisions] != "" {
		as.ResourceVersion = &pod.ResourceVersion
	}
	options := []client.DeleteOption{as}
	if step.Alone || step.Reason == membership.BackOff { // then a container beside etcd must not hold up the quorum
		options = append(options, client.GracePeriodSeconds(aloneGrace))
	}
	err := r.Client.Delete(ctx, pod, options...)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete Pod %s: %w", pod.Name, err)
	}
	note := "Deleted Pod " + pod.Name
	if step.Action == membership.Stop || step.Action == membership.StopFormer { // of the others the cause is an event of its own
		note = podstatus.Clause(note, step.Message)
	}
	r.Recorder.Eventf(c, pod, eventType(step), string(step.Reason), string(step.Action), "%s", note)
	return nil
}

// aloneGrace is what the only member gets when its Pod is recreated: time to answer what it was
// asked, which takes milliseconds, and no time to wait for clients that watch, for which it would
// take seven seconds. What it has acknowledged is on its disk. The kubelet gives no less than this.
const aloneGrace = 2

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
