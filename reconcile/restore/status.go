package restore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/reconcile/podstatus"
)

// Observed is all that the status of an EtcdRestore is made of.
type Observed struct {
	Restore *api.EtcdRestore
	// Cluster that it names, and Backup that it refers to; nil where there is none.
	Cluster *api.EtcdCluster
	Backup  *api.EtcdBackup
	// Patience is how long something may be missing before that is called stalled.
	Patience time.Duration
	Now      time.Time
}

// said is what is said of an EtcdRestore in its conditions.
type said struct {
	ready, stalled  bool
	rests           bool // suspended: nothing is done, and nothing is wrong
	reason, message string
	// after is when to look again, where no watch tells; 0: a watch does.
	after time.Duration
}

// say what has become of the restore.
func say(o Observed) said {
	e, c := o.Restore, o.Cluster
	own := c != nil && c.Status.Restore != nil && c.Status.Restore.UID == string(e.UID)
	switch {
	case e.Status.CompletedAt != nil:
		return said{ready: true, reason: api.ReasonRestored, message: completed(e, e.Status)}
	case own:
		return carriedOut(o)
	case e.Status.ClusterID != "": // another one was begun since, or the cluster is gone
		return said{ready: true, reason: api.ReasonRestored, message: completed(e, e.Status)}
	case e.Status.StartedAt != nil:
		return said{
			stalled: true, reason: api.ReasonCarriedOut,
			message: "it had begun when the EtcdCluster was deleted, or its status was lost, and none is begun twice: delete it, and apply another one with another name, if the cluster is still to be restored. What to do with volumes that it had set aside: docs/restore.md#when-the-etcdcluster-is-deleted-midway",
		}
	case e.Over(): // another restore may have taken its place in the status of the cluster since
		ready := meta.FindStatusCondition(e.Status.Conditions, api.ConditionReady)
		return said{stalled: true, reason: ready.Reason, message: ready.Message}
	case c == nil || !c.DeletionTimestamp.IsZero():
		return o.patient(api.ReasonClusterNotFound, "there is no EtcdCluster "+e.Spec.ClusterRef.Name+" in this namespace: create it, or create another EtcdRestore with the right spec.clusterRef.name")
	case e.MadeOnLossOfAnother(c):
		return said{
			stalled: true, reason: api.ReasonClusterNotFound,
			message: "Quorate created it for an EtcdCluster of this name that was deleted since, and it is never begun: delete it",
		}
	case slices.Contains(c.Status.CarriedOut, e.Name):
		return said{
			stalled: true, reason: api.ReasonCarriedOut,
			message: "an EtcdRestore of this name was carried out or refused before, and none is carried out twice: give it another name",
		}
	}
	if _, missing := e.SourceFor(c, o.Backup); missing != "" {
		if o.Backup != nil && o.Backup.Status.Failure == nil { // it may be about to be verified
			return said{reason: api.ReasonRestoring, message: missing}
		}
		return o.patient(api.ReasonRestoreFailed, missing)
	}
	if r := c.Status.Restore; r.Asked() || r != nil && (r.Phase == api.RestoreRestoring || r.Phase == api.RestoreReverting) {
		return said{reason: api.ReasonRestoring, message: "waiting for EtcdRestore " + r.Name + " of the same cluster to end, or to be deleted"}
	}
	return said{reason: api.ReasonRestoring, message: "waiting for EtcdCluster " + c.Name + " to begin with it"}
}

// carriedOut is what is said of the restore that the cluster carries out.
func carriedOut(o Observed) said {
	c, r := o.Cluster, o.Cluster.Status.Restore
	switch r.Phase {
	case api.RestoreCompleted:
		if r.CompletedAt != nil {
			return said{ready: true, reason: api.ReasonRestored, message: completed(o.Restore, next(o))}
		}
	case api.RestoreRefused:
		return said{stalled: true, reason: api.ReasonRestoreRefused, message: r.Message}
	case api.RestoreBlocked:
		return said{stalled: true, reason: api.ReasonRestoreFailed, message: r.Message}
	case api.RestorePending:
		if r.Message == "" && r.Plan != nil && o.Restore.Spec.Suspend {
			return said{rests: true, reason: api.ReasonSuspended, message: suspended(o.Restore, r.Plan)}
		}
		message := "looking for the snapshot; the cluster goes on meanwhile"
		if r.Message != "" {
			message = r.Message
		}
		return said{reason: api.ReasonRestoring, message: message}
	case api.RestoreRestoring, api.RestoreReverting:
	}
	if stalled := meta.FindStatusCondition(c.Status.Conditions, api.ConditionStalled); stalled != nil {
		return said{stalled: true, reason: stalled.Reason, message: stalled.Message}
	}
	message := "the former members are being stopped"
	if ready := meta.FindStatusCondition(c.Status.Conditions, api.ConditionReady); ready != nil {
		message = ready.Message
	}
	return said{reason: api.ReasonRestoring, message: message}
}

// suspended summarizes the plan, and says how to carry it out.
func suspended(e *api.EtcdRestore, p *api.RestorePlan) string {
	what, aside := "snapshot "+p.From.Name, "there are no volumes to set aside"
	if member := api.MemberOf(p.From.Name); member != "" {
		what = "the data of " + member
	}
	if len(p.SetAside) > 0 {
		aside = "the volumes of " + strings.Join(p.SetAside, ", ") + " are set aside"
	}
	return fmt.Sprintf("suspended: nothing is changed yet. Without spec.suspend, %s is restored into new members %s, and %s. Lost at most: %s. The whole plan is in status.plan. To carry it out: kubectl -n %s patch etcdrestore %s --type=merge --patch='{\"spec\":{\"suspend\":false}}'",
		what, strings.Join(p.NewMembers, ", "), aside, p.Lost, e.Namespace, e.Name)
}

func completed(e *api.EtcdRestore, s api.EtcdRestoreStatus) string {
	message := "the cluster was restored"
	switch {
	case s.Restored == nil:
	case api.MemberOf(s.Restored.Name) != "":
		message += " from the data of " + api.MemberOf(s.Restored.Name)
	default:
		message += " from snapshot " + s.Restored.Name
	}
	if e.Spec.FormerVolumes == api.RetentionDelete {
		message += "; the volumes of its former members are deleted once all members are healthy. Those that are left when another EtcdRestore is applied are kept: docs/restore.md#what-is-left-over"
	} else {
		message += "; the volumes of its former members are kept: delete the PersistentVolumeClaims that have the annotation " + api.AnnotationSetAside + " once nothing on them is wanted"
	}
	return message
}

// patient makes a wait that has taken too long one for a person. It goes on all the same when what
// is missing comes.
func (o Observed) patient(reason, message string) said {
	left := o.Patience - o.Now.Sub(o.Restore.CreationTimestamp.Time)
	if left > 0 {
		return said{reason: reason, message: message, after: left}
	}
	return said{stalled: true, reason: reason, message: message}
}

// next is the status but for its conditions.
func next(o Observed) api.EtcdRestoreStatus {
	s := *o.Restore.Status.DeepCopy()
	s.ObservedGeneration = o.Restore.Generation
	c := o.Cluster
	if c == nil || c.Status.Restore == nil || c.Status.Restore.UID != string(o.Restore.UID) {
		return s
	}
	r := c.Status.Restore
	s.StartedAt, s.CompletedAt, s.Plan = r.StartedAt.DeepCopy(), r.CompletedAt.DeepCopy(), r.Plan.DeepCopy()
	if r.StartedAt != nil {
		s.FormerClusterID, s.ClusterID, s.Restored = r.FormerClusterID, c.Status.ClusterID, c.Status.Restored.DeepCopy()
	}
	return s
}

// mostMessage is how long the message of a condition may be, as the schema has it. What the cluster
// says is copied into it, and a longer one would keep all of the status from being written.
const mostMessage = 32 << 10

// status is what users see of an EtcdRestore, in the words of kstatus: Ready always, Reconciling or
// Stalled only while True.
func status(o Observed) (api.EtcdRestoreStatus, time.Duration) {
	s, is := next(o), say(o)
	set := func(kind string, holds bool) {
		value := metav1.ConditionFalse
		if holds {
			value = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&s.Conditions, metav1.Condition{
			Type: kind, Status: value, Reason: is.reason, Message: podstatus.Within(is.message, mostMessage), ObservedGeneration: o.Restore.Generation,
		})
	}
	only := func(kind string, holds bool) {
		if holds {
			set(kind, true)
		} else {
			meta.RemoveStatusCondition(&s.Conditions, kind)
		}
	}
	set(api.ConditionReady, is.ready)
	only(api.ConditionStalled, is.stalled)
	only(api.ConditionReconciling, !is.ready && !is.stalled && !is.rests)
	return s, is.after
}
