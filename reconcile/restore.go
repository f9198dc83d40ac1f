package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// A cluster with spec.bootstrap.restore, or one that is restored in place, starts from a stored
// snapshot. A Job finds it, its name and hash are written to status.restored and onto the volumes
// before any Pod is made, and an init container makes the data of each first member of that.

// snapshotFacts is a snapshot as the planner sees it.
func snapshotFacts(s *api.RestoredSnapshot) membership.Snapshot {
	if s == nil {
		return membership.Snapshot{}
	}
	facts := membership.Snapshot{Name: s.Name, SHA256: s.SHA256, Size: s.Size, Encrypted: s.Encrypted}
	if version, err := membership.ParseVersion(s.EtcdVersion); err == nil {
		facts.Version = version
	}
	switch {
	case api.MemberOf(s.Name) != "" && s.Revision > 0:
		facts.About = fmt.Sprintf("revision %d at least", s.Revision)
	case s.TakenAt != nil:
		facts.About = fmt.Sprintf("revision %d, taken %s", s.Revision, s.TakenAt.UTC().Format(time.RFC3339))
	}
	return facts
}

// restoredFrom is what the status is to say where it does not say from what the cluster was
// started: what was chosen in this step, or what the volumes say.
func restoredFrom(seen observed, step membership.Step) *api.RestoredSnapshot {
	if step.Action == membership.Choose {
		return seen.found
	}
	for _, i := range seen.Instances {
		if i.Volume.Stays() && i.Volume.First.Snapshot != "" {
			s := membership.ParseSnapshot(i.Volume.First.Snapshot)
			return &api.RestoredSnapshot{Name: s.Name, SHA256: s.SHA256}
		}
	}
	return nil
}

// searches reports whether a snapshot is looked for: a new cluster is to start from it, or it is to
// be restored in place.
func searches(c *api.EtcdCluster, seen observed) bool {
	if c.RestoreSource() == nil || size(c) == 0 || !c.DeletionTimestamp.IsZero() {
		return false
	}
	if c.Status.Restore.Asked() && c.Status.ClusterID != "" {
		return seen.Formed() && !membership.InPlaceRefused(seen.Observed)
	}
	return c.Status.Restored == nil && !seen.Formed()
}

// searched looks at what has come of the search, where there is one.
func (r *Reconciler) searched(ctx context.Context, c *api.EtcdCluster, seen *observed) error {
	if !searches(c, *seen) {
		return nil
	}
	if fromPlan(c, seen) {
		return nil
	}
	defer asPlanned(c, seen)
	if r := c.Status.Restore; r.Asked() && r.Survivor != nil {
		seen.found, seen.InPlace.Problem = survivor(c, seen.Observed)
		seen.Search.Begun, seen.Search.Found = seen.found != nil, snapshotFacts(seen.found)
		return nil
	}
	want, err := render.FindJob(c, r.AgentImage)
	if err != nil {
		return nil // it is told where the Job is to be made
	}
	job, pods, err := r.jobOf(ctx, c, want)
	if job == nil || err != nil {
		return err
	}
	seen.Search.Begun = true
	stallBefore := time.Now().Add(-r.StallAfter)
	seen.Search.Problem = podless(job, pods, stallBefore)
	for n := range pods {
		pod := &pods[n]
		result := agentResult(pod, render.ContainerFind)
		if m := result.Manifest; m != nil && result.Failure == nil && fitsStatus(membership.Snapshot{Name: m.Name, SHA256: m.SHA256}) {
			seen.found = found(c, *m, result.Verification)
			seen.Search.Found = snapshotFacts(seen.found)
		}
		seen.Search.Problem = cmp.Or(seen.Search.Problem, searchProblem(c, pod, result, stallBefore))
	}
	if seen.found != nil {
		seen.Search.Problem = ""
	}
	return nil
}

// found is a snapshot as its manifest describes it.
func found(c *api.EtcdCluster, m podstatus.Manifest, v *podstatus.Verification) *api.RestoredSnapshot {
	s := &api.RestoredSnapshot{
		Name: m.Name, SHA256: m.SHA256, Location: render.Location(c.RestoreStore(), m.Object), ClusterID: m.ClusterID,
		EtcdVersion: m.EtcdVersion, Revision: m.Revision, Size: m.Size, Encrypted: m.Encrypted,
	}
	if _, err := membership.ParseVersion(s.EtcdVersion); err != nil {
		s.EtcdVersion = "" // it may be longer than the status has room for
	}
	taken := metav1.NewTime(m.TakenAt.UTC().Truncate(time.Second))
	s.TakenAt = &taken
	if v != nil {
		at := metav1.NewTime(v.At.UTC().Truncate(time.Second))
		s.VerifiedAt = &at
	}
	return s
}

// searchProblem is why nothing was found: what the agent has said, or why its Pod does not start.
func searchProblem(c *api.EtcdCluster, pod *corev1.Pod, result podstatus.Result, stallBefore time.Time) string {
	if failure := result.Failure; failure != nil {
		problem := failure.Message
		r := c.Status.Restore
		switch {
		case failure.Reason == reasonNotFound && r.Asked() && r.OnQuorumLoss:
			problem += "; without a person, Quorate restores only a verified snapshot of this etcd cluster, and none of an earlier one of its name. To restore another snapshot, delete EtcdRestore " + r.Name + ", and apply one of your own, with spec.source.snapshot: docs/restore.md#automatically"
		case failure.Reason == reasonNotFound && c.RestoreSource().Unverified != api.UnverifiedAllow:
			problem += "; only a verified one is taken: verify it (quorate snapshot verify), or " + allowUnverified(c)
		}
		if failure.Reason == reasonIdentity {
			problem += "; " + whichIdentity(c)
		}
		return problem
	}
	return notStarted(pod, stallBefore)
}

// allowUnverified is what to do for a snapshot to be taken that was not verified. The spec of an
// EtcdRestore cannot be changed.
func allowUnverified(c *api.EtcdCluster) string {
	if r := c.Status.Restore; r != nil && c.RestoreSource() == &r.Source {
		return "delete EtcdRestore " + r.Name + ", and apply it again with spec.source.unverified Allow"
	}
	return "set spec.bootstrap.restore.unverified to Allow"
}

// whichIdentity says where the identity comes from that does not decrypt the snapshot, and how to
// correct it. spec.source of an EtcdRestore cannot be changed.
func whichIdentity(c *api.EtcdCluster) string {
	identity, r := c.RestoreIdentity(), c.Status.Restore
	if identity == nil { // it was taken out of the spec a moment ago
		return "the Job is recreated"
	}
	from, instead := "spec.backup.identity of the EtcdCluster", "or name another Secret in that field"
	switch {
	case c.RestoreSource().Identity == nil:
	case r != nil && c.RestoreSource() == &r.Source:
		from, instead = "spec.source.identity of EtcdRestore "+r.Name, "or delete that EtcdRestore, and apply it again with another Secret"
	default:
		from = "spec.bootstrap.restore.identity"
	}
	return fmt.Sprintf("the identity comes from Secret %s, key identity.txt (%s): put the right identity there, %s", identity.SecretRef.Name, from, instead)
}

// Reasons of the agent: the snapshot does not exist; the identity does not decrypt it, or does not
// exist.
const (
	reasonNotFound = "NotFound"
	reasonIdentity = "Identity"
)

// find begins the search: it creates the Job, or makes room for it where there is one of another
// search.
func (r *Reconciler) find(ctx context.Context, c *api.EtcdCluster, step membership.Step) error {
	if r.AgentImage == "" {
		return &invalidError{errNoAgentImage}
	}
	want, err := render.FindJob(c, r.AgentImage)
	if err != nil {
		return &invalidError{err}
	}
	return r.beginJob(ctx, c, step, want)
}

// choose writes down the snapshot that was found, under the condition that the EtcdCluster has not
// changed since it was read: what was chosen before stays.
func (r *Reconciler) choose(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	if c.Status.Restored != nil {
		return apply.ErrChanged
	}
	if err := r.report(ctx, c, status(c, seen, step)); err != nil {
		return err
	}
	r.event(c, step, step.Message)
	return nil
}
