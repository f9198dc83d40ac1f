package reconcile

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/podstatus"
)

// foreignError: an object with a name that is needed has another owner.
type foreignError struct{ kind, name, whose string }

func (e *foreignError) Error() string {
	return fmt.Sprintf("%s %s exists and belongs to %s; delete it if nothing needs it, or create this EtcdCluster under another name", e.kind, e.name, e.whose)
}

// terminatingError: an object with a name that is needed is still being deleted.
type terminatingError struct{ kind, name string }

func (e *terminatingError) Error() string {
	return fmt.Sprintf("waiting for the earlier %s %s to be gone", e.kind, e.name)
}

// invalidError: the spec cannot be rendered.
type invalidError struct{ error }

// meanwhileError is what is wrong with the spec while the step is taken all the same: nothing is
// made of the spec for it.
type meanwhileError struct{ error }

func (e *meanwhileError) Unwrap() error { return e.error }

// refuses reports whether the API server has something against what it was asked for.
func refuses(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) }

// refusalOf is what the API server says of what it refuses.
func refusalOf(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) {
		return podstatus.FirstLine(status.Status().Message)
	}
	return podstatus.FirstLine(err.Error())
}

// obstacle is the step that is taken instead, where something stands against the planned one that
// another try does not get past: something to wait for, or something that only a person can change.
func obstacle(err error, planned membership.Step) (membership.Step, bool) {
	var foreign *foreignError
	var certificates *certificatesError
	var terminating *terminatingError
	var invalid *invalidError
	var meanwhile *meanwhileError
	var queued queuedError
	var draining *drainingError
	switch {
	case err == nil:
		return membership.Step{}, false
	case errors.Is(err, membership.ErrLater):
		return membership.Step{Action: membership.Wait, Reason: planned.Reason, Message: planned.Message + ": etcd wants its members to be connected, and in step, for some seconds first"}, true
	case errors.Is(err, errInFlight):
		return membership.Step{Action: membership.Wait, Reason: planned.Reason, Message: "waiting for an earlier operation to end, before " + planned.Message}, true
	case errors.As(err, &queued):
		return membership.Step{Action: membership.Wait, Reason: membership.Reason(api.ReasonQueued), Message: queued.Error() + "; then " + planned.Message}, true
	case errors.As(err, &draining) && planned.Action == membership.Wait: // it is not what the step waits for
		return planned, true
	case errors.As(err, &draining):
		return membership.Step{Action: membership.Wait, Reason: planned.Reason, Message: draining.Error() + " before " + planned.Message}, true
	case errors.As(err, &certificates):
		return certificates.step(), true
	case errors.As(err, &foreign):
		return membership.Step{Action: membership.Stall, Reason: membership.ForeignObject, Message: foreign.Error()}, true
	case errors.As(err, &invalid):
		message := invalid.Error()
		if errors.As(err, &meanwhile) && planned.Message != "" {
			message += ". Meanwhile: " + planned.Message
		}
		return membership.Step{Action: membership.Stall, Reason: membership.InvalidSpec, Message: message}, true
	case errors.As(err, &terminating):
		return membership.Step{Action: membership.Wait, Reason: membership.Terminating, Message: terminating.Error()}, true
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return membership.Step{Action: membership.Wait, Reason: membership.Terminating, Message: "the namespace is being deleted"}, true
	case refuses(err):
		message := "the API server refuses what the spec asks for: " + refusalOf(err)
		switch {
		case planned.Reason == membership.Moving:
			message += ", while " + planned.Message
		case planned.Action == membership.Expand && cannotExpand(err):
			message += ". Set spec.storage.changePolicy to Replace: with the new size the members are replaced one by one on new volumes; with spec.storage.size reverted they stay on theirs"
		case planned.Action == membership.Expand:
			message += ". Remove the cause, or revert spec.storage.size and set spec.storage.changePolicy to Replace; the members stay on their volumes"
		}
		return membership.Step{Action: membership.Stall, Reason: membership.Reason(api.ReasonRefused), Message: message}, true
	case planned.Action == membership.None && !apierrors.IsConflict(err): // not all is well, as the step would have it
		return membership.Step{
			Action: membership.Wait, Reason: membership.Reason(api.ReasonApplyFailed),
			Message: "an object of the cluster cannot be applied, and Quorate tries it again: " + podstatus.FirstLine(err.Error()),
		}, true
	default:
		return membership.Step{}, false
	}
}
