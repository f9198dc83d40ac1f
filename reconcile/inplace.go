package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/podstatus"
)

// An EtcdRestore is copied into status.restore of its EtcdCluster once, and carried out from there:
// decisions depend on the EtcdCluster alone, not on what a cache has of the EtcdRestore. Later only
// the deletion of the EtcdRestore counts, and its spec.suspend until the restore begins: that is
// read once more, past the cache, before it begins.

// inPlace is the restore in place as the planner sees it.
func inPlace(c *api.EtcdCluster, l limits) membership.InPlace {
	r := c.Status.Restore
	if r == nil || r.Phase == api.RestoreRefused || r.Phase == api.RestoreCompleted {
		return membership.InPlace{}
	}
	return membership.InPlace{
		Name:     r.Name,
		UID:      r.UID,
		Begun:    r.Phase == api.RestoreRestoring,
		Reverted: r.Phase == api.RestoreReverting,
		OnLoss:   r.OnQuorumLoss,
		Anyway:   r.WhenServing == api.ServingReplace,
		Lately:   l.unavailableSeen.After(l.stallBefore),

		LostLately: lostLately(c, l),
	}
}

// firstToken is the token of a first start that is begun now.
func firstToken(c *api.EtcdCluster) string {
	if r := c.Status.Restore; r != nil && r.Phase == api.RestoreRestoring {
		return r.UID
	}
	return string(c.UID)
}

// discardsFormer is the UID of the EtcdRestore whose former volumes are to be deleted; empty: those
// of none. It is the latest one: what an earlier one has left is never deleted.
func discardsFormer(c *api.EtcdCluster) string {
	r := c.Status.Restore
	if r == nil || r.Phase != api.RestoreCompleted || r.FormerVolumes != api.RetentionDelete {
		return ""
	}
	return r.UID
}

// shutsClientsOut reports whether clients are kept out, though they were let in before: the former
// members are about to stop, or the new ones have not formed a cluster yet.
func shutsClientsOut(c *api.EtcdCluster) bool {
	r := c.Status.Restore
	return r != nil && (r.Phase == api.RestoreRestoring || r.Phase == api.RestoreReverting)
}

// objectsOfFormer are the Pods and claims of members of before a restore in place.
type objectsOfFormer struct {
	pods   map[string]*corev1.Pod
	claims map[string]*corev1.PersistentVolumeClaim
}

// takeFormer takes the objects of former members out of what was seen: they are known by their
// ordinals, and where the status was lost, by what is written on their claims.
func takeFormer(c *api.EtcdCluster, seen *observed) objectsOfFormer {
	lost := c.Status.ClusterID == "" && !shutsClientsOut(c) // it may name an EtcdRestore again
	of := objectsOfFormer{pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{}}
	isFormer := func(name string) bool {
		ordinal, ours := c.Ordinal(name)
		claim := seen.claims[name]
		return ours && (ordinal < int(c.Status.FirstOrdinal) || lost && claim != nil && claim.Annotations[api.AnnotationSetAside] != "" && !halfAside(claim, seen))
	}
	for name, pod := range seen.pods {
		if isFormer(name) {
			of.pods[name] = pod
		}
	}
	for name, claim := range seen.claims {
		if isFormer(name) {
			of.claims[name] = claim
		}
	}
	maps.DeleteFunc(seen.pods, func(name string, _ *corev1.Pod) bool { return of.pods[name] != nil })
	maps.DeleteFunc(seen.claims, func(name string, _ *corev1.PersistentVolumeClaim) bool { return of.claims[name] != nil })
	return of
}

// halfAside reports whether another volume of the same etcd cluster was not set aside: the operator
// was interrupted while it set them aside, and no new member has been made.
func halfAside(claim *corev1.PersistentVolumeClaim, seen *observed) bool {
	id := claim.Annotations[api.AnnotationClusterID]
	for _, other := range seen.claims {
		if id != "" && other.Annotations[api.AnnotationClusterID] == id && other.Annotations[api.AnnotationSetAside] == "" {
			return true
		}
	}
	return false
}

// firstOrdinal is the ordinal of the first member of today where the status was lost: above the
// former members, as their marks tell. A person may have marked another claim by hand; so it is
// never above a member that etcd lists, or a volume that holds a member's data.
func firstOrdinal(seen observed) int32 {
	first := 0
	for _, i := range seen.Former {
		first = max(first, i.Ordinal+1)
	}
	for _, i := range seen.Instances {
		if i.ID != 0 || i.Volume.Recorded() && i.Volume.Aside == "" {
			first = min(first, i.Ordinal)
		}
	}
	return int32(first)
}

// facts of the former members, by ordinal.
func (of objectsOfFormer) facts(c *api.EtcdCluster, l limits) []membership.Instance {
	all := roster{cluster: c, instances: map[string]*membership.Instance{}}
	for name, claim := range of.claims {
		all.at(name, func(i *membership.Instance) { i.Volume = volume(c, claim) })
	}
	for name, pod := range of.pods {
		all.at(name, func(i *membership.Instance) { i.Pod = podFacts(c, pod, l) })
	}
	return all.sorted()
}

// restoredCluster is the cluster that an EtcdRestore names.
func restoredCluster(_ context.Context, o client.Object) []reconcile.Request {
	restore, ok := o.(*api.EtcdRestore)
	if !ok {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: restore.Namespace, Name: restore.Spec.ClusterRef.Name}}}
}

// observeRestores finds the next EtcdRestore to carry out, and whether the current one was deleted
// or suspended. The reader may be a cache that is behind: an EtcdRestore that it does not have is
// looked for past it.
func (r *Reconciler) observeRestores(ctx context.Context, c *api.EtcdCluster, seen *observed, reader client.Reader) error {
	list := &api.EtcdRestoreList{}
	if err := reader.List(ctx, list, client.InNamespace(c.Namespace)); err != nil {
		return fmt.Errorf("list EtcdRestores: %w", err)
	}
	seen.Loss.Made = seen.Loss.Made || slices.ContainsFunc(list.Items, func(e api.EtcdRestore) bool {
		return e.Name == seen.Loss.Restore && madeOnLoss(c, &e)
	})
	next, err := r.nextRestore(ctx, c, list.Items)
	if err != nil {
		return err
	}
	seen.Loss.Another = next != nil
	current := c.Status.Restore
	if current.Asked() || current != nil && current.Phase == api.RestoreRestoring {
		return r.observeCurrent(ctx, current, seen, c.Namespace, list.Items)
	}
	if slices.ContainsFunc(list.Items, func(e api.EtcdRestore) bool { return untold(current, &e) }) {
		return nil
	}
	if current != nil && current.Phase == api.RestoreReverting {
		return nil
	}
	seen.next = next
	return nil
}

// observeCurrent finds out whether the current EtcdRestore was deleted, and whether it is
// suspended.
func (r *Reconciler) observeCurrent(ctx context.Context, current *api.ClusterRestore, seen *observed, namespace string, all []api.EtcdRestore) error {
	is := func(e *api.EtcdRestore) bool {
		return e.Name == current.Name && string(e.UID) == current.UID && e.DeletionTimestamp.IsZero()
	}
	for i := range all {
		if is(&all[i]) {
			seen.InPlace.Suspended = current.Asked() && all[i].Spec.Suspend
			return nil
		}
	}
	live := &api.EtcdRestore{}
	err := r.Reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: current.Name}, live)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get EtcdRestore %s: %w", current.Name, err)
	}
	switch seen.deleted = err != nil || !is(live); {
	case seen.deleted && current.Asked():
		seen.InPlace = membership.InPlace{} // it is not begun any more
	case seen.deleted:
		seen.InPlace.Withdrawn = true
	default:
		seen.InPlace.Suspended = current.Asked() && live.Spec.Suspend
	}
	return nil
}

// untold reports whether an EtcdRestore has ended, and does not say so itself yet. It learns of
// that from status.restore alone, which the next one takes. That clients can come is not waited
// for: a restored cluster that is lost again may need another restore.
func untold(ended *api.ClusterRestore, e *api.EtcdRestore) bool {
	return ended != nil && string(e.UID) == ended.UID && e.DeletionTimestamp.IsZero() && e.Status.CompletedAt == nil && e.Status.ClusterID == "" && !e.Refused()
}

// awaitsClients reports whether a restore in place has ended but for its clients, which cannot come
// yet.
func awaitsClients(c *api.EtcdCluster) bool {
	r := c.Status.Restore
	return r != nil && r.Phase == api.RestoreCompleted && r.CompletedAt == nil
}

// observeClients finds out whether clients can come to a restored cluster: the Service for clients
// leads to one of its members. Where there are no EndpointSlices to see that by, it must be open,
// and the kubelet must have found a member ready.
func (r *Reconciler) observeClients(ctx context.Context, c *api.EtcdCluster, seen *observed) error {
	if !awaitsClients(c) {
		return nil
	}
	led, err := r.led(ctx, c)
	if err != nil {
		return err
	}
	for _, pod := range seen.pods {
		seen.reached = seen.reached || led[pod.UID] // those of the former members may still be in it
	}
	if led != nil {
		return nil
	}
	service, err := clientService(ctx, r.Client, c)
	seen.reached = err == nil && len(service.Spec.Selector) > 0 && readyPods(*seen) > 0
	return err
}

// nextRestore is the oldest EtcdRestore that can be carried out; nil where there is none.
func (r *Reconciler) nextRestore(ctx context.Context, c *api.EtcdCluster, all []api.EtcdRestore) (*api.ClusterRestore, error) {
	slices.SortFunc(all, func(a, b api.EtcdRestore) int {
		return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), strings.Compare(a.Name, b.Name))
	})
	for i := range all {
		e := &all[i]
		if e.Spec.ClusterRef.Name != c.Name || !e.DeletionTimestamp.IsZero() || e.Over() || e.MadeOnLossOfAnother(c) || slices.Contains(c.Status.CarriedOut, e.Name) {
			continue
		}
		var backup *api.EtcdBackup
		if ref := e.Spec.Source.BackupRef; ref != nil {
			backup = &api.EtcdBackup{}
			if err := r.Client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: ref.Name}, backup); client.IgnoreNotFound(err) != nil {
				return nil, fmt.Errorf("get EtcdBackup %s: %w", ref.Name, err)
			}
		}
		source, missing := e.SourceFor(c, backup)
		if missing != "" {
			continue // its own status tells
		}
		next := &api.ClusterRestore{
			Name: e.Name, UID: string(e.UID), Phase: api.RestorePending,
			Source: source, Survivor: e.Spec.Source.Survivor.DeepCopy(), OnQuorumLoss: madeOnLoss(c, e), WhenServing: e.Spec.WhenServing, FormerVolumes: e.Spec.FormerVolumes,
		}
		if p := e.Status.Plan; p != nil { // the status of the cluster was lost: the plan holds that a person has looked at
			bindTo(next, p.DeepCopy())
		}
		return next, nil
	}
	return nil, nil
}

// mostCarriedOut is the schema's bound on status.carriedOut.
const mostCarriedOut = 16

// setRestore goes on with the EtcdRestore that is carried out, or begins with the next.
func setRestore(s *api.EtcdClusterStatus, c *api.EtcdCluster, seen observed, now metav1.Time) {
	end := func(phase api.RestorePhase, message string) {
		s.Restore.Phase, s.Restore.Message = phase, message
		s.CarriedOut = append(s.CarriedOut, s.Restore.Name)
		s.CarriedOut = s.CarriedOut[max(0, len(s.CarriedOut)-mostCarriedOut):]
	}
	switch r := s.Restore; {
	case r == nil || r.Phase == api.RestoreRefused || r.Phase == api.RestoreCompleted:
		if seen.next != nil {
			s.Restore = seen.next
		} else if seen.reached {
			r.CompletedAt = &now
		}
	case r.Phase == api.RestoreReverting:
		s.ClusterID = "" // whatever the new members have formed
	case r.Phase == api.RestoreRestoring && s.ClusterID != "":
		end(api.RestoreCompleted, "")
	case r.Phase == api.RestoreRestoring && seen.deleted:
		r.Phase = api.RestoreReverting
	case r.Phase == api.RestoreRestoring:
	case seen.deleted:
		s.Restore = nil
	default:
		why, passes := membership.InPlaceWaits(desired(c), seen.Observed)
		why = podstatus.FirstLine(why) // an API server, or what it asks, may have much to say
		switch {
		case membership.InPlaceRefused(seen.Observed):
			end(api.RestoreRefused, why)
		case why == "", passes:
			r.Phase, r.Message = api.RestorePending, why
		default:
			r.Phase, r.Message = api.RestoreBlocked, why
		}
		if why == "" {
			setPlan(r, c, seen, now)
		}
	}
}

// setHeld says why a restore in place does not begin though nothing is against it: a person must do
// something about the cluster first.
func setHeld(s *api.EtcdClusterStatus, seen observed, step membership.Step) {
	r := s.Restore
	begins := !seen.Search.Begun || seen.Search.Found != (membership.Snapshot{}) && !seen.InPlace.Suspended
	if r.Asked() && r.UID == seen.InPlace.UID && r.Message == "" && begins && step.Action == membership.Stall {
		r.Phase, r.Message = api.RestoreBlocked, podstatus.FirstLine("the EtcdCluster is held up: "+step.Message)
	}
}

// stopJobs deletes the Jobs of a restore in place that is not asked for any more, and the search of
// one that is suspended once its plan is told (planShown): when it is resumed the store is searched
// again, also where the search is the same. Before clients are let in, it also deletes one that has
// yet to copy to a first member that runs by now: it must find no blank disk there later. One that
// has done so stays for ten minutes, so that a request for it that was made before does not make
// another one. Before there is any volume to copy to, it deletes one of an earlier restore, which
// may have come late: where the status was lost, it would copy to a new member of that name.
func (r *Reconciler) stopJobs(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	restore := c.Status.Restore
	always := func(*batchv1.Job) bool { return true }
	switch {
	case restore.Asked() && (seen.deleted || membership.InPlaceRefused(seen.Observed) || planShown(c, seen)):
		return r.stopJob(ctx, c, c.FindJobName(), always)
	case restore != nil && restore.Phase == api.RestoreRestoring && len(seen.claims) == 0 && !seen.Formed():
		return r.stopJob(ctx, c, c.CopyJobName(), always)
	case restore != nil && restore.Phase == api.RestoreReverting && restore.Survivor != nil:
		return r.stopJob(ctx, c, c.CopyJobName(), always)
	case restore != nil && restore.Phase == api.RestoreRestoring && restore.Survivor != nil && (seen.Formed() || step.Reason == membership.Formed):
		return r.stopJob(ctx, c, c.CopyJobName(), func(job *batchv1.Job) bool { return job.Status.Succeeded == 0 })
	default:
		return nil
	}
}

// untilRestoreLook is when to look again at the latest for the sake of a restore in place, of which
// no watch tells.
func untilRestoreLook(c *api.EtcdCluster, seen observed) time.Duration {
	switch {
	case awaitsClients(c):
		return whileSearching
	case seen.next != nil, seen.deleted:
		return afterChange
	case seen.copies && !seen.Copy.Done && seen.Copy.Problem == "":
		return whileSearching
	case seen.InPlace.Name != "" && seen.Search.Begun && seen.Search.Problem == "" && seen.Search.Found == (membership.Snapshot{}):
		return whileSearching
	default:
		return atRest
	}
}

// whileSearching is how soon to look again at a Job of a restore in place, or at the EndpointSlices
// after it, of which no watch tells.
const whileSearching = time.Second
