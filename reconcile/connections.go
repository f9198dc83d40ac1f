package reconcile

import (
	"crypto/tls"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"quorate.dev/membership"
)

// connections keeps connections to members from one look to the next. Otherwise each look connects
// again, which takes a handshake where there is TLS. Only the end of a look keeps connections, and
// only those to members that have answered it (keep). So the next look closes a connection if the
// Pod is gone, does not answer or has another address, or if the operator has another certificate.
// The zero value is ready to use.
type connections struct {
	mu    sync.Mutex
	kept  map[types.NamespacedName]map[string]*connection // by the name of the member
	ended bool
}

// connection to a member. Several callers may use it at once, and each of them closes it.
type connection struct {
	membership.Client
	to    destination
	until time.Time    // when a look makes another one
	users atomic.Int32 // including connections, while it is kept there
}

// destination is what a connection leads to. A Pod that gets the address of an earlier one is
// another destination.
type destination struct {
	pod    types.UID
	ip     string
	config *tls.Config // nil: plain text. It is the same one until the certificates change (secure)
}

// mostAge is how long a connection is used. etcd presents its certificate when a client connects,
// and checks the client's only then. Some changes of the network concern new connections alone. So
// what keeps clients from connecting is noticed within this time.
const mostAge = 5 * time.Minute

// connected returns a new connection. Those that are made at the same time, such as after the start
// of the operator, do not end at the same time.
func connected(etcd membership.Client, to destination, now time.Time) *connection {
	c := &connection{Client: etcd, to: to, until: now.Add(mostAge/2 + rand.N(mostAge/2))}
	c.users.Store(1)
	return c
}

// Close is called by each user. The last one closes the connection.
func (c *connection) Close() error {
	if c.users.Add(-1) > 0 {
		return nil
	}
	return c.Client.Close()
}

// lasts reports whether another look can use the connection.
func (c *connection) lasts() bool {
	etcd, may := c.Client.(membership.Lasting)
	return may && etcd.Lasts()
}

// take returns the connection that is kept to a member; nil: none is, or it cannot be used.
func (all *connections) take(key types.NamespacedName, member string, to destination, now time.Time) *connection {
	all.mu.Lock()
	defer all.mu.Unlock()
	c := all.kept[key][member]
	if c == nil || c.to != to || !now.Before(c.until) || !c.lasts() {
		return nil
	}
	c.users.Add(1)
	return c
}

// keep ends a look, of which the connections are given by the names of members. It keeps those that
// last, and no other of this cluster. The caller does not use them afterwards.
func (all *connections) keep(key types.NamespacedName, used map[string]*connection) {
	now := map[string]*connection{}
	all.mu.Lock()
	for member, c := range used {
		if !all.ended && c.lasts() {
			c.users.Add(1)
			now[member] = c
		}
	}
	before := all.kept[key]
	if delete(all.kept, key); len(now) > 0 {
		if all.kept == nil {
			all.kept = map[types.NamespacedName]map[string]*connection{}
		}
		all.kept[key] = now
	}
	all.mu.Unlock()
	closeAll(before)
	closeAll(used)
}

// forget closes the connections to a cluster that is gone.
func (all *connections) forget(key types.NamespacedName) { all.keep(key, nil) }

// end closes all connections, with the operator.
func (all *connections) end() {
	all.mu.Lock()
	kept := all.kept
	all.kept, all.ended = nil, true
	all.mu.Unlock()
	for _, of := range kept {
		closeAll(of)
	}
}

func closeAll(of map[string]*connection) {
	for _, c := range of {
		_ = c.Close() // what was asked is known
	}
}
