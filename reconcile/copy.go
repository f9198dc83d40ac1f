package reconcile

import (
	"cmp"
	"context"
	"errors"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// The data of a former member is copied to the volume of the first member by a Job, before that
// member has a Pod.

// copied looks at what has come of the copy, where one is made.
func (r *Reconciler) copied(ctx context.Context, c *api.EtcdCluster, seen *observed) error {
	restore := c.Status.Restore
	if restore == nil || restore.Survivor == nil || restore.Phase != api.RestoreRestoring || seen.Formed() || r.AgentImage == "" {
		return nil
	}
	first := c.MemberName(int(c.Status.FirstOrdinal))
	if seen.copies = seen.claims[first] != nil && seen.pods[first] == nil; !seen.copies {
		return nil
	}
	i, _ := seen.Instance(first)
	want, err := r.copyJob(c, *seen, membership.Step{First: i.Volume.First}, first)
	if err != nil {
		return nil //nolint:nilerr // it is told where the Job is to be made
	}
	job, pods, err := r.jobOf(ctx, c, want)
	if job == nil || err != nil {
		return err
	}
	seen.Copy = copyFacts(job, pods, time.Now().Add(-r.StallAfter))
	return nil
}

// copyFacts is what has come of the copy. Its Pods may be gone by the time that it is done.
func copyFacts(job *batchv1.Job, pods []corev1.Pod, stallBefore time.Time) membership.Copy {
	of := membership.Copy{Begun: true, Done: job.Status.Succeeded > 0, Problem: podless(job, pods, stallBefore)}
	for n := range pods {
		pod := &pods[n]
		of.Done = of.Done || pod.Status.Phase == corev1.PodSucceeded
		of.Problem = cmp.Or(of.Problem, copyProblem(pod, stallBefore))
	}
	if of.Done {
		of.Problem = ""
	}
	return of
}

// copyProblem is what the agent has said, or why its Pod does not start.
func copyProblem(pod *corev1.Pod, stallBefore time.Time) string {
	for _, container := range []string{render.ContainerInstall, render.ContainerCopy} {
		if failure := agentResult(pod, container).Failure; failure != nil {
			return failure.Message
		}
	}
	return notStarted(pod, stallBefore)
}

// copyData begins the copy, of an EtcdCluster that has not changed since it was read.
func (r *Reconciler) copyData(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	if r.AgentImage == "" {
		return &invalidError{errNoAgentImage}
	}
	if err := r.confirm(ctx, c, step); err != nil {
		return err
	}
	job, err := r.copyJob(c, seen, step, step.Members[0])
	if err != nil {
		return &invalidError{err}
	}
	return r.beginJob(ctx, c, step, job)
}

func (r *Reconciler) copyJob(c *api.EtcdCluster, seen observed, step membership.Step, first string) (*batchv1ac.JobApplyConfiguration, error) {
	if c.Status.Restored == nil {
		return nil, errors.New("status.restored does not say of which member the data is: delete the EtcdRestore")
	}
	m := firstMember(c, seen, step, first)
	i, _ := seen.Instance(first)
	m.AgentImage, m.VolumeUID = r.AgentImage, i.Volume.UID
	return render.CopyJob(c, m, cmp.Or(c.Status.Restored.EtcdVersion, m.Version))
}
