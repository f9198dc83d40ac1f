package reconcile

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/podstatus"
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
	seen.silence = r.silences.lasting(client.ObjectKeyFromObject(c), missing, r.StallAfter, time.Now())
	if seen.silence != "" && seen.InPlace.Passes {
		seen.InPlace.Problem = seen.silence
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

// silences remembers which tries the API server does not answer, look after look. It is for
// messages alone, and an operator that has just started tells later.
type silences struct {
	mu sync.Mutex
	of map[types.NamespacedName]silence
}

// silence of the API server in all looks at a cluster since then.
type silence struct {
	since time.Time
	tries map[string]silentTry // by what is asked for
}

type silentTry struct {
	said string // at first: each later error may have other words
	last time.Time
}

// namedFor is how long a try is named since it was last not answered: longer than looks are apart,
// so that the text stays the same where now this one and now that one is not.
const namedFor = 4 * lastRetry

// lasting tells what was not answered, where looks have missed answers for so long; else empty.
func (s *silences) lasting(key types.NamespacedName, missing []unanswered, patience time.Duration, now time.Time) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(missing) == 0 {
		delete(s.of, key)
		return ""
	}
	if s.of == nil {
		s.of = map[types.NamespacedName]silence{}
	}
	if _, known := s.of[key]; !known {
		s.of[key] = silence{since: now, tries: map[string]silentTry{}}
	}
	tries := s.of[key].tries
	for _, m := range missing {
		t := tries[m.of]
		if t.last = now; t.said == "" {
			t.said = m.why.Error()
		}
		tries[m.of] = t
	}
	var named []string
	for of, t := range tries {
		if now.Sub(t.last) > namedFor {
			delete(tries, of)
			continue
		}
		named = append(named, of)
	}
	if now.Sub(s.of[key].since) < patience {
		return ""
	}
	slices.Sort(named)
	return podstatus.Clause("the API server does not answer for "+strings.Join(named, ", ")+", and is asked again (dry run)", tries[named[0]].said)
}

func (s *silences) forget(key types.NamespacedName) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.of, key)
}

// told adds to what is shown of a step for how much the API server does not answer: not all is
// well then, and what is waited for may depend on it.
func (seen observed) told(step membership.Step) membership.Step {
	switch {
	case seen.silence == "", step.Reason == membership.Reason(api.ReasonRefused): // that is told again later as it is
	case step.Action == membership.None && step.Reason == membership.Healthy:
		return membership.Step{Action: membership.Wait, Reason: membership.Reason(api.ReasonApplyFailed), Message: seen.silence}
	case step.Action != membership.None:
		step.Message += "; " + seen.silence
	}
	return step
}
