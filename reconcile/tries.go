package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "quorate.dev/api/v1alpha1"
)

// try asks the API server what it says to something that a step would ask for, and makes nothing
// (dry run).
type try struct {
	of string // what is asked for, as a message names it
	// ask runs beside the other tries of a look, and changes nothing that they read.
	ask func(ctx context.Context) error
	// learn adds the answer to the facts, and returns it where it shows nothing. All answers are
	// there by then, and the tries of a look learn in their order: which was answered first makes
	// no difference.
	learn func(seen *observed, answer error) error
}

// unanswered is a try that has shown nothing, and why.
type unanswered struct {
	of  string
	why error
}

// tryFor bounds all tries of one look. A webhook may hang for 30 s, and what is decided by a look
// is done within 8 s of its intent (inTime), with another look in between. A restore in place
// begins only when all of its tries were answered. Where the API server is busy, each takes some
// hundred milliseconds, so they are made side by side.
const tryFor = 3 * time.Second

// mostTries are made at a time: those for nine members and for a restore in place are, so that
// none of them waits for another one that hangs.
const mostTries = 16

// tries makes all tries of a look.
func (r *Reconciler) tries(ctx context.Context, c *api.EtcdCluster, seen *observed) {
	missing := askAll(ctx, seen, slices.Concat(r.tryInPlace(c, seen), r.tryGrowth(c, *seen), r.tryImage(c, *seen), r.tryResize(c, *seen)))
	seen.inconclusive = len(missing) > 0
	for _, m := range missing { // what it would tell is not known: no reason to leave a member down, nor the status as it is
		log.FromContext(ctx).Info("Dry run shows nothing", "of", m.of, "error", m.why.Error())
	}
}

// askAll makes tries, and returns those that have shown nothing.
func askAll(ctx context.Context, seen *observed, tries []try) []unanswered {
	ctx, cancel := context.WithTimeout(ctx, tryFor)
	defer cancel()
	all := make([]error, len(tries))
	slots := make(chan struct{}, mostTries)
	var asking taskGroup
	for n, t := range tries {
		slots <- struct{}{}
		asking.do(func() {
			defer func() { <-slots }()
			all[n] = t.ask(ctx)
		})
	}
	asking.wait()
	var missing []unanswered
	for n, t := range tries {
		if why := t.learn(seen, all[n]); why != nil {
			missing = append(missing, unanswered{t.of, why})
		}
	}
	return missing
}

// dryRun asks the API server what it says to an object, and makes nothing.
func (r *Reconciler) dryRun(ctx context.Context, object runtime.ApplyConfiguration) error {
	return r.Client.Apply(ctx, object, client.FieldOwner(api.Manager), client.ForceOwnership, client.DryRunAll)
}

// inconclusive is why a try shows nothing. What the API server has against the thing itself is told
// when it is asked for in earnest, and so is what cannot be rendered.
func inconclusive(err error) error {
	var invalid *invalidError
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) || apierrors.IsConflict(err) || errors.As(err, &invalid) {
		return nil
	}
	return err
}
