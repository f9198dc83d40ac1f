package node

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAllowInotify(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		file    string // empty: there is none
		want    string
		wantErr bool
	}{
		"TooFew":   {reason: "the default of many machines", file: "128\n", want: "512"},
		"Enough":   {reason: "what the owner has chosen stays", file: "8192\n", want: "8192\n"},
		"NoLimit":  {reason: "a machine without inotify has no such file"},
		"NoNumber": {reason: "what is not understood is not overwritten", file: "max\n", want: "max\n", wantErr: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "max_user_instances")
			if tc.file != "" {
				if err := os.WriteFile(file, []byte(tc.file), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if err := allowInotify(file); (err != nil) != tc.wantErr {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			got, err := os.ReadFile(file)
			if tc.file != "" && (err != nil || string(got) != tc.want) {
				t.Errorf("%s: got %q, error %v, want %q", tc.reason, got, err, tc.want)
			}
		})
	}
}
