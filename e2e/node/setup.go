package node

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// nodeSetup is run inside the node's root. It does what kind's Dockerfile does after it has
// installed its packages.
const nodeSetup = `
chmod 755 /kind /kind/bin
find /lib/systemd/system/sysinit.target.wants/ -name systemd-tmpfiles-setup.service -delete
rm -f /lib/systemd/system/multi-user.target.wants/*
rm -f /etc/systemd/system/*.wants/*
rm -f /lib/systemd/system/local-fs.target.wants/*
rm -f /lib/systemd/system/sockets.target.wants/*udev*
rm -f /lib/systemd/system/sockets.target.wants/*initctl*
rm -f /lib/systemd/system/basic.target.wants/*
echo ReadKMsg=no >> /etc/systemd/journald.conf
ln -sf /usr/lib/systemd/systemd /sbin/init
systemctl enable kubelet.service containerd.service undo-mount-hacks.service
systemctl mask systemd-binfmt.service
mkdir -p /etc/kubernetes/manifests /etc/cni/net.d /var/log/journal
ln -sf /usr/sbin/runc /usr/local/sbin/runc
rm -f /etc/resolv.conf /etc/hostname
`

// installPrograms puts every program where kind's units and kubeadm look for it.
func (r release) installPrograms(programs programDirs, root string) error {
	for _, set := range []struct {
		dir    string
		recipe recipe
		names  []string
	}{
		{"usr/bin", r.apiserver(), []string{"kubectl"}},
		{"usr/bin", r.node(), []string{"kubeadm", "kubelet"}},
		{"usr/local/bin", containerd, containerd.programs()},
		{"opt/cni/bin", cniPlugins, cniPlugins.programs()},
	} {
		for _, name := range set.names {
			content, err := os.ReadFile(programs.program(set.recipe, name))
			if err != nil {
				return fmt.Errorf("install %s: %w", name, err)
			}
			if err := writeNew(filepath.Join(root, set.dir, name), content, 0o755); err != nil {
				return fmt.Errorf("install %s: %w", name, err)
			}
		}
	}
	return nil
}

// setUp configures the node's services and containers.
func setUp(ctx context.Context, programs programDirs, root string) error {
	if _, err := output(command(ctx, "chroot", root, "/bin/sh", "-euc", nodeSetup)); err != nil {
		return fmt.Errorf("set the node up: %w", err)
	}
	spec, err := output(command(ctx, programs.program(containerd, "ctr"), "oci", "spec"))
	if err != nil {
		return fmt.Errorf("make the default container specification: %w", err)
	}
	spec, err = containerSpec(spec)
	if err != nil {
		return fmt.Errorf("make the default container specification: %w", err)
	}
	if err := writeNew(filepath.Join(root, "etc/containerd/cri-base.json"), spec, 0o644); err != nil {
		return fmt.Errorf("set the node up: %w", err)
	}
	return nil
}

// containerSpec changes containerd's default container into kind's: one that does not show the
// host's product name and that takes its limits from the node.
func containerSpec(spec []byte) ([]byte, error) {
	var s map[string]any
	if err := json.Unmarshal(spec, &s); err != nil {
		return nil, err
	}
	s["hooks"] = map[string]any{
		"createContainer": []any{map[string]any{"path": "/kind/bin/mount-product-files.sh"}},
	}
	if process, ok := s["process"].(map[string]any); ok {
		delete(process, "rlimits")
	}
	return json.Marshal(s)
}
