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
	"quorate.dev/render"
)

// prepare makes the volumes of members to come, and the Pods that have them made.
func (r *Reconciler) prepare(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	if step.Reason == membership.Moving {
		if err := r.changing.enter(c, r.MaxChanging); err != nil {
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
		if seen.claims[name] == nil {
			// A claim that the cache does not know yet may say by now whose it is, and applying it would take that away.
			err := r.Reader.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: name}, &corev1.PersistentVolumeClaim{})
			if err == nil {
				return errChanged
			}
			if !apierrors.IsNotFound(err) {
				return fmt.Errorf("get PersistentVolumeClaim %s: %w", name, err)
			}
			volumes.Members = append(volumes.Members, name)
		}
	}
	err := r.create(ctx, c, volumes, func(name string) (runtime.ApplyConfiguration, error) {
		return render.Volume(c, spare(name)), nil
	})
	if err != nil {
		return err
	}
	return each(step.Members, func(name string) error {
		pod, err := render.Provisioner(seen.made(c, name), spare(name))
		if err != nil {
			return &invalidError{err}
		}
		_, err = r.apply(ctx, c, pod)
		return err
	})
}

// join starts a learner for the first time. Its volume is given to it first, so that nobody else ever gets it; then its Pod,
// in which nothing has run yet, is told of the others, which lets etcd start (render.Provisioner). A Pod that was made of an
// earlier spec or for another version goes first, and is made anew when it is gone.
func (r *Reconciler) join(ctx context.Context, c *api.EtcdCluster, seen observed, step membership.Step) error {
	name := step.Members[0]
	m := member(c, seen, name)
	m.Join, m.Version = step.ID.String(), step.Version.String()
	m.InitialCluster, m.InitialClusterState = joinCluster(c, seen), render.StateExisting
	m.InitialCorruptCheck = false // it has no data yet
	if step.Version.Minor == 6 && slices.ContainsFunc(seen.Instances, func(i membership.Instance) bool { return i.Volume.Replays != "" }) {
		m.Replays = membership.ReplaysAny // the leader may send it entries of 3.5 from memory
	}
	if claim := seen.claims[name]; claim != nil && claim.Annotations[api.AnnotationJoin] != m.Join {
		if err := r.applyClaim(ctx, c, claim, render.Volume(c, m)); err != nil {
			return err
		}
	}
	pod, of := seen.pods[name], seen.made(c, name)
	if pod == nil {
		return r.create(ctx, c, step, func(string) (runtime.ApplyConfiguration, error) { return absentPod(of, m) })
	}
	if len(render.Outdated(of, pod)) > 0 || render.AppliedImage(of, pod) != render.Image(of, m.Version) {
		return r.deletePod(ctx, c, pod, step) // the next pass goes on
	}
	told, err := render.PodMetadata(pod, c, m)
	if err != nil {
		return &invalidError{err}
	}
	if err := r.applyPod(ctx, c, pod, told); err != nil {
		return err
	}
	r.event(c, step, string(step.Action)+" "+name)
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
