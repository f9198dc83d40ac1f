package backup

import (
	"cmp"
	"context"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
)

// observe what there is. Pods are read from the API server itself, and only while a Job may have
// something to say: the cache holds those of members alone.
func (r *Reconciler) observe(ctx context.Context, b *api.EtcdBackup) (Observed, error) {
	o := Observed{Backup: b, Written: true, AgentImage: r.AgentImage != "", Patience: r.StallAfter, Now: time.Now()}
	cluster := &api.EtcdCluster{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: b.Spec.ClusterRef.Name}, cluster)
	switch {
	case err == nil:
		o.Cluster = cluster
	case !apierrors.IsNotFound(err):
		return o, fmt.Errorf("get EtcdCluster %s: %w", b.Spec.ClusterRef.Name, err)
	}
	if b.Status.Attempt == 0 {
		return o, nil
	}
	if o.Take, err = r.job(ctx, b, b.JobName(b.Status.Attempt)); err != nil {
		return o, err
	}
	deleting := !b.DeletionTimestamp.IsZero()
	if deleting {
		if o.Delete, err = r.job(ctx, b, b.DeletionJobName()); err != nil {
			return o, err
		}
	}
	if settled(b) && !deleting {
		return o, nil
	}
	pods := &corev1.PodList{}
	if err := r.Reader.List(ctx, pods, client.InNamespace(b.Namespace), client.MatchingLabels{api.LabelBackup: b.Name}); err != nil {
		return o, fmt.Errorf("list Pods: %w", err)
	}
	o.hear(pods.Items)
	return o, nil
}

// settled: what came of it is written down, and Pods have nothing to add.
func settled(b *api.EtcdBackup) bool { return b.Status.VerifiedAt != nil || b.Status.Failure != nil }

// job is the Job of that name as the cache has it; nil where there is none. One without our label
// is not in the cache: it shows when ours is to be created.
func (r *Reconciler) job(ctx context.Context, b *api.EtcdBackup, name string) (*Job, error) {
	job := &batchv1.Job{}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: b.Namespace, Name: name}, job)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get Job %s: %w", name, err)
	}
	return described(b, job), nil
}

func described(b *api.EtcdBackup, job *batchv1.Job) *Job {
	d := &Job{Name: job.Name, UID: job.UID, Created: job.CreationTimestamp.Time}
	if owner := metav1.GetControllerOf(job); owner == nil || owner.UID != b.UID {
		d.Former = owner != nil && owner.Kind == api.EtcdBackupKind.Kind && owner.Name == b.Name
		d.Foreign = !d.Former
	}
	for _, c := range job.Status.Conditions {
		if c.Status == corev1.ConditionTrue && (c.Type == batchv1.JobComplete || c.Type == batchv1.JobFailed) {
			d.Ended, d.Succeeded = c.LastTransitionTime.Time, c.Type == batchv1.JobComplete
			d.Overran = c.Reason == batchv1.JobReasonDeadlineExceeded
		}
	}
	return d
}

// hangs is what is said of a Pod that was deleted, and of which no kubelet says in time that it has
// ended: its node is off, or cut off. Empty where that is not so. Its deletionTimestamp is when it
// was to have ended.
func (o *Observed) hangs(pod *corev1.Pod, said Result) string {
	if !said.Runs || pod.DeletionTimestamp == nil || o.Now.Sub(pod.DeletionTimestamp.Time) < o.Patience {
		return ""
	}
	return fmt.Sprintf("Pod %s was deleted, and its node %s does not say that it has ended. If that node is off and does not come back: kubectl delete node %s. "+
		"If it is only off for now: kubectl delete pod %s --namespace %s --force", pod.Name, pod.Spec.NodeName, pod.Spec.NodeName, pod.Name, pod.Namespace)
}

// hangs takes a Job for one that has failed: it waits for its Pod for ever.
func (j *Job) hangs(since time.Time, why string) {
	j.Ended = since
	if j.Pod.Failure == nil {
		j.Pod.Failure = &api.BackupFailure{Reason: api.ReasonTerminating, Message: why}
	}
}

// hear what the Pods say.
func (o *Observed) hear(pods []corev1.Pod) {
	for i := range pods {
		owner := metav1.GetControllerOf(&pods[i])
		if owner == nil {
			continue
		}
		said := result(&pods[i])
		hangs := o.hangs(&pods[i], said)
		for _, job := range []*Job{o.Take, o.Delete} {
			if job.ours() && job.UID == owner.UID {
				job.Pod = &said
			}
			if job.ours() && job.UID == owner.UID && hangs != "" && job.Ended.IsZero() {
				job.hangs(pods[i].DeletionTimestamp.Add(o.Patience), hangs)
			}
		}
		if said.Runs && owner.Name != o.Backup.DeletionJobName() {
			o.Saves = true
			o.Hangs = cmp.Or(o.Hangs, hangs)
		}
	}
	if o.Take.ours() && o.Take.Pod != nil {
		before := o.Backup.Status.DeepCopy()
		record(&o.Backup.Status, *o.Take.Pod)
		o.Written = equality.Semantic.DeepEqual(*before, o.Backup.Status)
	}
}
