package node

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
)

// hostTable is the routing table for what this machine itself sends to Pods and Services. What
// nodes send never looks there: with the same ranges in every cluster, a packet to a Pod that is
// gone, or to a Service that is not known yet, would reach another cluster instead of nothing.
const hostTable = "10244"

// hostRule sends packets that were made on this machine, and no others, to the table.
var hostRule = []string{"iif", "lo", "lookup", hostTable, "priority", hostTable}

// connect lets programs on this machine reach Pods and Services. Nothing depends on it, so
// whatever is in the way is said and left alone.
func (h *host) connect(ctx context.Context, controlPlane string, ranges []podRange, services string) {
	if h.find("ip") != nil || h.user != 0 {
		say("Pods and Services are reachable inside the cluster only: routes on this machine need root and iproute2")
		return
	}
	if err := h.ensureRule(ctx); err != nil {
		say("no routes from this machine to Pods and Services: %s", lastLine(err))
		return
	}
	wanted := make([]podRange, 0, len(ranges)+1)
	for _, r := range ranges {
		wanted = append(wanted, r)
		if r.Node == controlPlane {
			wanted = append(wanted, podRange{Node: r.Node, Address: r.Address, Pods: services})
		}
	}
	// All or nothing: half of the ranges leading to another cluster would be worse than none.
	for _, r := range wanted {
		other, err := h.otherRoute(ctx, r, ranges)
		if err != nil {
			say("no routes from this machine to Pods and Services: %s", lastLine(err))
			return
		}
		if other != "" {
			say("no routes from this machine to Pods and Services: %s leads to %s already", r.Pods, other)
			return
		}
	}
	for _, r := range wanted {
		if _, err := h.run(ctx, "ip", "route", "replace", r.Pods, "via", r.Address, "table", hostTable); err != nil {
			say("no route from this machine to %s: %s", r.Pods, lastLine(err))
		}
	}
	say("this machine reaches Pods and Services of the cluster by their addresses")
}

// ensureRule adds hostRule where it is missing.
func (h *host) ensureRule(ctx context.Context) error {
	missing, err := h.lacksRule(ctx)
	if err != nil || !missing {
		return err
	}
	if err := h.remember(ctx, hostRecord{Kind: recordRoutes}); err != nil {
		return err
	}
	_, err = h.run(ctx, "ip", append([]string{"-4", "rule", "add"}, hostRule...)...)
	return err
}

// lacksRule reports whether hostRule could be added.
func (h *host) lacksRule(ctx context.Context) (bool, error) {
	if err := h.find("ip"); err != nil {
		return false, nil //nolint:nilerr // there are no rules then
	}
	rules, err := h.run(ctx, "ip", "-4", "rule", "show")
	return err == nil && !strings.Contains(string(rules), "lookup "+hostTable), err
}

// otherRoute names what a range leads to already: a network of the machine's own, or a running node
// of another cluster. A route that leads to another node of this one is left over from an earlier
// cluster, whose addresses the nodes have in another order.
func (h *host) otherRoute(ctx context.Context, want podRange, cluster []podRange) (string, error) {
	own, err := h.routes(ctx, "main")
	if err != nil {
		return "", err
	}
	for _, route := range own {
		if overlaps(route.Dst, want.Pods) {
			return strings.TrimSpace(route.Dst + " " + route.Dev), nil
		}
	}
	ours, err := h.routes(ctx, hostTable)
	if err != nil {
		return "", err
	}
	for _, route := range ours {
		if !overlaps(route.Dst, want.Pods) || route.Gateway == want.Address {
			continue
		}
		node, err := nodeAt(ctx, route.Gateway)
		if err != nil || node != "" && !slices.ContainsFunc(cluster, func(r podRange) bool { return r.Node == node }) {
			return node, err
		}
	}
	return "", nil
}

type route struct{ Dst, Gateway, Dev string }

func (h *host) routes(ctx context.Context, table string) ([]route, error) {
	// A table without routes does not exist; "all" never fails for that reason.
	raw, err := h.run(ctx, "ip", "-json", "-4", "route", "show", "table", "all")
	if err != nil {
		return nil, err
	}
	return parseRoutes(raw, table)
}

// parseRoutes picks the routes of a table. The main table is the one that is not named.
func parseRoutes(raw []byte, table string) ([]route, error) {
	var all []struct {
		route
		Table string
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("read the routes of this machine: %w", err)
	}
	var picked []route
	for _, r := range all {
		if r.Table == table || r.Table == "" && table == "main" {
			picked = append(picked, r.route)
		}
	}
	return picked, nil
}

// overlaps compares two ranges as ip prints them: the default route is not one, and a single
// address has no length.
func overlaps(a, b string) bool {
	parse := func(s string) (netip.Prefix, error) {
		if !strings.Contains(s, "/") {
			s += "/32"
		}
		return netip.ParsePrefix(s)
	}
	x, err := parse(a)
	if err != nil {
		return false
	}
	y, err := parse(b)
	return err == nil && x.Overlaps(y)
}

// nodeAt is the running container that has an address in kind's network, if any has.
func nodeAt(ctx context.Context, address string) (string, error) {
	raw, err := docker(ctx, "network", "inspect", "kind")
	if err != nil {
		return "", err
	}
	var networks []struct {
		Containers map[string]struct{ Name, IPv4Address string }
	}
	if err := json.Unmarshal([]byte(raw), &networks); err != nil {
		return "", fmt.Errorf("read kind's network: %w", err)
	}
	for _, network := range networks {
		for _, container := range network.Containers {
			if strings.HasPrefix(container.IPv4Address, address+"/") {
				return container.Name, nil
			}
		}
	}
	return "", nil
}

// disconnect takes this machine's routes through a cluster's nodes away. What it cannot remove goes
// with kind's network or is replaced by the next cluster.
func disconnect(ctx context.Context, nodes nodeList) {
	if os.Geteuid() != 0 {
		return
	}
	for _, node := range nodes {
		address, err := docker(ctx, "inspect", "--format", "{{.NetworkSettings.Networks.kind.IPAddress}}", node)
		if err != nil || address == "" {
			continue
		}
		_, _ = output(command(ctx, "ip", "route", "flush", "table", hostTable, "via", address)) // see above
	}
}
