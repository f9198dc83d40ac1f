package reconcile

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/render"
)

// prepare makes the volumes of members to come, and the Pods that have them made, where there are
// none.
func (r *Reconciler) prepare(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	if step.Reason == membership.Moving {
		if !slices.ContainsFunc(seen.Instances, seen.Doomed) { // data that is about to go waits for no turn
			if err := r.changing.enter(c, r.MaxChanging); err != nil {
				return err
			}
		}
		if err := r.confirm(ctx, c, step); err != nil { // a claim is often deleted with its Pod, and then its member goes first
			return err
		}
	}
	spare := func(name string) render.Member {
		m := member(c, seen, name)
		m.Join, m.Version = api.JoinPending, step.Version.String()
		return m
	}
	volumes := step
	volumes.Members = nil
	for _, name := range step.Members {
		if claim := seen.claims[name]; claim == nil {
			volumes.Members = append(volumes.Members, name)
		} else if err := r.stillAs(ctx, claim); err != nil {
			return err
		}
	}
	all := seen.withVolumeMetadata(c)
	err := r.create(ctx, c, volumes, func(name string) (forms []runtime.ApplyConfiguration, _ error) {
		for _, of := range all {
			forms = append(forms, render.Volume(of, spare(name)).WithResourceVersion(apply.OnlyIfAbsent))
		}
		return forms, nil
	})
	if err != nil {
		return err
	}
	return each(step.Members, func(name string) error {
		m := spare(name)
		of, proved := seen.made(c, name)
		m.Proved = proved
		if err := refusedUnlessProved(of, seen, proved); err != nil {
			return &invalidError{err}
		}
		forms, err := podForms(of, seen, m, render.Provisioner)
		if err != nil {
			return &invalidError{err}
		}
		_, err = r.createOne(ctx, c, forms...)
		return err
	})
}

// join starts a learner for the first time. Its volume is given to it first, so that no other
// member ever gets it; then its Pod, in which nothing has run yet, is told of the others, which
// lets etcd start (render.Provisioner). A Pod that was made of an earlier spec or for another
// version goes first, and is recreated when it is gone.
func (r *Reconciler) join(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	name := step.Members[0]
	m := member(c, seen, name)
	m.Join, m.Version = step.ID.String(), step.Version.String()
	m.InitialCluster, m.InitialClusterState = joinCluster(c, seen), render.StateExisting
	m.InitialCorruptCheck = false // it has no data yet
	if step.Version.Minor == 6 && slices.ContainsFunc(seen.Instances, func(i membership.Instance) bool { return i.Volume.Replays != "" }) {
		m.Replays = membership.ReplaysAny // the leader may send it entries of 3.5 from memory
	}
	claim := seen.claims[name]
	given := claim != nil && claim.Annotations[api.AnnotationJoin] == m.Join
	if claim != nil && !given {
		if err := r.writeVolume(ctx, c, claim, m); err != nil {
			return err
		}
	}
	pod := seen.pods[name]
	of, proved := seen.made(c, name)
	m.Proved = proved
	if pod == nil {
		if given {
			if err := r.stillAs(ctx, claim); err != nil {
				return err
			}
		}
		return r.create(ctx, c, step, func(string) ([]runtime.ApplyConfiguration, error) { return absentPod(of, seen, m) })
	}
	if len(render.Outdated(of, pod)) > 0 || render.AppliedImage(of, pod) != render.Image(of, m.Version) {
		return r.deletePod(ctx, c, pod, step) // the next pass goes on
	}
	if err := r.openGate(ctx, c, seen, m); err != nil {
		return err
	}
	r.event(c, step, "Started etcd in Pod "+name)
	return nil
}

// openGate tells the Pod of a learner, in which nothing has run yet, of the others; with the labels
// and annotations that the API server took for a Pod before, where it refuses those of the spec.
func (r *Reconciler) openGate(ctx context.Context, c *api.EtcdCluster, seen observed, m render.Member) error {
	pod := seen.pods[m.Name]
	var forms []runtime.ApplyConfiguration
	for _, of := range seen.withTakenMetadata(c, m.Name) {
		told, err := render.PodMetadata(pod, of, m)
		if err != nil {
			return &invalidError{err}
		}
		forms = append(forms, told.WithUID(pod.UID).WithResourceVersion(pod.ResourceVersion))
	}
	_, err := r.applyFirst(ctx, c, forms...)
	return err
}

// stillAs looks at a claim past the cache, and reports apply.ErrChanged where it is not as it was
// seen: the Pod of a member to come, or of a learner, must not come to the volume of a voter, whose
// own Pod may be away for a moment.
func (r *Reconciler) stillAs(ctx context.Context, seen *corev1.PersistentVolumeClaim) error {
	now := &corev1.PersistentVolumeClaim{}
	err := r.Reader.Get(ctx, client.ObjectKeyFromObject(seen), now)
	if apierrors.IsNotFound(err) || err == nil && !sameToUs(seen, now) {
		return apply.ErrChanged
	}
	if err != nil {
		return fmt.Errorf("get PersistentVolumeClaim %s: %w", seen.Name, err)
	}
	return nil
}

// joinCluster is what a new member is told of the others: their peer URLs verbatim.
func joinCluster(c *api.EtcdCluster, seen observed) string {
	names := map[string]string{}
	for _, m := range seen.Members {
		name, ours := addressee(c, m)
		if !ours {
			name = m.Name
		}
		for _, url := range m.PeerURLs {
			names[url] = name
		}
	}
	return render.Join(names)
}
