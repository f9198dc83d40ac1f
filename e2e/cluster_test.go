//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"
)

// Where the audit log is on the control plane's node.
const (
	auditDir  = "/var/log/kubernetes"
	auditFile = auditDir + "/quorate-audit.log"
)

// serverPatch makes the API server write down every request of an operator, and check as that of
// OpenShift does which owners an object may have. It has the form of kubeadm's configuration
// v1beta3, which kind turns into that of v1beta4 where kubeadm is of Kubernetes 1.36 or newer.
const serverPatch = `kind: ClusterConfiguration
apiServer:
  extraArgs:
    enable-admission-plugins: NodeRestriction,OwnerReferencesPermissionEnforcement
    audit-policy-file: /etc/kubernetes/policies/audit-policy.yaml
    audit-log-path: ` + auditFile + `
  extraVolumes:
  - {name: audit-policies, hostPath: /etc/kubernetes/policies, mountPath: /etc/kubernetes/policies, readOnly: true, pathType: DirectoryOrCreate}
  - {name: audit-logs, hostPath: ` + auditDir + `, mountPath: ` + auditDir + `, pathType: DirectoryOrCreate}
`

// Workers are for the story that takes nodes away, and the first node is for all others: what runs
// on a worker tolerates its taint.
const (
	workerTaint = "e2e.quorate.dev/taken-away"
	tainted     = "kind: JoinConfiguration\nnodeRegistration:\n  taints: [{key: " + workerTaint + ", effect: NoSchedule}]\n"
	untainted   = "kind: InitConfiguration\nnodeRegistration:\n  taints: []\n"
)

// ranges are those of Pods and Services: others than a demo has that runs beside the tests, for
// this machine to reach the members of each by their addresses.
func ranges() v1alpha4.Networking {
	n := 1
	if *workers > 0 {
		n++
	}
	if *minor != "" {
		n += 2
	}
	return v1alpha4.Networking{PodSubnet: fmt.Sprintf("10.%d.0.0/16", 244+n), ServiceSubnet: fmt.Sprintf("10.%d.0.0/16", 96+n)}
}

// writeKindConfig writes the configuration that users get, with an audit log and ranges of its own
// added.
func writeKindConfig(file string) error {
	raw, err := os.ReadFile("../kind-config.yaml")
	if err != nil {
		return err
	}
	var config v1alpha4.Cluster
	if err := yaml.UnmarshalStrict(raw, &config); err != nil {
		return fmt.Errorf("read kind-config.yaml: %w", err)
	}
	policy, err := filepath.Abs("testdata/audit-policy.yaml")
	if err != nil {
		return err
	}
	config.Networking = ranges()
	config.KubeadmConfigPatches = append(config.KubeadmConfigPatches, serverPatch)
	for i := range config.Nodes {
		if config.Nodes[i].Role == v1alpha4.ControlPlaneRole {
			config.Nodes[i].ExtraMounts = append(config.Nodes[i].ExtraMounts,
				v1alpha4.Mount{HostPath: policy, ContainerPath: "/etc/kubernetes/policies/audit-policy.yaml", Readonly: true})
			if *workers > 0 { // kind itself takes the taint from a node that is alone, and fails where it is not there
				config.Nodes[i].KubeadmConfigPatches = append(config.Nodes[i].KubeadmConfigPatches, untainted)
			}
		}
	}
	for range *workers {
		config.Nodes = append(config.Nodes, v1alpha4.Node{Role: v1alpha4.WorkerRole, KubeadmConfigPatches: []string{tainted}})
	}
	if raw, err = yaml.Marshal(config); err != nil {
		return err
	}
	return os.WriteFile(file, raw, 0o600)
}

// onNode runs a command on the control plane's node, which has the kubectl that fits its API
// server.
func onNode(ctx context.Context, args ...string) (string, error) {
	return run(ctx, "docker", append([]string{"exec", clusterName + "-control-plane"}, args...)...)
}

// run a command for as long as patience lasts; the error has what it complained about.
func run(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("not done within %s", patience))
	defer cancel()
	return runUntil(ctx, name, args...)
}

// runUntil runs a command that may take long.
func runUntil(ctx context.Context, name string, args ...string) (string, error) {
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = 10 * time.Second // for what it has started itself
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return stdout.String(), fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
