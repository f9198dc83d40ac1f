package node

import (
	"context"
	"encoding/json"
	"fmt"

	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
)

// podRange is the addresses of the Pods of one node, and where that node is reached.
type podRange struct {
	Node    string
	Address string
	Pods    string
}

// connect makes Pods reachable across nodes, and from this machine where it may change its routes.
func connect(ctx context.Context, nodes nodeList, network v1alpha4.Networking) error {
	image, err := docker(ctx, "inspect", "--format", "{{.Config.Image}}", nodes[0])
	if err != nil {
		return fmt.Errorf("read the image of node %s: %w", nodes[0], err)
	}
	ranges, err := podRanges(ctx, nodes)
	if err != nil {
		return err
	}
	if isBuilt(image) {
		if err := connectNodes(ctx, nodes, ranges, network); err != nil {
			return err
		}
	}
	machine, err := thisHost()
	if err != nil {
		return err
	}
	machine.connect(ctx, nodes[0], ranges, network.ServiceSubnet)
	return nil
}

// podRanges waits until every node was given a range, and reads them.
func podRanges(ctx context.Context, nodes nodeList) ([]podRange, error) {
	if _, err := nodes.kubectl(ctx, "wait", "node", "--all", "--for=jsonpath={.spec.podCIDR}", "--timeout=60s"); err != nil {
		return nil, fmt.Errorf("wait for the Pod ranges of the nodes: %w", err)
	}
	raw, err := nodes.kubectl(ctx, "get", "nodes", "--output=json")
	if err != nil {
		return nil, fmt.Errorf("read the Pod ranges of the nodes: %w", err)
	}
	ranges, err := parsePodRanges([]byte(raw))
	if err != nil {
		return nil, fmt.Errorf("read the Pod ranges of the nodes: %w", err)
	}
	return ranges, nil
}

func parsePodRanges(nodes []byte) ([]podRange, error) {
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Spec     struct{ PodCIDR string }
			Status   struct {
				Addresses []struct{ Type, Address string }
			}
		}
	}
	if err := json.Unmarshal(nodes, &list); err != nil {
		return nil, err
	}
	ranges := make([]podRange, 0, len(list.Items))
	for _, item := range list.Items {
		r := podRange{Node: item.Metadata.Name, Pods: item.Spec.PodCIDR}
		for _, address := range item.Status.Addresses {
			if address.Type == "InternalIP" && r.Address == "" {
				r.Address = address.Address
			}
		}
		ranges = append(ranges, r)
	}
	return ranges, nil
}
