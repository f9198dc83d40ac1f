// Package fair shares workers between namespaces: a namespace with many objects, frequent changes
// or slow passes does not delay the objects of another namespace.
package fair

import (
	"cmp"
	"slices"
)

// Shares are places, and those that wait for one. A free place goes to the namespace that has the
// fewest, and in it to the highest priority, and then to what has waited longest. Of namespaces
// that have equally many, and of which the priority is the same, each has its turn. One namespace
// has only a part of the places, also while no other waits: a place may be taken for minutes, and
// those that come would wait for that. It is not safe for concurrent use.
type Shares[T comparable] struct {
	free, most int            // most is how many places one namespace has at most
	has        map[string]int // by namespace; without those that have none
	waiting    map[string]line[T]
	came       uint64 // how many have come to wait, or got a place, so far
}

// line is what waits in one namespace, in its order. since is when the namespace got its last
// place, or came to wait after that.
type line[T comparable] struct {
	waiters []waiter[T]
	since   uint64
}

type waiter[T comparable] struct {
	item     T
	priority int
	came     uint64
}

// before orders the waiting items of one namespace.
func before[T comparable](a, b waiter[T]) int {
	return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.came, b.came))
}

// before is the order of namespaces that have equally many places.
func (l line[T]) before(other line[T]) int {
	return cmp.Or(cmp.Compare(other.waiters[0].priority, l.waiters[0].priority), cmp.Compare(l.since, other.since))
}

// New are so many places, of which one namespace has three quarters at most. Of two or three, all
// but one are for one namespace, and a single place is for all.
func New[T comparable](places int) *Shares[T] {
	return &Shares[T]{
		free: places, most: max(1, places-max(1, places/4)),
		has: map[string]int{}, waiting: map[string]line[T]{},
	}
}

// Wait adds an item that waits for a place. Next gives it one.
func (s *Shares[T]) Wait(namespace string, item T, priority int) {
	s.came++
	w, line := waiter[T]{item, priority, s.came}, s.waiting[namespace]
	if len(line.waiters) == 0 {
		line.since = s.came
	}
	n, _ := slices.BinarySearchFunc(line.waiters, w, before[T])
	line.waiters = slices.Insert(line.waiters, n, w)
	s.waiting[namespace] = line
}

// Leave removes a waiting item, and reports whether it was waiting.
func (s *Shares[T]) Leave(namespace string, item T) bool {
	line := s.waiting[namespace]
	n := slices.IndexFunc(line.waiters, func(w waiter[T]) bool { return w.item == item })
	if n >= 0 {
		line.waiters = slices.Delete(line.waiters, n, n+1)
		s.keep(namespace, line)
	}
	return n >= 0
}

// Next gives a place to a waiting item and returns it; false: no place is free, or no waiting item
// is within the limit of its namespace.
func (s *Shares[T]) Next() (item T, ok bool) {
	var from string
	for namespace, line := range s.waiting {
		if s.free == 0 || s.has[namespace] >= s.most {
			continue
		}
		if !ok || cmp.Or(cmp.Compare(s.has[namespace], s.has[from]), line.before(s.waiting[from])) < 0 {
			from, ok = namespace, true
		}
	}
	if !ok {
		return item, false
	}
	s.free--
	s.has[from]++
	s.came++
	line := s.waiting[from]
	item = line.waiters[0].item
	line.waiters, line.since = line.waiters[1:], s.came
	s.keep(from, line)
	return item, true
}

// Done frees a place of the namespace.
func (s *Shares[T]) Done(namespace string) {
	s.free++
	if s.has[namespace]--; s.has[namespace] == 0 {
		delete(s.has, namespace)
	}
}

// Taken is the number of places that are taken.
func (s *Shares[T]) Taken() (taken int) {
	for _, has := range s.has {
		taken += has
	}
	return taken
}

func (s *Shares[T]) keep(namespace string, line line[T]) {
	if s.waiting[namespace] = line; len(line.waiters) == 0 {
		delete(s.waiting, namespace)
	}
}
