package node

import "testing"

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
			files := map[string]string{}
			if tc.file != "" {
				files[inotifyFile] = tc.file
			}
			m := newMachine(t, files, nil)
			if err := m.allowInotify(t.Context()); (err != nil) != tc.wantErr {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			if got := m.read(inotifyFile); tc.file != "" && got != tc.want {
				t.Errorf("%s: got %q, want %q", tc.reason, got, tc.want)
			}
		})
	}
}
