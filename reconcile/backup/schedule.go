package backup

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "quorate.dev/api/v1alpha1"
	apiac "quorate.dev/api/v1alpha1/applyconfiguration/api/v1alpha1"
	"quorate.dev/reconcile/apply"
	"quorate.dev/reconcile/fair"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// Scheduler makes EtcdBackupSchedules true.
type Scheduler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Reader reads from the API server itself.
	Reader client.Reader
	// Recorder takes an event for what was done.
	Recorder events.EventRecorder
	// Skew is how far a time by our clock is ahead of the API server's, or behind it, where that is
	// too much to go by; else 0. Nil where that is not known.
	Skew func(now time.Time) time.Duration
	// Now is the time; time.Now where it is nil.
	Now func() time.Time
}

// SetupWithManager registers the scheduler.
func (r *Scheduler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	// EtcdBackups have no owner: they are found by label.
	byLabel := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		name := o.GetLabels()[api.LabelSchedule]
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		For(&api.EtcdBackupSchedule{}).
		Watches(&api.EtcdBackup{}, byLabel).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			NewQueue:                fair.NewQueue(workers),
			RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
		}).
		Named("etcdbackupschedule").
		Complete(r)
}

// Reconcile takes one step for one schedule. What it makes has the name of its time, and is created
// only where there is none: two operators, or one that was interrupted, make it once.
func (r *Scheduler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	s := &api.EtcdBackupSchedule{}
	if err := r.Client.Get(ctx, request.NamespacedName, s); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !s.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, nil
	}
	made := &api.EtcdBackupList{}
	if err := r.Client.List(ctx, made, client.InNamespace(s.Namespace), client.MatchingLabels{api.LabelSchedule: s.Name}); err != nil {
		return ctrl.Result{}, fmt.Errorf("list EtcdBackups: %w", err)
	}
	now := time.Now
	if r.Now != nil {
		now = r.Now
	}
	// The cache lists in any order: what is said of several must not change with it.
	slices.SortFunc(made.Items, func(a, b api.EtcdBackup) int { return strings.Compare(a.Name, b.Name) })
	seen := Scheduled{Schedule: s, Backups: made.Items, Now: now()}
	if r.Skew != nil {
		seen.Skew = r.Skew(seen.Now)
	}
	step := PlanSchedule(seen)
	var errs []error
	if len(step.Drop) > 0 {
		var err error
		if seen.Needed, err = r.needed(ctx, s, made.Items); err != nil {
			errs, step.Drop = append(errs, err), nil
		} else {
			step = PlanSchedule(seen)
		}
	}
	shown, failed := r.carryOut(ctx, s, seen, step)
	errs = append(append(errs, failed...), r.report(ctx, s, scheduleStatus(seen, shown)))
	conflict := slices.ContainsFunc(errs, apierrors.IsConflict)
	err := errors.Join(slices.DeleteFunc(errs, apierrors.IsConflict)...)
	switch {
	case err != nil:
		return ctrl.Result{}, err
	case conflict:
		return ctrl.Result{RequeueAfter: afterConflict}, nil
	case shown.Next.IsZero():
		return ctrl.Result{}, nil
	}
	again := shown.Next
	if !shown.Look.IsZero() && shown.Look.Before(again) {
		again = shown.Look
	}
	return ctrl.Result{RequeueAfter: max(again.Sub(now()), afterConflict)}, nil
}

// carryOut does what can be done of a step: a deletion that fails keeps nothing from being made. It
// returns what is to be shown, which is another step where something was refused or not made.
func (r *Scheduler) carryOut(ctx context.Context, s *api.EtcdBackupSchedule, seen Scheduled, step ScheduleStep) (ScheduleStep, []error) {
	shown := step
	refused := func(message string) {
		shown.Stalled, shown.Reason, shown.Message = true, api.ReasonRefused, message
	}
	var errs []error
	for i := range step.Drop {
		b := &step.Drop[i]
		err := r.prune(ctx, s, b)
		words := refusal(err)
		if words == "" {
			errs = append(errs, err)
			continue
		}
		if !shown.Stalled {
			refused(podstatus.Clause("the API server refuses to delete EtcdBackup "+b.Name+", which spec.retention does not keep", words) +
				"; change the policy or the rights that refuse it, or let spec.retention keep more. New EtcdBackups are made all the same")
		}
		shown.Look = sooner(shown.Look, seen.Now.Add(betweenRefusals))
	}
	if step.Make.IsZero() {
		return shown, errs
	}
	if err := r.create(ctx, s, step.Make); err != nil {
		shown.Make = time.Time{} // it is not written down as made
		words := refusal(err)
		if words == "" {
			return shown, append(errs, err)
		}
		refused(podstatus.Clause("the API server refuses to create EtcdBackup "+s.BackupName(step.Make), words) +
			"; change the quota, the policy or the rights that refuse it. It is tried again every minute")
		shown.Look = sooner(shown.Look, seen.Now.Add(betweenRefusals))
	}
	return shown, errs
}

// betweenRefusals is how long what the API server has refused in earnest is not tried again, unless
// something changes: no watch tells of a policy or a quota.
const betweenRefusals = time.Minute

// sooner of two times, of which the first may be none.
func sooner(a, b time.Time) time.Time {
	if !a.IsZero() && a.Before(b) {
		return a
	}
	return b
}

// refusal is what the API server says against what it was asked for, where only a person can change
// that; else empty. What it says of a namespace that is being deleted goes by with it.
func refusal(err error) string {
	if !apierrors.IsForbidden(err) && !apierrors.IsInvalid(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return ""
	}
	var said apierrors.APIStatus
	if !errors.As(err, &said) {
		return err.Error()
	}
	return said.Status().Message
}

// prune deletes an EtcdBackup that the retention does not keep.
func (r *Scheduler) prune(ctx context.Context, s *api.EtcdBackupSchedule, b *api.EtcdBackup) error {
	err := r.Client.Delete(ctx, b, client.Preconditions{UID: &b.UID, ResourceVersion: &b.ResourceVersion})
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("delete EtcdBackup %s: %w", b.Name, err)
	}
	if err == nil {
		r.Recorder.Eventf(s, b, corev1.EventTypeNormal, api.ReasonPruned, string(Delete), "Deleted EtcdBackup %s, which spec.retention does not keep", b.Name)
	}
	return nil
}

// create the EtcdBackup of a time.
func (r *Scheduler) create(ctx context.Context, s *api.EtcdBackupSchedule, at time.Time) error {
	// Past the cache: another time may have been written down, or the schedule suspended.
	live := &api.EtcdBackupSchedule{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(s), live); err != nil {
		return fmt.Errorf("get EtcdBackupSchedule: %w", err)
	}
	if live.UID != s.UID || live.ResourceVersion != s.ResourceVersion {
		return apierrors.NewConflict(api.SchemeGroupVersion.WithResource("etcdbackupschedules").GroupResource(), s.Name, apply.ErrChanged)
	}
	b, err := render.ScheduledBackup(s, at)
	if err != nil {
		return err
	}
	name := *b.Name
	err = r.Client.Apply(ctx, b.WithResourceVersion(apply.OnlyIfAbsent), client.FieldOwner(api.Manager), client.ForceOwnership)
	if apierrors.IsConflict(err) { // it is there already; that is written down now
		return nil
	}
	if err != nil {
		return fmt.Errorf("create EtcdBackup %s: %w", name, err)
	}
	r.Recorder.Eventf(s, nil, corev1.EventTypeNormal, api.ReasonScheduled, string(Begin), "Created EtcdBackup %s", name)
	return nil
}

// scheduleStatus is what users see of a schedule of which this step was decided.
func scheduleStatus(o Scheduled, step ScheduleStep) api.EtcdBackupScheduleStatus {
	s := *o.Schedule.Status.DeepCopy()
	s.ObservedGeneration = o.Schedule.Generation
	s.Active = ""
	if b := active(o.Backups); b != nil {
		s.Active = b.Name
	}
	if !step.Make.IsZero() {
		s.LastScheduleTime, s.Active = instant(step.Make), o.Schedule.BackupName(step.Make)
	}
	s.NextScheduleTime = instant(step.Next)
	for i := range o.Backups {
		b := &o.Backups[i]
		if b.Status.VerifiedAt == nil || b.Status.TakenAt == nil {
			continue
		}
		if taken := snapshotTime(b); s.LastSuccessfulTime == nil || s.LastSuccessfulTime.Time.Before(taken) {
			s.LastSuccessfulTime = instant(taken)
		}
	}
	ready := metav1.ConditionTrue
	if step.Stalled {
		ready = metav1.ConditionFalse
	}
	condition := metav1.Condition{Type: api.ConditionReady, Status: ready, Reason: step.Reason, Message: step.Message, ObservedGeneration: o.Schedule.Generation}
	meta.SetStatusCondition(&s.Conditions, condition)
	if step.Stalled {
		condition.Type, condition.Status = api.ConditionStalled, metav1.ConditionTrue
		meta.SetStatusCondition(&s.Conditions, condition)
	} else {
		meta.RemoveStatusCondition(&s.Conditions, api.ConditionStalled)
	}
	return s
}

func (r *Scheduler) report(ctx context.Context, s *api.EtcdBackupSchedule, next api.EtcdBackupScheduleStatus) error {
	if equality.Semantic.DeepEqual(s.Status, next) {
		return nil
	}
	desired := apiac.EtcdBackupSchedule(s.Name, s.Namespace).WithResourceVersion(s.ResourceVersion)
	return client.IgnoreNotFound(apply.Status(ctx, r.Client, next, desired.WithStatus))
}
