package reconcile

import (
	"cmp"

	corev1 "k8s.io/api/core/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// member is what render must know of a member as it is: what its volume says, and how etcd is to
// start on it. Once the cluster has formed it must find its data when it starts.
func member(c *api.EtcdCluster, seen observed, name string) render.Member {
	i, _ := seen.Instance(name)
	return memberAs(c, seen, i, name)
}

// memberAs is the member as it would be with what the instance says of it.
func memberAs(c *api.EtcdCluster, seen observed, i membership.Instance, name string) render.Member {
	m := render.Member{
		Name:          name,
		Version:       runs(c, i),
		Ran:           i.Volume.Version.String(),
		Next:          i.Volume.Next.String(),
		Replays:       i.Volume.Replays,
		Token:         i.Volume.First.Token,
		BootstrapSize: i.Volume.First.Size,
		BootstrapBase: i.Volume.First.Base,
		Snapshot:      i.Volume.First.Snapshot,
		ClusterID:     i.Volume.ClusterID.String(),
		MemberID:      i.Volume.MemberID.String(),
		Join:          i.Volume.Joins.String(),
		Retired:       i.Volume.Retired,
	}
	if i.Volume.Spare {
		m.Join = api.JoinPending
	}
	m.Served = kept(c, said(seen.claims[name]))
	if claim := seen.claims[name]; claim != nil {
		m.NextWith = kept(c, render.Said(claim.Annotations[api.AnnotationNextWith], claim))
		m.Capacity = capacity(claim)
		m.VolumeSize, m.VolumeClass = claim.Spec.Resources.Requests.Storage(), claim.Spec.StorageClassName
		m.Storage, m.TLS = claim.Annotations[api.AnnotationStorage], claim.Annotations[api.AnnotationTLS]
		if m.ClusterID != "" {
			m.VolumeUID = cmp.Or(claim.Annotations[api.AnnotationVolumeUID], string(claim.UID))
		}
	}
	pod := seen.pods[name]
	if pod != nil && i.Pod.Version != (membership.Version{}) { // a Pod's image may be ahead of what has run on its volume
		m.Version = i.Pod.Version.String()
	}
	m.Out = out(c, seen, i, pod)
	if pod != nil && i.Pod.Changing {
		m.Previous = pod.Annotations[api.AnnotationPrevious]
	}
	switch {
	case seen.Formed() && pod != nil && i.Volume.Joins != 0 && !i.Volume.Recorded():
		// A learner that has just been started may find its directory empty, until it has answered
		// from it.
		m.InitialCluster = pod.Annotations[api.AnnotationInitialCluster]
		m.InitialClusterState = pod.Annotations[api.AnnotationInitialClusterState]
	case seen.Formed():
		m.InitialCorruptCheck = checksAtStart(seen, pod, i)
		m.InitialCluster, m.InitialClusterState = render.Resume(c, name), render.StateExisting
	default:
		begins(&m, c, i.Volume.First)
	}
	return m
}

// begins is how a first member starts: it begins empty, with the others, or is told to find the
// data that is made for it of a snapshot. It joins no cluster then, and does not start without that
// data.
func begins(m *render.Member, c *api.EtcdCluster, f membership.First) {
	m.Token, m.BootstrapSize, m.BootstrapBase, m.Snapshot, m.Restore = f.Token, f.Size, f.Base, f.Snapshot, f.Snapshot
	if f.Snapshot != "" {
		m.InitialCluster, m.InitialClusterState = render.Resume(c, m.Name), render.StateExisting
	} else {
		m.InitialCluster, m.InitialClusterState = firstCluster(c, f), render.StateNew
	}
}

// checksAtStart reports whether etcd is to compare the data of a member with that of its peers at
// its next start. A member that was ended by that is started without it, so that all can be
// compared, and until they have been and it is known to be right. It differs from the one that is
// wrong again otherwise. A Pod that has it keeps it: no write for every hiccup.
func checksAtStart(seen observed, pod *corev1.Pod, i membership.Instance) bool {
	quorum := seen.Reach == membership.ReachQuorum
	switch {
	case pod == nil:
		return quorum && !seen.Differ()
	case render.ChecksAtStart(pod):
		return !inconsistent(pod)
	default:
		s := containerStatus(pod)
		accused := s != nil && saysInconsistent(s)
		return quorum && !seen.Differ() && (!accused || seen.Right(i))
	}
}

// firstMember is what render must know of a member of a first start.
func firstMember(c *api.EtcdCluster, seen observed, step membership.Step, name string) render.Member {
	m := member(c, seen, name)
	begins(&m, c, step.First)
	return m
}

// firstCluster is the initial cluster of a first start.
func firstCluster(c *api.EtcdCluster, f membership.First) string {
	names := make([]string, f.Size)
	for n := range names {
		names[n] = c.MemberName(f.Base + n)
	}
	return render.Bootstrap(c, names)
}
