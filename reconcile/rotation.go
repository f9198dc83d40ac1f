package reconcile

import (
	"fmt"
	"strings"
	"time"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/pki"
)

// A rotation gives a plane another authority in three steps, each of which begins with one write of
// the Secret of the authority. What that Secret says, what Pods were made to trust and what members
// show is all that counts, so that nothing is lost with the operator.
//
//  1. TrustBoth: next.crt is there beside tls.crt. tls.crt issues, and ca.crt everywhere has both.
//  2. Reissue: next.crt has become tls.crt, which issues, and the former one is previous.crt.
//     ca.crt is as before.
//  3. TrustNew: previous.crt is empty. tls.crt issues, and ca.crt has it alone.
//
// etcd reads what it trusts at its start alone. So in the first and the last step the planner
// recreates the Pods, like those of which the spec has changed (render.PartClientTrust).
//
// Where the one that issues is lost in step Reissue, a rotation begins again, and previous.crt
// stays in ca.crt until its end. Where it has expired, nothing that it has issued is good for
// anything, and no step waits: the planner recreates all Pods at once that trust nothing else
// (membership.Pod.Expired).

// rotationMove is what is to be written for a rotation to go on.
type rotationMove string

// The moves.
const (
	moveNone    rotationMove = ""
	moveBegin   rotationMove = "Begin"   // make the next authority
	moveMark    rotationMove = "Mark"    // note since when applications can read what they need
	moveReissue rotationMove = "Reissue" // let the next authority issue
	moveFinish  rotationMove = "Finish"  // trust the former authority no more
)

// rotationFacts are what a rotation depends on.
type rotationFacts struct {
	// Step that the Secret of the authority is in: TrustBoth, Reissue or, where no rotation is
	// under way or the last step of one, empty.
	Step api.RotationStep
	// Asked is what the spec asks for, and Done what the last rotation began with.
	Asked, Done string
	// Due: the authority is to be rotated by its age. Expired: it has expired, and so has all that
	// it has issued. Outlived: so have those before it that are still trusted.
	Due, Expired, Outlived bool
	// Suspended: nothing is to be written.
	Suspended bool
	// Published: all Secrets of the plane hold what they are to hold in this step. Reported: the
	// status names the authority that issues.
	Published, Reported bool
	// Since when that is so, as far as it is written down; Wait is how long applications have from
	// then on.
	Since time.Time
	Wait  time.Duration
	Now   time.Time
	// Members are those that may run, and those that the status knows.
	Members []memberTrust
}

// memberTrust is what is known of the trust of a member.
type memberTrust struct {
	Name string
	// Exists: it has a Pod. Trusts: that was made to trust what the Secrets say now.
	Exists, Trusts bool
	// Problem is why it has not shown a certificate of the newer authority yet, or has not accepted
	// one; empty where it has done both, or was not asked.
	Problem string
}

// rotationState is what comes of the facts.
type rotationState struct {
	Move rotationMove
	// Step is under way; empty: no rotation is. Waits is for what.
	Step  api.RotationStep
	Waits string
	// Again is when to look again, at the latest; zero where it makes no difference.
	Again time.Time
}

// nextRotation decides what is next for a rotation.
func nextRotation(f rotationFacts) rotationState {
	s := rotationState{Step: f.Step}
	switch f.Step {
	case api.RotationTrustBoth:
		s = f.trustBoth(s)
	case api.RotationReissue:
		s = f.reissue(s)
	default:
		s = f.atRest(s)
	}
	if s.Move != moveNone && f.Suspended {
		s.Move, s.Again = moveNone, time.Time{}
		if s.Step != "" {
			s.Waits = "it goes on when spec.suspend is false"
		}
	}
	return s
}

// atRest is before a rotation, or in its last step.
func (f rotationFacts) atRest(s rotationState) rotationState {
	if f.Expired {
		s.Move = moveBegin
		return s
	}
	if waits := f.recreated(); waits != "" {
		s.Step, s.Waits, s.Again = api.RotationTrustNew, waits, f.Now.Add(rotationLook)
		return s
	}
	if f.Published && (f.Asked != "" && f.Asked != f.Done || f.Due) {
		s.Move = moveBegin
	}
	return s
}

func (f rotationFacts) trustBoth(s rotationState) rotationState {
	if f.Expired { // what the former one has issued is good for nothing any more
		s.Move = moveReissue
		return s
	}
	return f.awaited(s, moveReissue, "ca.crt")
}

func (f rotationFacts) reissue(s rotationState) rotationState {
	switch {
	case f.Expired:
		s.Move = moveBegin
		return s
	case f.Outlived: // applications connect with another certificate, or not at all
		f.Wait = 0
	}
	s = f.awaited(s, moveFinish, "their certificate")
	if s.Move == moveFinish && !f.Reported { // a Secret of before could not be told from a newer one
		s.Move, s.Again, s.Waits = moveNone, f.Now, "waiting for the status to name the new authority"
	}
	return s
}

// awaited is what a step waits for before the next one: that the Secrets are written, that each
// member was made to trust them, that applications have had time to read the files, and that each
// member has shown that it is ready.
func (f rotationFacts) awaited(s rotationState, then rotationMove, read string) rotationState {
	s.Again = f.Now.Add(rotationLook)
	recreated, end := f.recreated(), f.Since.Add(f.Wait)
	switch {
	case !f.Published:
		s.Waits = "waiting for the Secrets with certificates to be written"
	case f.Wait > 0 && (f.Since.IsZero() || f.Since.After(f.Now)): // a clock was ahead
		s.Move = moveMark
	case recreated != "":
		s.Waits = recreated
	case f.Wait > 0 && f.Now.Before(end):
		s.Waits = fmt.Sprintf("applications have until %s to read %s again (spec.tls.client.rotationWait is %s)", pki.Instant(end), read, f.Wait)
		s.Again = end
	case f.problems() != "":
		s.Waits = f.problems()
	default:
		s.Move, s.Again = then, time.Time{}
	}
	return s
}

// recreated is which Pods are to be recreated; empty where none is.
func (f rotationFacts) recreated() string {
	var pods, missing []string
	for _, m := range f.Members {
		switch {
		case !m.Exists:
			missing = append(missing, m.Name)
		case !m.Trusts:
			pods = append(pods, m.Name)
		}
	}
	var parts []string
	if len(pods) > 0 {
		how := "one after the other"
		if f.Outlived {
			how = "at once, since all that they trust has expired"
		}
		parts = append(parts, "waiting for the Pods of "+strings.Join(pods, ", ")+" to be recreated, "+how)
	}
	if len(missing) > 0 {
		parts = append(parts, "waiting for the Pods of "+strings.Join(missing, ", ")+" to be created")
	}
	return strings.Join(parts, "; ")
}

// problems are those of the members that have not shown yet that they are ready.
func (f rotationFacts) problems() string {
	members := map[string][]string{} // that have it
	var problems []string
	for _, m := range f.Members {
		if m.Problem == "" {
			continue
		}
		if members[m.Problem] == nil {
			problems = append(problems, m.Problem)
		}
		members[m.Problem] = append(members[m.Problem], m.Name)
	}
	all := make([]string, 0, len(problems))
	for _, problem := range problems {
		have := strings.Join(members[problem], ", ")
		if len(members[problem]) > 1 {
			have = "each of " + have
		}
		all = append(all, have+" "+problem)
	}
	return strings.Join(all, "; ")
}

// rotationLook is how often a rotation that waits for members is looked at.
const rotationLook = 5 * time.Second

// rotationWait is spec.tls.client.rotationWait, by default a week: applications are restarted now
// and then, and many read what they trust only then.
func rotationWait(c *api.EtcdCluster) time.Duration {
	if c.Spec.TLS != nil && c.Spec.TLS.Client != nil && c.Spec.TLS.Client.RotationWait != nil {
		if d, err := time.ParseDuration(string(*c.Spec.TLS.Client.RotationWait)); err == nil { // the schema refuses others
			return d
		}
	}
	return 7 * 24 * time.Hour
}
