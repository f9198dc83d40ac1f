//go:build env

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"quorate.dev/e2e/node"
)

// TestSurvivorByHand does what docs/snapshots-by-hand.md tells for when one member is left, with
// the commands as they stand there. Nothing that was acknowledged is lost.
func TestSurvivorByHand(t *testing.T) {
	t.Parallel()
	h := newHosts(t, node.Etcd36)
	h.form()
	if err := os.Mkdir(filepath.Join(h.dir, "backups"), 0o700); err != nil {
		t.Fatal(err)
	}
	h.run("etcdctl --endpoints http://10.0.0.1:2379 put before saved")
	h.run("quorate snapshot save --store /backups --name old --endpoints http://10.0.0.1:2379")
	for _, key := range []string{"after", "last"} {
		h.run("etcdctl --endpoints http://10.0.0.1:2379 put " + key + " kept")
	}
	running := h.here("quorate snapshot save --dry-run --data-dir /var/lib/etcd", documented[0].member)
	if out, err := h.try(running); err == nil || !strings.Contains(out, "an etcd is using it: stop it, or save of it while it runs (--endpoints)") {
		t.Errorf("of a member that runs: %v\n%s", err, out)
	}
	h.lose()
	for _, d := range documented[1:] {
		if err := os.RemoveAll(filepath.Join(h.dir, d.member)); err != nil {
			t.Fatal(err)
		}
	}
	all := documentedCommands(t, byHand, "When all is lost")
	for _, command := range all {
		if strings.HasPrefix(command, "mv ") {
			h.run(command)
		}
	}
	for _, tc := range []struct{ reason, args, want string }{
		{"there is none", "--store /backups --etcd none", "--etcd: exec: \"none\": executable file not found"},
		{"it is another program", "--store /backups --etcd etcdutl", "etcdutl --version"},
		{"where it goes", "", "--store is missing"},
	} {
		out, err := h.try(h.here("quorate snapshot save --data-dir /var/lib/etcd.lost "+tc.args, documented[0].member))
		if err == nil || !strings.Contains(out, tc.want) {
			t.Errorf("%s: want %q, got %v\n%s", tc.reason, tc.want, err, out)
		}
	}
	for _, command := range documentedCommands(t, byHand, "When one member is left") {
		if out := h.run(command); strings.Contains(out, "Saved snapshot ") {
			h.as = append(h.as, exampleName, savedName.FindStringSubmatch(out)[1])
		}
	}
	for n, command := range all {
		if strings.HasPrefix(command, "quorate snapshot restore ") || strings.HasPrefix(command, "etcd ") {
			h.run(command)
		}
		if strings.HasPrefix(command, "etcd ") && !strings.HasPrefix(all[n+1], "etcd ") {
			h.serving(allEndpoints)
		}
	}
	for _, d := range documented {
		got := h.run("etcdctl get --prefix '' --endpoints http://" + d.address + ":2379")
		if got != "after\nkept\nbefore\nsaved\nlast\nkept\n" {
			t.Errorf("want all that was written, got %q from %s", got, d.member)
		}
	}
}
