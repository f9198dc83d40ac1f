package reconcile

import (
	"cmp"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// What a Pod is made of. What the spec says came from a person a moment ago, and may be such that
// etcd does not start or no node fits. So it comes to a member that can be spared, by an Update
// that says so on the volume first (AnnotationNextWith), or to one that is stuck with what it has.
// For any other reason, a deletion, a drain or a put-back, a Pod is made of what the member has
// served with (AnnotationServed).
//
// What a member is being changed to stays the same until it has proved to run well, or is rolled
// back, whatever the spec says by then: etcd may have run on the volume with it, and if it did not
// come up with something else, that could not be told, and it would be rolled back to a version
// that cannot read the data any more.

// made is the EtcdCluster as the Pod of a member is made of it, and whether a volume says so
// (render.Member.Proved). Members to come are made of what another one serves with.
func made(c *api.EtcdCluster, claims map[string]*corev1.PersistentVolumeClaim, i membership.Instance) (of *api.EtcdCluster, proved bool) {
	if i.Volume.Next != (membership.Version{}) {
		if claim := claims[i.Name]; claim != nil {
			if next, ok := asServed(c, render.Said(claim.Annotations[api.AnnotationNextWith], claim)); ok {
				return next, true
			}
		}
		return c, false
	}
	if served, ok := asServed(c, said(claims[i.Name])); ok {
		return served, true
	}
	if i.Volume.Recorded() {
		return c, false
	}
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		if served, ok := asServed(c, said(claims[name])); ok && claims[name].Annotations[api.AnnotationRetired] == "" {
			return fitting(c, served), true
		}
	}
	return c, false
}

// asServed is the EtcdCluster as a Pod is made of it whose member has served with what its claim
// says. Before the cluster has formed no member serves clients, so the clients' port is as the spec
// says: where an EtcdCluster is created again over its volumes, the Secrets of the former one are
// gone. Plain text needs none, and is what the member comes back with. That is written down before
// the cluster forms (kept).
func asServed(c *api.EtcdCluster, said string) (*api.EtcdCluster, bool) {
	served, ok := render.AsServed(c, said)
	if !ok || c.Status.ClusterID != "" || c.AskedClientTLSMode() == "" || !served.ClientTLS() {
		return served, ok
	}
	return render.WithClientPort(served, c.ClientPort()), true
}

// kept is a record as the claim of a member is to have it from now on.
func kept(c *api.EtcdCluster, record string) string {
	if c.Status.ClusterID != "" {
		return record
	}
	if served, ok := asServed(c, record); ok {
		return cmp.Or(render.Served(served, record), record)
	}
	return record
}

// fitting is what a member to come is made of: its volume is as the spec says by now, and a quota
// that is no less than that would fill its disk.
func fitting(c, served *api.EtcdCluster) *api.EtcdCluster {
	o := served.Spec.Options
	if o != nil && o.QuotaBackendSize != nil && o.QuotaBackendSize.Cmp(c.Spec.Storage.Size) >= 0 {
		o.QuotaBackendSize = ptr.Deref(c.Spec.Options, api.Options{}).QuotaBackendSize
	}
	return served
}

func (seen observed) made(c *api.EtcdCluster, name string) (of *api.EtcdCluster, proved bool) {
	i, _ := seen.Instance(name)
	return made(c, seen.claims, i)
}

// said is what a claim says of what its member has served with.
func said(claim *corev1.PersistentVolumeClaim) string {
	if claim == nil { // with storage.medium Memory nothing outlives the Pod
		return ""
	}
	return render.Said(claim.Annotations[api.AnnotationServed], claim)
}

// servedFlags are the flags of the spec that have values with which a member has served, one of
// before a restore in place too: the new members are to be like those.
func servedFlags(c *api.EtcdCluster, seen observed) map[string]string {
	asked := ptr.Deref(c.Spec.Options, api.Options{}).Flags
	if len(asked) == 0 {
		return nil
	}
	flags := map[string]string{}
	for _, claims := range []map[string]*corev1.PersistentVolumeClaim{seen.claims, seen.former.claims} {
		for _, claim := range claims {
			served, ok := render.AsServed(c, said(claim))
			if !ok {
				continue
			}
			for name, value := range ptr.Deref(served.Spec.Options, api.Options{}).Flags {
				if wanted, ok := asked[name]; ok && wanted == value {
					flags[name] = value
				}
			}
		}
	}
	for name, value := range asked {
		if c.Spec.Storage.Medium == api.MediumMemory && seen.runsWith(name, value) {
			flags[name] = value
		}
	}
	return flags
}

// runsWith reports whether a member has answered with a flag, as its Pod tells, whose arguments
// never change: with storage.medium Memory nothing else does.
func (seen observed) runsWith(name, value string) bool {
	return slices.ContainsFunc(seen.Instances, func(i membership.Instance) bool {
		pod := seen.pods[i.Name]
		return pod != nil && i.Volume.Recorded() && slices.Contains(etcdArgs(pod), "--"+name+"="+value)
	})
}

// refused tells of members that have no Pod because the API server takes none that is made like
// theirs: a priority class is not there, a quota is used up, a policy says no. It said so when this
// very Pod was to be created last.
func refused(c *api.EtcdCluster, o *membership.Observed, claims map[string]*corev1.PersistentVolumeClaim, l limits) {
	hop := membership.Hop(desired(c), *o)
	for n := range o.Instances {
		i := &o.Instances[n]
		last, tried := l.refused[i.Name]
		if !tried || i.Pod.Exists() || !i.Volume.Recorded() || l.now.Sub(last.last) >= refusalLapses {
			continue
		}
		served, ok := asServed(c, said(claims[i.Name]))
		if !ok && i.Volume.Next == (membership.Version{}) {
			continue
		}
		of, _ := made(c, claims, *i)
		if last.madeOf != madeOf(of, claims[i.Name]) {
			continue
		}
		i.Pod.Problem, i.Pod.NeverRan, i.Pod.Overdue = "has no Pod: "+last.message, true, last.since.Before(l.stallBefore)
		if ok {
			i.Pod.Untried = render.Differing(of, served)
		}
		otherVersion := i.Volume.Changes() && i.Volume.Next != hop
		if givenUp(c) == "" && (len(render.Differing(of, c)) > 0 || otherVersion) {
			i.Pod.Outdated, i.Pod.Change = true, membership.ChangePod
		}
	}
}

// refusal is what the API server said of this spec in the last look; nil where it took it.
func refusal(c *api.EtcdCluster) *metav1.Condition {
	stalled := meta.FindStatusCondition(c.Status.Conditions, api.ConditionStalled)
	if stalled == nil || stalled.Reason != api.ReasonRefused || stalled.ObservedGeneration != c.Generation {
		return nil
	}
	return stalled
}

// nextWith is what the claim of a member is to say that it is being changed to; nothing where it is
// not known what it has served with, for then there is nothing to go back to. In place only the
// image changes.
func nextWith(c *api.EtcdCluster, claim *corev1.PersistentVolumeClaim, change membership.Change) string {
	next, ok := render.AsServed(c, said(claim))
	switch {
	case !ok:
		return ""
	case change != membership.ChangeImage:
		return render.Served(c, "")
	default:
		next.Spec.Image, next.Spec.Version = c.Spec.Image, c.Spec.Version
		return render.Served(next, "")
	}
}

// serves is what the claim of a member is to say of what it has served with: what its Pod is made
// of, where it has stayed ready with that for long enough and that is known, or else what it says.
// Where it says nothing, there is nothing to lose.
func serves(c *api.EtcdCluster, seen observed, name string) string {
	i, _ := seen.Instance(name)
	pod, claim := seen.pods[name], seen.claims[name]
	says := kept(c, said(claim))
	if claim == nil || pod == nil || !i.Serves() || i.Pod.Changing || i.Pod.Terminating || i.Pod.Unproved && says != "" {
		return says
	}
	m := member(c, seen, name)
	served, proved := made(c, seen.claims, i)
	all := []*api.EtcdCluster{c}
	if slices.Contains(i.Pod.Untried, render.PartClientPort) { // it was made before the cluster had formed
		all = append(all, render.WithClientPort(served, render.ClientPort(c, pod)))
	}
	for _, of := range append(all, served) {
		m.Proved = proved && of != c
		text := render.NameMetadata(render.Served(of, says), c, pod)
		if text == says {
			return text
		}
		if refusedUnlessProved(of, seen, m.Proved) != nil { // it is made of something else
			continue
		}
		if change, _, err := render.Needs(pod, of, m); err == nil && change == render.ChangeNone {
			return text
		}
	}
	return says
}
