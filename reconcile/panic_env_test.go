//go:build env

package reconcile_test

import (
	"strings"
	"sync"
	"testing"

	"quorate.dev/e2e/contract"
	"quorate.dev/membership"
	"quorate.dev/reconcile"
)

// TestPanickedPass: a cluster at which every pass panics costs the other one nothing, and goes on
// when none does any more.
func TestPanickedPass(t *testing.T) {
	s := newStage(t)
	var spoiled sync.Map // addresses
	met := make(chan struct{}, 1)
	s.operate(func(r *reconcile.Reconciler) {
		dial := r.Dial
		r.Dial = func(host string, port int) (membership.Client, error) {
			if _, bad := spoiled.Load(host); bad {
				select {
				case met <- struct{}{}:
				default:
				}
				panic("TestPanickedPass")
			}
			etcd, err := dial(host, port)
			return struct{ membership.Client }{etcd}, err // it does not last: the next look connects again
		}
	})
	bad, good := s.cluster("bad", 1), s.cluster("good", 1)
	contract.Watch(s, bad)
	s.create(bad)
	kept := s.born(good)
	s.ready(bad)
	address := s.pods(bad)[0].Status.PodIP
	spoiled.Store(address, true)
	<-met
	uid := s.pods(good)[0].UID
	s.deletePod("good-0")
	s.awaitRecreated("good-0", uid)
	s.settled(good, kept)

	spoiled.Delete(address)
	s.resize(bad, 2)
	s.sized(bad, 2)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, line := range s.logs {
		if strings.Contains(line, "TestPanickedPass") && strings.Contains(line, "Reconciler error") {
			return
		}
	}
	t.Error("the operator's log does not tell of the panic")
}
