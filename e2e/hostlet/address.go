package hostlet

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"regexp"
	"sync"
)

// reservationPort marks a block of addresses as taken. It lies below the range
// of ephemeral ports, where a client connection could hold it by chance.
const reservationPort = 22378

// machine is the pool of this process.
var machine addressPool

// addressPool hands out loopback addresses that no other test binary on this
// machine uses. It takes them from /24 blocks of 127.0.0.0/8; a listener on the
// first address of a block reserves it for the life of the process, and the
// kernel frees it however the process ends.
type addressPool struct {
	mu       sync.Mutex
	reserved []net.Listener
	next     netip.Addr
	left     int
}

func (p *addressPool) take() (netip.Addr, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.left == 0 {
		if err := p.reserve(); err != nil {
			return netip.Addr{}, err
		}
	}
	p.left--
	p.next = p.next.Next()
	return p.next, nil
}

func (p *addressPool) reserve() error {
	const blocks = 64 * 256 // 127.64.0.0 to 127.127.255.0
	var last error
	for i := range blocks {
		// Binaries that start together look in different places first.
		block := (os.Getpid() + i) % blocks
		first := netip.AddrFrom4([4]byte{127, byte(64 + block/256), byte(block % 256), 1})
		l, err := net.Listen("tcp", netip.AddrPortFrom(first, reservationPort).String())
		if err != nil {
			last = err
			continue
		}
		p.reserved = append(p.reserved, l)
		p.next, p.left = first, 253 // .2 to .254
		return nil
	}
	return fmt.Errorf("reserve loopback addresses: %w", last)
}

// podName identifies a Pod in DNS.
type podName struct{ hostname, subdomain, namespace string }

// names maps Pod names to addresses and back. A name keeps its address when
// its Pod is created again, as a DNS name would keep its meaning.
type names struct {
	mu     sync.Mutex
	byName map[podName]netip.Addr
	byAddr map[string]string // the DNS name as URLs spell it
}

var (
	urlHost   = regexp.MustCompile(`://(\[::\]|[^/:,\[\]]+)`)
	podDomain = regexp.MustCompile(`^([a-z0-9-]+)\.([a-z0-9-]+)\.([a-z0-9-]+)\.svc(\..+)?$`)
)

func newNames() *names {
	return &names{byName: map[podName]netip.Addr{}, byAddr: map[string]string{}}
}

// address of a Pod, which need not exist yet: peers name each other in advance.
func (n *names) address(name podName) (netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if addr, ok := n.byName[name]; ok {
		return addr, nil
	}
	addr, err := machine.take()
	if err != nil {
		return netip.Addr{}, err
	}
	n.byName[name] = addr
	return addr, nil
}

// substitute puts addresses for Pods' DNS names into the URLs in s, and self,
// if valid, for listening on all addresses.
func (n *names) substitute(s string, self netip.Addr) (string, error) {
	var failure error
	replaced := urlHost.ReplaceAllStringFunc(s, func(match string) string {
		host := match[len("://"):]
		if host == "0.0.0.0" || host == "[::]" {
			if self.IsValid() {
				return "://" + self.String()
			}
			return match
		}
		part := podDomain.FindStringSubmatch(host)
		if part == nil {
			return match
		}
		addr, err := n.address(podName{hostname: part[1], subdomain: part[2], namespace: part[3]})
		if err != nil {
			failure = err
			return match
		}
		n.mu.Lock()
		n.byAddr[addr.String()] = host
		n.mu.Unlock()
		return "://" + addr.String()
	})
	return replaced, failure
}

// restore is the inverse of substitute for addresses that replaced a name.
func (n *names) restore(s string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return urlHost.ReplaceAllStringFunc(s, func(match string) string {
		if name, ok := n.byAddr[match[len("://"):]]; ok {
			return "://" + name
		}
		return match
	})
}
