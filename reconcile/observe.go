package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// observed is one look at a cluster: the facts for the planner, and the objects they were read from.
type observed struct {
	membership.Observed
	pods   map[string]*corev1.Pod
	claims map[string]*corev1.PersistentVolumeClaim
}

// observe looks at the objects of the cluster, as the reader has them, and asks every member. That etcd does not answer is a
// fact, no error.
func (r *Reconciler) observe(ctx context.Context, c *api.EtcdCluster, reader client.Reader) (observed, error) {
	seen := observed{pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{}}
	ours := []client.ListOption{client.InNamespace(c.Namespace), client.MatchingLabels(render.Selector(c))}
	pods := &corev1.PodList{}
	if err := reader.List(ctx, pods, ours...); err != nil {
		return observed{}, fmt.Errorf("list Pods: %w", err)
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := reader.List(ctx, claims, ours...); err != nil {
		return observed{}, fmt.Errorf("list PersistentVolumeClaims: %w", err)
	}
	for i := range pods.Items {
		seen.pods[pods.Items[i].Name] = &pods.Items[i]
	}
	for i := range claims.Items {
		seen.claims[claims.Items[i].Name] = &claims.Items[i]
	}

	asked := r.ask(ctx, c, seen.pods)
	now := time.Now()
	seen.Observed = facts(c, seen.pods, seen.claims, asked, limits{now: now, overdue: now.Add(-r.StallAfter), forsaken: now.Add(-replaceAfter(c))})
	return seen, nil
}

// facts puts together what is known of each member, from whichever side.
func facts(c *api.EtcdCluster, pods map[string]*corev1.Pod, claims map[string]*corev1.PersistentVolumeClaim, asked answers, l limits) membership.Observed {
	o := membership.Observed{ClusterID: membership.ParseID(c.Status.ClusterID), Members: asked.members}
	all := roster{cluster: c, instances: map[string]*membership.Instance{}}
	for name, claim := range claims {
		all.at(name, func(i *membership.Instance) { i.Volume = volume(c, claim) })
	}
	for name, pod := range pods {
		all.at(name, func(i *membership.Instance) {
			i.Pod = podFacts(c, pod, l)
			if c.Spec.Storage.Medium == api.MediumMemory && !i.Pod.Ended {
				i.Volume = volume(c, pod)
			}
		})
	}
	if op := c.Status.Operation; op != nil && op.Step == string(membership.Bootstrap) {
		o.Bootstrapping = map[string]string{}
		for _, t := range op.Targets {
			o.Bootstrapping[t.Member] = t.UID
			all.at(t.Member, nil)
		}
	}
	o.Remembered = slices.ContainsFunc(c.Status.Members, func(m api.MemberStatus) bool { return m.ID != "" })
	all.identify(asked.members, o.Remembered)
	if o.Instances = all.sorted(); !o.Formed() || !o.Remembered {
		all.expect(o.Formed())
		all.identify(asked.members, o.Remembered)
		o.Instances = all.sorted()
	}
	o.Fresh = all.fresh(o.Instances)
	o.Reach = answered(c, o.Instances, pods, asked)
	o.Pending = pending(c, pods, claims, o.Instances)
	return o
}

// answered adds to the instances what their members said, and what runs in their Pods, and tells how far etcd was reached.
func answered(c *api.EtcdCluster, instances []membership.Instance, pods map[string]*corev1.Pod, asked answers) membership.Reach {
	reach := membership.ReachNone
	for n := range instances {
		i := &instances[n]
		if e := asked.endpoints[i.Name]; i.ID == 0 || e.MemberID == i.ID {
			i.Endpoint = e // another one answers at the address of a Pod that is gone, or has got a new one
		}
		if i.Endpoint.Answered() {
			reach = membership.ReachSome
		}
		if pod := pods[i.Name]; pod != nil {
			i.Pod.Outdated = len(render.Outdated(c, pod)) > 0 || etcdImage(pod) != render.Image(c, runs(c, *i))
		}
	}
	if asked.members != nil {
		reach = membership.ReachQuorum
	}
	return reach
}

// mostMembers is the schema's bound on spec.replicas. An annotation that says more was not written by Quorate.
const mostMembers = 9

// volume reads what a claim, or with medium Memory the Pod itself, says about the data of a member.
func volume(c *api.EtcdCluster, o client.Object) membership.Volume {
	a := o.GetAnnotations()
	v := membership.Volume{
		UID:         string(o.GetUID()),
		Terminating: !o.GetDeletionTimestamp().IsZero(),
		ClusterID:   membership.ParseID(a[api.AnnotationClusterID]),
		MemberID:    membership.ParseID(a[api.AnnotationMemberID]),
	}
	v.Foreign, v.Terminating = belongs(c, o)
	v.Spare, v.Retired = a[api.AnnotationJoin] == api.JoinPending, a[api.AnnotationRetired] != ""
	v.Joins = membership.ParseID(a[api.AnnotationJoin])
	token, first, _ := strings.Cut(a[api.AnnotationBootstrap], "/")
	if n, err := strconv.Atoi(first); err == nil && n > 0 && n <= mostMembers {
		v.First = membership.First{Token: token, Size: n}
	}
	if version, err := membership.ParseVersion(a[api.AnnotationVersion]); err == nil {
		v.Version = version
	}
	return v
}

// belongs tells whose an object with our labels is: somebody else's, or an earlier EtcdCluster's of the same name, which
// the garbage collector is about to delete. One without an owner is ours: a retained volume, or an orphan to adopt.
func belongs(c *api.EtcdCluster, o client.Object) (foreign, terminating bool) {
	terminating = !o.GetDeletionTimestamp().IsZero()
	owner := metav1.GetControllerOf(o)
	if owner == nil || owner.UID == c.UID {
		return false, terminating
	}
	if owner.Kind == api.EtcdClusterKind.Kind && owner.APIVersion == api.SchemeGroupVersion.String() && owner.Name == c.Name {
		return false, true
	}
	return true, terminating
}

// runs is the version that a Pod of the instance is to run: what its volume ran last, or was made for, or what the spec says.
func runs(c *api.EtcdCluster, i membership.Instance) string {
	given := i.Volume.Recorded() || i.Volume.Spare || i.Volume.Joins != 0
	if given && i.Volume.Version != (membership.Version{}) {
		return i.Volume.Version.String()
	}
	return strings.TrimPrefix(c.Spec.Version, "v")
}

// pending names the parts of the spec that running members do not have yet.
func pending(c *api.EtcdCluster, pods map[string]*corev1.Pod, claims map[string]*corev1.PersistentVolumeClaim, instances []membership.Instance) []string {
	parts := map[string]bool{}
	for _, i := range instances {
		if pod := pods[i.Name]; pod != nil {
			for _, part := range render.Outdated(c, pod) {
				parts[part] = true
			}
		}
		if claim := claims[i.Name]; claim != nil && c.Spec.Storage.Size.Cmp(*claim.Spec.Resources.Requests.Storage()) > 0 {
			parts[membership.VolumeSize] = true
		}
	}
	names := make([]string, 0, len(parts))
	for part := range parts {
		names = append(names, part)
	}
	slices.Sort(names)
	return names
}
