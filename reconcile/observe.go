package reconcile

import (
	"cmp"
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

// observe looks at the objects of the cluster and asks every member. That etcd does not answer is a fact, no error.
func (r *Reconciler) observe(ctx context.Context, c *api.EtcdCluster) (observed, error) {
	seen := observed{pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{}}
	ours := []client.ListOption{client.InNamespace(c.Namespace), client.MatchingLabels(render.Selector(c))}
	pods := &corev1.PodList{}
	if err := r.Client.List(ctx, pods, ours...); err != nil {
		return observed{}, fmt.Errorf("list Pods: %w", err)
	}
	claims := &corev1.PersistentVolumeClaimList{}
	if err := r.Client.List(ctx, claims, ours...); err != nil {
		return observed{}, fmt.Errorf("list PersistentVolumeClaims: %w", err)
	}
	for i := range pods.Items {
		seen.pods[pods.Items[i].Name] = &pods.Items[i]
	}
	for i := range claims.Items {
		seen.claims[claims.Items[i].Name] = &claims.Items[i]
	}

	asked := r.ask(ctx, c, seen.pods)
	seen.Observed = facts(c, seen.pods, seen.claims, asked, time.Now().Add(-r.StallAfter))
	return seen, nil
}

// facts puts together what is known of each member, from whichever side. Pods that have not been ready since before overdue
// have had time enough.
func facts(c *api.EtcdCluster, pods map[string]*corev1.Pod, claims map[string]*corev1.PersistentVolumeClaim, asked answers, overdue time.Time) membership.Observed {
	o := membership.Observed{ClusterID: membership.ParseID(c.Status.ClusterID), Members: asked.members}
	all := roster{cluster: c, instances: map[string]*membership.Instance{}}
	for name, claim := range claims {
		all.at(name, func(i *membership.Instance) { i.Volume = volume(c, claim) })
	}
	for name, pod := range pods {
		all.at(name, func(i *membership.Instance) {
			i.Pod = podFacts(c, pod, overdue)
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
	all.expect()
	all.identify(asked.members)

	o.Instances = all.sorted()
	for n := range o.Instances {
		i := &o.Instances[n]
		if e := asked.endpoints[i.Name]; i.ID == 0 || e.MemberID == i.ID {
			i.Endpoint = e // another one answers at the address of a Pod that is gone, or has got a new one
		}
		if i.Endpoint.Answered() {
			o.Reach = membership.ReachSome
		}
		if pod := pods[i.Name]; pod != nil {
			i.Pod.Outdated = len(render.Outdated(c, pod)) > 0 || etcdImage(pod) != render.Image(c, runs(c, *i))
		}
	}
	if asked.members != nil {
		o.Reach = membership.ReachQuorum
	}
	o.Pending = pending(c, pods, claims, o.Instances)
	return o
}

// roster is the members that are known from anywhere.
type roster struct {
	cluster   *api.EtcdCluster
	instances map[string]*membership.Instance
}

// at puts a member on the roster, and adds what is known of it. A name that can be none of ours is passed over.
func (r roster) at(name string, add func(*membership.Instance)) {
	ordinal, ok := r.cluster.Ordinal(name)
	if !ok {
		return
	}
	if r.instances[name] == nil {
		r.instances[name] = &membership.Instance{Name: name, Ordinal: ordinal}
	}
	if add != nil {
		add(r.instances[name])
	}
}

// expect puts those on the roster that the spec asks for, or that a first start began with.
func (r roster) expect() {
	wanted := size(r.cluster)
	for _, i := range r.instances {
		wanted = max(wanted, i.Volume.First.Size)
	}
	for n := range wanted {
		r.at(r.cluster.MemberName(n), nil)
	}
}

// identify gives each member the ID that etcd knows it by: from etcd's list, or else from what the status remembers of it,
// or else from its volume.
func (r roster) identify(members []membership.Member) {
	ids := map[string]membership.ID{}
	for _, m := range r.cluster.Status.Members {
		ids[m.Name] = membership.ParseID(m.ID)
	}
	for _, m := range members {
		if _, ours := addressee(r.cluster, m); !ours {
			ids[m.Name] = m.ID // what a process says of itself counts only where no peer URL says otherwise
		}
	}
	for _, m := range members {
		if name, ours := addressee(r.cluster, m); ours {
			ids[name] = m.ID
		}
	}
	for name, id := range ids {
		r.at(name, func(i *membership.Instance) { i.ID = id })
	}
	for _, i := range r.instances {
		if i.ID == 0 {
			i.ID = i.Volume.MemberID
		}
	}
}

// addressee is whose peer URL a member of etcd's list has; false where it is none of ours.
func addressee(c *api.EtcdCluster, m membership.Member) (string, bool) {
	for _, url := range m.PeerURLs {
		host, _, _ := strings.Cut(strings.TrimPrefix(url, "http://"), ".")
		if _, ok := c.Ordinal(host); ok && c.PeerURL(host) == url {
			return host, true
		}
	}
	return "", false
}

// sorted are the members by ordinal.
func (r roster) sorted() []membership.Instance {
	sorted := make([]membership.Instance, 0, len(r.instances))
	for _, i := range r.instances {
		sorted = append(sorted, *i)
	}
	slices.SortFunc(sorted, func(a, b membership.Instance) int { return cmp.Compare(a.Ordinal, b.Ordinal) })
	return sorted
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

// runs is the version that a Pod of the instance is to run: what its volume ran last, or what the spec says.
func runs(c *api.EtcdCluster, i membership.Instance) string {
	if i.Volume.Recorded() && i.Volume.Version != (membership.Version{}) {
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
