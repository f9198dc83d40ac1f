package node

import (
	"context"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

// podNetwork configures the plugins that connect a Pod to its node. It stands in for kindnet, which
// is not published as a Go module.
const podNetwork = `{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [
    {
      "type": "ptp",
      "mtu": $(cat /sys/class/net/eth0/mtu),
      "ipam": {
        "type": "host-local",
        "dataDir": "/run/cni-ipam-state",
        "ranges": [[{"subnet": "%s"}]],
        "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}`

// connectNodes makes nodes that were built from source ready for Pods. kubelet calls a node Ready
// as soon as its plugins are configured, so that is done last: a Pod that started before kube-proxy
// has written its rules would hang in its first connection to the API server for half a minute. The
// certificate is checked, because without those rules another machine may answer at that address.
func connectNodes(ctx context.Context, nodes nodeList, ranges []podRange, network v1alpha4.Networking) error {
	apiServer := ""
	if network.KubeProxyMode != "none" {
		address, err := nodes.kubectl(ctx, "get", "service", "kubernetes", "--output=jsonpath={.spec.clusterIP}")
		if err != nil {
			return fmt.Errorf("read the address of the API server's Service: %w", err)
		}
		apiServer = address
	}
	connects, ctx := errgroup.WithContext(ctx)
	for _, node := range nodes {
		connects.Go(func() error {
			script := connectScript(node, ranges, network.PodSubnet, apiServer)
			if _, err := docker(ctx, "exec", node, "sh", "-euc", script); err != nil {
				return fmt.Errorf("connect the Pods of node %s: %w", node, err)
			}
			return nil
		})
	}
	return connects.Wait()
}

// connectScript is what a node runs, and may run again: routes to the Pods of the other nodes, the
// node's own address for what leaves the cluster, and the plugins. The plugins add a route to each
// of the node's own Pods; what else is in their range has gone, and a caller of it is told so,
// where something outside might answer. Pods see each other's real addresses, because certificates
// of peers may depend on them.
func connectScript(node string, ranges []podRange, podSubnet, apiServer string) string {
	var script strings.Builder
	pods := ""
	for _, r := range ranges {
		if r.Node == node {
			pods = r.Pods
			fmt.Fprintf(&script, "ip route replace unreachable %s\n", r.Pods)
			continue
		}
		fmt.Fprintf(&script, "ip route replace %s via %s\n", r.Pods, r.Address)
	}
	rule := fmt.Sprintf("POSTROUTING -s %s ! -d %s -m addrtype ! --dst-type LOCAL -j MASQUERADE", podSubnet, podSubnet)
	fmt.Fprintf(&script, "iptables -t nat -C %s 2>/dev/null || iptables -t nat -A %s\n", rule, rule)
	if apiServer != "" {
		fmt.Fprintf(&script, "curl --silent --cacert /etc/kubernetes/pki/ca.crt --output /dev/null --connect-timeout 1 --retry 90 --retry-delay 1 --retry-all-errors https://%s\n", apiServer)
	}
	const config = "/etc/cni/net.d/10-pods.conflist"
	fmt.Fprintf(&script, "cat >%s.new <<END\n%s\nEND\nmv %s.new %s\n", config, fmt.Sprintf(podNetwork, pods), config, config)
	return script.String()
}
