package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// byHand is the page about snapshots by hand.
const byHand = "snapshots-by-hand.md"

// documentedCommands are the commands in a section of a page in docs, up to the next heading, or in
// all of it: the lines with a prompt.
func documentedCommands(t *testing.T, page, section string) []string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/" + page)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(doc), "\\\n", "")
	if section != "" {
		_, after, found := strings.Cut(text, "# "+section+"\n")
		if !found {
			t.Fatalf("docs/%s has no section %s", page, section)
		}
		text, _, _ = strings.Cut(after, "\n#")
	}
	var commands []string
	for line := range strings.Lines(text) {
		if command, is := strings.CutPrefix(line, "$ "); is {
			commands = append(commands, strings.Join(strings.Fields(command), " "))
		}
	}
	if len(commands) == 0 {
		t.Fatalf("section %q of docs/%s has no command", section, page)
	}
	return commands
}

// TestBackupsDocumented: every command that docs/snapshots-by-hand.md and docs/restore.md tell is
// one, with the flags that it has, and the former has them all.
func TestBackupsDocumented(t *testing.T) {
	t.Parallel()
	shown := checkCommands(t, byHand)
	for _, cmd := range snapshots().Commands() {
		if !shown[cmd.Name()] {
			t.Errorf("docs/%s does not show quorate snapshot %s", byHand, cmd.Name())
		}
	}
	checkCommands(t, "restore.md")
}

// checkCommands fails the test unless all commands of quorate on a page are some, and returns which
// these are.
func checkCommands(t *testing.T, page string) (shown map[string]bool) {
	t.Helper()
	shown = map[string]bool{}
	for _, line := range documentedCommands(t, page, "") {
		args, is := strings.CutPrefix(line, "quorate ")
		if !is {
			continue
		}
		args, _, _ = strings.Cut(args, " | ")
		args, _, _ = strings.Cut(args, " > ")
		cmd, rest, err := root().Find(strings.Fields(args))
		if err != nil {
			t.Errorf("docs/%s: %s: %v", page, line, err)
			continue
		}
		shown[cmd.Name()] = true
		if err := parses(cmd, rest); err != nil {
			t.Errorf("docs/%s: %s: %v", page, line, err)
		}
	}
	return shown
}

func parses(cmd *cobra.Command, words []string) error {
	if err := cmd.ParseFlags(words); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
