//go:build env

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"quorate.dev/e2e/node"
)

// TestSnapshotByHand does what docs/snapshots-by-hand.md tells, with the commands as they stand
// there: a snapshot of three members is saved and verified, all of them are lost, and it is
// restored into three again.
func TestSnapshotByHand(t *testing.T) {
	t.Parallel()
	h := newHosts(t, node.Etcd36)
	h.form()
	if err := os.Mkdir(filepath.Join(h.dir, "backups"), 0o700); err != nil {
		t.Fatal(err)
	}
	h.run("etcdctl --endpoints http://10.0.0.1:2379 put before saved")

	var name string
	for _, command := range documentedCommands(t, byHand, "Save") {
		if out := h.run(command); strings.Contains(out, "Saved snapshot ") {
			name = savedName.FindStringSubmatch(out)[1]
			h.as = append(h.as, exampleName, name)
		}
	}
	if name == "" {
		t.Fatal("section Save of docs/snapshots-by-hand.md saves none")
	}
	for _, command := range documentedCommands(t, byHand, "Verify") {
		h.run(command)
	}
	h.run("etcdctl --endpoints http://10.0.0.1:2379 put after lost")

	h.lose()
	printed := map[string]bool{} // the commands that a restore tells to go on with
	commands := documentedCommands(t, byHand, "When all is lost")
	for n, command := range commands {
		switch {
		case strings.HasPrefix(command, "mv "):
			for _, d := range documented {
				if out, err := h.try(h.here(command, d.member)); err != nil {
					t.Fatalf("%s: %v\n%s", command, err, out)
				}
			}
			continue
		case strings.HasPrefix(command, "etcd ") && !printed[h.here(command, memberOf(command))]:
			t.Errorf("docs/snapshots-by-hand.md starts a member otherwise than restore tells to:\n%s", command)
		}
		for line := range strings.Lines(h.run(command)) {
			printed[strings.TrimSpace(line)] = true
		}
		if strings.HasPrefix(command, "etcd ") && !strings.HasPrefix(commands[n+1], "etcd ") {
			h.serving(allEndpoints)
		}
	}
	for _, d := range documented {
		got := h.run("etcdctl get --prefix '' --endpoints http://" + d.address + ":2379")
		if got != "before\nsaved\n" {
			t.Errorf("want what was saved, and not what was written after it, got %q from %s", got, d.member)
		}
	}
}

// exampleName is the name of the snapshot in docs/snapshots-by-hand.md.
const exampleName = "prod-20261125t075000z"

var (
	savedName       = regexp.MustCompile(`Saved snapshot (\S+)`)
	documentedStore = regexp.MustCompile(`'s3://[^']*'`)
)
