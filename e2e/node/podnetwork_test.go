package node

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestConnectScript(t *testing.T) {
	t.Parallel()
	ranges := []podRange{
		{Node: "a", Address: "172.18.0.2", Pods: "10.244.0.0/24"},
		{Node: "b", Address: "172.18.0.3", Pods: "10.244.1.0/24"},
	}
	const masquerade = `iptables -t nat -C POSTROUTING -s 10.244.0.0/16 ! -d 10.244.0.0/16 -m addrtype ! --dst-type LOCAL -j MASQUERADE 2>/dev/null || iptables -t nat -A POSTROUTING -s 10.244.0.0/16 ! -d 10.244.0.0/16 -m addrtype ! --dst-type LOCAL -j MASQUERADE
`
	const wait = `curl --silent --cacert /etc/kubernetes/pki/ca.crt --output /dev/null --connect-timeout 1 --retry 90 --retry-delay 1 --retry-all-errors https://10.96.0.1
`
	const gone = "ip route replace unreachable "
	plugins := func(subnet string) string {
		return `cat >/etc/cni/net.d/10-pods.conflist.new <<END
{
  "cniVersion": "1.0.0",
  "name": "pods",
  "plugins": [
    {
      "type": "ptp",
      "mtu": $(cat /sys/class/net/eth0/mtu),
      "ipam": {
        "type": "host-local",
        "dataDir": "/run/cni-ipam-state",
        "ranges": [[{"subnet": "` + subnet + `"}]],
        "routes": [{"dst": "0.0.0.0/0"}]
      }
    },
    {"type": "portmap", "capabilities": {"portMappings": true}}
  ]
}
END
mv /etc/cni/net.d/10-pods.conflist.new /etc/cni/net.d/10-pods.conflist
`
	}
	type args struct {
		node      string
		ranges    []podRange
		apiServer string
	}
	cases := map[string]struct {
		reason string
		args   args
		want   string
	}{
		"OneNode": {
			reason: "a single node needs no routes to others",
			args:   args{"a", ranges[:1], "10.96.0.1"},
			want:   gone + "10.244.0.0/24\n" + masquerade + wait + plugins("10.244.0.0/24"),
		},
		"OneOfSeveral": {
			reason: "a node has routes to all others and its own range for its plugins",
			args:   args{"b", ranges, "10.96.0.1"},
			want:   "ip route replace 10.244.0.0/24 via 172.18.0.2\n" + gone + "10.244.1.0/24\n" + masquerade + wait + plugins("10.244.1.0/24"),
		},
		"WithoutKubeProxy": {
			reason: "another proxy makes Services work later",
			args:   args{"a", ranges[:1], ""},
			want:   gone + "10.244.0.0/24\n" + masquerade + plugins("10.244.0.0/24"),
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := connectScript(tc.args.node, tc.args.ranges, "10.244.0.0/16", tc.args.apiServer)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestParsePodRanges(t *testing.T) {
	t.Parallel()
	const nodes = `{"items": [
		{"metadata": {"name": "a"}, "spec": {"podCIDR": "10.244.0.0/24"},
		 "status": {"addresses": [{"type": "Hostname", "address": "a"}, {"type": "InternalIP", "address": "172.18.0.2"}]}},
		{"metadata": {"name": "b"}, "spec": {"podCIDR": "10.244.1.0/24"},
		 "status": {"addresses": [{"type": "InternalIP", "address": "172.18.0.3"}, {"type": "InternalIP", "address": "fc00::3"}]}}]}`
	want := []podRange{
		{Node: "a", Address: "172.18.0.2", Pods: "10.244.0.0/24"},
		{Node: "b", Address: "172.18.0.3", Pods: "10.244.1.0/24"},
	}
	got, err := parsePodRanges([]byte(nodes))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestParseRoutes(t *testing.T) {
	t.Parallel()
	const raw = `[
		{"dst": "10.244.0.0/24", "gateway": "172.18.0.2", "dev": "br-1", "table": "10244", "flags": []},
		{"dst": "default", "gateway": "192.0.2.1", "dev": "eth0", "flags": []},
		{"type": "local", "dst": "192.0.2.2", "dev": "eth0", "table": "local", "flags": []}]`
	cases := map[string]struct {
		reason string
		table  string
		want   []route
	}{
		"Main":  {"ip does not name the main table", "main", []route{{Dst: "default", Gateway: "192.0.2.1", Dev: "eth0"}}},
		"Ours":  {"a table is known by its number", hostTable, []route{{Dst: "10.244.0.0/24", Gateway: "172.18.0.2", Dev: "br-1"}}},
		"Empty": {"no routes is no error", "7", nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := parseRoutes([]byte(raw), tc.table)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestOverlaps(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason, route string
		want          bool
	}{
		"Default":   {"the default route leads everywhere and is no range of its own", "default", false},
		"Same":      {"a range that is in use", "10.244.0.0/24", true},
		"Wider":     {"a private network that contains it", "10.0.0.0/8", true},
		"Address":   {"a single address within it", "10.244.0.7", true},
		"Elsewhere": {"another range", "172.18.0.0/16", false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := overlaps(tc.route, "10.244.0.0/24"); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}
