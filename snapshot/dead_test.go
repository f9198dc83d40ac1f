package snapshot

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var errDead = errors.New("the agent has died")

// diesAt is what an agent has of the store that dies at the call of that number: neither that call
// nor any that follows reaches the store, so nothing is cleaned up either.
func (m *memory) diesAt(call int) *memory {
	m.fault = func(string, string) error {
		if call--; call < 0 {
			return errDead
		}
		return nil
	}
	return m
}

func (m *memory) copy() *memory {
	c := newMemory()
	maps.Copy(c.objects, m.objects)
	return c
}

// TestDead: an agent dies at each of its calls. What was stored before is there and whole, what is
// half done does not count, and the same done again ends as if nothing had happened.
func TestDead(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	from := Source{Endpoints: []string{newFake(1, f.stream).serve(t)}}
	save := func(name string) func(context.Context, Store) error {
		return func(ctx context.Context, store Store) error {
			_, err := Save(ctx, from, store, SaveOptions{Name: name, Keep: t.TempDir(), Unfinished: true})
			return err
		}
	}
	if err := save("later")(t.Context(), f.store); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		reason string
		does   func(context.Context, Store) error
		died   func(call int) []string // listed, with what was verified
		want   []string
		again  error // of one that had ended, and whose end was not heard of
		calls  int
	}{
		"Save": {
			reason: "what has no manifest does not count",
			does:   save("new"),
			died:   func(int) []string { return []string{"later", "good"} },
			want:   []string{"new", "later", "good"},
			again:  ErrExists,
			calls:  7,
		},
		"RecordVerification": {
			reason: "it is verified when that is written",
			does: func(ctx context.Context, store Store) error {
				return RecordVerification(ctx, store, verified(f.manifest, ModeHash))
			},
			died:  func(int) []string { return []string{"later", "good"} },
			want:  []string{"later", "good verified"},
			calls: 1,
		},
		"Delete": {
			reason: "what has lost its manifest does not count",
			does:   func(ctx context.Context, store Store) error { return Delete(ctx, store, "later") },
			died: func(call int) []string {
				if call == 0 {
					return []string{"later", "good"}
				}
				return []string{"good"}
			},
			want:  []string{"good"},
			calls: 4,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			undisturbed := f.store.copy()
			if err := tc.does(t.Context(), undisturbed); err != nil {
				t.Fatal(err)
			}
			for call := range tc.calls + 1 {
				store := f.store.copy().diesAt(call)
				err := tc.does(t.Context(), store)
				store.fault = nil
				died, again := tc.died(call), error(nil)
				if call == tc.calls {
					died, again = tc.want, tc.again
				}
				if dead := errors.Is(err, errDead); dead == (call == tc.calls) {
					t.Fatalf("it was to die at call %d of %d: %v (%v)", call, tc.calls, err, store.calls)
				}
				if diff := cmp.Diff(died, whole(t, store)); diff != "" {
					t.Errorf("%s: after it has died at call %d: -want +got:\n%s", tc.reason, call, diff)
				}
				if err := tc.does(t.Context(), store); !errors.Is(err, again) {
					t.Errorf("%s: again, after it has died at call %d: %v", tc.reason, call, err)
				}
				if diff := cmp.Diff(tc.want, whole(t, store)); diff != "" {
					t.Errorf("%s: done again after call %d: -want +got:\n%s", tc.reason, call, diff)
				}
				if diff := cmp.Diff(undisturbed.keys(), store.keys()); diff != "" {
					t.Errorf("%s: objects after call %d: -want +got:\n%s", tc.reason, call, diff)
				}
			}
		})
	}
}

// whole are the snapshots that a store lists, the newest first. Each is read to its end.
func whole(t *testing.T, store Store) []string {
	t.Helper()
	listed, err := List(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range listed {
		word := s.Manifest.Name
		if s.Verification != nil {
			word += " verified"
		}
		if _, err := VerifyHash(t.Context(), store, s.Manifest.Name, FetchOptions{}); err != nil || s.Damaged != nil {
			word = fmt.Sprint(word, " damaged: ", err, s.Damaged)
		}
		got = append(got, word)
	}
	return got
}
