package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"quorate.dev/snapshot"
)

// TestAgentResult: what the operator reads from the Pod's status is whole, however long an error
// is.
func TestAgentResult(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 63)
	manifest := &snapshot.Manifest{
		Format: 1, Name: long + long, Cluster: long + "/" + long, Member: long, Object: long + long + ".db.zst.age",
		SHA256: long, StoredSHA256: long, Size: 1 << 40, StoredSize: 1 << 40, Encrypted: true,
	}
	verification := &snapshot.Verification{Format: 1, Name: long + long, Mode: snapshot.ModeRestore, SHA256: long, EtcdVersion: "3.6.16", Hash: 1}
	ended, end := context.WithCancel(t.Context())
	end()
	cases := map[string]struct {
		reason string
		args   agentResult
		ctx    context.Context
		failed error
		want   agentResult
	}{
		"Done": {
			reason: "what was done",
			args:   agentResult{Manifest: manifest, Verification: verification},
			want:   agentResult{Manifest: manifest, Verification: verification},
		},
		"Failed": {
			reason: "why not",
			ctx:    t.Context(),
			failed: errors.New("no"),
			want:   agentResult{Error: &agentError{Reason: "Failed", Message: "no"}},
		},
		"LongError": {
			reason: "characters are not cut in two",
			args:   agentResult{Manifest: manifest, Verification: verification},
			ctx:    ended,
			failed: errors.New(strings.Repeat("ü", 3000)),
			want: agentResult{
				Manifest: manifest, Verification: verification,
				Error: &agentError{Reason: "Interrupted", Message: strings.Repeat("ü", (messageSize-3)/2) + "..."},
			},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "result")
			if tc.failed != nil {
				tc.args.Error = failure(tc.ctx, tc.failed)
			}
			if err := tc.args.write(file); err != nil {
				t.Fatal(err)
			}
			document, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if len(document) > resultSize || !utf8.Valid(document) {
				t.Errorf("%s: %d bytes, valid UTF-8: %t", tc.reason, len(document), utf8.Valid(document))
			}
			var got agentResult
			if err := json.Unmarshal(document, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}
