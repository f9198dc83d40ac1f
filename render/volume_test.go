package render

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	api "quorate.dev/api/v1alpha1"
)

func TestVolumeCurrent(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   func(c *api.EtcdCluster, m *Member)               // since the claim was applied
		others *corev1ac.PersistentVolumeClaimApplyConfiguration // what another field manager has applied
		want   bool
	}{
		"Same": {reason: "Nothing to write", args: func(*api.EtcdCluster, *Member) {}, want: true},
		"OthersMetadata": {
			reason: "What others write is theirs", args: func(*api.EtcdCluster, *Member) {},
			others: corev1ac.PersistentVolumeClaim("", "").WithLabels(map[string]string{"others": "stay"}).
				WithAnnotations(map[string]string{"volume.kubernetes.io/selected-node": "node-1"}),
			want: true,
		},
		"SpecChanged": {
			reason: "The spec of a claim stays as it was created",
			args: func(c *api.EtcdCluster, m *Member) {
				m.Storage = MadeOf(c)
				c.Spec.Storage.Size, c.Spec.Storage.StorageClassName = resource.MustParse("5Ti"), new("another")
				m.VolumeSize = new(resource.MustParse("6Ti"))
			},
			want: true,
		},
		"Given":     {reason: "The volume is given to a member", args: func(_ *api.EtcdCluster, m *Member) { m.Join = "91bc3c398fb3c146" }},
		"Recorded":  {reason: "A member has said whose data it holds", args: func(_ *api.EtcdCluster, m *Member) { m.ClusterID, m.MemberID = "c0", "a3" }},
		"Upgraded":  {reason: "Another version has run on it", args: func(_ *api.EtcdCluster, m *Member) { m.Version = "3.7.3" }},
		"Retired":   {reason: "Its member was removed", args: func(_ *api.EtcdCluster, m *Member) { m.Retired = true }},
		"Forgotten": {reason: "An annotation that is not wanted any more is taken away", args: func(_ *api.EtcdCluster, m *Member) { m.Join = "" }},
		"LabelAdded": {
			reason: "The user added a label",
			args: func(c *api.EtcdCluster, _ *Member) {
				c.Spec.AdditionalMetadata = &api.Metadata{Labels: api.Labels{"tier": "gold"}}
			},
		},
		"NowOwned": {
			reason: "It is to go with its EtcdCluster",
			args: func(c *api.EtcdCluster, _ *Member) {
				c.Spec.Storage.Retention = &api.Retention{WhenDeleted: api.RetentionDelete}
			},
		},
		"WhenScaled": {
			reason: "What is to become of it later is not written on it",
			args: func(c *api.EtcdCluster, _ *Member) {
				c.Spec.Storage.Retention = &api.Retention{WhenScaled: api.RetentionRetain}
			},
			want: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			storage, c := newPods(t), load(t, "formed")
			m := spareMember(c)
			applyTo(t, storage, "persistentvolumeclaims", Volume(c, m), api.Manager)
			if tc.others != nil {
				applyTo(t, storage, "persistentvolumeclaims", tc.others.WithName(m.Name).WithNamespace(c.Namespace), "somebody")
			}
			m.TLS = tlsRecord(c)
			tc.args(c, &m)
			obj, err := storage.Get(corev1.SchemeGroupVersion.WithResource("persistentvolumeclaims"), c.Namespace, m.Name)
			if err != nil {
				t.Fatal(err)
			}
			live, ok := obj.(*corev1.PersistentVolumeClaim)
			if !ok {
				t.Fatalf("a %T is no claim", obj)
			}
			got, err := VolumeCurrent(live, Volume(c, m))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}
