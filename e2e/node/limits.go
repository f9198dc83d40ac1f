package node

import (
	"context"
	"fmt"
	"strings"
)

// limits are properties of this machine that would keep a node from working. Each one has been seen
// to stop a cluster, and each is looked for, never assumed.
type limits struct {
	// Snapshotter is set where containerd has to be told what to unpack images with.
	Snapshotter string
	// CgroupV1 makes kubelet refuse to start unless it is allowed to.
	CgroupV1 bool
	// OOMScoreLocked means that a node may not make its processes less likely to be killed.
	OOMScoreLocked bool
}

// detectLimits finds what this machine lacks, mends what can only be mended outside the cluster,
// and tells the person about each.
func detectLimits(ctx context.Context, image string) (limits, error) {
	info, err := docker(ctx, "info", "--format", "{{.Driver}} {{.CgroupVersion}}")
	if err != nil {
		return limits{}, fmt.Errorf("ask Docker about this machine: %w", err)
	}
	machine, err := thisHost()
	if err != nil {
		return limits{}, err
	}
	if err := machine.allowInotify(ctx); err != nil {
		return limits{}, err
	}
	driver, cgroup, _ := strings.Cut(info, " ")
	var l limits
	if driver == "fuse-overlayfs" && isBuilt(image) {
		// kind would choose the fuse-overlayfs snapshotter, which a built image does not have. A
		// node's /var is a volume on the machine's own disk, where overlayfs does work.
		l.Snapshotter = "overlayfs"
		say("Docker stores images with fuse-overlayfs: nodes unpack theirs with overlayfs, on a volume")
	}
	if cgroup == "1" {
		l.CgroupV1 = true
		say("this machine has cgroup v1: kubelet is allowed to run on it")
	}
	locked, err := oomScoreLocked(ctx, image)
	if privilegesRefused(err) {
		if err := machine.mendPrivileges(ctx); err != nil {
			return limits{}, err
		}
		locked, err = oomScoreLocked(ctx, image)
	}
	if err != nil {
		return limits{}, fmt.Errorf("run a privileged container: %w", err)
	}
	if locked {
		l.OOMScoreLocked = true
		say("containers may not lower their OOM score here: containerd is told not to try")
	}
	return l, nil
}

// oomScoreLocked runs a container like the nodes to come and lets it do what containerd does there.
func oomScoreLocked(ctx context.Context, image string) (bool, error) {
	out, err := docker(ctx, "run", "--rm", "--privileged", "--network=none", "--entrypoint=/bin/sh", image,
		"-c", "echo -500 2>/dev/null >/proc/self/oom_score_adj || echo locked")
	return strings.Contains(out, "locked"), err
}
