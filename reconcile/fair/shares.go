// Package fair shares workers between namespaces: a namespace with many objects, frequent changes
// or slow passes does not delay the objects of another namespace.
package fair

import (
	"cmp"
	"slices"
)

// Shares are a fixed number of places, and the items that wait for one. A free place goes to the
// namespace with the fewest places, there to the item with the highest priority, and then to the
// one that has waited longest. Namespaces with equally many places and the same priority take
// turns. One namespace never has all places, also while no other namespace waits: a place may be
// taken for minutes, and a new item of another namespace would have to wait that long. Shares is
// not safe for concurrent use.
type Shares[T comparable] struct {
	free, most int            // the free places, and the limit of one namespace
	has        map[string]int // the places of each namespace that has any
	waiting    map[string]line[T]
	came       uint64 // the number of calls of Wait, and of places given, so far
}

// line has the waiting items of one namespace in their order. since is the value of came when the
// namespace got its last place, or began to wait after that.
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

// New returns Shares with that many places. One namespace gets three quarters of them at most; all
// but one of two or three places; and a single place.
func New[T comparable](places int) *Shares[T] {
	return Limited[T](places, max(1, places-max(1, places/4)))
}

// Limited returns Shares with that many places, of which one namespace gets as many as most says.
func Limited[T comparable](places, most int) *Shares[T] {
	return &Shares[T]{free: places, most: most, has: map[string]int{}, waiting: map[string]line[T]{}}
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
