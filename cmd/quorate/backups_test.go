package main

import (
	"os"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// documentedCommands are the commands in a section of docs/snapshots-by-hand.md, up to the next heading, or in all of it: the lines with a
// prompt.
func documentedCommands(t *testing.T, section string) []string {
	t.Helper()
	doc, err := os.ReadFile("../../docs/snapshots-by-hand.md")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(doc), "\\\n", "")
	if section != "" {
		_, after, found := strings.Cut(text, "# "+section+"\n")
		if !found {
			t.Fatalf("docs/snapshots-by-hand.md has no section %s", section)
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
		t.Fatalf("section %q of docs/snapshots-by-hand.md has no command", section)
	}
	return commands
}

// TestBackupsDocumented: every command that docs/snapshots-by-hand.md tells is one, with the flags that it has.
func TestBackupsDocumented(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, line := range documentedCommands(t, "") {
		args, is := strings.CutPrefix(line, "quorate ")
		if !is {
			continue
		}
		args, _, _ = strings.Cut(args, " | ")
		cmd, rest, err := root().Find(strings.Fields(args))
		if err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		seen[cmd.Name()] = true
		if err := parses(cmd, rest); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	for _, cmd := range snapshots().Commands() {
		if !seen[cmd.Name()] {
			t.Errorf("docs/snapshots-by-hand.md does not show quorate snapshot %s", cmd.Name())
		}
	}
}

func parses(cmd *cobra.Command, words []string) error {
	if err := cmd.ParseFlags(words); err != nil {
		return err
	}
	return cmd.ValidateArgs(cmd.Flags().Args())
}
