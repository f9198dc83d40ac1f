package node

import (
	"errors"
	"fmt"
	"os"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"
)

// readConfig reads a kind configuration as a person wrote it. No file means kind's own default: one
// node.
func readConfig(file string) (*v1alpha4.Cluster, error) {
	var config v1alpha4.Cluster
	if file == "" {
		v1alpha4.SetDefaultsCluster(&config)
		return &config, nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("read the cluster's configuration: %w", err)
	}
	if err := yaml.UnmarshalStrict(raw, &config); err != nil {
		return nil, fmt.Errorf("read %s: %w", file, err)
	}
	if config.Kind != "Cluster" || config.APIVersion != "kind.x-k8s.io/v1alpha4" {
		return nil, fmt.Errorf("read %s: want kind: Cluster, apiVersion: kind.x-k8s.io/v1alpha4", file)
	}
	v1alpha4.SetDefaultsCluster(&config)
	return &config, nil
}

// fit changes a configuration so that its cluster comes up with this image on a machine with these
// limits. What the person wrote stays: patches are added behind theirs.
func fit(config *v1alpha4.Cluster, image string, l limits) error {
	if isBuilt(image) {
		if family := config.Networking.IPFamily; family != v1alpha4.IPv4Family {
			return fmt.Errorf("ipFamily %s needs kindest/node, which no registry gave: a node image from source has IPv4 only", family)
		}
		if controlPlanes(config) > 1 {
			return errors.New("several control planes need kindest/haproxy before them, which no registry gave: use one")
		}
		config.Networking.DisableDefaultCNI = true // its network is containerd's own
	}
	if l.CgroupV1 {
		config.KubeadmConfigPatches = append(config.KubeadmConfigPatches,
			"kind: KubeletConfiguration\nfailCgroupV1: false\n")
	}
	if l.OOMScoreLocked {
		config.ContainerdConfigPatches = append(config.ContainerdConfigPatches,
			"[plugins.\"io.containerd.grpc.v1.cri\"]\n  restrict_oom_score_adj = true\n")
	}
	return nil
}

func controlPlanes(config *v1alpha4.Cluster) int {
	count := 0
	for _, n := range config.Nodes {
		if n.Role == v1alpha4.ControlPlaneRole {
			count++
		}
	}
	return count
}
