package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile/apply"
	"quorate.dev/render"
)

// observed is one look at a cluster: the facts for the planner, and the objects they were read
// from.
type observed struct {
	membership.Observed
	generation int64 // of the spec
	// credentials are what was found of certificates; nil where that does not matter.
	credentials *credentials
	// access is what was found of etcd's users; nil: the status says it.
	access *access
	// denied: etcd authenticates clients, and denies access to the operator.
	denied bool
	// earlier is the EtcdBackup of Backup where that was made for an earlier spec and is not told
	// yet that it is taken for this one; else nil.
	earlier *api.EtcdBackup
	// begun is since when the intent counts as begun; zero where there is none.
	begun time.Time
	// found is the snapshot that the search for one has found; nil while there is none.
	found  *api.RestoredSnapshot
	pods   map[string]*corev1.Pod
	claims map[string]*corev1.PersistentVolumeClaim
	// former are the objects of members of before a restore in place; none of them is among pods
	// and claims.
	former objectsOfFormer
	// next is the EtcdRestore that is to be carried out next; nil where there is none. deleted: the
	// one that is carried out was deleted.
	next    *api.ClusterRestore
	deleted bool
	// reached: clients can come to a cluster that was restored in place, of which that is not
	// written down yet.
	reached bool
	// copies: the first member is to have the data of a former one, and has not started yet.
	copies bool
	// touched are the members that the step of this pass restarts, removes, or takes the leadership
	// from. out are those that this pass takes out of the Service for clients.
	touched, out []string
	// proves is when the next member has been ready for long enough; 0 where none is about to.
	proves time.Duration
	// inconclusive: a dry run has shown nothing, so that what it was for may be held up. silence
	// tells of that where it lasts.
	inconclusive bool
	silence      string
}

// observe looks at the objects of the cluster, as the reader has them, and asks every member. That
// etcd does not answer is a fact, no error.
func (r *Reconciler) observe(ctx context.Context, c *api.EtcdCluster, reader client.Reader) (observed, error) {
	seen, err := r.objects(ctx, c, reader)
	if err != nil {
		return observed{}, err
	}
	asked := r.ask(ctx, c, seen.pods)
	now := time.Now()
	seen.begun, seen.denied = r.begun(c, now), asked.denied && asked.members == nil
	l := r.limits(c, now)
	l.first = r.firstSeen(c, seen.pods, now)
	seen.Observed = facts(c, seen.pods, seen.claims, asked, l)
	seen.GrowthRefused = r.refused.growth(c)
	for n := range seen.Instances {
		seen.Instances[n].Pod.RepairRefused = r.refused.ofRepair(c, seen.Instances[n].Name, now)
	}
	found := r.keys.of(c)
	for n := range seen.Instances {
		i := &seen.Instances[n]
		i.Pod.Cleared = i.Pod.Cleared || r.AgentImage == "" // there is nothing to run the agent of
		i.Pod.Expired = found.expiredFor(c, seen.pods[i.Name])
	}
	seen.Former = seen.former.facts(c, l)
	seen.proves = r.prove(c, &seen, l.first, now)
	r.compared(ctx, c, &seen)
	if err := errors.Join(r.observeRestores(ctx, c, &seen, reader), r.observeClients(ctx, c, &seen), r.searched(ctx, c, &seen), r.copied(ctx, c, &seen), observeBackup(ctx, c, &seen, reader)); err != nil {
		return observed{}, err
	}
	r.tries(ctx, c, &seen)
	return seen, nil
}

// objects are the Pods and claims of the cluster, by the names of its members.
func (r *Reconciler) objects(ctx context.Context, c *api.EtcdCluster, reader client.Reader) (observed, error) {
	seen := observed{generation: c.Generation, pods: map[string]*corev1.Pod{}, claims: map[string]*corev1.PersistentVolumeClaim{}}
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
	onlyMembers(c, &seen)
	err := errors.Join(r.unlabelledPods(ctx, c, seen), r.unlabelledClaims(ctx, c, seen), r.newClaims(ctx, c, seen))
	countable(&seen)
	seen.former = takeFormer(c, &seen)
	return seen, err
}

// facts puts together what is known of each member, from whichever side.
func facts(c *api.EtcdCluster, pods map[string]*corev1.Pod, claims map[string]*corev1.PersistentVolumeClaim, asked answers, l limits) membership.Observed {
	o := membership.Observed{ClusterID: membership.ParseID(c.Status.ClusterID), Members: asked.members, Snapshot: snapshotFacts(c.Status.Restored), InPlace: inPlace(c, l), Loss: lossFacts(c, l)}
	all := roster{cluster: c, instances: map[string]*membership.Instance{}}
	for name, claim := range claims {
		all.at(name, func(i *membership.Instance) {
			i.Volume = volume(c, claim)
			asked := claim.Spec.Resources.Requests.Storage()
			i.Volume.Small = c.Spec.Storage.Size.Cmp(*asked) > 0
			i.Volume.Growing = grows(c, claim)
			i.Volume.Stuck = stuck(c, claim, l.stallBefore)
			i.Volume.Unfit = unfit(c, claim)
			i.Volume.Capacity = capacity(claim).Value()
		})
	}
	for name, pod := range pods {
		all.at(name, func(i *membership.Instance) {
			l.readingTime = readingTime(databaseToRead(c, claims[name]))
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
	o.Reach = answered(o.Instances, pods, asked)
	if !preVotes(c) {
		for n := range o.Instances {
			o.Instances[n].Endpoint.RaftTerm = 0 // without a quorum the term changes every second
		}
	}
	compare(c, &o, pods, claims)
	refused(c, &o, claims, l)
	return o
}

// preVotes reports whether members pre-vote: then their term does not change while there is no
// quorum.
func preVotes(c *api.EtcdCluster) bool {
	if c.Spec.Options == nil {
		return true
	}
	preVote, err := strconv.ParseBool(c.Spec.Options.Flags["pre-vote"])
	return err != nil || preVote
}

// answered adds to the instances what their members said, and tells how far etcd was reached.
func answered(instances []membership.Instance, pods map[string]*corev1.Pod, asked answers) membership.Reach {
	reach := membership.ReachNone
	for n := range instances {
		i := &instances[n]
		if e := asked.endpoints[i.Name]; i.ID == 0 || e.Member() == i.ID {
			i.Endpoint = e // another one answers at the address of a Pod that is gone, or has got a new one
		}
		if i.Endpoint.Answered() {
			reach = membership.ReachSome
		}
		if pod := pods[i.Name]; pod != nil {
			i.Pod.Changing = unsettled(pod, *i)
			_, _, otherImage := ranBefore(pod)
			i.Pod.Resizing = i.Pod.Changing && !otherImage
			if i.Endpoint.Answered() {
				clearNodeLost(&i.Pod, pod)
			}
		}
	}
	if asked.members != nil {
		reach = membership.ReachQuorum
	}
	return reach
}

// mostMembers is the schema's bound on spec.replicas. An annotation that says more was not written
// by Quorate.
const mostMembers = 9

// fitsStatus reports whether the schema takes what the status would say of a snapshot.
func fitsStatus(s membership.Snapshot) bool {
	const mostName, mostSum = 253, 64
	return s.Name != "" && len(s.Name) <= mostName && s.SHA256 != "" && len(s.SHA256) <= mostSum
}

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
	if uid := a[api.AnnotationVolumeUID]; uid != "" && v.Recorded() && uid != v.UID {
		// With the owner of before it was restored as well, it is not being deleted yet, and tells
		// what there was until it is.
		v.Replaced, v.Terminating = true, !o.GetDeletionTimestamp().IsZero()
	}
	v.Spare, v.Retired = a[api.AnnotationJoin] == api.JoinPending, a[api.AnnotationRetired] != ""
	v.Joins = membership.ParseID(a[api.AnnotationJoin])
	v.First = firstStart(a[api.AnnotationBootstrap])
	if v.First.Size > 0 {
		v.First.Snapshot = a[api.AnnotationSnapshot]
	}
	if s := membership.ParseSnapshot(v.First.Snapshot); v.First.Snapshot != "" && !fitsStatus(s) {
		v.First = membership.First{} // Quorate has not written it
	}
	v.Aside = a[api.AnnotationSetAside]
	if version, err := membership.ParseVersion(a[api.AnnotationVersion]); err == nil {
		v.Version = version
	}
	if next, err := membership.ParseVersion(a[api.AnnotationNext]); err == nil {
		v.Next = next
	}
	v.Replays = a[api.AnnotationReplays]
	return v
}

// firstStart reads AnnotationBootstrap; anything that Quorate does not write is no first start.
func firstStart(written string) membership.First {
	parts := strings.Split(written, "/")
	f := membership.First{Token: parts[0]}
	var err error
	switch len(parts) {
	case 3:
		if f.Base, err = strconv.Atoi(parts[2]); err != nil || f.Base <= 0 || f.Base > api.MaxOrdinal+1-mostMembers {
			return membership.First{}
		}
		fallthrough
	case 2:
		if f.Size, err = strconv.Atoi(parts[1]); err == nil && f.Size > 0 && f.Size <= mostMembers {
			return f
		}
	}
	return membership.First{}
}

// belongs tells whose an object with our labels is: another owner's, or an earlier EtcdCluster's of
// the same name, which the garbage collector is about to delete. One without an owner is ours: a
// retained volume, or an orphan to adopt.
func belongs(c *api.EtcdCluster, o client.Object) (foreign, terminating bool) {
	terminating = !o.GetDeletionTimestamp().IsZero()
	owner := metav1.GetControllerOf(o)
	if owner == nil || owner.UID == c.UID {
		return false, terminating
	}
	if apply.OfEarlier(o, api.EtcdClusterKind.Kind, c) {
		return false, true
	}
	return true, terminating
}

// compare tells of each Pod whether it is what the spec asks for: at the version that it is to run
// now, and at the one that comes next; and whether it is what its member has served with. What was
// given up is not tried again by way of a Pod that is stuck, which is to be what would be made in
// its place.
func compare(c *api.EtcdCluster, o *membership.Observed, pods map[string]*corev1.Pod, claims map[string]*corev1.PersistentVolumeClaim) {
	d := desired(c)
	hop := membership.Hop(d, *o).String()
	refused := len(pods) > 0 && schemaRefuses(c, claims) != nil
	for n := range o.Instances {
		i := &o.Instances[n]
		pod := pods[i.Name]
		if pod == nil {
			continue
		}
		now := render.Member{Name: i.Name, Version: runs(c, *i), Token: i.Volume.First.Token, BootstrapSize: i.Volume.First.Size, BootstrapBase: i.Volume.First.Base, Capacity: capacity(claims[i.Name])}
		of := c
		if givenUp(c) != "" {
			of, now.Proved = made(c, claims, *i)
		}
		change, parts, ok := needs(pod, of, now, refused)
		if ok {
			// With an image that did not work no Pod is better off than with the one that it has.
			i.Pod.Outdated = change != render.ChangeNone && (givenUp(c) == "" || !slices.Equal(parts, []string{"image"}))
		}
		if i.Pod.Provisions {
			continue
		}
		i.Pod.Untried = untried(c, claims[i.Name], pod)
		i.Pod.Outdated = outdated(c, claims[i.Name], i.Pod)
		i.Pod.Quota = render.Quota(pod)
		if hop == "" {
			continue
		}
		if hop != now.Version || of != c { // mostly it is the same
			next := now
			next.Version, next.Proved = hop, false
			change, parts, ok = needs(pod, c, next, refused)
		}
		if ok {
			i.Pod.Change, i.Pod.Parts = membership.Change(change), parts
			i.Pod.QuotaToBe = render.QuotaOf(c, now)
		}
		patch := membership.SubstitutePatch(d, *o, *i)
		i.Pod.Outdated = i.Pod.Outdated || patch != (membership.Version{})
		i.Pod.InPlace = repairable(c, pod, now, patch)
	}
}

// repairable is what of the spec a Pod with its data in memory can be given in place: of the patch
// that it is to run instead, if there is one. A Pod whose kubelet has yet to hear of its last
// change is left alone: what that says is of what the Pod was before.
func repairable(c *api.EtcdCluster, pod *corev1.Pod, m render.Member, patch membership.Version) []membership.Change {
	heard := pod.Status.ObservedGeneration == 0 || pod.Status.ObservedGeneration >= pod.Generation // of which the kubelet tells since 1.34
	if c.Spec.Storage.Medium != api.MediumMemory || !heard {
		return nil
	}
	if patch != (membership.Version{}) {
		m.Version = patch.String()
	}
	changes, err := render.InPlace(pod, c, m)
	if err != nil { // it is told where the spec is applied
		return nil
	}
	var all []membership.Change
	for _, change := range changes {
		all = append(all, membership.Change(change))
	}
	return all
}

// outdated reports whether a Pod that is not what the spec asks for counts as outdated. One that is
// made of what its member has served with, and that a node may still take, does not: else a change
// that has not begun would come at once to all members that have lost their Pods a moment ago.
func outdated(c *api.EtcdCluster, claim *corev1.PersistentVolumeClaim, p membership.Pod) bool {
	if !p.Outdated || !p.NeverRan || p.ImageUnavailable || p.Overdue || len(p.Untried) > 0 {
		return p.Outdated
	}
	_, served := asServed(c, said(claim))
	return !served
}

// needs is how a Pod comes to be what is rendered, unless that cannot be rendered, or the schema
// refuses the spec, which is told where it is applied. What has served is not refused.
func needs(pod *corev1.Pod, of *api.EtcdCluster, m render.Member, refused bool) (_ render.Change, parts []string, ok bool) {
	if refused && !m.Proved {
		return render.ChangeNone, nil, false
	}
	change, parts, err := render.Needs(pod, of, m)
	return change, parts, err == nil
}

// untried are the parts of the spec of which a Pod was made and with which its member has not
// served, as far as its volume says with which it has. Which version that was it says elsewhere.
func untried(c *api.EtcdCluster, claim *corev1.PersistentVolumeClaim, pod *corev1.Pod) []string {
	served, ok := asServed(c, said(claim))
	if !ok {
		return nil
	}
	served.Status.TLS = nil // whom it trusts is not asked for by the spec, and nothing to go back from
	return render.Outdated(served, pod)
}

// runs is the version that a Pod of the instance is to run: the one that it is being changed to, or
// what its volume ran last or was made for, or what the spec says.
func runs(c *api.EtcdCluster, i membership.Instance) string {
	given := i.Volume.Recorded() || i.Volume.Spare || i.Volume.Joins != 0
	if v := cmp.Or(i.Volume.Next, i.Volume.Version); given && v != (membership.Version{}) {
		return v.String()
	}
	return strings.TrimPrefix(c.Spec.Version, "v")
}

// capacity is what a volume has, as far as that matters: what it was asked for, and less while it
// has yet to grow to that. What a provisioner adds of its own does not count.
func capacity(claim *corev1.PersistentVolumeClaim) *resource.Quantity {
	if claim == nil {
		return nil
	}
	asked := claim.Spec.Resources.Requests.Storage()
	if has := claim.Status.Capacity.Storage(); claim.Status.Phase == corev1.ClaimBound && has.Cmp(*asked) < 0 {
		return has
	}
	return asked
}
