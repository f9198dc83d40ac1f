package reconcile

import (
	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/render"
)

// member is what render must know of a member as it is: what its volume says, and how etcd is to start on it. Once the
// cluster has formed it must find its data when it starts.
func member(c *api.EtcdCluster, seen observed, name string) render.Member {
	i, _ := seen.Instance(name)
	m := render.Member{
		Name:          name,
		Version:       runs(c, i),
		Token:         i.Volume.First.Token,
		BootstrapSize: i.Volume.First.Size,
		ClusterID:     i.Volume.ClusterID.String(),
		MemberID:      i.Volume.MemberID.String(),
	}
	if claim := seen.claims[name]; claim != nil {
		m.VolumeSize, m.VolumeClass = claim.Spec.Resources.Requests.Storage(), claim.Spec.StorageClassName
	}
	if seen.Formed() {
		pod := seen.pods[name]
		m.InitialCorruptCheck = seen.Reach == membership.ReachQuorum ||
			pod != nil && pod.Annotations[api.AnnotationInitialCorruptCheck] == "true" // no write for every hiccup
		m.InitialCluster, m.InitialClusterState = render.Resume(c, name), render.StateExisting
	} else {
		m.InitialCluster, m.InitialClusterState = firstCluster(c, i.Volume.First.Size), render.StateNew
	}
	return m
}

// firstMember is what render must know of a member of a first start.
func firstMember(c *api.EtcdCluster, seen observed, step membership.Step, name string) render.Member {
	m := member(c, seen, name)
	m.Token, m.BootstrapSize = step.First.Token, step.First.Size
	m.InitialCluster, m.InitialClusterState = firstCluster(c, step.First.Size), render.StateNew
	return m
}

// firstCluster is the initial cluster of a first start with so many members.
func firstCluster(c *api.EtcdCluster, size int) string {
	names := make([]string, size)
	for n := range names {
		names[n] = c.MemberName(n)
	}
	return render.Bootstrap(c, names)
}
