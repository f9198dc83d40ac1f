package fair

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestShares: which items get the free places, and in which order.
func TestShares(t *testing.T) {
	t.Parallel()
	type wait struct {
		namespace, item string
		priority        int
	}
	cases := map[string]struct {
		reason string
		places int
		waits  []wait
		leaves []wait
		want   []string
	}{
		"One":      {reason: "a single place is for all", places: 1, waits: []wait{{"a", "a1", 0}, {"a", "a2", 0}}, want: []string{"a1"}},
		"Part":     {reason: "three of four places are for one namespace, also while no other waits", places: 4, waits: []wait{{"a", "a1", 0}, {"a", "a2", 0}, {"a", "a3", 0}, {"a", "a4", 0}}, want: []string{"a1", "a2", "a3"}},
		"Fewest":   {reason: "what came last is next where its namespace has no place", places: 4, waits: []wait{{"a", "a1", 0}, {"a", "a2", 0}, {"a", "a3", 0}, {"b", "b1", 0}}, want: []string{"a1", "b1", "a2", "a3"}},
		"Priority": {reason: "in one namespace the higher priority is first, then what came first", places: 8, waits: []wait{{"a", "a1", -100}, {"a", "a2", 0}, {"a", "a3", 0}}, want: []string{"a2", "a3", "a1"}},
		"Left":     {reason: "what waits no longer has no place", places: 8, waits: []wait{{"a", "a1", 0}, {"a", "a2", 0}}, leaves: []wait{{"a", "a1", 0}}, want: []string{"a2"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := New[string](tc.places)
			for _, w := range tc.waits {
				s.Wait(w.namespace, w.item, w.priority)
			}
			for _, w := range tc.leaves {
				if !s.Leave(w.namespace, w.item) || s.Leave(w.namespace, w.item) {
					t.Errorf("%s: %s does not leave once", tc.reason, w.item)
				}
			}
			var got []string
			for item, ok := s.Next(); ok; item, ok = s.Next() {
				got = append(got, item)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			if got := s.Taken(); got != len(tc.want) {
				t.Errorf("%s: %d places are taken, want %d", tc.reason, got, len(tc.want))
			}
		})
	}
}

// TestSharesAtRandom: however namespaces come and go, no place is lost or given twice, none has
// more than its part, none waits while there is a place that it may have, and nothing is kept of
// those that are gone.
func TestSharesAtRandom(t *testing.T) {
	t.Parallel()
	full := 0
	for seed := range uint64(100) {
		random := rand.New(rand.NewPCG(seed, 0))
		places := 1 + random.IntN(12)
		s, waiting, has, taken := New[int](places), map[string]int{}, map[string]int{}, 0
		of := map[int]string{}
		for item := range 500 {
			namespace := string(rune('a' + random.IntN(4)))
			if random.IntN(2) == 0 {
				s.Wait(namespace, item, random.IntN(2))
				of[item] = namespace
				waiting[namespace]++
			} else if has[namespace] > 0 {
				s.Done(namespace)
				has[namespace]--
				taken--
			}
			for next, ok := s.Next(); ok; next, ok = s.Next() {
				for other, waits := range waiting {
					if waits > 0 && has[other] < has[of[next]] {
						t.Fatalf("seed %d: %s has %d places and gets another, %s has %d and waits", seed, of[next], has[of[next]], other, has[other])
					}
				}
				waiting[of[next]]--
				has[of[next]]++
				taken++
			}
			for namespace, waits := range waiting {
				if free := taken < places && has[namespace] < s.most; waits > 0 && free {
					t.Fatalf("seed %d: %s waits beside a free place", seed, namespace)
				}
				if has[namespace] > s.most {
					t.Fatalf("seed %d: %s has %d places, at most %d are for one", seed, namespace, has[namespace], s.most)
				}
			}
			if taken > places || taken != s.Taken() {
				t.Fatalf("seed %d: %d of %d places are taken, and %d are known", seed, taken, places, s.Taken())
			}
			if taken == places {
				full++
			}
		}
		for s.Taken() > 0 { // until nothing is left
			for namespace, places := range has {
				if places > 0 {
					s.Done(namespace)
					has[namespace]--
				}
			}
			for next, ok := s.Next(); ok; next, ok = s.Next() {
				has[of[next]]++
			}
		}
		if len(s.has) > 0 || len(s.waiting) > 0 || s.free != places {
			t.Fatalf("seed %d: at rest %d of %d places are free, and %v and %v are kept", seed, s.free, places, s.has, s.waiting)
		}
	}
	if full < 1000 {
		t.Errorf("void: all places were taken %d times", full)
	}
}

// TestSharesInTurn: with places for fewer than there are namespaces, each has its turn. One that
// has much to do, and came first, is not before the others each time.
func TestSharesInTurn(t *testing.T) {
	t.Parallel()
	s := New[string](1)
	for _, w := range []string{"a1", "a2", "a3", "a4", "b1", "b2", "c1"} {
		s.Wait(w[:1], w, 0)
	}
	var got []string
	for item, ok := s.Next(); ok; item, ok = s.Next() {
		got = append(got, item)
		s.Done(item[:1])
		if item == "c1" {
			s.Wait("c", "c2", 0)
		}
	}
	if diff := cmp.Diff([]string{"a1", "b1", "c1", "a2", "b2", "c2", "a3", "a4"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
