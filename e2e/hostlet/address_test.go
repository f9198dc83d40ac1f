package hostlet

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSubstitute(t *testing.T) {
	n := newNames()
	a, err := n.address(podName{hostname: "a", subdomain: "peers", namespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	b, err := n.address(podName{hostname: "b", subdomain: "peers", namespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}

	cases := map[string]struct {
		reason string
		in     string
		want   string
		back   string
	}{
		"PodNames": {
			reason: "every Pod named in a list of URLs has its own address",
			in:     "a=http://a.peers.ns.svc:2380,b=http://b.peers.ns.svc:2380",
			want:   "a=http://" + a.String() + ":2380,b=http://" + b.String() + ":2380",
			back:   "a=http://a.peers.ns.svc:2380,b=http://b.peers.ns.svc:2380",
		},
		"ClusterDomain": {
			reason: "the long form is the same Pod, and comes back as it was last written",
			in:     "https://a.peers.ns.svc.cluster.local:2379/",
			want:   "https://" + a.String() + ":2379/",
			back:   "https://a.peers.ns.svc.cluster.local:2379/",
		},
		"AllAddresses": {
			reason: "a Pod that listens everywhere listens on its own address",
			in:     "http://0.0.0.0:2379,http://[::]:2380",
			want:   "http://127.0.0.9:2379,http://127.0.0.9:2380",
			back:   "http://127.0.0.9:2379,http://127.0.0.9:2380",
		},
		"Others": {
			reason: "Services, addresses and plain words stay",
			in:     "http://peers.ns.svc:2379,http://10.0.0.1:2379,http://[fd00::1]:2379,a.peers.ns.svc",
			want:   "http://peers.ns.svc:2379,http://10.0.0.1:2379,http://[fd00::1]:2379,a.peers.ns.svc",
			back:   "http://peers.ns.svc:2379,http://10.0.0.1:2379,http://[fd00::1]:2379,a.peers.ns.svc",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := n.substitute(tc.in, netip.MustParseAddr("127.0.0.9"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.back, n.restore(got)); diff != "" {
				t.Errorf("%s, and back: -want, +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPoolsShareNothing(t *testing.T) {
	t.Parallel()
	var one, other addressPool // as of two processes
	seen := map[netip.Addr]bool{}
	for range 300 { // more than a block
		for _, p := range []*addressPool{&one, &other} {
			addr, err := p.take()
			if err != nil {
				t.Fatal(err)
			}
			if seen[addr] || !addr.IsLoopback() {
				t.Fatalf("%s was handed out twice or is no loopback address", addr)
			}
			seen[addr] = true
		}
	}
	for _, p := range []*addressPool{&one, &other} {
		for _, l := range p.reserved {
			_ = l.Close() // a listener that nothing dials
		}
	}
}
