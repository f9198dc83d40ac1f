//go:build env

package reconcile_test

import (
	"context"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "quorate.dev/api/v1alpha1"
	"quorate.dev/membership"
	"quorate.dev/reconcile"
)

// TestConnectionsStay: at rest the operator has one connection to each member, with TLS and
// without, and looks again and again make no other. It connects again to a member that was
// restarted, to a Pod that has got the address of another one, and to all members when its own
// certificate was issued again. When the cluster is deleted no connection is left.
func TestConnectionsStay(t *testing.T) {
	for name, secured := range map[string]bool{"PlainText": false, "TLS": true} {
		t.Run(name, func(t *testing.T) {
			s := newStage(t)
			s.secured = secured
			l := &lookedAt{stage: s, heard: make(chan struct{}), asked: map[string]int{}}
			s.operate(l.between)
			c := s.cluster("db", 3)
			s.create(c)
			s.await(c, "ready", func() bool { return is(c, api.ConditionReady, metav1.ConditionTrue) })
			l.until(c, "one connection to each member", func(now map[string][]string) bool {
				return !slices.ContainsFunc(slices.Collect(maps.Values(now)), func(of []string) bool { return len(of) != 1 })
			})

			// On a busy machine a call is given up now and then, and its connection is made again.
			const times, rounds = 10, 3
			var before map[string][]string
			var changed string
			more := times
			for round := 0; round < rounds && (more > 0 || changed != ""); round++ {
				have, all := l.connections(c)
				for range times {
					l.look(c)
				}
				after, allAfter := l.connections(c)
				before, changed, more = after, cmp.Diff(have, after), len(allAfter)-len(all)
				t.Logf("%d connections to three members; %d looks made %d more", len(all), times, more)
			}
			if changed != "" {
				t.Errorf("other connections after %d looks, %d times over: -want +got:\n%s", times, rounds, changed)
			}
			if more > 0 {
				t.Errorf("%d looks made %d connections, %d times over", times, more, rounds)
			}

			others := func(before map[string][]string, members ...string) {
				t.Helper()
				// A call to another member may fail as well while there is no leader.
				l.until(c, "other connections to "+strings.Join(members, ", "), func(now map[string][]string) bool {
					for name := range before {
						if len(now[name]) != 1 || slices.Contains(members, name) && slices.Equal(before[name], now[name]) {
							return false
						}
					}
					return true
				})
			}
			s.must(s.hostlet.Kill(s.ns, "db-1"))
			others(before, "db-1")
			before, _ = l.connections(c)
			pod := s.pods(c)[2]
			s.deletePod("db-2")
			s.awaitRecreated("db-2", pod.UID)
			others(before, "db-2")
			if again := s.pods(c)[2]; again.Status.PodIP != pod.Status.PodIP {
				t.Errorf("void: the new Pod has the address %s, and the former had %s", again.Status.PodIP, pod.Status.PodIP)
			}
			if secured {
				before, _ = l.connections(c)
				s.must(s.Delete(s.Context(), s.secret("db-operator-tls")))
				others(before, "db-0", "db-1", "db-2")
			}

			addresses := l.addresses(c)
			s.must(s.Delete(s.Context(), c))
			ctx, cancel := context.WithTimeout(s.Context(), patience)
			defer cancel()
			for open, _ := l.to(addresses); len(open) > 0; open, _ = l.to(addresses) {
				select {
				case <-time.After(10 * time.Millisecond):
				case <-ctx.Done():
					t.Fatalf("connections to a deleted cluster: %v", open)
				}
			}
		})
	}
}

// lookedAt counts how often members are asked for their status.
type lookedAt struct {
	*stage
	mu    sync.Mutex
	asked map[string]int // by address
	heard chan struct{}  // closed and made again each time
}

func (l *lookedAt) between(r *reconcile.Reconciler) {
	dial, dialTLS := r.Dial, r.DialTLS
	r.Dial = func(host string, port int) (membership.Client, error) {
		etcd, err := dial(host, port)
		return looked{etcd, host, l}, err
	}
	r.DialTLS = func(host string, port int, config *tls.Config) (membership.Client, error) {
		etcd, err := dialTLS(host, port, config)
		return looked{etcd, host, l}, err
	}
}

type looked struct {
	membership.Client
	host string
	by   *lookedAt
}

func (e looked) Lasts() bool { return e.Client.(membership.Lasting).Lasts() }

func (e looked) Status(ctx context.Context) (membership.Endpoint, error) {
	says, err := e.Client.Status(ctx)
	e.by.mu.Lock()
	defer e.by.mu.Unlock()
	e.by.asked[e.host]++
	close(e.by.heard)
	e.by.heard = make(chan struct{})
	return says, err
}

// look has the operator look at the cluster, and waits until each member was asked.
func (l *lookedAt) look(c *api.EtcdCluster) {
	l.Helper()
	pods := l.pods(c)
	l.mu.Lock()
	before := maps.Clone(l.asked)
	l.mu.Unlock()
	l.change(&pods[0], func() {
		if pods[0].Annotations == nil {
			pods[0].Annotations = map[string]string{}
		}
		pods[0].Annotations["test/look"] = strconv.Itoa(before[pods[0].Status.PodIP])
	})
	late := time.After(patience)
	for {
		l.mu.Lock()
		heard, all := l.heard, true
		for _, pod := range pods {
			all = all && l.asked[pod.Status.PodIP] > before[pod.Status.PodIP]
		}
		l.mu.Unlock()
		if all {
			return
		}
		select {
		case <-heard:
		case <-late:
			l.Fatalf("waited %s for a look at each member", patience)
		}
	}
}

// until looks at the cluster until its connections are as wanted.
func (l *lookedAt) until(c *api.EtcdCluster, wanted string, done func(map[string][]string) bool) {
	l.Helper()
	late := time.Now().Add(patience)
	for {
		l.look(c)
		now, _ := l.connections(c)
		if len(now) == 3 && done(now) {
			return
		}
		if time.Now().After(late) {
			l.Fatalf("waited %s for %s: %v", patience, wanted, now)
		}
	}
}

func (l *lookedAt) addresses(c *api.EtcdCluster) map[string]string {
	at := map[string]string{}
	for _, pod := range l.pods(c) {
		at[pod.Status.PodIP] = pod.Name
	}
	return at
}

// connections of this process to the members: the ports on this side, by member. all are also those
// that were closed in the last minute.
func (l *lookedAt) connections(c *api.EtcdCluster) (open map[string][]string, all []string) {
	l.Helper()
	return l.to(l.addresses(c))
}

// to reads the connections to these addresses from the kernel.
func (l *lookedAt) to(members map[string]string) (open map[string][]string, all []string) {
	l.Helper()
	const established, timeWait = "01", "06"
	mine := map[string]bool{}
	fds, err := filepath.Glob("/proc/self/fd/*")
	l.must(err)
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil { // it may be closed by now
			mine[to] = true
		}
	}
	table, err := os.ReadFile("/proc/self/net/tcp")
	l.must(err)
	open = map[string][]string{}
	for line := range strings.Lines(string(table)) {
		fields := strings.Fields(line)
		if len(fields) < 10 || fields[0] == "sl" {
			continue
		}
		_, from, _ := strings.Cut(fields[1], ":")
		member := members[address(fields[2])]
		switch {
		case member == "":
		case fields[3] == established && mine["socket:["+fields[9]+"]"]:
			open[member] = append(open[member], from)
			all = append(all, from)
		case fields[3] == timeWait:
			all = append(all, from)
		}
	}
	return open, all
}

// address is the address in an entry of the kernel's, where that is of the clients' port.
func address(entry string) string {
	host, port, _ := strings.Cut(entry, ":")
	raw, err := hex.DecodeString(host)
	if err != nil || len(raw) != net.IPv4len || port != fmt.Sprintf("%04X", api.PortClient) {
		return ""
	}
	return net.IPv4(raw[3], raw[2], raw[1], raw[0]).String()
}
