package reconcile

import (
	"context"
	"errors"
	"fmt"

	batchv1 "k8s.io/api/batch/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// tryInPlace asks the API server for what the search and the first of the new members will need:
// what is refused is told before any member is stopped. So is a quota that does not admit all of
// them.
func (r *Reconciler) tryInPlace(c *api.EtcdCluster, seen *observed) []try {
	why, _ := membership.InPlaceWaits(desired(c), seen.Observed)
	if !c.Status.Restore.Asked() || seen.deleted || why != "" || planShown(c, *seen) {
		return nil
	}
	if r.AgentImage == "" {
		seen.InPlace.Problem = errNoAgentImage.Error()
		return nil
	}
	if !seen.Search.Begun {
		return r.trySearch(c, seen)
	}
	if seen.Search.Found == (membership.Snapshot{}) {
		return nil
	}
	restored := c.DeepCopy()
	restored.Status = replacing(c, *seen, membership.Step{Action: membership.Replace})
	tries, err := r.tryFirstMember(restored, *seen)
	if err != nil {
		seen.InPlace.Problem = err.Error()
		return nil
	}
	return append(tries, r.tryQuotas(restored, *seen))
}

// holdUp says why a restore in place cannot be begun. What a person must do outranks what passes,
// and what was said first stays.
func (seen *observed) holdUp(problem string, passes bool) {
	if p := &seen.InPlace; p.Problem == "" || p.Passes && !passes {
		p.Problem, p.Passes = problem, passes
	}
}

// needed takes down what the API server says to something that a restore in place needs.
func needed(what string) func(*observed, error) error {
	return func(seen *observed, answer error) error {
		foreign, taken := errors.AsType[*foreignError](answer)
		switch {
		case answer == nil:
		case taken:
			seen.holdUp(foreign.Error(), false)
		case refuses(answer):
			seen.holdUp(podstatus.Clause("the API server refuses "+what, answer.Error()), false)
		default:
			seen.holdUp("the API server did not say whether it accepts "+what+"; it is asked again", true)
			return answer
		}
		return nil
	}
}

// neededByMembers is needed for what the new members need.
var neededByMembers = needed("what the new members need")

// trySearch finds out why the search for the snapshot cannot be begun: what heals the cluster must
// not wait for it.
func (r *Reconciler) trySearch(c *api.EtcdCluster, seen *observed) []try {
	want, err := render.FindJob(c, r.AgentImage)
	if err != nil {
		seen.InPlace.Problem = err.Error()
		return nil
	}
	ask := func(ctx context.Context) error {
		job := &batchv1.Job{}
		err := r.Reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: *want.Name}, job)
		if err == nil {
			if foreign, ok := errors.AsType[*foreignError](applicable(c, job, "Job")); ok {
				return foreign
			}
			return nil
		}
		if !apierrors.IsNotFound(err) {
			return fmt.Errorf("get Job %s: %w", *want.Name, err)
		}
		return r.dryRun(ctx, want.WithResourceVersion(apply.OnlyIfAbsent))
	}
	return []try{{"Job " + *want.Name, ask, needed("the Job that looks for the snapshot")}}
}

func (r *Reconciler) tryFirstMember(c *api.EtcdCluster, seen observed) ([]try, error) {
	if err := valid(c, seen); err != nil {
		return nil, err
	}
	d := desired(c)
	f := membership.First{Token: d.Token, Size: firstSize(c), Base: d.Base, Snapshot: snapshotFacts(c.Status.Restored).ID()}
	m := render.Member{Name: c.MemberName(f.Base), Version: d.Version.String(), AgentImage: r.AgentImage}
	begins(&m, c, f)
	pod, err := render.Pod(c, m)
	if err != nil {
		return nil, err
	}
	creates := func(kind, name string, object runtime.ApplyConfiguration) try {
		return try{kind + " " + name, func(ctx context.Context) error {
			if err := r.dryRun(ctx, object); err != nil {
				return fmt.Errorf("try to create %s %s: %w", kind, name, err)
			}
			return nil
		}, neededByMembers}
	}
	tries := make([]try, 0, 3)
	tries = append(tries, creates("PersistentVolumeClaim", m.Name, render.Volume(c, m)), creates("Pod", m.Name, pod))
	if c.Status.Restore.Survivor == nil {
		return tries, nil
	}
	job, err := render.CopyJob(c, m, c.Status.Restored.EtcdVersion)
	if err != nil {
		return nil, err
	}
	copies := creates("Job", *job.Name, job.WithResourceVersion(apply.OnlyIfAbsent))
	copies.learn = func(seen *observed, answer error) error {
		if apierrors.IsConflict(answer) { // that of an earlier restore makes room later
			return nil
		}
		return neededByMembers(seen, answer)
	}
	return append(tries, copies), nil
}
