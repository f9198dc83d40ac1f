package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
)

// Leader election is no fence: two operators can be alive at once, and a reply can be lost. So what
// disrupts is written down in status.operation before its first effect, under the condition that
// the EtcdCluster has not changed since it was read. An operator that loses this write to another
// one looks again. The one that made it is its holder, until another one makes it: so an operation
// is taken over.

// intentLife is how long an operation keeps others from beginning. A request to etcd has ended by
// then: ours is given up after membership.CallTimeout, and etcd gives up a proposal after seven
// seconds by itself.
const intentLife = 15 * time.Second

// intentRenewal is for how long an operation may be begun again without writing it down again: a
// request that is begun later could outlive it.
const intentRenewal = 5 * time.Second

// etcdTakes is how long etcd may still be at what it was asked for: so long it tries to have a
// proposal committed, 5 s and two elections (ReqTimeout in server/config/config.go), whether the
// one that asked still waits or not.
const etcdTakes = 7 * time.Second

// inTime bounds a request to etcd by the life of its intent: what etcd may still make of it has
// ended when another operation may begin. Where too little is left of that life, it reports
// apply.ErrChanged: the next pass looks again, and rewrites the intent. It goes by our own
// monotonic clock, as others go by theirs.
func (r *Reconciler) inTime(ctx context.Context, c *api.EtcdCluster) (context.Context, context.CancelFunc, error) {
	begun := r.begun(c, time.Now())
	deadline := begun.Add(intentLife - etcdTakes)
	if !time.Now().Before(deadline) {
		if op := c.Status.Operation; op != nil {
			log.FromContext(ctx).Info("Intent is too old for a request to etcd: looking again", "step", op.Step, "age", time.Since(begun).Round(time.Second).String())
		}
		return nil, nil, fmt.Errorf("%w: the intent is too old for a request", apply.ErrChanged)
	}
	ctx, cancel := context.WithDeadline(ctx, deadline)
	return ctx, cancel, nil
}

// errInFlight: another operation was begun, and what comes of it is not known yet.
var errInFlight = errors.New("another operation is under way")

// intend writes the step down, unless that was done before. What is written about a first start
// stays until the cluster has formed.
func (r *Reconciler) intend(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step, uid func(membership.Instance) string) error {
	operation := &api.Operation{Step: string(step.Action), Generation: c.Generation, MemberID: step.ID.String(), Holder: r.identity}
	for _, i := range seen.Instances {
		if step.Action == membership.Bootstrap && step.First.Has(i.Ordinal) || slices.Contains(step.Members, i.Name) {
			operation.Targets = append(operation.Targets, api.OperationTarget{Member: i.Name, UID: uid(i)})
		}
	}
	for _, name := range step.Members {
		if _, known := seen.Instance(name); !known { // a member to come that has no volume
			operation.Targets = append(operation.Targets, api.OperationTarget{Member: name})
		}
	}
	// Others may create Pods and claims that look like members'. What has no room is done later.
	operation.Targets = operation.Targets[:min(len(operation.Targets), mostRemembered)]
	age := time.Since(r.begun(c, time.Now()))
	if op := pendingOperation(c.Status.Operation, seen, age); op != nil {
		same := sameOperation(op, operation)
		switch {
		case op.Step == string(membership.Bootstrap) || same && op.Holder == r.identity && step.Action != membership.Stop && age < intentRenewal:
			return nil // not so a Stop, before which there is no second look: that the write succeeds shows that the spec is the newest
		case !same && op.Step != string(membership.Stop) && r.inFlight(c, op):
			return errInFlight
		}
	}
	now := time.Now()
	operation.Since = &metav1.Time{Time: now}          // to the nanosecond: it is sent, and fails on an old view, even if it says the same
	begun := now.Add(-time.Duration(now.Nanosecond())) // on the monotonic clock still; others go by whole seconds
	r.intents.begun(c, operation, begun, now)          // before it is written: the answer may be lost, and our clock may be set
	intended := *c.Status.DeepCopy()
	if step.ChangesMembership() { // what is about to be done is told with it, and nothing is left to tell afterwards
		intended = status(c, seen, step)
	}
	intended.Operation = operation
	intended.NextOrdinal = high(c, seen, step)
	return r.report(ctx, c, intended)
}

// intended reports whether the step is written down, of this spec, and may still have to be carried
// out.
func (r *Reconciler) intended(c *api.EtcdCluster, seen observed, step membership.Step) bool {
	op := pendingOperation(c.Status.Operation, seen, time.Since(r.begun(c, time.Now())))
	is := func(t api.OperationTarget) bool { return slices.Contains(step.Members, t.Member) }
	return op != nil && op.Step == string(step.Action) && op.Generation == c.Generation && slices.ContainsFunc(op.Targets, is)
}

// inFlight reports whether the operation may still take effect: it is another operator's, or one of
// ours to which etcd has not answered. What we have an answer to is either done, which shows, or
// was refused.
func (r *Reconciler) inFlight(c *api.EtcdCluster, op *api.Operation) bool {
	of, _ := r.unanswered.Load(client.ObjectKeyFromObject(c))
	return op.Holder != r.identity || of == c.UID
}

// settle remembers whether etcd has answered.
func (r *Reconciler) settle(c *api.EtcdCluster, err error) {
	if err == nil || errors.Is(err, membership.ErrLater) && !errors.Is(err, membership.ErrUnanswered) {
		r.unanswered.Delete(client.ObjectKeyFromObject(c))
	} else {
		r.unanswered.Store(client.ObjectKeyFromObject(c), c.UID)
	}
}

// high is the high-water mark of ordinals, with those that the step brings into being.
func high(c *api.EtcdCluster, seen observed, step membership.Step) int32 {
	next := nextOrdinal(c, seen.Instances)
	for _, name := range step.Members {
		if n, ours := c.Ordinal(name); ours {
			next = max(next, n+1)
		}
	}
	return int32(next)
}

// sameOperation reports whether two operations are the same request. One that names a member by its
// ID is so whatever has become of the volume: a member that loses both volume and Pod is removed
// while they go, and its reply may be lost with its process.
func sameOperation(a, b *api.Operation) bool {
	return a.Step == b.Step && a.MemberID == b.MemberID && (a.MemberID != "" || equality.Semantic.DeepEqual(a.Targets, b.Targets))
}

// pendingOperation is the operation as long as it may still have an effect: a first start until the
// cluster has formed, and another one until its effect is seen or its life is over. age is how long
// ago it counts as begun (Reconciler.begun), whatever its own time says.
func pendingOperation(op *api.Operation, seen observed, age time.Duration) *api.Operation {
	switch {
	case op == nil:
		return nil
	case op.Step == string(membership.Bootstrap):
		if seen.Formed() {
			return nil
		}
		return op
	case op.Since == nil || age > intentLife ||
		!slices.ContainsFunc(op.Targets, func(t api.OperationTarget) bool { return !done(op, t, seen) }):
		return nil
	default:
		return op
	}
}

// done reports whether the effect of an operation on a target is there.
func done(op *api.Operation, t api.OperationTarget, seen observed) bool {
	i, _ := seen.Instance(t.Member)
	member := seen.Member(membership.ParseID(op.MemberID))
	listed := seen.Reach == membership.ReachQuorum
	switch membership.Action(op.Step) {
	case membership.Stop:
		return i.Pod.UID != t.UID || i.Pod.Terminating
	case membership.Update:
		asked := op.Generation == seen.generation // what the spec does not ask for any more may still be done
		return i.Pod.UID != t.UID || i.Pod.Terminating || i.Pod.Changing || i.Pod.Change == membership.ChangeNone && asked
	case membership.PutBack:
		return i.Pod.UID != t.UID || i.Pod.Terminating || !i.Pod.Changing && len(i.Pod.Untried) == 0 && i.Volume.Next == (membership.Version{})
	case membership.Downgrade:
		return downgrading(seen)
	case membership.CancelDowngrade:
		return listed && !downgrading(seen)
	case membership.Discard:
		return i.Volume.UID != t.UID || i.Volume.Terminating || i.Volume.Retired
	case membership.AddLearner:
		return seen.Member(i.ID) != nil
	case membership.Promote:
		return listed && (member == nil || !member.Learner)
	case membership.Remove:
		return listed && member == nil
	case membership.MoveLeader:
		return listed && (member == nil || i.Leads())
	default:
		return true
	}
}

// downgrading reports whether any member tells of a downgrade.
func downgrading(seen observed) bool {
	return slices.ContainsFunc(seen.Instances, func(i membership.Instance) bool {
		return i.Endpoint.Downgrade != (membership.Version{})
	})
}

func volumeUID(i membership.Instance) string { return i.Volume.UID }
func podUID(i membership.Instance) string    { return i.Pod.UID }
