package users

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/fair"
	"quorate.dev/reconcile/pki"
	"quorate.dev/reconcile/podstatus"
)

// Shared is what the reconcilers of EtcdRoles and of EtcdUsers have in common.
type Shared struct {
	// Client reads from the cache and writes.
	Client client.Client
	// Reader reads from the API server itself.
	Reader client.Reader
	// Recorder takes an event for what was done in etcd.
	Recorder events.EventRecorder
	// Connect connects to a member of a cluster.
	Connect func(context.Context, *api.EtcdCluster) (membership.Auth, error)
	// Password reads the password in a Secret, which one that is, and why it cannot be used.
	Password func(ctx context.Context, reader client.Reader, namespace, name string) (password, version, wrong string, _ error)
	// Authority issues the certificates of a cluster's clients; nil: none is known now.
	Authority func(*api.EtcdCluster) *pki.Authority
	// Skew is how far a time by our clock is ahead of the API server's, or behind it, where that is
	// too much to issue certificates; else 0. nil: it is not known.
	Skew func(now time.Time) time.Duration
	// Grant is how the operator gets the rights on Secrets that a cluster needs: commands.
	Grant func(*api.EtcdCluster) string
	// Lifetime of a certificate that is issued; 0: pki.LeafLifetime.
	Lifetime time.Duration
	// StallAfter is how long a cluster may be missing before that is called stalled.
	StallAfter time.Duration
	// Every is how often etcd and the Secret are looked at; 0: restingLook.
	Every time.Duration
}

const (
	restingLook   = 5 * time.Minute       // etcd has what the spec says
	blockedLook   = 10 * time.Second      // a Secret is missing or wrong, or no member can be asked
	afterConflict = 50 * time.Millisecond // another writer was first, or the cache was behind, and it soon catches up
	firstRetry    = 100 * time.Millisecond
	lastRetry     = 30 * time.Second
)

// said is what is said of an object in its conditions.
type said struct {
	ready, stalled  bool
	reason, message string
	after           time.Duration // when to look again; 0: a watch tells
}

func waiting(message string, after time.Duration) said {
	return said{reason: api.ReasonWaiting, message: message, after: after}
}

func (s Shared) every() time.Duration {
	if s.Every != 0 {
		return s.Every
	}
	return restingLook
}

// soon is when to look again at what is wrong.
func (s Shared) soon() time.Duration { return min(s.every(), blockedLook) }

// conditions say the same in the words of kstatus.
func conditions(before []metav1.Condition, generation int64, what said) []metav1.Condition {
	all := slices.Clone(before)
	set := func(kind string, holds bool) {
		value := metav1.ConditionFalse
		if holds {
			value = metav1.ConditionTrue
		}
		if !holds && kind != api.ConditionReady {
			meta.RemoveStatusCondition(&all, kind)
			return
		}
		meta.SetStatusCondition(&all, metav1.Condition{Type: kind, Status: value, Reason: what.reason, Message: what.message, ObservedGeneration: generation})
	}
	set(api.ConditionReady, what.ready)
	set(api.ConditionReconciling, !what.ready && !what.stalled)
	set(api.ConditionStalled, what.stalled)
	return all
}

// cluster reads the EtcdCluster of an object; nil: there is none, or it is being deleted.
func (s Shared) cluster(ctx context.Context, namespace, name string) (*api.EtcdCluster, error) {
	c := &api.EtcdCluster{}
	err := s.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, c)
	switch {
	case apierrors.IsNotFound(err), err == nil && !c.DeletionTimestamp.IsZero():
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("get EtcdCluster %s: %w", name, err)
	}
	return c, nil
}

// missing is said of an object whose cluster is not there. It may be applied a moment later.
func (s Shared) missing(o client.Object, name string) said {
	what := said{reason: api.ReasonClusterNotFound, message: "there is no EtcdCluster " + name + " in this namespace: create it, or delete this object and create it with the right spec.clusterRef.name"}
	what.after = s.StallAfter - time.Since(o.GetCreationTimestamp().Time)
	if what.after <= 0 {
		what.after, what.stalled = 0, true
	}
	return what
}

// unasked is why the cluster cannot be asked now; empty: it can.
func unasked(c *api.EtcdCluster) string {
	switch {
	case c.Spec.Suspend:
		return "spec.suspend of EtcdCluster " + c.Name + " is true"
	case c.Status.ClusterID == "" || !meta.IsStatusConditionTrue(c.Status.Conditions, api.ConditionAvailable):
		return "EtcdCluster " + c.Name + " is not available"
	default:
		return ""
	}
}

// withoutTLS reports whether the members serve clients in plain text.
func withoutTLS(c *api.EtcdCluster) bool {
	return c.Status.TLS != nil && c.Status.TLS.Client.Mode == api.TLSDisabled
}

// connect to the cluster, where roles and users are of use. what is why that cannot be done; it is
// zero where it can.
func (s Shared) connect(ctx context.Context, c *api.EtcdCluster) (_ membership.Auth, what said) {
	if withoutTLS(c) && unasked(c) == "" {
		return nil, said{stalled: true, reason: api.ReasonInvalidSpec, message: "EtcdCluster " + c.Name + " has no TLS for clients, without which etcd cannot authenticate them: set its spec.tls.client.mode to Managed or Secret"}
	}
	return s.reach(ctx, c)
}

// reach connects to the cluster, also without TLS. It says the same as connect.
func (s Shared) reach(ctx context.Context, c *api.EtcdCluster) (_ membership.Auth, what said) {
	if why := unasked(c); why != "" {
		return nil, waiting("waiting: "+why, 0)
	}
	etcd, err := s.Connect(ctx, c)
	if err != nil {
		log.FromContext(ctx).V(1).Info("No member can be asked", "error", err.Error())
		return nil, waiting("waiting: no member of EtcdCluster "+c.Name+" can be asked now", s.soon())
	}
	return etcd, said{}
}

// failed is what is said where etcd refused an act for now; an error where it is tried again.
func (s Shared) failed(c *api.EtcdCluster, err error) (said, error) {
	if errors.Is(err, membership.ErrDenied) {
		return waiting("waiting: etcd denies access to Quorate (see the conditions of EtcdCluster "+c.Name+")", s.soon()), nil
	}
	return said{}, err
}

// rests is what to say where the cluster cannot be asked: what holds already still does.
func rests(before []metav1.Condition, generation int64, what said) said {
	ready := meta.FindStatusCondition(before, api.ConditionReady)
	if ready != nil && ready.ObservedGeneration == generation && ready.Status == metav1.ConditionTrue && what.reason == api.ReasonWaiting {
		return said{ready: true, reason: ready.Reason, message: ready.Message, after: what.after}
	}
	return what
}

// told is what acts do, in one line.
func told(acts []membership.AuthAct) string {
	return podstatus.Within(membership.JoinActs(acts), mostNote)
}

// mostNote is less than an event has room for.
const mostNote = 512

// tell writes an event of what was done.
func (s Shared) tell(o client.Object, acts []membership.AuthAct) {
	if len(acts) > 0 {
		s.Recorder.Eventf(o, nil, corev1.EventTypeNormal, api.ReasonApplied, "Apply", "%s", "Changed etcd: "+told(acts))
	}
}

// remove an object's role or user from etcd, unless etcd has none of it, and let the object go.
// With the cluster they go as well, which is nil then.
func (s Shared) remove(ctx context.Context, o client.Object, c *api.EtcdCluster, applied bool, remove func(membership.Auth) error) (said, error) {
	if c == nil || !applied {
		return said{}, s.release(ctx, o)
	}
	etcd, what := s.reach(ctx, c)
	if etcd == nil {
		return what, nil
	}
	if err := errors.Join(remove(etcd), etcd.Close()); err != nil {
		return s.failed(c, err)
	}
	return said{}, s.release(ctx, o)
}

// hold writes the finalizer, under the condition that nothing else of the object has changed.
func (s Shared) hold(ctx context.Context, o client.Object) error {
	return s.finalize(ctx, o, func(next client.Object) bool { return controllerutil.AddFinalizer(next, api.FinalizerUsers) })
}

// release removes the finalizer.
func (s Shared) release(ctx context.Context, o client.Object) error {
	return s.finalize(ctx, o, func(next client.Object) bool { return controllerutil.RemoveFinalizer(next, api.FinalizerUsers) })
}

func (s Shared) finalize(ctx context.Context, o client.Object, change func(client.Object) bool) error {
	before, _ := o.DeepCopyObject().(client.Object)
	if !change(o) {
		return nil
	}
	err := s.Client.Patch(ctx, o, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}), client.FieldOwner(api.Manager))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("patch the finalizers: %w", err)
	}
	return nil
}

// older reports whether an object has a name in etcd rather than another one.
func older(a, b client.Object) bool {
	x, y := a.GetCreationTimestamp(), b.GetCreationTimestamp()
	if x.Equal(&y) {
		return a.GetName() < b.GetName()
	}
	return x.Before(&y)
}

// options of a controller of this package.
func options(workers int) controller.Options {
	return controller.Options{
		MaxConcurrentReconciles: workers,
		NewQueue:                fair.NewQueue(workers),
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](firstRetry, lastRetry),
	}
}

// matters are the changes of an EtcdCluster after which its roles and users are looked at.
var matters = predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
	before, _ := e.ObjectOld.(*api.EtcdCluster)
	now, _ := e.ObjectNew.(*api.EtcdCluster)
	return before.Status.ClusterID != now.Status.ClusterID || unasked(before) != unasked(now) || before.HasAuth() != now.HasAuth() ||
		withoutTLS(before) != withoutTLS(now) || !slices.Equal(authorities(before), authorities(now)) || before.DeletionTimestamp.IsZero() != now.DeletionTimestamp.IsZero()
}}

// authorities are those of the clients' port, by their fingerprints: the one that issues, and those
// that are trusted.
func authorities(c *api.EtcdCluster) []string {
	if c.Status.TLS == nil {
		return nil
	}
	return append([]string{c.Status.TLS.Client.Authority}, c.Status.TLS.Client.Trusts...)
}

// goes are the events of an object that leaves its name in etcd to another one.
var goes = predicate.Funcs{
	CreateFunc: func(event.CreateEvent) bool { return false },
	UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetDeletionTimestamp().IsZero() && !e.ObjectNew.GetDeletionTimestamp().IsZero()
	},
}
