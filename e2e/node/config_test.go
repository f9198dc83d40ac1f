package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/kind/pkg/apis/config/defaults"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

func TestFit(t *testing.T) {
	t.Parallel()
	built := newest.builtImage()
	type args struct {
		change func(*v1alpha4.Cluster) // to kind's default configuration
		image  string
		limits limits
	}
	cases := map[string]struct {
		reason  string
		args    args
		want    func(*v1alpha4.Cluster) // to the same
		wantErr bool
	}{
		"NothingMissing": {
			reason: "a machine without limits and with a registry gets what the person wrote",
			args:   args{image: defaults.Image},
			want:   func(*v1alpha4.Cluster) {},
		},
		"BuiltImage": {
			reason: "kindnet is in no built image",
			args:   args{image: built},
			want:   func(c *v1alpha4.Cluster) { c.Networking.DisableDefaultCNI = true },
		},
		"CgroupV1": {
			reason: "kubelet needs leave to run on cgroup v1, whatever the image",
			args:   args{image: defaults.Image, limits: limits{CgroupV1: true}},
			want: func(c *v1alpha4.Cluster) {
				c.KubeadmConfigPatches = []string{"kind: KubeletConfiguration\nfailCgroupV1: false\n"}
			},
		},
		"OOMScoreLocked": {
			reason: "containerd must not try what the kernel refuses",
			args:   args{image: defaults.Image, limits: limits{OOMScoreLocked: true}},
			want: func(c *v1alpha4.Cluster) {
				c.ContainerdConfigPatches = []string{"[plugins.\"io.containerd.grpc.v1.cri\"]\n  restrict_oom_score_adj = true\n"}
			},
		},
		"PatchesOfThePersonComeFirst": {
			reason: "patches are added to, never replaced",
			args: args{
				change: func(c *v1alpha4.Cluster) { c.KubeadmConfigPatches = []string{"kind: ClusterConfiguration\n"} },
				image:  defaults.Image,
				limits: limits{CgroupV1: true},
			},
			want: func(c *v1alpha4.Cluster) {
				c.KubeadmConfigPatches = []string{"kind: ClusterConfiguration\n", "kind: KubeletConfiguration\nfailCgroupV1: false\n"}
			},
		},
		"BuiltImageWithIPv6": {
			reason:  "a cluster that could not work is refused before it is made",
			args:    args{change: func(c *v1alpha4.Cluster) { c.Networking.IPFamily = v1alpha4.DualStackFamily }, image: built},
			wantErr: true,
		},
		"BuiltImageWithTwoControlPlanes": {
			reason: "the load balancer before several control planes is an image of a registry",
			args: args{change: func(c *v1alpha4.Cluster) {
				c.Nodes = []v1alpha4.Node{{Role: v1alpha4.ControlPlaneRole}, {Role: v1alpha4.ControlPlaneRole}}
			}, image: built},
			wantErr: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			config := func() *v1alpha4.Cluster {
				c, err := readConfig("")
				if err != nil {
					t.Fatal(err)
				}
				if tc.args.change != nil {
					tc.args.change(c)
				}
				return c
			}
			got := config()
			err := fit(got, tc.args.image, tc.args.limits)
			if (err != nil) != tc.wantErr {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			if tc.wantErr {
				return
			}
			want := config()
			tc.want(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestReadConfig(t *testing.T) {
	t.Parallel()
	config, err := readConfig("../../kind-config.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := len(config.Nodes); got != 1 {
		t.Errorf("the default cluster has %d nodes, want one", got)
	}
	if _, err := readConfig("testdata/misspelled.yaml"); err == nil {
		t.Error("a field that kind does not know was accepted")
	}
}
