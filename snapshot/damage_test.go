package snapshot

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"filippo.io/age"
	"github.com/google/go-cmp/cmp"
)

// fixture is a snapshot of a database, saved from a fake member.
type fixture struct {
	stream   []byte
	store    *memory
	manifest Manifest
}

func newFixture(t *testing.T, recipients ...string) fixture {
	t.Helper()
	d := newDatabase(t)
	d.write(10, 500)
	d.compact(d.Rev() - 100)
	f := fixture{stream: d.snapshot(), store: newMemory()}
	var err error
	f.manifest, err = Save(t.Context(), Source{Endpoints: []string{newFake(1, f.stream).serve(t)}}, f.store,
		SaveOptions{Name: "good", Cluster: "default/db", Recipients: recipients, Keep: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// with is the same, with another object in place of one.
func (f fixture) with(key string, object []byte) *memory {
	store := newMemory()
	maps.Copy(store.objects, f.store.objects)
	store.objects[key] = object
	return store
}

// refused fetches a damaged snapshot: it is refused by the name of a check, and leaves no file.
func refused(t *testing.T, reason string, store Store, want Check) {
	t.Helper()
	dir := t.TempDir()
	_, err := Fetch(t.Context(), store, "good", filepath.Join(dir, "snapshot.db"), FetchOptions{})
	judge(t, reason, err, want)
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Fatalf("%s: %s is left", reason, left[0].Name())
	}
	_, err = VerifyHash(t.Context(), store, "good", FetchOptions{})
	judge(t, reason, err, want)
}

func judge(t *testing.T, reason string, err error, want Check) {
	t.Helper()
	var damage *Damage
	if !errors.As(err, &damage) || !errors.Is(err, ErrDamaged) {
		t.Fatalf("%s: not refused as damaged: %v", reason, err)
	}
	if damage.Check != want {
		t.Fatalf("%s: refused for its %s, not for its %s: %v", reason, damage.Check, want, err)
	}
}

// TestStoredDamage damages the object in the store in every way that a disk or a network has.
func TestStoredDamage(t *testing.T) {
	t.Parallel()
	f, random := newFixture(t), rand.New(rand.NewPCG(1, 2))
	object := f.store.objects[f.manifest.Object]
	for cut := 0; cut < len(object); cut += 4 << 10 {
		refused(t, "cut at 4 KiB", f.with(f.manifest.Object, object[:cut]), CheckStoredSize)
	}
	for range 200 {
		_, err := VerifyHash(t.Context(), f.with(f.manifest.Object, object[:random.IntN(len(object))]), "good", FetchOptions{})
		judge(t, "cut anywhere", err, CheckStoredSize)
	}
	for range 1000 {
		flipped := bytes.Clone(object)
		flipped[random.IntN(len(flipped))] ^= 1 << random.IntN(8)
		_, err := VerifyHash(t.Context(), f.with(f.manifest.Object, flipped), "good", FetchOptions{})
		judge(t, "a bit is flipped", err, CheckStoredSHA256)
	}
	refused(t, "something follows", f.with(f.manifest.Object, append(bytes.Clone(object), 0)), CheckStoredSize)
}

// TestManifestDamage has manifests that are not of the object beside them.
func TestManifestDamage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for name, tc := range map[string]struct {
		reason string
		change func(*Manifest)
		want   Check
	}{
		"Name":         {"of another snapshot", func(m *Manifest) { m.Name = "other" }, CheckManifest},
		"Object":       {"it leads elsewhere", func(m *Manifest) { m.Object = "../other.db.zst" }, CheckManifest},
		"NoFormat":     {"some other JSON", func(m *Manifest) { m.Format = 0 }, CheckManifest},
		"NewFormat":    {"of a later quorate", func(m *Manifest) { m.Format = 99 }, CheckManifest},
		"NoSize":       {"without a size nothing bounds what is written", func(m *Manifest) { m.Size = 0 }, CheckManifest},
		"NoRevision":   {"every database has one", func(m *Manifest) { m.Revision = 0 }, CheckManifest},
		"StoredSize":   {"the object of another save", func(m *Manifest) { m.StoredSize++ }, CheckStoredSize},
		"StoredSHA256": {"the object of another save", func(m *Manifest) { m.StoredSHA256 = m.SHA256 }, CheckStoredSHA256},
		"Smaller":      {"the stream of another save", func(m *Manifest) { m.Size-- }, CheckSize},
		"Larger":       {"the stream of another save", func(m *Manifest) { m.Size++ }, CheckSize},
		"SHA256":       {"the stream of another save", func(m *Manifest) { m.SHA256 = m.StoredSHA256 }, CheckSHA256},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := f.manifest
			tc.change(&m)
			text, err := json.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			refused(t, tc.reason, f.with(manifestKey("good"), text), tc.want)
		})
	}
	for name, text := range map[string][]byte{"Empty": {}, "Half": []byte(`{"format":1,"name":"go`), "Huge": bytes.Repeat([]byte(" "), maxDocument+1)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refused(t, "no JSON", f.with(manifestKey("good"), text), CheckManifest)
		})
	}
}

// TestStreamDamage has a store and a manifest that agree on a stream that etcd has not sent like
// this.
func TestStreamDamage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	other := newDatabase(t)
	other.write(11, 30)
	for name, tc := range map[string]struct {
		reason string
		stream []byte
		want   Check
	}{
		"NoTrailer": {"the trailer is cut off", f.stream[:len(f.stream)-32], CheckTrailer},
		"Half":      {"half of it", f.stream[:len(f.stream)/2], CheckTrailer},
		"Other":     {"the trailer is that of another database", append(bytes.Clone(other.snapshot()[:len(other.snapshot())-32]), f.stream[len(f.stream)-32:]...), CheckTrailer},
		"Trailer":   {"nothing but a trailer", f.stream[len(f.stream)-32:], CheckTrailer},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := newMemory()
			_, err := Save(t.Context(), Source{Endpoints: []string{newFake(1, tc.stream).serve(t)}}, store, SaveOptions{Name: "good"})
			judge(t, tc.reason, err, tc.want)
			if diff := cmp.Diff([]string(nil), store.keys()); diff != "" {
				t.Errorf("%s: something was stored: -want +got:\n%s", tc.reason, diff)
			}
			judgeFile(t, tc.reason, tc.stream, tc.want)
		})
	}
	judgeFile(t, "an empty file", nil, CheckTrailer)
}

// judgeFile describes and restores a plain file: it is refused, and leaves no data directory and
// nothing beside it.
func judgeFile(t *testing.T, reason string, stream []byte, want Check) {
	t.Helper()
	path, dir := file(t, stream), t.TempDir()
	_, err := Describe(t.Context(), path)
	judge(t, reason, err, want)
	judge(t, reason, Restore(t.Context(), path, restoreOptions(filepath.Join(dir, "data"))), want)
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Fatalf("%s: %s is left", reason, left[0].Name())
	}
}

func restoreOptions(dataDir string) RestoreOptions {
	return RestoreOptions{
		DataDir: dataDir, Name: "db-0", Token: "second", InitialCluster: "db-0=http://10.0.0.1:2380,db-1=http://10.0.0.2:2380", PeerURLs: []string{"http://10.0.0.1:2380"},
	}
}

// TestFileDamage damages the plain file in every way that a disk has.
func TestFileDamage(t *testing.T) {
	t.Parallel()
	f, random := newFixture(t), rand.New(rand.NewPCG(3, 4))
	for cut := 0; cut < len(f.stream); cut += 4 << 10 {
		judgeFile(t, "cut at 4 KiB", f.stream[:cut], CheckTrailer)
	}
	for range 200 {
		judgeFile(t, "cut anywhere", f.stream[:random.IntN(len(f.stream))], CheckTrailer)
	}
	for range 1000 {
		flipped := bytes.Clone(f.stream)
		flipped[random.IntN(len(flipped))] ^= 1 << random.IntN(8)
		_, err := Describe(t.Context(), file(t, flipped))
		judge(t, "a bit is flipped", err, CheckTrailer)
	}
}

// TestEncrypted: what is stored can be read with an identity of a recipient, and not without.
func TestEncrypted(t *testing.T) {
	t.Parallel()
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	other, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, other.Recipient().String(), identity.Recipient().String())
	if bytes.Contains(f.store.objects[f.manifest.Object], []byte("key-00")) {
		t.Error("a key can be read in what is stored")
	}
	path := filepath.Join(t.TempDir(), "snapshot.db")
	if _, err := Fetch(t.Context(), f.store, "good", path, FetchOptions{}); !errors.Is(err, errNoIdentity) {
		t.Errorf("without an identity: %v", err)
	}
	stranger, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	_, err = Fetch(t.Context(), f.store, "good", path, FetchOptions{Identities: []age.Identity{stranger}})
	if !errors.Is(err, errOtherIdentity) || errors.Is(err, ErrDamaged) {
		t.Errorf("with the identity of a stranger: %v", err)
	}
	if _, err := Fetch(t.Context(), f.store, "good", path, FetchOptions{Identities: []age.Identity{identity}}); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(f.stream, got) {
		t.Error("what was fetched is not what etcd has sent")
	}
	if _, err := VerifyHash(t.Context(), f.store, "good", FetchOptions{}); err != nil {
		t.Errorf("the stored hash needs no identity: %v", err)
	}
	object := bytes.Clone(f.store.objects[f.manifest.Object])
	object[len(object)-1] ^= 1
	_, err = VerifyHash(t.Context(), f.with(f.manifest.Object, object), "good", FetchOptions{})
	judge(t, "a bit is flipped, without an identity", err, CheckStoredSHA256)
	_, err = Fetch(t.Context(), f.with(f.manifest.Object, object), "good", path, FetchOptions{Identities: []age.Identity{stranger}})
	judge(t, "a bit is flipped, with the identity of a stranger", err, CheckStoredSHA256)
	for reason, tc := range map[string]struct {
		given []age.Identity
		want  error
	}{
		"nothing is given":    {want: errNoIdentity},
		"that of a stranger":  {given: []age.Identity{stranger}, want: errOtherIdentity},
		"that of a recipient": {given: []age.Identity{stranger, identity}},
	} {
		if err := Readable(t.Context(), f.store, f.manifest, tc.given); !errors.Is(err, tc.want) {
			t.Errorf("its beginning, %s: want %v, got %v", reason, tc.want, err)
		}
	}
	err = Readable(t.Context(), f.with(f.manifest.Object, []byte("age-encryption.org/v1\n")), f.manifest, []age.Identity{identity})
	judge(t, "its beginning is cut", err, CheckEncryption)
}
