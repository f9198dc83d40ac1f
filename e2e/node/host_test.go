package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// machine is a host with files of its own, on which programs do what the test says.
type machine struct {
	*host
	t    *testing.T
	ran  []string
	says map[string]string // what a command prints, by its beginning; what is not named prints nothing
}

const withoutSysResource = "Name:\tgo\nCapBnd:\t000001fffeffffff\n"

func newMachine(t *testing.T, files, says map[string]string) *machine {
	t.Helper()
	m := &machine{t: t, says: says}
	m.host = &host{root: t.TempDir(), cache: t.TempDir(), run: m.runs, find: func(string) error { return nil }}
	m.signal = func(pid int, sig syscall.Signal) error {
		if pid != 42 || sig != syscall.SIGHUP {
			t.Errorf("signal %v to process %d", sig, pid)
		}
		return nil
	}
	for name, content := range files {
		if err := writeNew(m.path(name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

func (m *machine) runs(_ context.Context, name string, args ...string) ([]byte, error) {
	line := strings.Join(append([]string{name}, args...), " ")
	m.ran = append(m.ran, line)
	longest := ""
	for beginning := range m.says {
		if strings.HasPrefix(line, beginning) && len(beginning) > len(longest) {
			longest = beginning
		}
	}
	if failure, fails := strings.CutPrefix(m.says[longest], "fails: "); fails {
		return nil, errors.New(failure)
	}
	if line == "docker info --format {{.DefaultRuntime}}" { // Docker reads its configuration
		var config struct {
			Runtime string `json:"default-runtime"`
		}
		_ = json.Unmarshal([]byte(m.read(daemonConfig)), &config) // absent or empty: the default
		return []byte(config.Runtime + "\n"), nil
	}
	return []byte(m.says[longest]), nil
}

// read is what a file says; "absent" where there is none.
func (m *machine) read(name string) string {
	m.t.Helper()
	raw, err := os.ReadFile(m.path(name))
	if os.IsNotExist(err) {
		return "absent"
	}
	if err != nil {
		m.t.Fatal(err)
	}
	return string(raw)
}

// files are all of a machine.
func (m *machine) files() map[string]string {
	m.t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(m.root, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name := strings.TrimPrefix(path, m.root)
		all[name] = m.read(name)
		return nil
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return all
}

// TestHostClean: what was changed is undone, and the machine is as it was; what its owner has
// changed since stays, and what was not changed is not touched.
func TestHostClean(t *testing.T) {
	t.Parallel()
	mend := func(m *machine) error { return m.mendPrivileges(m.t.Context()) }
	inotify := func(m *machine) error { return m.allowInotify(m.t.Context()) }
	rule := func(m *machine) error { return m.ensureRule(m.t.Context()) }
	packages := func(m *machine) error { return m.ensureDebootstrap(m.t.Context()) }
	pid := map[string]string{daemonPIDFile: "42"}
	with := func(files map[string]string, name, content string) map[string]string {
		all := map[string]string{name: content}
		maps.Copy(all, files)
		return all
	}
	const simulated = "Reading package lists...\nInst gpgv [2.4.6] (2.4.7 Debian:13/stable [amd64])\n" +
		"Inst debootstrap (1.0.141 Debian:13/stable [all])\nInst debian-archive-keyring (2025.1 Debian:13/stable [all])\nConf debootstrap (1.0.141)\n"
	cases := map[string]struct {
		reason string
		files  map[string]string
		says   map[string]string
		change []func(m *machine) error
		since  func(m *machine)  // what others do between
		want   map[string]string // files; nil: as they were
		ran    []string          // by the clean-up
		err    string            // of it; what is recorded stays then
	}{
		"Nothing": {
			reason: "a rule, a runtime and a limit that were there before are not ours",
			files:  with(pid, inotifyFile, "512"),
			says:   map[string]string{"ip -4 rule show": "10244: from all iif lo lookup 10244"},
			change: []func(*machine) error{rule, inotify},
		},
		"Inotify": {
			reason: "the limit is what it was",
			files:  map[string]string{inotifyFile: "128"}, change: []func(*machine) error{inotify},
		},
		"InotifyRaised": {
			reason: "the owner has chosen another limit since", files: map[string]string{inotifyFile: "128"},
			change: []func(*machine) error{inotify},
			since:  func(m *machine) { m.write(inotifyFile, "8192") }, want: map[string]string{inotifyFile: "8192"},
		},
		"InotifyTwice": {
			reason: "the machine has restarted between: it is what it was at first", files: map[string]string{inotifyFile: "128"},
			change: []func(*machine) error{inotify, func(m *machine) error { m.write(inotifyFile, "256"); return nil }, inotify},
			want:   map[string]string{inotifyFile: "128"},
		},
		"Rule": {
			reason: "the rule goes, and the routes that it led to",
			says:   map[string]string{"ip -json -4 route show table all": `[{"dst":"10.0.0.0/24","gateway":"172.18.0.2","table":"10244"}]`},
			change: []func(*machine) error{rule, func(m *machine) error {
				m.says["ip -4 rule show"] = "10244: from all iif lo lookup 10244"
				return nil
			}},
			ran: []string{"ip -4 rule show", "ip -4 rule del iif lo lookup 10244 priority 10244", "ip -json -4 route show table all", "ip -4 route flush table 10244"},
		},
		"RuleGone": {
			reason: "the machine has restarted since", says: map[string]string{"ip -json -4 route show table all": `[]`},
			change: []func(*machine) error{rule},
			ran:    []string{"ip -4 rule show", "ip -json -4 route show table all"},
		},
		"Packages": {
			reason: "those that were installed; one that was there, and was only made newer, stays",
			says:   map[string]string{"apt-get --simulate install": simulated},
			change: []func(*machine) error{packages},
			ran:    []string{"dpkg --remove debootstrap debian-archive-keyring"},
		},
		"PackagesNeeded": {
			reason: "another package has come to need one: all stay, and stay written down",
			says:   map[string]string{"apt-get --simulate install": simulated, "dpkg --remove": "fails: dependency problems"},
			change: []func(*machine) error{packages},
			ran:    []string{"dpkg --remove debootstrap debian-archive-keyring"},
			err:    "undo packages: dependency problems",
		},
		"Runtime": {
			reason: "Docker's configuration is what it was, to the byte",
			files:  with(pid, daemonConfig, "{ \"mtu\": 1400,\n\"runtimes\": {}}"), change: []func(*machine) error{mend},
			ran: []string{"docker ps --all --quiet --no-trunc", "docker info --format {{.DefaultRuntime}}"},
		},
		"RuntimeAlone": {
			reason: "there was no configuration, and there is none", files: pid, change: []func(*machine) error{mend},
			ran: []string{"docker ps --all --quiet --no-trunc", "docker info --format {{.DefaultRuntime}}"},
		},
		"RuntimeAndOthers": {
			reason: "what was configured since stays", files: with(pid, daemonConfig, `{"default-runtime":"runc"}`), change: []func(*machine) error{mend},
			since: func(m *machine) {
				m.write(daemonConfig, strings.Replace(m.read(daemonConfig), "{", `{"mtu": 1400,`, 1))
			},
			want: with(pid, daemonConfig, "{\n  \"default-runtime\": \"runc\",\n  \"mtu\": 1400\n}\n"),
			ran:  []string{"docker ps --all --quiet --no-trunc", "docker info --format {{.DefaultRuntime}}"},
		},
		"RuntimeReplaced": {
			reason: "the default runtime that was chosen since stays", files: pid, change: []func(*machine) error{mend},
			since: func(m *machine) {
				m.write(daemonConfig, strings.Replace(m.read(daemonConfig), `"default-runtime": "`+runcWrapperName, `"default-runtime": "nvidia`, 1))
			},
			want: with(pid, daemonConfig, "{\n  \"default-runtime\": \"nvidia\"\n}\n"),
			ran:  []string{"docker ps --all --quiet --no-trunc", "docker info --format {{.DefaultRuntime}}"},
		},
		"RuntimeUsed": {
			reason: "a container could not be started again: it stays, and stays written down",
			files:  pid, says: map[string]string{"docker ps": "a1\nb2\n", "docker inspect": "runc /other\nrunc-without-sys-resource /quorate-demo-worker\n"},
			change: []func(*machine) error{mend},
			want: with(with(pid, daemonConfig, "{\n  \"default-runtime\": \"runc-without-sys-resource\",\n  \"runtimes\": {\n    \"runc-without-sys-resource\": {\n"+
				"      \"path\": \"/usr/local/lib/quorate/runc-without-sys-resource\"\n    }\n  }\n}\n"), runcWrapperPath, string(runcWrapper)),
			ran: []string{"docker ps --all --quiet --no-trunc", "docker inspect --format {{.HostConfig.Runtime}} {{.Name}} a1 b2"},
			err: "the containers quorate-demo-worker have Docker's runtime",
		},
		"All": {
			reason: "the last is undone first", files: with(pid, inotifyFile, "128"),
			says:   map[string]string{"apt-get --simulate install": simulated, "ip -json -4 route show table all": `[]`},
			change: []func(*machine) error{inotify, mend, packages, rule},
			ran: []string{"ip -4 rule show", "ip -json -4 route show table all", "dpkg --remove debootstrap debian-archive-keyring",
				"docker ps --all --quiet --no-trunc", "docker info --format {{.DefaultRuntime}}"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.says == nil {
				tc.says = map[string]string{}
			}
			m := newMachine(t, tc.files, tc.says)
			want := tc.want
			if want == nil {
				want = m.files()
			}
			for _, change := range tc.change {
				if err := change(m); err != nil {
					t.Fatal(err)
				}
			}
			if tc.since != nil {
				tc.since(m)
			}
			m.ran = nil
			err := m.clean(t.Context())
			if said := fmt.Sprint(err); tc.err == "" && err != nil || !strings.Contains(said, tc.err) {
				t.Errorf("%s: error %v, want %q", tc.reason, err, tc.err)
			}
			if diff := cmp.Diff(want, m.files()); diff != "" {
				t.Errorf("%s: files: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.ran, m.ran); diff != "" {
				t.Errorf("%s: what the clean-up ran: -want +got:\n%s", tc.reason, diff)
			}
			m.ran = nil
			_, statErr := os.Stat(filepath.Join(m.cache, hostRecords))
			if kept := statErr == nil; kept != (tc.err != "") {
				t.Errorf("%s: still written down: %t", tc.reason, kept)
			}
			if tc.err == "" { // there is nothing left to undo
				if err := m.clean(t.Context()); err != nil || len(m.ran) > 0 {
					t.Errorf("%s: once more: %v, ran %v", tc.reason, err, m.ran)
				}
			}
		})
	}
}

func (m *machine) write(name, content string) {
	m.t.Helper()
	if err := os.WriteFile(m.path(name), []byte(content), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// TestHostRecordedFirst: a change that fails, or is interrupted, was written down before.
func TestHostRecordedFirst(t *testing.T) {
	t.Parallel()
	m := newMachine(t, nil, map[string]string{"ip -4 rule add": "fails: interrupted"})
	if err := m.ensureRule(t.Context()); err == nil {
		t.Fatal("the rule could not be added, and there is no error")
	}
	raw, err := os.ReadFile(filepath.Join(m.cache, hostRecords))
	if err != nil {
		t.Fatal(err)
	}
	var got []hostRecord
	if err := json.Unmarshal(raw, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]hostRecord{{Kind: recordRoutes}}, got); diff != "" {
		t.Errorf("what is written down: -want +got:\n%s", diff)
	}
}

// TestPending: what may be changed is said before; where nothing is, nothing is said.
func TestPending(t *testing.T) {
	t.Parallel()
	fresh := map[string]string{inotifyFile: "128", "/proc/self/status": withoutSysResource}
	noImage := map[string]string{"docker image inspect": "fails: no such image"}
	cases := map[string]struct {
		reason string
		files  map[string]string
		says   map[string]string
		user   int
		lacks  string // a program
		need   HostNeed
		want   []string // the beginning of each
	}{
		"Fresh":     {reason: "all at once", files: fresh, says: noImage, need: NeedCluster, want: []string{"packages debootstrap", "fs.inotify", "Docker's default runtime", "a routing rule"}},
		"Image":     {reason: "an image takes no cluster", files: fresh, says: noImage, need: NeedImage, want: []string{"packages debootstrap"}},
		"ImageHere": {reason: "nothing is built", files: fresh, need: NeedImage},
		"NotRoot":   {reason: "nothing can be changed", files: fresh, says: noImage, user: 1000, need: NeedCluster},
		"Ready": {
			reason: "a machine that has all of it", need: NeedCluster, says: map[string]string{"ip -4 rule show": "10244: from all iif lo lookup 10244"},
			files: map[string]string{inotifyFile: "8192", "/proc/self/status": withoutSysResource, daemonConfig: `{"default-runtime":"` + runcWrapperName + `"}`, debianKeyring: ""},
		},
		"SysResource": {
			reason: "the usual machine lets containers have everything, and has no program ip", need: NeedCluster, lacks: "ip",
			files: map[string]string{inotifyFile: "128", "/proc/self/status": "CapBnd:\t000001ffffffffff\n"}, want: []string{"fs.inotify"},
		},
		"NoLinux": {reason: "there are no such files, and Docker runs elsewhere", need: NeedCluster, lacks: "ip"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, tc.files, tc.says)
			m.user = tc.user
			m.find = func(program string) error {
				if program == tc.lacks {
					return os.ErrNotExist
				}
				return nil
			}
			before := m.files()
			var got []string
			for n, c := range m.pending(t.Context(), tc.need) {
				if c.why == "" || c.undo == "" {
					t.Errorf("%s: no reason, or no way back: %+v", tc.reason, c)
				}
				if n < len(tc.want) && strings.HasPrefix(c.what, tc.want[n]) {
					c.what = tc.want[n]
				}
				got = append(got, c.what)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: changes: -want +got:\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(before, m.files()); diff != "" {
				t.Errorf("%s: asking has changed the machine: -before +after:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestAsk: without a terminal it goes on; at one, only where the answer is yes.
func TestAsk(t *testing.T) {
	t.Parallel()
	change := []hostChange{{what: "the moon becomes green", why: "cheese", undo: "paint it"}}
	const text = `This changes the machine itself, outside of the cache, Docker's images and the clusters:

  the moon becomes green
    why:  cheese
    undo: paint it

make host-clean undoes what was changed.
`
	cases := map[string]struct {
		reason  string
		changes []hostChange
		asks    bool
		answer  string
		want    string
		refused bool
	}{
		"Nothing":    {reason: "nobody is asked for nothing", asks: true},
		"NoTerminal": {reason: "the two commands still do all the set-up", changes: change, want: text},
		"Yes":        {reason: "it was asked", changes: change, asks: true, answer: "y\n", want: text + "Go on? [y/N] "},
		"No":         {reason: "it was refused", changes: change, asks: true, answer: "n\n", want: text + "Go on? [y/N] ", refused: true},
		"Empty":      {reason: "the default is no", changes: change, asks: true, answer: "\n", want: text + "Go on? [y/N] ", refused: true},
		"End":        {reason: "no answer is no", changes: change, asks: true, want: text + "Go on? [y/N] ", refused: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			err := ask(tc.changes, tc.asks, strings.NewReader(tc.answer), &out)
			if (err != nil) != tc.refused {
				t.Errorf("%s: error %v", tc.reason, err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
