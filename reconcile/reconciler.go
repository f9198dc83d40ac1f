package reconcile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/reconcile/fair"
	"quorate.dev/render"
)

// Reconciler makes EtcdClusters true.
type Reconciler struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Reader reads from the API server itself: nothing is created or deleted on the word of the
	// cache alone.
	Reader client.Reader
	// Recorder takes an event for every act.
	Recorder events.EventRecorder
	// Dial connects to a member, and Scrape reads its metrics.
	Dial   membership.Dialer
	Scrape membership.Scraper
	// DialTLS connects to a member of a cluster whose clients need TLS.
	DialTLS membership.SecureDialer
	// DialAuth connects to a member of such a cluster for its users and roles.
	DialAuth membership.AuthDialer
	// Certificates say how certificates are issued.
	Certificates Certificates
	// AgentImage is the operator's own image, with which the agent runs that restores a new
	// cluster; empty where it is not known.
	AgentImage string
	// StallAfter is how long a member may fail to run before the cluster is called stalled, and dry
	// runs may stay without an answer before that is told.
	StallAfter time.Duration
	// ProxiesFollow is how long the proxies of nodes may take to follow an EndpointSlice: a member
	// that has left the Service for clients is touched so much later. 0 is for where there are
	// none.
	ProxiesFollow time.Duration
	// MaxChanging is how many clusters change what they run at a time; 0: all that want to.
	MaxChanging int
	// ServerTime is what the API server says the time is; nil where that is not known. Then an
	// operator that has just started waits a few seconds longer for an intent of the one before it.
	ServerTime *ServerTime
	// ServiceAccount is that of the operator, as <namespace>:<name>, for messages; empty means that
	// of an installation without options.
	ServiceAccount string

	applied  applied
	written  written
	changing turns
	draining drains
	refused  refusals
	// refusedPods are the Pods that the API server did not let be created.
	refusedPods refusedPods
	silences    silences
	// comparing is the data of members.
	comparing    comparisons
	proving      proofs
	underWay     underWay
	workers      workers
	unresponsive unresponsive
	pace         pace
	intents      intents
	sightings    sightings
	keys         keys
	connections  connections
	accesses     accesses
	// handshaker asks a member whose authority is rotated what it shows and accepts; nil:
	// handshake.
	handshaker handshaker
	// identity is this process. unanswered are the clusters of which etcd has not answered to our
	// last change: their UIDs by types.NamespacedName.
	identity   string
	unanswered sync.Map
}

// How long to wait before the next look, where no watch tells. etcd itself cannot be watched for
// its health.
const (
	afterConflict = 50 * time.Millisecond  // another writer was first, or the cache was behind on a Pod or claim, and it soon catches up
	afterAct      = time.Second            // the watch is faster; this is for a lost event
	afterChange   = 20 * time.Millisecond  // no watch tells of what etcd did, nor of our own status
	whileForming  = 300 * time.Millisecond // etcd elects its first leader within a second or two
	whileDraining = 50 * time.Millisecond  // no watch tells of EndpointSlices, which take some milliseconds
	whileJoining  = 100 * time.Millisecond // a learner that was just started is as quick, and each one waits for the one before it
	whileWaiting  = time.Second
	atRest        = 10 * time.Second
)

// settlesFast are the reasons to wait for what etcd ends by itself within a second or two.
var settlesFast = []membership.Reason{membership.Bootstrapping, membership.Restoring, membership.Joining, membership.ScalingUp, membership.ScalingDown, membership.Moving, membership.Changing, membership.Downgrading}

// How long to wait after an error: the second time twice as long, and so on. The last is not the
// quarter of an hour that is usual: no watch tells that a webhook is back, and a member may be
// down.
const (
	firstRetry = 100 * time.Millisecond
	lastRetry  = 30 * time.Second
)

// SetupWithManager registers the reconciler, which works on as many clusters at a time as workers
// says. Those do not count of which members are waited for that do not answer. The manager's cache
// has the indexes of package index.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, workers int) error {
	r.applied, r.workers = newApplied(), newWorkers(workers)
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("find out the name of this host: %w", err)
	}
	r.identity = host + "_" + string(uuid.NewUUID())
	whoseTurn := source.Func(func(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		r.changing.wake = func(key types.NamespacedName) { queue.Add(reconcile.Request{NamespacedName: key}) }
		r.comparing.wake = r.changing.wake
		context.AfterFunc(ctx, func() { r.comparing.end(); r.connections.end() })
		return nil
	})
	// Claims have no owner while they are to be retained, so that all children are found by label.
	byLabel := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		name := o.GetLabels()[api.LabelCluster]
		if name == "" {
			return nil
		}
		return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: o.GetNamespace(), Name: name}}}
	})
	return ctrl.NewControllerManagedBy(mgr).
		For(&api.EtcdCluster{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&corev1.Pod{}, byLabel).
		Watches(&corev1.PersistentVolumeClaim{}, byLabel).
		Watches(&corev1.Service{}, byLabel).
		Watches(&api.EtcdBackup{}, byLabel). // that are taken before the version changes
		Watches(&api.EtcdRestore{}, handler.EnqueueRequestsFromMapFunc(restoredCluster)).
		Watches(&api.EtcdRole{}, handler.EnqueueRequestsFromMapFunc(r.waitedFor)).
		Watches(&api.EtcdUser{}, handler.EnqueueRequestsFromMapFunc(r.waitedFor)).
		Watches(&policyv1.PodDisruptionBudget{}, byLabel, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		WatchesRawSource(whoseTurn).
		WithOptions(passesOf(workers)).
		Named("etcdcluster").
		Complete(r)
}

// passesOf is how a controller calls Reconcile for so many workers.
func passesOf(workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers * passesPerWorker,
		NewQueue:                fair.NewQueue(workers * passesPerWorker),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// Reconcile takes one step for one cluster:
//
//  0. write down the modes of TLS, and see to the certificates where there is TLS
//  1. observe what there is, in Kubernetes and in etcd
//  2. plan the one next step
//  3. act: apply what the cluster always has, then carry out the step
//  4. report what was seen and decided, where it differs from what the status says
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	defer r.underWay.begin(request.NamespacedName, time.Now())()
	defer r.pace.begin(request.NamespacedName)()
	if err := r.workers.acquire(ctx, request.Namespace); err != nil {
		return ctrl.Result{}, err
	}
	defer r.workers.release(request.Namespace)
	if err := r.changing.resume(ctx, r.Client, r.MaxChanging); err != nil {
		return ctrl.Result{}, err
	}
	left := func(step membership.Step) { r.changing.leave(request.NamespacedName, r.MaxChanging, step, time.Now()) }
	defer func() {
		if p := recover(); p != nil { // every pass may: the others do not wait for this cluster
			left(membership.Step{Action: membership.Stall})
			panic(p)
		}
	}()
	cluster := &api.EtcdCluster{}
	if err := r.Client.Get(ctx, request.NamespacedName, cluster); err != nil {
		left(membership.Step{Action: membership.None})
		r.forget(request.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err) // deleted: the garbage collector does the rest
	}
	if r.written.behind(cluster) {
		return ctrl.Result{RequeueAfter: afterChange}, nil
	}
	found, err := r.settleAndSecure(ctx, cluster, time.Now())
	if err != nil {
		left(membership.Step{})
		return requeueConflict(err)
	}
	if trustsAnother(cluster, found) {
		return r.reportTrust(ctx, cluster, found)
	}
	seen, err := r.observe(ctx, cluster, cached{r.Client, cluster.Name})
	if err != nil {
		left(membership.Step{})
		return ctrl.Result{}, err
	}
	seen.credentials = found
	step := foretold(cluster, seen, membership.Plan(desired(cluster), seen.Observed))
	err = r.authenticateAndAct(ctx, cluster, &seen, step)
	draining, goesOn := waitsBeside(err)
	planned := step
	step, err = outcome(ctx, step, err)
	if err == nil && (step.Action == membership.Replace || step.Action == membership.Revert) { // the status is of other members now
		left(step)
		return ctrl.Result{RequeueAfter: afterChange}, nil
	}
	if err != nil && step.Reason == membership.Formed {
		return ctrl.Result{}, err // the latch says that every volume was written on, and one was not
	}
	step = asksAnotherPeerMode(cluster, warned(seen, drainBlocked(cluster, seen, forClients(cluster, seen, step, time.Now().Add(-r.StallAfter)))))
	step, raisedErr := r.keptRaised(ctx, cluster, seen, step)
	err = errors.Join(err, raisedErr)
	if apierrors.IsConflict(err) || errors.Is(err, apply.ErrChanged) { // the cache was behind, or another operator was first: look again
		return ctrl.Result{RequeueAfter: afterConflict}, nil
	}
	seen.begun = r.begun(cluster, time.Now()) // it may have been written in this pass
	reportErr := r.report(ctx, cluster, status(cluster, seen, shown(cluster, seen.told(withAccess(seen, step)))))
	if err == nil && apierrors.IsConflict(reportErr) {
		return ctrl.Result{RequeueAfter: afterConflict}, nil
	}
	if reportErr == nil { // the next operator must not take it for one that changes
		left(turnsOn(planned, step, goesOn))
	}
	if err := errors.Join(err, reportErr); err != nil {
		return ctrl.Result{}, err // tried again with growing pauses
	}
	return ctrl.Result{RequeueAfter: r.lookAgain(request.NamespacedName, cluster, seen, step, draining)}, nil
}

// waitsBeside is what a step waits for, and whether it goes on though the labels of members are
// refused: the cluster keeps its turn then.
func waitsBeside(err error) (draining *drainingError, goesOn bool) {
	if beside, is := errors.AsType[*besideError](err); is {
		return beside.draining, true
	}
	draining, _ = errors.AsType[*drainingError](err)
	return draining, false
}

// turnsOn is the step by which the cluster keeps its turn, or gives it up: the planned one where
// that goes on, else the one that is told.
func turnsOn(planned, told membership.Step, goesOn bool) membership.Step {
	if goesOn {
		return planned
	}
	return told
}

// lookAgain is when to look again at a cluster after a pass that has ended well, if no watch tells
// earlier.
func (r *Reconciler) lookAgain(key types.NamespacedName, cluster *api.EtcdCluster, seen observed, step membership.Step, draining *drainingError) time.Duration {
	if draining != nil && seen.proves > 0 {
		return min(draining.again, seen.proves)
	}
	if draining != nil {
		return draining.again
	}
	wait := r.pace.wait(key, step, again(seen, step, r.written.lately(key)))
	if wait >= whileWaiting && !step.Acts() && seen.proves == 0 && !seen.inconclusive { // what heals the cluster is looked at as often as ever
		wait = max(wait, r.unresponsive.rest(key, time.Now()))
	}
	if seen.access != nil && !seen.access.again.IsZero() {
		wait = min(wait, max(time.Until(seen.access.again), whileWaiting))
	}
	lost := r.sightings.of(cluster, time.Now()).loss.since
	return min(wait, untilRestoreLook(cluster, seen), untilRecoveryLook(cluster, seen, lost, time.Now()), untilCertificatesLook(seen, time.Now()))
}

// requeueConflict looks again soon where another operator was first. Any other error is tried
// again with growing pauses.
func requeueConflict(err error) (ctrl.Result, error) {
	if apierrors.IsConflict(err) {
		return ctrl.Result{RequeueAfter: afterConflict}, nil
	}
	return ctrl.Result{}, err
}

// outcome is what has come of a step: the step, or what is told instead where an obstacle is met
// that is no error.
func outcome(ctx context.Context, step membership.Step, err error) (membership.Step, error) {
	if instead, ok := obstacle(err, step); ok {
		log.FromContext(ctx).V(1).Info("Step meets an obstacle", "step", step.Action, "rule", step.Rule, "members", step.Members, "error", err.Error())
		return instead, nil
	}
	if err == nil && step.Acts() {
		log.FromContext(ctx).Info("Took step", "step", step.Action, "rule", step.Rule, "reason", step.Reason, "members", step.Members)
	}
	return step, err
}

// forget what was remembered of a cluster.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.written.forget(key)
	r.draining.forget(key)
	r.refused.forget(key)
	r.refusedPods.forget(key)
	r.silences.forget(key)
	r.comparing.forget(key)
	r.proving.forget(key)
	r.intents.forget(key)
	r.sightings.forget(key)
	r.keys.forget(key)
	r.connections.forget(key)
	r.accesses.forget(key)
	r.unresponsive.forget(key)
	r.unanswered.Delete(key)
}

// after is when to look again, if no watch tells earlier; lately is whether the last change was a
// moment ago.
func after(step membership.Step, lately bool) time.Duration {
	switch {
	case step.ChangesMembership() || step.Action == membership.Choose:
		return afterChange
	case step.Action == membership.Find:
		return whileForming
	case step.Action == membership.Wait && step.Reason == membership.Joining && lately:
		return whileJoining
	case step.Action == membership.Wait && slices.Contains(settlesFast, step.Reason):
		return whileForming
	case step.Acts():
		return afterAct
	case step.Reason == membership.Reason(api.ReasonQueued), step.Reason == membership.BackingUp: // it is woken when it is its turn, or by the watch
		return atRest
	case step.Action == membership.Wait:
		return whileWaiting
	default:
		return atRest
	}
}

// desired is what the spec asks for, with its defaults.
func desired(c *api.EtcdCluster) membership.Desired {
	version, err := membership.ParseVersion(c.Spec.Version)
	if err != nil {
		version = membership.Version{} // the schema refuses it (schemaRefuses)
	}
	return membership.Desired{
		Size:      size(c),
		Version:   version,
		Suspended: c.Spec.Suspend,
		Deleting:  !c.DeletionTimestamp.IsZero(),
		Ephemeral: c.Spec.Storage.Medium == api.MediumMemory,
		Token:     firstToken(c),
		Retain:    c.Spec.Storage.Retention != nil && c.Spec.Storage.Retention.WhenScaled == api.RetentionRetain,
		Room:      render.Room(c),
		Request:   render.MostRequest(c),
		Patience:  patience(c),
		Namespace: c.Namespace,
		GivenUp:   givenUp(c),

		EmptyPatience: emptyPatience(c),

		Base:     int(c.Status.FirstOrdinal),
		Restore:  c.Spec.Bootstrap != nil || c.Status.Restore != nil && c.Status.Restore.Phase == api.RestoreRestoring,
		Identity: c.RestoreIdentity() != nil,
		Volume:   c.Spec.Storage.Size.Value(),
		BackUp:   c.BacksUpBeforeChange(),

		FromSurvivor: onQuorumLoss(c) == api.QuorumLossFromSurvivor,
		FromBackup:   onQuorumLoss(c) == api.QuorumLossFromBackup,
		LossPatience: lossPatienceText(c),

		DiscardFormer: discardsFormer(c),
	}
}

// givenUp is why the change that this generation asks for was rolled back; empty where it was not.
func givenUp(c *api.EtcdCluster) string {
	if f := c.Status.FailedChange; f != nil && f.Generation == c.Generation {
		return f.Message
	}
	return ""
}

func size(c *api.EtcdCluster) int {
	if c.Spec.Replicas == nil {
		return 3
	}
	return int(*c.Spec.Replicas)
}
