package node

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWithRuntime(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		config  string
		want    string
		wantErr bool
	}{
		"NoConfiguration": {
			reason: "Docker runs without a configuration file, too",
			want: `{"default-runtime": "runc-without-sys-resource", "runtimes": {"runc-without-sys-resource":
				{"path": "/usr/local/lib/quorate/runc-without-sys-resource"}}}`,
		},
		"KeepsTheRest": {
			reason: "what the owner of the machine configured stays",
			config: `{"mtu": 1400, "runtimes": {"nvidia": {"path": "nvidia-container-runtime"}}}`,
			want: `{"mtu": 1400, "default-runtime": "runc-without-sys-resource", "runtimes": {
				"nvidia": {"path": "nvidia-container-runtime"},
				"runc-without-sys-resource": {"path": "/usr/local/lib/quorate/runc-without-sys-resource"}}}`,
		},
		"AnotherDefaultRuntime": {
			reason:  "a runtime that the owner chose as the default is not replaced",
			config:  `{"default-runtime": "nvidia"}`,
			wantErr: true,
		},
		"NotJSON": {
			reason:  "a configuration that is not understood is not overwritten",
			config:  `{"mtu": 1400,}`,
			wantErr: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := withRuntime([]byte(tc.config))
			if (err != nil) != tc.wantErr {
				t.Fatalf("%s: error %v", tc.reason, err)
			}
			if tc.wantErr {
				return
			}
			if diff := cmp.Diff(decoded(t, []byte(tc.want)), decoded(t, got)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// The wrapper is a shell script, so the shell is what tests it.
func TestRuncWrapper(t *testing.T) {
	t.Parallel()
	const path, option = "config.json", "--bundle"
	cases := map[string]struct {
		reason string
		config string
		want   string
	}{
		"First":  {"no comma is left before the next", `{"bounding":["CAP_SYS_RESOURCE","CAP_KILL"]}`, `{"bounding":["CAP_KILL"]}`},
		"Last":   {"no comma is left behind the last", `{"bounding":["CAP_KILL","CAP_SYS_RESOURCE"]}`, `{"bounding":["CAP_KILL"]}`},
		"Only":   {"an empty list is valid", `{"bounding":["CAP_SYS_RESOURCE"]}`, `{"bounding":[]}`},
		"Absent": {"an ordinary container is left alone", `{"bounding":["CAP_KILL"]}`, `{"bounding":["CAP_KILL"]}`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			script := filepath.Join(dir, runcWrapperName)
			seen := filepath.Join(dir, "seen")
			for _, f := range []struct{ name, content string }{
				{script, string(runcWrapper)},
				{filepath.Join(dir, "runc"), "#!/bin/sh\necho \"$@\" > " + seen + "\n"},
				{filepath.Join(dir, path), tc.config},
			} {
				if err := os.WriteFile(f.name, []byte(f.content), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			cmd := exec.CommandContext(t.Context(), "/bin/sh", script, "--root", "/run", "create", option, dir, "id")
			cmd.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			got, err := os.ReadFile(filepath.Join(dir, path))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
			args, err := os.ReadFile(seen)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff("--root /run create --bundle "+dir+" id\n", string(args)); diff != "" {
				t.Errorf("runc was called otherwise than Docker meant: -want +got:\n%s", diff)
			}
		})
	}
}

func TestPrivilegesRefused(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		err    error
		want   bool
	}{
		"NoError":      {"a machine that lets containers have everything is left alone", nil, false},
		"OtherError":   {"another failure has another remedy", errors.New("no such image"), false},
		"Capabilities": {"this is what runc says", errors.New("OCI runtime create failed: unable to apply caps: operation not permitted"), true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := privilegesRefused(tc.err); got != tc.want {
				t.Errorf("%s: got %t", tc.reason, got)
			}
		})
	}
}

func TestFirstMirror(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason  string
		targets []string
		want    string
	}{
		"MainArchive": {
			reason:  "security updates and other vendors' archives hold no Debian to start from",
			targets: []string{"Vendor|Vendor|https://packages.example.org/", "Debian|Debian-Security|http://mirror.example.org/debian-security/", "Debian|Debian|http://mirror.example.org/debian/"},
			want:    "http://mirror.example.org/debian",
		},
		"AnotherDistribution": {
			reason:  "a machine that does not run Debian uses Debian's public archive",
			targets: []string{"Ubuntu|Ubuntu|http://archive.example.org/ubuntu/"},
			want:    defaultMirror,
		},
		"LocalFolder": {
			reason:  "debootstrap may not find the same folder",
			targets: []string{"Debian|Debian|file:/srv/debian/"},
			want:    defaultMirror,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, firstMirror(strings.Join(tc.targets, "\n"))); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func decoded(t *testing.T, raw []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
