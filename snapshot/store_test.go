package snapshot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// large is more than what a store sends in one request: its object has parts.
const large = 20 << 20

// testStore checks what every Store promises. The store is empty at the beginning of each row.
func testStore(t *testing.T, open func(t *testing.T) Store) {
	errWrite := errors.New("the stream ended early")
	cases := map[string]struct {
		reason string
		run    func(t *testing.T, s Store)
	}{
		"CreateAndOpen": {
			reason: "What was written is read back, whatever its size.",
			run: func(t *testing.T, s Store) {
				for _, size := range []int{0, 1, 1 << 20, large, large + partSize} {
					key := fmt.Sprintf("sizes/%d", size)
					content := bytes.Repeat([]byte("0123456789abcdef"), size/16+1)[:size]
					create(t, s, key, content)
					if !bytes.Equal(content, read(t, s, key)) {
						t.Errorf("%s: another content was read than was written", key)
					}
				}
			},
		},
		"ExistsBefore": {
			reason: "An object is not overwritten, and its writer is not even asked.",
			run: func(t *testing.T, s Store) {
				create(t, s, "a", []byte("first"))
				err := s.Create(t.Context(), "a", func(io.Writer) error {
					t.Error("the writer was asked")
					return nil
				})
				wantReason(t, err, ReasonAlreadyExists, ErrExists)
				wantObjects(t, s, map[string]string{"a": "first"})
			},
		},
		"ExistsAtTheEnd": {
			reason: "An object that another one created meanwhile is not overwritten, in one request or in parts.",
			run: func(t *testing.T, s Store) {
				for key, size := range map[string]int{"small": 10, "large": large} {
					err := s.Create(t.Context(), key, func(w io.Writer) error {
						create(t, s, key, []byte("first"))
						_, err := w.Write(make([]byte, size))
						return err
					})
					wantReason(t, err, ReasonAlreadyExists, ErrExists)
				}
				wantObjects(t, s, map[string]string{"small": "first", "large": "first"})
			},
		},
		"Race": {
			reason: "Of several that create an object at once, exactly one succeeds, and it is that one's.",
			run: func(t *testing.T, s Store) {
				const racers = 8
				errs := make([]error, racers)
				var started, done sync.WaitGroup
				started.Add(racers)
				for i := range racers {
					done.Go(func() {
						errs[i] = s.Create(t.Context(), "a", func(w io.Writer) error {
							started.Done()
							started.Wait()
							_, err := fmt.Fprintf(w, "of %d", i)
							return err
						})
					})
				}
				done.Wait()
				won := -1
				for i, err := range errs {
					switch {
					case err == nil && won >= 0:
						t.Errorf("both %d and %d succeeded", won, i)
					case err == nil:
						won = i
					default:
						wantReason(t, err, ReasonAlreadyExists, ErrExists)
					}
				}
				wantObjects(t, s, map[string]string{"a": fmt.Sprintf("of %d", won)})
			},
		},
		"WriteFails": {
			reason: "An object whose writer fails does not appear, and another one may take its place.",
			run: func(t *testing.T, s Store) {
				for _, size := range []int{0, 10, large} {
					err := s.Create(t.Context(), "a", func(w io.Writer) error {
						if _, err := w.Write(make([]byte, size)); err != nil {
							t.Error(err)
						}
						return errWrite
					})
					if !errors.Is(err, errWrite) || !strings.Contains(err.Error(), s.Location("a")) {
						t.Errorf("after %d bytes: got %v, want the error of the writer and the location", size, err)
					}
					wantObjects(t, s, map[string]string{})
				}
				create(t, s, "a", []byte("again"))
			},
		},
		"Cancelled": {
			reason: "An object whose context ends does not appear.",
			run: func(t *testing.T, s Store) {
				for _, size := range []int{10, large} {
					ctx, cancel := context.WithCancel(t.Context())
					err := s.Create(ctx, "a", func(w io.Writer) error {
						_, err := w.Write(make([]byte, size))
						cancel()
						return err
					})
					if !errors.Is(err, context.Canceled) {
						t.Errorf("after %d bytes: got %v, want %v", size, err, context.Canceled)
					}
					wantObjects(t, s, map[string]string{})
				}
			},
		},
		"IgnoredFailure": {
			reason: "A writer that keeps the failure of the store to itself does not make an object appear.",
			run: func(t *testing.T, s Store) {
				ctx, cancel := context.WithCancel(t.Context())
				err := s.Create(ctx, "a", func(w io.Writer) error {
					cancel()
					_, _ = w.Write(make([]byte, 10))
					return nil
				})
				if !errors.Is(err, context.Canceled) {
					t.Errorf("got %v, want %v", err, context.Canceled)
				}
				wantObjects(t, s, map[string]string{})
			},
		},
		"NotFound": {
			reason: "An object that is not there cannot be opened, and may be deleted.",
			run: func(t *testing.T, s Store) {
				_, err := s.Open(t.Context(), "a")
				wantReason(t, err, ReasonNotFound, ErrNotFound)
				if err := s.Delete(t.Context(), "a"); err != nil {
					t.Error(err)
				}
			},
		},
		"List": {
			reason: "Objects are listed in the order of their keys, those with the prefix only, until the caller has enough.",
			run: func(t *testing.T, s Store) {
				keys := []string{"a-b", "a.db.zst", "a.manifest.json", "a/b", "a/c/d", "b"}
				for _, key := range []int{5, 3, 1, 0, 2, 4} {
					create(t, s, keys[key], []byte("1234"))
				}
				for prefix, want := range map[string][]string{"": keys, "a": keys[:5], "a.": keys[1:3], "a/": keys[3:5], "c": nil} {
					if diff := cmp.Diff(want, list(t, s, prefix)); diff != "" {
						t.Errorf("prefix %q: -want +got:\n%s", prefix, diff)
					}
				}
				err := s.List(t.Context(), "", func(o Object) error {
					if o.Key != "a-b" || o.Size != 4 || o.Modified.IsZero() {
						t.Errorf("got %+v", o)
					}
					return errWrite
				})
				if !errors.Is(err, errWrite) {
					t.Errorf("got %v, want the error of the caller", err)
				}
			},
		},
		"Delete": {
			reason: "A deleted object is gone, its neighbours stay, and it can be created again.",
			run: func(t *testing.T, s Store) {
				for _, key := range []string{"a", "a.b", "b/c"} {
					create(t, s, key, []byte(key))
				}
				for _, key := range []string{"a", "b/c"} {
					if err := s.Delete(t.Context(), key); err != nil {
						t.Error(err)
					}
				}
				wantObjects(t, s, map[string]string{"a.b": "a.b"})
				create(t, s, "a", []byte("again"))
			},
		},
		"Keys": {
			reason: "A key that leads elsewhere is refused by each method.",
			run: func(t *testing.T, s Store) {
				for _, key := range []string{"", ".", "..", "../a", "a/../b", "/a", "a//b", "a/", ".a", "a/.b", `a\b`, "a\nb"} {
					wantReason(t, s.Create(t.Context(), key, func(io.Writer) error { return nil }), ReasonInvalidKey, nil)
					_, err := s.Open(t.Context(), key)
					wantReason(t, err, ReasonInvalidKey, nil)
					wantReason(t, s.Delete(t.Context(), key), ReasonInvalidKey, nil)
				}
				for _, prefix := range []string{"../", "/", "a/../", "."} {
					wantReason(t, s.List(t.Context(), prefix, func(Object) error { return nil }), ReasonInvalidKey, nil)
				}
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			t.Cleanup(func() {
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			})
			t.Log(tc.reason)
			tc.run(t, s)
		})
	}
}

func create(t *testing.T, s Store, key string, content []byte) {
	t.Helper()
	err := s.Create(t.Context(), key, func(w io.Writer) error {
		_, err := w.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, s Store, key string) []byte {
	t.Helper()
	r, err := s.Open(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func list(t *testing.T, s Store, prefix string) []string {
	t.Helper()
	var keys []string
	err := s.List(t.Context(), prefix, func(o Object) error {
		keys = append(keys, o.Key)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

func wantObjects(t *testing.T, s Store, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	for _, key := range list(t, s, "") {
		got[key] = string(read(t, s, key))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects: -want +got:\n%s", diff)
	}
}

// wantReason checks the reason of an error, and what it wraps.
func wantReason(t *testing.T, err error, want Reason, wraps error) {
	t.Helper()
	got, ok := errors.AsType[*StoreError](err)
	if !ok || got.Reason != want || wraps != nil && !errors.Is(err, wraps) {
		t.Errorf("got %v, want a StoreError %s that wraps %v", err, want, wraps)
	}
}
