package snapshot

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// TestSave: what the manifest says, and that the stream comes back as it was.
func TestSave(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	d, err := Describe(t.Context(), file(t, f.stream))
	if err != nil {
		t.Fatal(err)
	}
	want := Manifest{
		Format: 1, Name: "good", Cluster: "default/db", ClusterID: "aaaa", MemberID: "1", Member: "db-1", EtcdVersion: "3.6.16",
		Revision: d.Revision, TotalKeys: d.TotalKeys, Object: "good.db.zst",
		Size: int64(len(f.stream)), SHA256: d.SHA256, StoredSize: int64(len(f.store.objects["good.db.zst"])),
	}
	ignored := cmpopts.IgnoreFields(Manifest{}, "StoredSHA256", "StartedAt", "TakenAt")
	if diff := cmp.Diff(want, f.manifest, ignored); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if f.manifest.TakenAt.Before(f.manifest.StartedAt) || f.manifest.StartedAt.Location() != time.UTC {
		t.Errorf("started at %s, taken at %s", f.manifest.StartedAt, f.manifest.TakenAt)
	}
	calls := []string{"open good.manifest.json", "open good.db.zst", "create good.db.zst", "create good.manifest.json"}
	if diff := cmp.Diff(calls, f.store.calls); diff != "" {
		t.Errorf("the manifest is last: -want +got:\n%s", diff)
	}
	path := filepath.Join(t.TempDir(), "snapshot.db")
	var reported Progress
	fetched, err := Fetch(t.Context(), f.store, "good", path, FetchOptions{Progress: func(p Progress) { reported = p }})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f.manifest, fetched); diff != "" {
		t.Errorf("the manifest as it is read: -want +got:\n%s", diff)
	}
	if diff := cmp.Diff(Progress{Stage: "read", Done: want.StoredSize, Total: want.StoredSize}, reported); diff != "" {
		t.Errorf("the last progress: -want +got:\n%s", diff)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(f.stream, got) {
		t.Error("what was fetched is not what etcd has sent")
	}
}

// errFault is what a faulty store says.
var errFault = errors.New("the store is on fire")

// faulty writes and reads half, and then fails.
type faulty struct {
	io.Writer
	io.Reader
	left int
}

func (f *faulty) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFault
	}
	return f.Writer.Write(p)
}

func (f *faulty) Read(p []byte) (int, error) {
	if f.left <= 0 {
		return 0, errFault
	}
	n, err := f.Reader.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}

// TestSaveFaults: whatever fails, no manifest is left, nothing of another is touched, and the error
// says why.
func TestSaveFaults(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.write(20, 300)
	stream := d.snapshot()
	for name, tc := range map[string]struct {
		reason string
		member func(*fake)
		store  func(*memory)
		keep   string // a directory
		want   error
		says   string
		left   []string
	}{
		"Full": {reason: "the store is full after some bytes", store: func(m *memory) {
			m.write = func(_ string, w io.Writer) io.Writer { return &faulty{Writer: w, left: 100} }
		}, want: errFault, says: "memory://good.db.zst"},
		"DataRefused":   {reason: "the object cannot be made", store: func(m *memory) { m.fault = failing("create good.db.zst") }, want: errFault, says: "memory://good.db.zst"},
		"ManifestFails": {reason: "the data is taken back", store: func(m *memory) { m.fault = failing("create good.manifest.json") }, want: errFault, says: "memory://good.manifest.json"},
		"DeleteFails":   {reason: "the data cannot be taken back", store: func(m *memory) { m.fault = failing("create good.manifest.json", "delete good.db.zst") }, want: errFault, says: "memory://good.db.zst stays", left: []string{"good.db.zst"}},
		"DataThere":     {reason: "another's data is not touched", store: func(m *memory) { m.objects["good.db.zst"] = []byte("x") }, want: ErrExists, says: "delete that", left: []string{"good.db.zst"}},
		"ManifestThere": {reason: "another's manifest is not touched", store: func(m *memory) { m.objects["good.manifest.json"] = []byte("x") }, want: ErrExists, left: []string{"good.manifest.json"}},
		"Meanwhile": {reason: "another's manifest, of the same moment, is not touched", store: func(m *memory) {
			m.fault = func(call, key string) error {
				if call+key == "creategood.db.zst" {
					m.objects["good.manifest.json"] = []byte("x")
				}
				return nil
			}
		}, want: ErrExists, left: []string{"good.manifest.json"}},
		"StreamFails":    {reason: "the member goes down midway", member: func(f *fake) { f.fails = status.Error(codes.Unavailable, "gone") }, says: "gone"},
		"StreamCut":      {reason: "the stream ends early, without an error", member: func(f *fake) { f.stream = f.stream[:len(f.stream)-100] }, want: ErrDamaged, says: "trailer"},
		"NoStream":       {reason: "the stream is empty", member: func(f *fake) { f.stream = nil }, want: ErrDamaged, says: "empty"},
		"NotEtcd":        {reason: "it is no database", member: func(f *fake) { f.stream = sealed(bytes.Repeat([]byte{7}, 1024)) }, want: ErrDamaged, says: "database"},
		"Elsewhere":      {reason: "the connection led to two members", member: func(f *fake) { f.elsewhere = 9 }, says: "save again"},
		"NoMajority":     {reason: "what was acknowledged is not known", member: func(f *fake) { f.noReads = status.Error(codes.Unavailable, "no leader") }, says: "without a majority"},
		"AnOldDatabase":  {reason: "it is behind what the member has said", member: func(f *fake) { f.status.Header.Revision = 1 << 40 }, want: ErrDamaged, says: "had been read from the member before"},
		"NoRoomForACopy": {reason: "the directory of the copy is not there", keep: "/nowhere", want: os.ErrNotExist, says: "keep a copy"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, store := newFake(1, stream), newMemory()
			if tc.member != nil {
				tc.member(f)
			}
			if tc.store != nil {
				tc.store(store)
			}
			if tc.keep == "" {
				tc.keep = t.TempDir()
			}
			_, err := Save(t.Context(), Source{Endpoints: []string{f.serve(t)}}, store, SaveOptions{Name: "good", Keep: tc.keep})
			if err == nil || tc.want != nil && !errors.Is(err, tc.want) || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: want %v that says %q, got %v", tc.reason, tc.want, tc.says, err)
			}
			if diff := cmp.Diff(tc.left, store.keys(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: what is left: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestSaveCancelled: what was stored is taken back although the caller has given up.
func TestSaveCancelled(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.write(21, 300)
	ctx, cancel := context.WithCancel(t.Context())
	store := newMemory()
	store.fault = func(call, key string) error {
		if call == "create" && key == "good.manifest.json" {
			cancel()
			return ctx.Err()
		}
		return nil
	}
	_, err := Save(ctx, Source{Endpoints: []string{newFake(1, d.snapshot()).serve(t)}}, store, SaveOptions{Name: "good", Keep: t.TempDir()})
	if !errors.Is(err, context.Canceled) || len(store.keys()) > 0 {
		t.Errorf("got %v, and %v is left", err, store.keys())
	}
}

// TestSaveRefused: what is refused before anything is asked.
func TestSaveRefused(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		reason    string
		endpoints []string
		options   SaveOptions
		says      string
	}{
		"NoEndpoint": {"nothing to save", nil, SaveOptions{}, "give the URL"},
		"Slash":      {"a name is part of a key", []string{"http://127.0.0.1:1"}, SaveOptions{Name: "a/b"}, "small letters"},
		"Dots":       {"a name is part of a path", []string{"http://127.0.0.1:1"}, SaveOptions{Name: ".."}, "small letters"},
		"Recipient":  {"no recipient", []string{"http://127.0.0.1:1"}, SaveOptions{Recipients: []string{"bob"}}, "age1"},
		"Silent":     {"no member answers", []string{"http://127.0.0.1:1"}, SaveOptions{}, "http://127.0.0.1:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if _, err := Save(t.Context(), Source{Endpoints: tc.endpoints}, newMemory(), tc.options); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("%s: want an error that says %q, got %v", tc.reason, tc.says, err)
			}
		})
	}
}

func TestDefaultName(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 25, 8, 50, 0, 0, time.FixedZone("", 3600))
	for cluster, want := range map[string]string{"": "etcd-20261125t075000z", "db": "db-20261125t075000z", "prod/db": "db-20261125t075000z"} {
		if got := defaultName(cluster, at); got != want || checkName(got) != nil {
			t.Errorf("cluster %q: want %s, got %s", cluster, want, got)
		}
	}
}

// TestSaveAgain: what a save has left that was killed is in the way, until it is known that it was.
func TestSaveAgain(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.write(22, 300)
	from, store, keep := Source{Endpoints: []string{newFake(1, d.snapshot()).serve(t)}}, newMemory(), t.TempDir()
	store.objects["good.db.zst"] = []byte("half")
	if _, err := Save(t.Context(), from, store, SaveOptions{Name: "good", Keep: keep}); !errors.Is(err, ErrExists) {
		t.Errorf("it may be running: %v", err)
	}
	if left := names(t, keep); len(left) > 0 {
		t.Errorf("%v is kept of a save that failed", left)
	}
	if _, err := Save(t.Context(), from, store, SaveOptions{Name: "good", Keep: keep, Unfinished: true}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"good.db"}, names(t, keep)); diff != "" {
		t.Errorf("what is kept: -want +got:\n%s", diff)
	}
	if _, err := Save(t.Context(), from, store, SaveOptions{Name: "good", Unfinished: true}); !errors.Is(err, ErrExists) {
		t.Errorf("that one has ended: %v", err)
	}
}

// TestSaveBlind: a store may forbid to read. Nothing is overwritten nevertheless.
func TestSaveBlind(t *testing.T) {
	t.Parallel()
	d := newDatabase(t)
	d.write(23, 300)
	from, store := Source{Endpoints: []string{newFake(1, d.snapshot()).serve(t)}}, newMemory()
	store.fault = failing("open good.manifest.json", "open good.db.zst")
	for _, want := range []error{nil, ErrExists} {
		if _, err := Save(t.Context(), from, store, SaveOptions{Name: "good", Keep: t.TempDir(), Unfinished: true}); !errors.Is(err, want) {
			t.Errorf("want %v, got %v", want, err)
		}
	}
	if diff := cmp.Diff([]string{"good.db.zst", "good.manifest.json"}, store.keys()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
