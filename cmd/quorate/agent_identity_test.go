package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"filippo.io/age"

	"quorate.dev/snapshot"
)

// encryptedStore has one snapshot, which cannot be restored: its data is one byte.
func encryptedStore(t *testing.T, to age.Recipient) snapshot.Config {
	t.Helper()
	var data bytes.Buffer
	w, err := age.Encrypt(&data, to)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	m := taken("monday", "prod/db", "1a", 23)
	m.Format, m.Object, m.Encrypted, m.SHA256, m.StoredSHA256, m.EtcdVersion = 1, "monday.db.zst.age", true, "aa", "bb", "3.6.16"
	m.Size, m.StoredSize, m.Revision = 1, int64(data.Len()), 1
	document, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, content := range map[string][]byte{m.Object: data.Bytes(), "monday.manifest.json": document} {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return snapshot.Config{Directory: &snapshot.Directory{Path: dir}}
}

// TestAgentIdentity: whether an identity reads the snapshot is known when that is found, and the
// identity is in no message.
func TestAgentIdentity(t *testing.T) {
	t.Parallel()
	of := func() *age.X25519Identity {
		t.Helper()
		identity, err := age.GenerateX25519Identity()
		if err != nil {
			t.Fatal(err)
		}
		return identity
	}
	right, stranger := of(), of()
	store := encryptedStore(t, right.Recipient())
	cases := map[string]struct {
		reason  string
		content string // of the file; empty: there is none
		want    string // part of the message; empty: it is found
	}{
		"Right":    {reason: "as age-keygen writes it", content: "# public key: " + right.Recipient().String() + "\n" + right.String() + "\n"},
		"Several":  {reason: "old ones are kept", content: stranger.String() + "\n" + right.String() + "\n"},
		"Stranger": {reason: "of no recipient", content: stranger.String() + "\n", want: "snapshot monday: it is encrypted, and to other recipients than the given identity"},
		"Missing":  {reason: "no such file", want: "snapshot monday is encrypted: --identity: open "},
		"Variable": {reason: "a line of a shell", content: "export KEY=" + right.String() + "\n", want: "is no file of age-keygen"},
		"Mistyped": {reason: "a letter too many", content: right.String() + "Q\n", want: "is no file of age-keygen"},
		"Empty":    {reason: "a key of a Secret without a value", content: "\n", want: "is no file of age-keygen"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "identity.txt")
			if tc.content != "" {
				if err := os.WriteFile(file, []byte(tc.content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := runAgent(t, store, "find", "--name=monday", "--identity="+file)
			switch {
			case tc.want == "" && (err != nil || got.Error != nil || got.Manifest == nil):
				t.Errorf("%s: %v, %+v", tc.reason, err, got)
			case tc.want != "" && (err == nil || got.Error == nil || got.Error.Reason != "Identity" || !strings.Contains(got.Error.Message, tc.want)):
				t.Errorf("%s: want %q, got %v, %+v", tc.reason, tc.want, err, got.Error)
			}
			if got.Error == nil {
				return
			}
			for _, secret := range []string{right.String(), stranger.String()} {
				if word := secret[:40]; strings.Contains(got.Error.Message+err.Error(), word) {
					t.Errorf("%s: the private key is told: %v", tc.reason, err)
				}
			}
		})
	}
}
