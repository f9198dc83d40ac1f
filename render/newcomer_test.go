package render

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"

	api "quorate.dev/api/v1alpha1"
)

// spareMember is a member to come.
func spareMember(c *api.EtcdCluster) Member {
	return Member{Name: c.MemberName(3), Version: c.Spec.Version, Join: api.JoinPending}
}

// joiningMember is a member that starts for the first time, and finds three others.
func joiningMember(c *api.EtcdCluster) Member {
	m := spareMember(c)
	m.Join, m.InitialClusterState = "91bc3c398fb3c146", StateExisting
	m.VolumeSize = new(resource.MustParse("1Gi")) // what the claim was made with
	names := map[string]string{}
	for n := range 4 {
		names[c.PeerURL(c.MemberName(n))] = c.MemberName(n)
	}
	m.InitialCluster = Join(names)
	return m
}

// TestNewcomer renders what a member consists of that comes later than the first, from the volume
// that is made for it to the one that it leaves behind, in the clusters of some of the golden
// cases.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	stages := map[string]func(*api.EtcdCluster) ([]runtime.ApplyConfiguration, error){
		"provisioner": func(c *api.EtcdCluster) ([]runtime.ApplyConfiguration, error) {
			pod, err := Provisioner(c, spareMember(c))
			return []runtime.ApplyConfiguration{Volume(c, spareMember(c)), pod}, err
		},
		"joining": func(c *api.EtcdCluster) ([]runtime.ApplyConfiguration, error) {
			pod, err := Pod(c, joiningMember(c))
			return []runtime.ApplyConfiguration{Volume(c, joiningMember(c)), pod}, err
		},
		"retired": func(c *api.EtcdCluster) ([]runtime.ApplyConfiguration, error) {
			m := joiningMember(c)
			m.Retired, m.ClusterID, m.MemberID = true, "cdf818194e3a8c32", m.Join
			return []runtime.ApplyConfiguration{Volume(c, m)}, nil
		},
	}
	for name, stage := range stages {
		for _, cluster := range []string{"formed", "everything", "version-3.5"} {
			t.Run(name+"/"+cluster, func(t *testing.T) {
				t.Parallel()
				objects, err := stage(load(t, cluster))
				if err != nil {
					t.Fatal(err)
				}
				golden(t, filepath.Join("newcomer", name, cluster+".yaml"), written(t, objects))
			})
		}
	}
}

// TestProvisioner: the Pod of a member to come is the member's own, but for the gate.
func TestProvisioner(t *testing.T) {
	t.Parallel()
	for _, name := range cases(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := load(t, name)
			own, err := Pod(c, joiningMember(c))
			if err != nil {
				t.Fatal(err)
			}
			provisioner, err := Provisioner(c, spareMember(c))
			if err != nil {
				t.Fatal(err)
			}
			want, got := &corev1.Pod{}, &corev1.Pod{}
			typed(t, own, want)
			typed(t, provisioner, got)

			for _, annotation := range []string{api.AnnotationInitialCluster, api.AnnotationInitialClusterState} {
				delete(want.Annotations, annotation)
			}
			want.Annotations[api.AnnotationProvisions] = "true"
			if inMemory(c) {
				want.Annotations[api.AnnotationJoin] = api.JoinPending
			}
			etcd := &got.Spec.Containers[0]
			gate := corev1.VolumeMount{Name: "start", MountPath: "/run/quorate/start", SubPathExpr: "$(INITIAL_CLUSTER_STATE)", ReadOnly: true}
			if last := etcd.VolumeMounts[len(etcd.VolumeMounts)-1]; !cmp.Equal(last, gate) {
				t.Errorf("the last mount is %v, want the gate %v", last, gate)
			}
			if state := etcd.Env[1]; state.Name != "INITIAL_CLUSTER_STATE" || state.ValueFrom.FieldRef.FieldPath != "metadata.annotations['"+api.AnnotationInitialClusterState+"']" {
				t.Errorf("the gate opens with the variable %v, want one that the annotation %s gives its value", state, api.AnnotationInitialClusterState)
			}
			etcd.VolumeMounts = etcd.VolumeMounts[:len(etcd.VolumeMounts)-1]
			got.Spec.Volumes = got.Spec.Volumes[:len(got.Spec.Volumes)-1]
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want, +got\n%s", diff)
			}
		})
	}
}

// TestNoToken: a token would be that of another first start, and who joins takes the cluster's ID
// from the others.
func TestNoToken(t *testing.T) {
	t.Parallel()
	for _, name := range cases(t) {
		c := load(t, name)
		pod, err := Pod(c, joiningMember(c))
		if err != nil {
			t.Fatal(err)
		}
		for _, arg := range pod.Spec.Containers[0].Args {
			if strings.HasPrefix(arg, "--initial-cluster-token") {
				t.Errorf("%s: a member that joins is given %s", name, arg)
			}
		}
	}
}
