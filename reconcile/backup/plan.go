package backup

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/podstatus"
	"quorate.dev/render"
)

// Observed is all that a step is decided by.
type Observed struct {
	// Backup has in its status what its Pods have said until now.
	Backup *api.EtcdBackup
	// Cluster is nil where there is none.
	Cluster *api.EtcdCluster
	// Take is the Job of the current attempt, and Delete the one that deletes what is stored; nil
	// where there is none.
	Take, Delete *Job
	// Saves is whether a Pod runs that may still store something.
	Saves bool
	// Hangs is why such a Pod does not end; empty where it may.
	Hangs string
	// Written is whether the status that Backup has is what the API server has.
	Written bool
	// AgentImage is whether the operator knows with which image to run agents.
	AgentImage bool
	// Patience is how long something may be missing before that is called stalled.
	Patience time.Duration
	Now      time.Time
}

// Job is one that exists under a name of ours.
type Job struct {
	Name string
	UID  types.UID
	// Foreign is whether it has another owner; Former, to an EtcdBackup of the same name
	// that is gone, as it soon will be.
	Foreign bool
	Former  bool
	Created time.Time
	// Ended is zero while it has not. One whose Pod hangs on a dead node has ended for us.
	Ended     time.Time
	Succeeded bool
	// Overran is whether it was ended because it took longer than a Job may.
	Overran bool
	// Pod is what came of its Pod; nil where there is none.
	Pod *Result
}

// Action is what a step does.
type Action string

// The actions.
const (
	None          Action = "None"
	Wait          Action = "Wait"
	Stall         Action = "Stall"         // nothing goes on until a person acts
	Hold          Action = "Hold"          // sets the finalizer
	Release       Action = "Release"       // takes the finalizer away
	Begin         Action = "Begin"         // writes down the next attempt
	Take          Action = "Take"          // creates the Job of the attempt
	GiveUp        Action = "GiveUp"        // writes down why there is no further attempt
	Tidy          Action = "Tidy"          // deletes the Job whose result is written down
	Stop          Action = "Stop"          // deletes the Job of an attempt that is not wanted any more
	Delete        Action = "Delete"        // creates the Job that deletes what is stored
	RetryDeletion Action = "RetryDeletion" // deletes that Job, because it has failed
)

// Step is what is done next, and what is said of it.
type Step struct {
	Action  Action
	Reason  string
	Message string
	// After is when to look again, where no watch tells; 0: a watch does.
	After time.Duration
}

const (
	// attempts is how often a backup is tried.
	attempts = 5
	// whileRunning is between two looks at a Pod: no watch tells of it.
	whileRunning = 2 * time.Second
	// betweenDeletions is how long a failed deletion rests at least before it is tried again, and
	// longestRest at most.
	betweenDeletions = time.Minute
	longestRest      = time.Hour
)

// retryAfter is how long an attempt that has failed rests before the next one. All of them outlast
// a store or a cluster that is away for a quarter of an hour.
var retryAfter = [attempts - 1]time.Duration{10 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute}

// lasting are the reasons of agents that another attempt would only repeat: a person must act.
var lasting = []string{
	"InvalidStore", "NoSuchBucket", "NoCredentials", "InvalidCredentials", "CredentialsExpired", "AccessDenied", "WrongRegion", "ClockSkew",
	"UntrustedCertificate", "StoreFull", "ReadOnly", "EncryptionKey", "Unsupported", "OtherCluster", "EtcdTooOld", api.ReasonDamaged,
}

// Plan decides the next step.
func Plan(o Observed) Step {
	b := o.Backup
	wanted := b.Spec.DeletionPolicy == api.RetentionDelete
	switch {
	case !b.DeletionTimestamp.IsZero():
		return planDeletion(o)
	case wanted && !held(b):
		return Step{Action: Hold}
	case !wanted && held(b):
		return Step{Action: Release}
	case b.Status.VerifiedAt != nil:
		return planVerified(o)
	case b.Status.Failure != nil:
		return Step{Action: Stall, Reason: b.Status.Failure.Reason, Message: b.Status.Failure.Message}
	case b.Status.Attempt == 0:
		return planBeginning(o)
	case o.Take == nil:
		return planTaking(o)
	case o.Take.Former:
		return former(o.Take)
	case o.Take.Foreign:
		return foreign(o.Take, "make another EtcdBackup under another name, or delete that Job")
	case o.Take.Ended.IsZero():
		return planRunning(o)
	default:
		return planEnded(o)
	}
}

func held(b *api.EtcdBackup) bool { return slices.Contains(b.Finalizers, api.FinalizerSnapshot) }

func planVerified(o Observed) Step {
	said := "stored, restored and compared"
	if o.Backup.Verification() == api.VerifyHash {
		said = "stored, read again and compared"
	}
	done := Step{Action: None, Reason: api.ReasonVerified, Message: said}
	if o.Take.ours() && o.Written { // its Pod is the only other one that knows
		done.Action = Tidy
	}
	return done
}

// planBeginning begins the first attempt once there is a cluster to take a snapshot of, and a store
// for it.
func planBeginning(o Observed) Step {
	if step, ok := missing(o); ok {
		return step
	}
	if o.Backup.StoreFor(o.Cluster) == nil {
		return Step{Action: Stall, Reason: api.ReasonNoStore, Message: "there is no store: set spec.backup.store of EtcdCluster " +
			o.Cluster.Name + ", or make another EtcdBackup with spec.store"}
	}
	return Step{Action: Begin, Reason: api.ReasonSaving, Message: saving(o.Backup, 1)}
}

// planTaking creates the Job of an attempt that was written down.
func planTaking(o Observed) Step {
	if step, ok := missing(o); ok {
		return step
	}
	if o.Backup.Status.SHA256 != "" {
		return Step{Action: Take, Reason: api.ReasonVerifying, Message: verifying(o.Backup)}
	}
	return Step{Action: Take, Reason: api.ReasonSaving, Message: saving(o.Backup, o.Backup.Status.Attempt)}
}

// missing is what a Job cannot be made without. A cluster that is not there, or has not formed, may
// be about to: it is applied together with its first backup.
func missing(o Observed) (Step, bool) {
	if !o.AgentImage {
		return noImage(), true
	}
	name, c := o.Backup.Spec.ClusterRef.Name, o.Cluster
	step := Step{Action: Wait}
	switch {
	case c == nil || !c.DeletionTimestamp.IsZero():
		step.Reason = api.ReasonClusterNotFound
		step.Message = "there is no EtcdCluster " + name + " in this namespace: create it, or make another EtcdBackup with the right spec.clusterRef.name"
	case c.Status.ClusterID == "":
		step.Reason = api.ReasonNotFormed
		step.Message = "EtcdCluster " + name + " has not formed yet: its conditions say what it waits for"
	case ptr.Deref(c.Spec.Replicas, 1) == 0:
		step.Reason = api.ReasonHibernated
		step.Message = "spec.replicas of EtcdCluster " + name + " is 0: nothing runs that a snapshot could be taken from; set it to what it was"
	case dataDiffers(c):
		step.Reason = api.ReasonDataDiffers
		step.Message = "the data of the members of EtcdCluster " + name + " differs, as Quorate has found or etcd says (alarm CORRUPT), and a snapshot of a wrong member could be verified as well. The backup goes on when they are found equal: see the conditions of the EtcdCluster. To save the data of each member until then, run for each POD, in one terminal: kubectl port-forward POD 2379 -n " + c.Namespace + "; in another: etcdctl --endpoints localhost:2379 snapshot save POD.db (with TLS as in docs/tls.md#connect)"
	default:
		return Step{}, false
	}
	return o.patient(step, o.Backup.CreationTimestamp.Time), true
}

// dataDiffers reports whether the conditions of the EtcdCluster say that the data of its members
// differs, or that etcd says so (alarm CORRUPT) and it is not judged yet. A snapshot of any of them
// could be verified.
func dataDiffers(c *api.EtcdCluster) bool {
	return slices.ContainsFunc(c.Status.Conditions, func(of metav1.Condition) bool {
		return of.Reason == api.ReasonCorruptMember || of.Reason == api.ReasonDataDiffers
	})
}

// patient makes a wait that has taken too long since a time one for a person. It goes on all the
// same when what is missing comes.
func (o Observed) patient(step Step, since time.Time) Step {
	if left := o.Patience - o.Now.Sub(since); left > 0 {
		step.After = left
		return step
	}
	step.Action = Stall
	return step
}

func noImage() Step {
	return Step{Action: Stall, Reason: api.ReasonNoAgentImage, Message: "the operator does not know its own image: start it with --agent-image, or set QUORATE_IMAGE in its Deployment"}
}

func (j *Job) ours() bool { return j != nil && !j.Foreign && !j.Former }

func former(job *Job) Step {
	return Step{
		Action: Wait, Reason: api.ReasonTerminating, After: whileRunning,
		Message: "waiting for Job " + job.Name + " of a former EtcdBackup of this name to be gone",
	}
}

func foreign(job *Job, instead string) Step {
	return Step{Action: Stall, Reason: api.ReasonForeignObject, Message: "Job " + job.Name + " does not belong to this EtcdBackup: " + instead}
}

func saving(b *api.EtcdBackup, attempt int32) string {
	if attempt > 1 {
		return fmt.Sprintf("taking a snapshot of EtcdCluster %s, attempt %d of %d", b.Spec.ClusterRef.Name, attempt, attempts)
	}
	return "taking a snapshot of EtcdCluster " + b.Spec.ClusterRef.Name
}

func verifying(b *api.EtcdBackup) string { return "stored as " + b.Status.Name + "; verifying it" }

// planRunning waits for the Job. A Pod that cannot start is for a person to look at, and goes on
// when that is mended.
func planRunning(o Observed) Step {
	step := Step{Action: Wait, Reason: api.ReasonSaving, Message: saving(o.Backup, o.Backup.Status.Attempt), After: whileRunning}
	if o.Backup.Status.SHA256 != "" {
		step.Reason, step.Message = api.ReasonVerifying, verifying(o.Backup)
	}
	return o.waitFor(o.Take, step)
}

// waitFor a Job: what is said while its Pod runs, or why there is none that does.
func (o Observed) waitFor(job *Job, running Step) Step {
	obstacle := ""
	switch {
	case job.Pod == nil:
		obstacle = "has no Pod yet" + podstatus.NoPod(job.Name, o.Backup.Namespace)
	case job.Pod.Pending != "":
		obstacle = job.Pod.Pending
	default:
		return running
	}
	if o.Now.Sub(job.Created) < o.Patience {
		return running
	}
	return Step{Action: Stall, Reason: api.ReasonPodPending, Message: "Job " + job.Name + ": " + obstacle, After: running.After}
}

// planEnded: the Job has ended, and the snapshot is not verified.
func planEnded(o Observed) Step {
	b := o.Backup
	failed := api.BackupFailure{Reason: api.ReasonResultLost, Message: "the Pod of Job " + o.Take.Name + " is gone, and with it what came of it"}
	switch {
	case o.Take.Overran: // its containers were killed for that, and know no better reason
		failed = api.BackupFailure{Reason: api.ReasonDeadlineExceeded, Message: overran(o.Take)}
	case o.Take.Pod != nil && o.Take.Pod.Failure != nil:
		failed = *o.Take.Pod.Failure
	}
	what := "no snapshot was taken"
	if b.Status.SHA256 != "" {
		what = "the snapshot is stored as " + b.Status.Name + ", and is not verified"
	}
	switch {
	case b.Status.SHA256 != "" && failed.Reason == api.ReasonDamaged:
		return giveUp(failed, what, "it does not count as a backup: make another EtcdBackup")
	case plainLost(b) && b.Status.Attempt >= attempts:
		return giveUp(failed, what, "its plain copy is gone with the Pod: verify it by hand with its private key (quorate snapshot verify), or make another EtcdBackup")
	case slices.Contains(lasting, failed.Reason), b.Status.Attempt >= attempts:
		return giveUp(failed, what, "when that is mended, make another EtcdBackup: this one is not tried again")
	}
	rest := retryAfter[b.Status.Attempt-1]
	next := o.Take.Ended.Add(rest)
	if left := next.Sub(o.Now); left > 0 {
		return Step{
			Action: Wait, Reason: api.ReasonRetrying, After: left,
			Message: fmt.Sprintf("%s; attempt %d of %d failed, the next one begins at %s: %s", what, b.Status.Attempt, attempts, next.UTC().Format(time.RFC3339), failed.Message),
		}
	}
	if step, ok := missing(o); ok {
		return step
	}
	if plainLost(b) {
		what += " (its plain copy is gone with the Pod)"
	}
	return Step{Action: Begin, Reason: api.ReasonRetrying, Message: fmt.Sprintf("%s; beginning attempt %d of %d", what, b.Status.Attempt+1, attempts)}
}

// plainLost reports whether what is stored is encrypted and cannot be restored to verify it: the
// plain copy was in a Pod that is gone. Another attempt takes another snapshot.
func plainLost(b *api.EtcdBackup) bool {
	return b.Status.SHA256 != "" && b.Encryption() != nil && b.Verification() == api.VerifyRestore
}

func overran(job *Job) string {
	return fmt.Sprintf("Job %s had not ended %g hours after it had begun, and was ended: a container hangs, or its Pod could not start", job.Name, render.JobDeadline.Hours())
}

func giveUp(failed api.BackupFailure, what, instead string) Step {
	return Step{Action: GiveUp, Reason: failed.Reason, Message: what + ": " + failed.Message + "; " + instead}
}

// wayOut is how an EtcdBackup goes whose snapshot cannot be deleted.
const wayOut = "to let the EtcdBackup go and leave the snapshot in the store, set spec.deletionPolicy to Retain"

// planDeletion deletes what is stored first, where that is wanted, and then lets the EtcdBackup go.
func planDeletion(o Observed) Step {
	b := o.Backup
	switch {
	case !held(b):
		return Step{Action: None}
	case b.Spec.DeletionPolicy != api.RetentionDelete, b.Status.Attempt == 0:
		return Step{Action: Release}
	case o.Take.ours() && o.Take.Ended.IsZero():
		return Step{Action: Stop, Reason: api.ReasonDeleting, Message: "stopping Job " + o.Take.Name}
	case o.Saves && o.Hangs != "":
		return Step{Action: Stall, Reason: api.ReasonTerminating, Message: "waiting for the Pods of its Jobs to end: " + o.Hangs + "; " + wayOut, After: betweenDeletions}
	case o.Saves:
		return Step{Action: Wait, Reason: api.ReasonDeleting, Message: "waiting for the Pods of its Jobs to end", After: whileRunning}
	case o.Delete == nil && !o.AgentImage:
		step := noImage()
		step.Message += "; " + wayOut
		return step
	case o.Delete == nil:
		return Step{Action: Delete, Reason: api.ReasonDeleting, Message: "deleting the snapshot in the store"}
	case o.Delete.Former:
		return former(o.Delete)
	case o.Delete.Foreign:
		return foreign(o.Delete, "delete that Job, for the snapshot to be deleted; "+wayOut)
	case o.Delete.Ended.IsZero():
		step := o.waitFor(o.Delete, Step{Action: Wait, Reason: api.ReasonDeleting, Message: "deleting the snapshot in the store", After: whileRunning})
		if step.Action == Stall {
			step.Message += "; " + wayOut
		}
		return step
	case o.Delete.Succeeded:
		return Step{Action: Release, Reason: api.ReasonSnapshotDeleted, Message: "deleted the snapshot " + b.Status.Name + " in the store"}
	}
	failed := "its Job has failed"
	if o.Delete.Overran {
		failed = overran(o.Delete)
	} else if o.Delete.Pod != nil && o.Delete.Pod.Failure != nil {
		failed = o.Delete.Pod.Failure.Message
	}
	step := Step{Action: Stall, Reason: api.ReasonDeletionFailed, Message: "the snapshot cannot be deleted, and it is tried again, after at most an hour: " + failed + "; " + wayOut}
	if step.After = o.deletionRest(o.Delete.Ended) - o.Now.Sub(o.Delete.Ended); step.After <= 0 {
		step.Action, step.After = RetryDeletion, 0
	}
	return step
}

// deletionRest is how long a deletion rests that has failed then: half of what has passed since it
// was asked for. So it grows with every failure, and is known to an operator that was started a
// moment ago.
func (o Observed) deletionRest(failed time.Time) time.Duration {
	return min(max(betweenDeletions, failed.Sub(o.Backup.DeletionTimestamp.Time)/2), longestRest)
}

// snapshotName is what the next attempt calls its snapshot: what is stored keeps its name.
func snapshotName(b *api.EtcdBackup) string {
	if b.Status.SHA256 != "" && !plainLost(b) {
		return b.Status.Name
	}
	return b.SnapshotName(b.Status.Attempt + 1)
}
