package snapshot

import (
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// put a snapshot into a store, as far as a list looks at it.
func put(t *testing.T, store *memory, s Stored) Manifest {
	t.Helper()
	m := s.Manifest
	m.Format, m.Object, m.Revision = Format, dataKey(m.Name, false), 1
	m.Size, m.SHA256, m.StoredSize, m.StoredSHA256 = 9, "sum of "+m.Name, 4, "stored sum"
	store.objects[m.Object] = []byte("data")
	store.objects[manifestKey(m.Name)] = encode(t, m)
	if s.Verification != nil {
		v := *s.Verification
		v.Format, v.SHA256 = Format, m.SHA256
		store.objects[verificationKey(m.Name)] = encode(t, v)
	}
	return m
}

func encode(t *testing.T, document any) []byte {
	t.Helper()
	text, err := json.Marshal(document)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// at gives a snapshot its revision, and stored the time when the store got it.
func at(revision int64, s Stored) Stored {
	s.Manifest.Revision = revision
	return s
}

func stored(modified time.Time, s Stored) Stored {
	s.Modified = modified
	return s
}

// TestNewestFirst: which snapshot is the newest does not depend on the clocks of nodes, as far as
// that is possible.
func TestNewestFirst(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		args   []Stored
		want   string
	}{
		"Times":          {"without revisions the times tell", []Stored{ok("a", noon(1)), ok("b", noon(2))}, "b a"},
		"Ahead":          {"the clock of a node was ahead", []Stored{at(5, ok("a", noon(9))), at(6, ok("b", noon(2)))}, "b a"},
		"Behind":         {"the clock of a node was behind", []Stored{at(5, ok("a", noon(3))), at(6, ok("b", noon(2)))}, "b a"},
		"SameRevision":   {"nothing was written: the times tell", []Stored{at(5, ok("a", noon(3))), at(5, ok("b", noon(2)))}, "a b"},
		"AnotherID":      {"revisions of different clusters are not compared", []Stored{at(9, ok("a", noon(1))), at(5, of("bbbb", ok("b", noon(2))))}, "b a"},
		"AheadOfStore":   {"it was not taken after the store got it", []Stored{stored(noon(1), at(9, ok("a", noon(9)))), stored(noon(2), at(5, of("bbbb", ok("b", noon(2)))))}, "b a"},
		"AheadOfLater":   {"nor after a later revision of its cluster", []Stored{at(8, ok("a", noon(9))), at(9, ok("b", noon(1))), at(5, of("bbbb", ok("c", noon(2))))}, "c b a"},
		"CopiedToStore":  {"a copy of a store has later times, all about the same", []Stored{stored(noon(20), at(9, ok("a", noon(1)))), stored(noon(19), at(5, of("bbbb", ok("b", noon(2)))))}, "b a"},
		"StoreKnowsNone": {"a store has one time for all", []Stored{stored(noon(0), at(9, ok("a", noon(1)))), stored(noon(0), at(5, of("bbbb", ok("b", noon(2)))))}, "b a"},
		"Damaged":        {"of one that cannot be read nothing is known", []Stored{{Manifest: Manifest{Name: "x"}, Damaged: errSyntax}, at(5, ok("a", noon(1)))}, "a x"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := slices.Clone(tc.args)
			newestFirst(got)
			if diff := cmp.Diff(tc.want, called(got)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestList: what cannot be read is in the list, with the reason, and hides nothing else.
func TestList(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		change func(*testing.T, *memory)
		list   string // names, newest first
		bad    string // of those, with the check
		proven string // verified
	}{
		"Good":          {"three good ones", func(*testing.T, *memory) {}, "c b a", "", "b a"},
		"Empty":         {"there is nothing", func(_ *testing.T, m *memory) { clear(m.objects) }, "", "", ""},
		"HalfManifest":  {"it cannot be read", func(_ *testing.T, m *memory) { m.objects["b.manifest.json"] = []byte(`{"for`) }, "c a b", "b manifest", "a"},
		"OtherManifest": {"it is of another", func(_ *testing.T, m *memory) { m.objects["b.manifest.json"] = m.objects["a.manifest.json"] }, "c a b", "b manifest", "a"},
		"NoData":        {"the data is gone", func(_ *testing.T, m *memory) { delete(m.objects, "b.db.zst") }, "c b a", "b stored size", "b a"},
		"HalfData":      {"the data is shorter", func(_ *testing.T, m *memory) { m.objects["b.db.zst"] = nil }, "c b a", "b stored size", "b a"},
		"NoManifest":    {"it does not count", func(_ *testing.T, m *memory) { delete(m.objects, "b.manifest.json") }, "c a", "", "a"},
		"NotOurs":       {"other objects are no concern", func(_ *testing.T, m *memory) { m.objects["Other.manifest.json"], m.objects["notes.txt"] = nil, nil }, "c b a", "", "b a"},
		"HalfVerified":  {"it proves nothing", func(_ *testing.T, m *memory) { m.objects["b.verified.json"] = []byte(`{`) }, "c b a", "", "a"},
		"OtherVerified": {"it is of another of the same name", func(t *testing.T, m *memory) {
			m.objects["b.verified.json"] = encode(t, Verification{Format: 1, Name: "b", Mode: ModeHash, SHA256: "other"})
		}, "c b a", "", "a"},
		"UnknownVerified": {"it is not known what was verified", func(t *testing.T, m *memory) {
			m.objects["b.verified.json"] = encode(t, Verification{Format: 1, Name: "b", Mode: "Later", SHA256: "sum of b"})
		}, "c b a", "", "a"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newMemory()
			for _, s := range []Stored{ok("a", noon(1)), ok("b", noon(2)), raw("c", noon(3))} {
				put(t, store, s)
			}
			tc.change(t, store)
			got, err := List(t.Context(), store)
			if err != nil {
				t.Fatal(err)
			}
			var bad, proven []string
			for _, s := range got {
				if d := new(Damage); errors.As(s.Damaged, &d) {
					bad = append(bad, s.Manifest.Name+" "+string(d.Check))
				}
				if s.Verification != nil {
					proven = append(proven, s.Manifest.Name)
				}
			}
			if diff := cmp.Diff([]string{tc.list, tc.bad, tc.proven}, []string{called(got), strings.Join(bad, " "), strings.Join(proven, " ")}); diff != "" {
				t.Errorf("%s: list, damaged, verified: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestListFaults: where the store does not answer there is no list: what was not read may be the
// newest.
func TestListFaults(t *testing.T) {
	t.Parallel()
	for call, fault := range map[string]error{
		"list ":                errFault,
		"open b.manifest.json": &StoreError{Reason: ReasonUnreachable, Err: errFault},
		"open b.verified.json": &StoreError{Reason: ReasonBusy, Err: errFault},
	} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			store := newMemory()
			put(t, store, ok("a", noon(1)))
			put(t, store, ok("b", noon(2)))
			store.fault = func(did, key string) error {
				if did+" "+key == call {
					return fault
				}
				return nil
			}
			if got, err := List(t.Context(), store); !errors.Is(err, errFault) || got != nil {
				t.Errorf("got %v, %v", called(got), err)
			}
		})
	}
}

// TestListUnreadable: an object that cannot be read makes its snapshot one that does not count, and
// hides no other.
func TestListUnreadable(t *testing.T) {
	t.Parallel()
	for _, call := range []string{"open b.manifest.json", "open b.verified.json"} {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			store := newMemory()
			for _, s := range []Stored{ok("a", noon(1)), ok("b", noon(2)), ok("c", noon(3))} {
				put(t, store, s)
			}
			store.fault = failing(call)
			got, err := List(t.Context(), store)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range got {
				if is := s.Manifest.Name == "b"; is != errors.Is(s.Damaged, errFault) || is == (s.Verification != nil) {
					t.Errorf("%s: damaged: %v, verification: %v", s.Manifest.Name, s.Damaged, s.Verification)
				}
			}
			if chosen, err := Select(got, Selection{Before: noon(2)}); err != nil || chosen.Manifest.Name != "a" {
				t.Errorf("chosen: %s, %v", chosen.Manifest.Name, err)
			}
			dropped, err := Prune(t.Context(), store, Retention{Last: 1}, PruneOptions{ClusterID: "aaaa", Now: noon(4)})
			if err != nil || called(dropped) != "a" {
				t.Errorf("pruned: %s, %v", called(dropped), err)
			}
		})
	}
}

// TestNamed: of one that is asked for by its name, no other is read.
func TestNamed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason string
		args   string
		want   string
		reads  []string
	}{
		"There":   {"that one", "a", "a", []string{"open a.manifest.json", "open a.verified.json"}},
		"Dotted":  {"one whose name begins with that of another", "a.b", "a.b", []string{"open a.b.manifest.json"}},
		"None":    {"there is none", "c", "", nil},
		"NotOurs": {"no snapshot has that name", "../a", "", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newMemory()
			for _, s := range []Stored{ok("a", noon(1)), raw("a.b", noon(2)), ok("b", noon(3))} {
				put(t, store, s)
			}
			got, err := Named(t.Context(), store, tc.args)
			if err != nil || called(got) != tc.want {
				t.Errorf("%s: want %q, got %q, %v", tc.reason, tc.want, called(got), err)
			}
			reads := slices.DeleteFunc(store.calls, func(call string) bool { return !strings.HasPrefix(call, "open ") })
			if diff := cmp.Diff(tc.reads, reads, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: reads: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// failing is a fault of some calls.
func failing(calls ...string) func(string, string) error {
	return func(call, key string) error {
		if slices.Contains(calls, call+" "+key) {
			return errFault
		}
		return nil
	}
}

func TestSelect(t *testing.T) {
	t.Parallel()
	in := func(cluster string, s Stored) Stored { s.Manifest.Cluster = cluster; return s }
	one := []Stored{damaged(ok("e", noon(5))), raw("d", noon(4)), ok("c", noon(3)), ok("b", noon(2)), ok("a", noon(1))}
	two := []Stored{in("x/db", ok("d", noon(4))), of("bbbb", in("y/db", ok("c", noon(3)))), in("x/db", ok("b", noon(2)))}
	for name, tc := range map[string]struct {
		reason string
		stored []Stored
		wanted Selection
		want   string
		err    error
		says   string
	}{
		"Latest":       {reason: "the newest that is whole", stored: one, want: "d"},
		"LatestByName": {reason: "the same", stored: one, wanted: Selection{Name: "latest"}, want: "d"},
		"Verified":     {reason: "the newest that was verified", stored: one, wanted: Selection{VerifiedOnly: true}, want: "c"},
		"Before":       {reason: "the last before a time", stored: one, wanted: Selection{Before: noon(3).Add(-time.Second)}, want: "b"},
		"At":           {reason: "or at that time", stored: one, wanted: Selection{Before: noon(3)}, want: "c"},
		"Name":         {reason: "that one", stored: one, wanted: Selection{Name: "b"}, want: "b"},
		"NameDamaged":  {reason: "that one, which is damaged", stored: one, wanted: Selection{Name: "e"}, says: "half of it"},
		"NoSuchName":   {reason: "there are others", stored: one, wanted: Selection{Name: "z"}, err: ErrNotFound, says: "e (damaged), d (2026-11-04T12:00:00Z"},
		"TooEarly":     {reason: "there are later ones", stored: one, wanted: Selection{Before: noon(1).Add(-time.Hour)}, err: ErrNotFound, says: "latest before 2026-11-01T11:00:00Z"},
		"NameTooLate":  {reason: "it was taken later", stored: one, wanted: Selection{Name: "c", Before: noon(2)}, err: ErrNotFound, says: "it was taken at 2026-11-03T12:00:00Z"},
		"NameUnproven": {reason: "it was not verified", stored: one, wanted: Selection{Name: "d", VerifiedOnly: true}, err: ErrNotFound, says: "among those that were verified"},
		"NameNotOf":    {reason: "it is of another cluster", stored: two, wanted: Selection{Name: "c", Cluster: "x/db"}, err: ErrOtherCluster, says: `cluster "y/db" with ID bbbb`},
		"NoneThere":    {reason: "the store is empty", err: ErrNotFound, says: "the store has no snapshots"},
		"TwoClusters":  {reason: "it might be the wrong one", stored: two, says: "say of which one"},
		"OneOfTwo":     {reason: "it was said", stored: two, wanted: Selection{Cluster: "y/db"}, want: "c"},
		"OneIDOfTwo":   {reason: "by the ID", stored: two, wanted: Selection{ClusterID: "bbbb"}, want: "c"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := Select(tc.stored, tc.wanted)
			if tc.want == "" {
				if err == nil || tc.err != nil && !errors.Is(err, tc.err) || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("%s: want %v that says %q, got %v", tc.reason, tc.err, tc.says, err)
				}
				return
			}
			if err != nil || got.Manifest.Name != tc.want {
				t.Errorf("%s: want %s, got %s, %v", tc.reason, tc.want, got.Manifest.Name, err)
			}
		})
	}
}

// TestDelete: the manifest goes first, and what is left after a failure can be deleted again.
func TestDelete(t *testing.T) {
	t.Parallel()
	store := newMemory()
	put(t, store, ok("a", noon(1)))
	store.fault = failing("delete a.db.zst")
	if err := Delete(t.Context(), store, "a"); !errors.Is(err, errFault) {
		t.Errorf("got %v", err)
	}
	if left, err := List(t.Context(), store); err != nil || len(left) > 0 {
		t.Errorf("half deleted, it still counts: %v, %v", left, err)
	}
	store.fault = nil
	for range 2 {
		if err := Delete(t.Context(), store, "a"); err != nil {
			t.Errorf("again: %v", err)
		}
	}
	if diff := cmp.Diff([]string{}, store.keys(), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := Delete(t.Context(), store, "a/../b"); err == nil {
		t.Error("a path is taken for a name")
	}
}

// TestDeleteOf: a snapshot of another cluster stays, whatever its name.
func TestDeleteOf(t *testing.T) {
	t.Parallel()
	denied := func(call, key string) error {
		if call == "open" {
			return &StoreError{Reason: ReasonAccessDenied, Op: call, Location: key}
		}
		return nil
	}
	cases := map[string]struct {
		reason string
		id     string
		lies   func(*memory)
		fault  func(call, key string) error
		err    error
		want   []string // what stays
	}{
		"Own":     {reason: "it is of the cluster", id: "aaaa"},
		"Other":   {reason: "it is not", id: "bbbb", err: ErrOtherCluster, want: []string{"a.db.zst", "a.manifest.json", "a.verified.json"}},
		"Unknown": {reason: "it is not known of which cluster it should be"},
		"Unfinished": {
			reason: "without a manifest it is the rest of a save, or of a deletion", id: "bbbb", lies: func(m *memory) { delete(m.objects, "a.manifest.json") },
		},
		"Damaged":    {reason: "of a manifest that says nothing the name has to do", id: "bbbb", lies: func(m *memory) { m.objects["a.manifest.json"] = []byte("x") }},
		"Denied":     {reason: "so some stores answer for what is not there", id: "aaaa", fault: denied},
		"Unreadable": {reason: "it may be another's", id: "aaaa", fault: failing("open a.manifest.json"), err: errFault, want: []string{"a.db.zst", "a.manifest.json", "a.verified.json"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newMemory()
			put(t, store, ok("a", noon(1)))
			if tc.lies != nil {
				tc.lies(store)
			}
			store.fault = tc.fault
			if err := DeleteOf(t.Context(), store, "a", tc.id); !errors.Is(err, tc.err) {
				t.Errorf("%s: got %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, store.keys(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: in the store, -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestPrune(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason  string
		fault   func(string, string) error
		lies    func(*memory)
		options PruneOptions
		dropped string
		left    string
		fails   bool
	}{
		"Drops":      {reason: "the oldest first", options: PruneOptions{ClusterID: "aaaa"}, dropped: "a b", left: "d c z"},
		"DryRun":     {reason: "nothing is deleted", options: PruneOptions{ClusterID: "aaaa", DryRun: true}, dropped: "a b", left: "d c b a z"},
		"NoCluster":  {reason: "it must be said of which cluster", fails: true, left: "d c b a z"},
		"Other":      {reason: "nothing of another cluster", options: PruneOptions{ClusterID: "cccc"}, left: "d c b a z"},
		"ListFails":  {reason: "the store forbids it", options: PruneOptions{ClusterID: "aaaa"}, fault: failing("list "), fails: true, left: "d c b a z"},
		"ReadFails":  {reason: "what cannot be read stays, and does not count: the one before is the last good one", options: PruneOptions{ClusterID: "aaaa"}, fault: failing("open c.manifest.json"), dropped: "a", left: "d c b z"},
		"DeniesOne":  {reason: "the others go", options: PruneOptions{ClusterID: "aaaa"}, fault: failing("delete a.manifest.json"), fails: true, dropped: "b", left: "d c a z"},
		"LastIsGone": {reason: "the newest verified one lost its data: the one before is the last good one", options: PruneOptions{ClusterID: "aaaa"}, lies: func(m *memory) { delete(m.objects, "c.db.zst") }, dropped: "a", left: "d c b z"},
		"NoneProven": {reason: "verifications cannot be read", options: PruneOptions{ClusterID: "aaaa"}, lies: func(m *memory) {
			for _, name := range []string{"a", "b", "c"} {
				m.objects[verificationKey(name)] = nil
			}
		}, left: "d c b a z"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newMemory()
			for _, s := range []Stored{raw("d", noon(4)), ok("c", noon(3)), ok("b", noon(2)), ok("a", noon(1)), of("bbbb", ok("z", noon(1)))} {
				put(t, store, s)
			}
			if tc.lies != nil {
				tc.lies(store)
			}
			store.fault = tc.fault
			tc.options.Now = noon(5)
			dropped, err := Prune(t.Context(), store, Retention{Last: 1}, tc.options)
			if (err != nil) != tc.fails {
				t.Errorf("%s: %v", tc.reason, err)
			}
			store.fault = nil
			left, err := List(t.Context(), store)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{tc.dropped, tc.left}, []string{called(dropped), called(left)}); diff != "" {
				t.Errorf("%s: dropped, left: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestRecordVerification: it is written once.
func TestRecordVerification(t *testing.T) {
	t.Parallel()
	first := Verification{Format: 1, Name: "a", Mode: ModeRestore, SHA256: "sum of a", Hash: 7}
	for name, tc := range map[string]struct {
		reason string
		before func(*testing.T, *memory)
		want   error
	}{
		"First": {"there was none", func(*testing.T, *memory) {}, nil},
		"Again": {"of the very same snapshot", func(t *testing.T, m *memory) {
			m.objects["a.verified.json"] = encode(t, Verification{Format: 1, Name: "a", Mode: ModeHash, SHA256: "sum of a"})
		}, nil},
		"Other": {"of another snapshot of that name", func(t *testing.T, m *memory) {
			m.objects["a.verified.json"] = encode(t, Verification{Format: 1, Name: "a", Mode: ModeHash, SHA256: "other"})
		}, ErrExists},
		"Refused": {"the store is read only", func(_ *testing.T, m *memory) { m.fault = failing("create a.verified.json") }, errFault},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newMemory()
			tc.before(t, store)
			if err := RecordVerification(t.Context(), store, first); !errors.Is(err, tc.want) {
				t.Errorf("%s: want %v, got %v", tc.reason, tc.want, err)
			}
		})
	}
}

// half of the data of a snapshot, and then an error.
func half(key string, r io.Reader) io.Reader {
	if key != "good.db.zst" {
		return r
	}
	return &faulty{Reader: r, left: 3000}
}

// TestReadFaults: a store that fails is no damage: what it has may be good.
func TestReadFaults(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, tc := range map[string]struct {
		reason string
		change func(*memory)
		want   error
	}{
		"Open":       {"the object cannot be opened", func(m *memory) { m.fault = failing("open good.db.zst") }, errFault},
		"Manifest":   {"the manifest cannot be opened", func(m *memory) { m.fault = failing("open good.manifest.json") }, errFault},
		"Half":       {"it breaks off midway, with an error", func(m *memory) { m.read = half }, errFault},
		"NoManifest": {"it was never finished", func(m *memory) { delete(m.objects, "good.manifest.json") }, ErrNoManifest},
		"NoData":     {"the data is gone", func(m *memory) { delete(m.objects, "good.db.zst") }, ErrNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := f.with("good.db.zst", f.store.objects["good.db.zst"])
			tc.change(store)
			dir := t.TempDir()
			_, err := Fetch(t.Context(), store, "good", dir+"/snapshot.db", FetchOptions{})
			if !errors.Is(err, tc.want) || errors.Is(err, ErrDamaged) {
				t.Errorf("%s: want %v, got %v", tc.reason, tc.want, err)
			}
			if left := names(t, dir); len(left) > 0 {
				t.Errorf("%s: %v is left", tc.reason, left)
			}
		})
	}
}
