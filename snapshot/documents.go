package snapshot

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// maxDocument bounds what is read as a manifest or as a verification, in bytes.
const maxDocument = 64 << 10

// ReadManifest reads the manifest of a stored snapshot. ErrNoManifest where there is none.
func ReadManifest(ctx context.Context, store Store, name string) (Manifest, error) {
	if err := checkName(name); err != nil {
		return Manifest{}, err
	}
	var m Manifest
	if err := readJSON(ctx, store, manifestKey(name), &m); err != nil {
		switch {
		case errors.Is(err, ErrNotFound):
			return Manifest{}, fmt.Errorf("snapshot %s: %w: there is no %s", name, ErrNoManifest, store.Location(manifestKey(name)))
		case errors.Is(err, errSyntax):
			return Manifest{}, &Damage{Name: name, Check: CheckManifest, Detail: err.Error()}
		}
		return Manifest{}, fmt.Errorf("read the manifest of snapshot %s: %w", name, err)
	}
	if detail := m.invalid(name); detail != "" {
		return Manifest{}, &Damage{Name: name, Check: CheckManifest, Detail: detail}
	}
	return m, nil
}

// invalid is why a manifest cannot be that of the snapshot of this name, or empty.
func (m Manifest) invalid(name string) string {
	switch {
	case m.Format > Format:
		return fmt.Sprintf("it is of format %d, and this version of quorate reads %d: use a newer one", m.Format, Format)
	case m.Format < 1:
		return "it is no manifest: its format is missing"
	case m.Name != name:
		return fmt.Sprintf("it is of snapshot %q", m.Name)
	case m.Object != dataKey(name, m.Encrypted):
		return fmt.Sprintf("its object is %q", m.Object)
	case m.Size <= 0 || m.StoredSize <= 0 || m.SHA256 == "" || m.StoredSHA256 == "" || m.Revision <= 0:
		return "sizes, hashes or the revision are missing"
	}
	return ""
}

// errSyntax is of what can be read, and not understood.
var errSyntax = errors.New("not the JSON that was expected")

func readJSON(ctx context.Context, store Store, key string, document any) error {
	r, err := store.Open(ctx, key)
	if err != nil {
		return err
	}
	defer r.Close()
	text, err := io.ReadAll(io.LimitReader(r, maxDocument+1))
	if err != nil {
		return fmt.Errorf("read %s: %w", store.Location(key), err)
	}
	if len(text) > maxDocument {
		return fmt.Errorf("%s: %w: it has more than %d bytes", store.Location(key), errSyntax, maxDocument)
	}
	if err := json.Unmarshal(text, document); err != nil {
		return fmt.Errorf("%s: %w: %w", store.Location(key), errSyntax, err)
	}
	return nil
}

// createJSON writes a document, if there is none.
func createJSON(ctx context.Context, store Store, key string, document any) error {
	text, err := json.MarshalIndent(document, "", "  ")
	if err != nil {
		return fmt.Errorf("encode %s: %w", store.Location(key), err)
	}
	return store.Create(ctx, key, func(w io.Writer) error {
		_, err := io.Copy(w, bytes.NewReader(append(text, '\n')))
		return err
	})
}
