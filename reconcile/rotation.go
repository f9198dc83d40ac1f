package reconcile

import (
	"fmt"
	"strings"
	"time"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/pki"
)

// A rotation replaces the certificate authority of a port in three steps. Each step begins with one
// write of the authority's Secret. The state of a rotation is in that Secret, in the Pods and in
// the certificates that members present, so that it survives a restart of the operator.
//
//  1. TrustBoth: next.crt holds the new authority. tls.crt, the former one, still issues. ca.crt
//     has both.
//  2. Reissue: the new authority is in tls.crt and issues. previous.crt holds the former one.
//     ca.crt still has both.
//  3. TrustNew: previous.crt is empty. tls.crt issues, and ca.crt has only the new authority.
//
// etcd reads ca.crt only when it starts. So in the first and the last step the planner recreates
// the Pods, as it does after a change of the spec (render.PartClientTrust).
//
// If the new authority is lost in step Reissue, a rotation to another one begins, and previous.crt
// stays in ca.crt until that one ends. If the authority that issues has expired, all certificates
// that it issued have expired too, and no step waits: the planner recreates at once all Pods that
// trust nothing else (membership.Pod.Expired).

// rotationMove is the next write of a rotation to the authority's Secret.
type rotationMove string

// The moves.
const (
	moveNone    rotationMove = ""
	moveBegin   rotationMove = "Begin"   // make the next authority
	moveMark    rotationMove = "Mark"    // record since when all Secrets of this step are written
	moveForget  rotationMove = "Forget"  // take that back: one of an EtcdUser is still to be written
	moveReissue rotationMove = "Reissue" // let the next authority issue
	moveFinish  rotationMove = "Finish"  // stop trusting the former authority
)

// rotationFacts are what a rotation depends on.
type rotationFacts struct {
	// Step that the Secret of the authority is in: TrustBoth, Reissue or, where no rotation is
	// under way or the last step of one, empty.
	Step api.RotationStep
	// Asked is rotateAuthority of the spec. Done is its value when the last rotation began.
	Asked, Done string
	// Due: a rotation is to begin without a request of the spec, for example because a third of the
	// authority's validity is left. Expired: the authority that issues has expired. FormerExpired:
	// the former authorities have expired.
	Due, Expired, FormerExpired bool
	// Suspended: no Secret is written (spec.suspend, or the EtcdCluster is being deleted).
	Suspended bool
	// SecretsWritten: all Secrets of the port hold the certificates of this step. Reported: the
	// status names the authority that issues.
	SecretsWritten, Reported bool
	// Users are the EtcdUsers of which the Secret with the certificate is not yet of this step.
	// Underway: the status says that a rotation is.
	Users    []string
	Underway bool
	// Since is when all Secrets of this step were written; zero where that is not recorded. Wait is
	// how long applications have from then on to read them (spec.tls.client.rotationWait).
	Since time.Time
	Wait  time.Duration
	Now   time.Time
	// Members are all members that have a Pod or are in the status.
	Members []memberTrust
}

// memberTrust is which authorities a member trusts, and whether it was seen to.
type memberTrust struct {
	Name string
	// Exists: the member has a Pod. Trusts: that Pod was created with the ca.crt that the Secrets
	// hold now.
	Exists, Trusts bool
	// Problem is why the member does not present a certificate of the new authority yet, or does
	// not accept one; empty where it does both, or was not asked.
	Problem string
}

// rotationState is what nextRotation decides.
type rotationState struct {
	Move rotationMove
	// Step is the step that is under way; empty: no rotation is. Waits says what it waits for.
	Step  api.RotationStep
	Waits string
	// Again is when to look again at the latest; zero: the next look needs no date of its own.
	Again time.Time
}

// nextRotation decides the next write of a rotation. It is pure.
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

// atRest decides where no rotation is under way, or its last step is.
func (f rotationFacts) atRest(s rotationState) rotationState {
	if f.Expired {
		s.Move = moveBegin
		return s
	}
	if waits := f.recreated(); waits != "" {
		s.Step, s.Waits, s.Again = api.RotationTrustNew, waits, f.Now.Add(rotationLook)
		return s
	}
	switch {
	case f.SecretsWritten && (f.Asked != "" && f.Asked != f.Done || f.Due):
		s.Move = moveBegin
	case f.Underway && len(f.Users) > 0: // they trust the former authority still
		s.Step, s.Waits, s.Again = api.RotationTrustNew, f.usersWait(), f.Now.Add(rotationLook)
	}
	return s
}

func (f rotationFacts) trustBoth(s rotationState) rotationState {
	if f.Expired { // all certificates that the former authority issued have expired too
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
	case f.FormerExpired: // certificates of the former authority have expired: no application uses them
		f.Wait = 0
	}
	s = f.awaited(s, moveFinish, "their certificate")
	if s.Move == moveFinish && !f.Reported { // else an old Secret from a backup would pass for the current one
		s.Move, s.Again, s.Waits = moveNone, f.Now, "waiting for the status to name the new authority"
	}
	return s
}

// awaited waits, in this order, until the Secrets are written, those of EtcdUsers as well, until
// each Pod was created with the ca.crt in them, until applications have had time to read the files,
// and until each member presents and accepts certificates of the new authority. Then it returns the
// given move.
func (f rotationFacts) awaited(s rotationState, then rotationMove, read string) rotationState {
	s.Again = f.Now.Add(rotationLook)
	recreated, end := f.recreated(), f.Since.Add(f.Wait)
	switch {
	case !f.SecretsWritten:
		s.Waits = "waiting for the Secrets with certificates to be written"
	case len(f.Users) > 0:
		s.Waits = f.usersWait()
		if !f.Since.IsZero() { // their applications have the same time
			s.Move = moveForget
		}
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

func (f rotationFacts) usersWait() string {
	return "waiting for the certificates of these EtcdUsers to be written (their conditions say what is missing): " + strings.Join(f.Users, ", ")
}

// recreated says which Pods are still to be recreated or created; empty: none.
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
		if f.FormerExpired {
			how = "at once, since the authorities that they trust have expired"
		}
		parts = append(parts, "waiting for the Pods of "+strings.Join(pods, ", ")+" to be recreated, "+how)
	}
	if len(missing) > 0 {
		parts = append(parts, "waiting for the Pods of "+strings.Join(missing, ", ")+" to be created")
	}
	return strings.Join(parts, "; ")
}

// problems says why members are not ready for the next step; empty: all are.
func (f rotationFacts) problems() string {
	members := map[string][]string{} // by problem
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

// rotationWait is spec.tls.client.rotationWait, by default a week. Many applications read ca.crt
// and their certificate only when they start.
func rotationWait(c *api.EtcdCluster) time.Duration {
	if c.Spec.TLS != nil && c.Spec.TLS.Client != nil && c.Spec.TLS.Client.RotationWait != nil {
		if d, err := time.ParseDuration(string(*c.Spec.TLS.Client.RotationWait)); err == nil { // the schema refuses others
			return d
		}
	}
	return 7 * 24 * time.Hour
}
