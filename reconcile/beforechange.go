package reconcile

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/render"
)

// observeBackup looks at the EtcdBackup that is taken before the version changes, where members run
// another one than the spec asks for.
func observeBackup(ctx context.Context, c *api.EtcdCluster, seen *observed, reader client.Reader) error {
	wanted := desired(c)
	if !wanted.BackUp || !slices.ContainsFunc(seen.Instances, func(i membership.Instance) bool {
		return i.Endpoint.Answered() && i.Endpoint.Version != wanted.Version
	}) {
		return nil
	}
	b := &api.EtcdBackup{}
	key := client.ObjectKey{Namespace: c.Namespace, Name: c.BackupBeforeChangeName()}
	err := reader.Get(ctx, key, b)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("get EtcdBackup %s: %w", key.Name, err)
	}
	if err == nil {
		seen.Backup = backupFacts(c, b)
		return nil
	}
	return earlierBackup(ctx, c, seen, reader)
}

// earlierBackup looks for the EtcdBackup that serves for this generation of the spec, though it was
// made for an earlier one: it was told so while it was under way, and goes on, or is under way.
// That is written on it, and is nothing that could be seen later: one that has been verified may be
// of last year.
func earlierBackup(ctx context.Context, c *api.EtcdCluster, seen *observed, reader client.Reader) error {
	seen.Backup = backupFacts(c, nil)
	all := &api.EtcdBackupList{}
	if err := reader.List(ctx, all, client.InNamespace(c.Namespace), client.MatchingLabels{api.LabelBeforeChange: string(c.UID)}); err != nil {
		return fmt.Errorf("list EtcdBackups: %w", err)
	}
	slices.SortFunc(all.Items, func(a, b api.EtcdBackup) int { // the newest first
		return cmp.Or(b.CreationTimestamp.Compare(a.CreationTimestamp.Time), cmp.Compare(b.Name, a.Name))
	})
	for n := range all.Items {
		b := &all.Items[n]
		found := backupFacts(c, b)
		serves := b.Annotations[api.AnnotationTakenFor] == strconv.FormatInt(c.Generation, 10)
		switch {
		case serves && (found.State == membership.BackupVerified || found.State == membership.BackupRuns || found.State == membership.BackupStalled):
			seen.Backup, seen.earlier = found, nil
			return nil
		case found.State == membership.BackupRuns && seen.earlier == nil && asAsked(c, b):
			seen.Backup, seen.earlier = found, b
			seen.Backup.State = membership.BackupEarlier
		}
	}
	return nil
}

// asAsked reports whether the snapshot of an EtcdBackup is, or will be, in the store that the spec
// of the cluster names now, and encrypted as it asks now.
func asAsked(c *api.EtcdCluster, b *api.EtcdBackup) bool {
	return b.Status.Attempt == 0 ||
		equality.Semantic.DeepEqual(b.Status.Store, b.StoreFor(c)) && equality.Semantic.DeepEqual(b.Encryption(), b.EncryptionFor(c))
}

// backupFacts is what the planner needs to know of it; nil where there is none.
func backupFacts(c *api.EtcdCluster, b *api.EtcdBackup) membership.Backup {
	facts := membership.Backup{Name: c.BackupBeforeChangeName()}
	if b == nil {
		return facts
	}
	facts.Name = b.Name
	if ready := meta.FindStatusCondition(b.Status.Conditions, api.ConditionReady); ready != nil {
		facts.Says = ready.Message
	}
	stalled := meta.IsStatusConditionTrue(b.Status.Conditions, api.ConditionStalled)
	switch s := b.Status; {
	case b.Labels[api.LabelBeforeChange] != string(c.UID) || b.Spec.ClusterRef.Name != c.Name:
		facts.State = membership.BackupForeign
	case !b.DeletionTimestamp.IsZero():
		saidBefore := s.Failure != nil && s.Failure.Message == facts.Says
		if facts.State = membership.BackupGoing; !stalled || saidBefore {
			facts.Says = ""
		}
	case s.VerifiedAt != nil:
		facts.State = membership.BackupVerified
	case s.Failure != nil:
		facts.State, facts.Says = membership.BackupGivenUp, s.Failure.Message
	case stalled:
		facts.State = membership.BackupStalled
	default:
		facts.State = membership.BackupRuns
	}
	return facts
}

// backUp creates it where there is none, in the turn of the cluster.
func (r *Reconciler) backUp(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	// Past the cache: the spec may ask for something else, or the cluster be on its way out.
	live := &api.EtcdCluster{}
	if err := r.Reader.Get(ctx, client.ObjectKeyFromObject(c), live); err != nil {
		return fmt.Errorf("look at the EtcdCluster again: %w", err)
	}
	if live.UID != c.UID || live.Generation != c.Generation || !live.DeletionTimestamp.IsZero() {
		return apply.ErrChanged
	}
	if b := seen.earlier; b != nil {
		want := render.BackupTakenFor(c, b.Name).WithUID(b.UID).WithResourceVersion(b.ResourceVersion) // as it was seen: it has not ended
		if err := r.Client.Apply(ctx, want, client.FieldOwner(api.Manager), client.ForceOwnership); err != nil {
			return fmt.Errorf("take EtcdBackup %s: %w", b.Name, err)
		}
		return nil
	}
	want := render.BackupBeforeChange(c)
	name := *want.GetName()
	err := r.Client.Apply(ctx, want.WithResourceVersion(apply.OnlyIfAbsent), client.FieldOwner(api.Manager), client.ForceOwnership)
	if apierrors.IsConflict(err) {
		return apply.ErrChanged // it is there, and the cache soon has it
	}
	if err != nil {
		return fmt.Errorf("create EtcdBackup %s: %w", name, err)
	}
	r.event(c, step, "Created EtcdBackup "+name)
	return nil
}
