package snapshot

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"go.etcd.io/etcd/pkg/v3/traceutil"
	"go.etcd.io/etcd/server/v3/lease"
)

// writeLarge writes what cannot be compressed, of that many MiB.
func (d *database) writeLarge(size int) {
	d.Helper()
	random := rand.NewChaCha8([32]byte{})
	for range size {
		value := make([]byte, 1<<20)
		_, _ = random.Read(value) // it never fails
		txn := d.Write(traceutil.TODO())
		txn.Put([]byte("large"), value, lease.NoLease)
		txn.End()
	}
}

// with has the objects of another store.
func (f *fakeS3) with(m *memory) {
	for key, content := range m.objects {
		f.objects["/bucket/p/"+key] = &fakeObject{content: content}
	}
}

// keys are those of the objects, and the number of uploads that are not complete.
func (f *fakeS3) keys() ([]string, int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	keys := slices.Sorted(maps.Keys(f.objects))
	for n := range keys {
		keys[n] = strings.TrimPrefix(keys[n], "/bucket/p/")
	}
	return keys, len(f.uploads)
}

// TestCredentialsEnd: temporary credentials end while a snapshot is saved, which has parts. No
// manifest appears, the snapshots of before stay, and with new credentials the next attempt ends
// well.
func TestCredentialsEnd(t *testing.T) {
	fakeCredentials(t)
	before := newFixture(t)
	d := newDatabase(t)
	d.write(30, 100)
	d.writeLarge(20)
	stream := d.snapshot()
	for name, tc := range map[string]struct {
		reason string
		at     string // the request
		says   string
		left   []string // beside the snapshot of before
		parts  int      // uploads that cannot be removed: they have no name, and the lifecycle rule of the bucket ends them
	}{
		"Begin":    {reason: "nothing was stored", at: "CreateMultipartUpload", says: "create s3://bucket/p/new.db.zst"},
		"Part":     {reason: "the parts cannot be removed", at: "UploadPart 2", says: "create s3://bucket/p/new.db.zst", parts: 1},
		"Complete": {reason: "the parts cannot be removed", at: "CompleteMultipartUpload", says: "create s3://bucket/p/new.db.zst", parts: 1},
		"Manifest": {
			reason: "the data cannot be removed, and has no manifest", at: "PUT new.manifest.json",
			says: "s3://bucket/p/new.db.zst stays", left: []string{"new.db.zst"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := &fakeS3{expires: tc.at}
			store := openFake(t, f.start(t))
			f.with(before.store)
			from, options := Source{Endpoints: []string{newFake(1, stream).serve(t)}}, SaveOptions{Name: "new", Keep: t.TempDir()}
			_, err := Save(t.Context(), from, store, options)
			wantReason(t, err, ReasonCredentialsExpired, nil)
			if err == nil || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "ExpiredToken: The words of the store; renew the credentials") {
				t.Errorf("%s: got %v", tc.reason, err)
			}
			left, parts := f.keys()
			if diff := cmp.Diff(append(before.store.keys(), tc.left...), left); diff != "" || parts != tc.parts {
				t.Errorf("%s: %d uploads are left; objects: -want +got:\n%s", tc.reason, parts, diff)
			}
			f.mend()
			if diff := cmp.Diff([]string{"good"}, whole(t, store)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			options.Unfinished = true
			if _, err := Save(t.Context(), from, store, options); err != nil {
				t.Errorf("%s: the next attempt: %v", tc.reason, err)
			}
			if diff := cmp.Diff([]string{"good", "new"}, whole(t, store)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestPartStalls: an upload of which one part stalls midway is removed from the store.
func TestPartStalls(t *testing.T) {
	slowCredentials(t)
	before := newFixture(t)
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		f := &fakeS3{stalls: "UploadPart 2", after: 1 << 20, ended: ended, objects: map[string]*fakeObject{}, uploads: map[string]*fakeUpload{}}
		f.with(before.store)
		store := new(pipes).open(t, Config{S3: &S3{Bucket: "bucket", Prefix: "p", Endpoint: "http://127.0.0.1:1"}}, f)
		t.Cleanup(func() { close(ended) })
		write := func(w io.Writer) error {
			_, err := io.Copy(w, bytes.NewReader(make([]byte, large)))
			return err
		}
		err := store.Create(t.Context(), "new.db.zst", write)
		wantReason(t, err, ReasonUnreachable, nil)
		left, parts := f.keys()
		if diff := cmp.Diff(before.store.keys(), left); diff != "" || parts > 0 {
			t.Errorf("%d uploads are left; objects: -want +got:\n%s", parts, diff)
		}
		f.mend()
		if diff := cmp.Diff([]string{"good"}, whole(t, store)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
		if err := store.Create(t.Context(), "new.db.zst", write); err != nil {
			t.Errorf("the next attempt: %v", err)
		}
	})
}

// TestFetchStalls: a download that stalls midway leaves no file, and is no damage of the snapshot.
func TestFetchStalls(t *testing.T) {
	slowCredentials(t)
	before := newFixture(t)
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan struct{})
		f := &fakeS3{stalls: "GET good.db.zst", after: 1 << 10, ended: ended, objects: map[string]*fakeObject{}}
		f.with(before.store)
		store := new(pipes).open(t, Config{S3: &S3{Bucket: "bucket", Prefix: "p", Endpoint: "http://127.0.0.1:1"}}, f)
		t.Cleanup(func() { close(ended) })
		dir := t.TempDir()
		_, err := Fetch(t.Context(), store, "good", filepath.Join(dir, "snapshot.db"), FetchOptions{})
		wantReason(t, err, ReasonUnreachable, nil)
		if left := names(t, dir); len(left) > 0 || errors.Is(err, ErrDamaged) {
			t.Errorf("%v is left after %v", left, err)
		}
		f.mend()
		if diff := cmp.Diff([]string{"good"}, whole(t, store)); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	})
}
