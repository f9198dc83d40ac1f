package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quorate.dev/docs"
	"quorate.dev/reconcile/podstatus"
)

var update = flag.Bool("update", false, "write docs/reference/commands.md instead of comparing it")

// TestCommandsDocumented: each command of quorate that a document names is one, with the flags
// that it has.
func TestCommandsDocumented(t *testing.T) {
	t.Parallel()
	pages, err := docs.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	named := 0
	for _, p := range pages {
		for _, line := range p.Commands("quorate") {
			named++
			if err := isCommand(line); err != nil {
				t.Errorf("%s: %s: %v", p.Path, line, err)
			}
		}
	}
	if named < 20 { // a search that goes astray must not pass
		t.Errorf("found %d commands only", named)
	}
}

// isCommand says what is wrong with a command line. Values may be left out, as they are in a
// sentence.
func isCommand(line string) error {
	line, _, _ = strings.Cut(line, " | ")
	line, _, _ = strings.Cut(line, " > ")
	words := strings.Fields(line)[1:]
	cmd, rest, err := root().Find(words)
	if err != nil {
		return err
	}
	if cmd.HasSubCommands() && len(rest) > 0 && !strings.HasPrefix(rest[0], "-") {
		return fmt.Errorf("%s has no command %s", cmd.CommandPath(), rest[0])
	}
	cmd.InitDefaultHelpFlag()
	for _, word := range rest {
		name, _, _ := strings.Cut(word, "=")
		long, isLong := strings.CutPrefix(name, "--")
		short, isShort := strings.CutPrefix(name, "-")
		unknown := isLong && cmd.Flags().Lookup(long) == nil || !isLong && isShort && len(short) == 1 && cmd.Flags().ShorthandLookup(short) == nil
		if unknown {
			return fmt.Errorf("%s has no flag %s", cmd.CommandPath(), name)
		}
	}
	return nil
}

func TestIsCommand(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		args   string
		want   string
	}{
		"Good":      {reason: "flags without values, in a pipe", args: "quorate manifests --image --monitoring | kubectl apply --server-side -f -"},
		"Short":     {reason: "a letter", args: "quorate preview -A"},
		"NoCommand": {reason: "it was renamed", args: "quorate install", want: `unknown command "install" for "quorate"`},
		"NoSub":     {reason: "it was renamed", args: "quorate snapshot take", want: "quorate snapshot has no command take"},
		"NoFlag":    {reason: "it was renamed", args: "quorate manifests --registry=x", want: "quorate manifests has no flag --registry"},
		"NoShort":   {reason: "it has no letter", args: "quorate manifests -n", want: "quorate manifests has no flag -n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := isCommand(tc.args); err != nil {
				got = err.Error()
			}
			if diff := gocmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

// TestFailuresDocumented: each word that an agent gives for a failure is in docs/backups.md or
// docs/stores.md, with what to do.
func TestFailuresDocumented(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("../../snapshot/storeerror.go")
	if err != nil {
		t.Fatal(err)
	}
	words := []string{"Interrupted", reasonOf(errors.New("anything")), podstatus.OOMKilled}
	for _, r := range reasons {
		words = append(words, r.reason)
	}
	ofStores := regexp.MustCompile(`\bReason = "(\w+)"`).FindAllSubmatch(source, -1)
	if len(ofStores) < 10 {
		t.Fatalf("found %d words of stores only", len(ofStores))
	}
	for _, m := range ofStores {
		words = append(words, string(m[1]))
	}
	pages, err := docs.Pages("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, word := range words {
		if !slices.ContainsFunc(pages, func(p docs.Page) bool {
			return (p.Path == "docs/backups.md" || p.Path == "docs/stores.md") && slices.Contains(p.Code, word)
		}) {
			t.Errorf("neither docs/backups.md nor docs/stores.md has %s", word)
		}
	}
}

// TestReferenceCommands: docs/reference/commands.md is what the commands say of themselves.
func TestReferenceCommands(t *testing.T) {
	t.Setenv(imageVariable, "") // the default of a flag
	const path = "../../docs/reference/commands.md"
	var page bytes.Buffer
	page.WriteString("# Commands and flags\n\n<!-- Written by make generate, from cmd/quorate. -->\n\n" +
		"`quorate` is one binary: the operator, and what goes with installing it. It is the whole image of the operator too.\n" +
		"`quorate operator` is what the Deployment runs; its flags are the `args` of the container.\n")
	for _, cmd := range root().Commands() {
		writeCommand(&page, cmd)
	}
	if *update {
		if err := os.WriteFile(path, page.Bytes(), 0o644); err != nil { //nolint:gosec // a document
			t.Fatal(err)
		}
		return
	}
	is, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := gocmp.Diff(page.String(), string(is)); diff != "" {
		t.Errorf("%s: -want +got (make generate writes it):\n%s", path, diff)
	}
}

// writeCommand writes a section about a command that is not hidden, and about those below it.
func writeCommand(page *bytes.Buffer, cmd *cobra.Command) {
	if cmd.Hidden {
		return
	}
	fmt.Fprintf(page, "\n## %s\n\n%s\n", cmd.CommandPath(), strings.TrimSpace(cmp.Or(cmd.Long, cmd.Short+".")))
	if use := strings.TrimSuffix(cmd.UseLine(), " [flags]"); cmd.Runnable() && use != cmd.CommandPath() {
		fmt.Fprintf(page, "\n```text\n%s\n```\n", use)
	}
	if cmd.Example != "" {
		fmt.Fprintf(page, "\n```text\n%s\n```\n", unindented(cmd.Example))
	}
	first := true
	cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		if first {
			page.WriteString("\n| flag | default | |\n| --- | --- | --- |\n")
			first = false
		}
		name := "`--" + f.Name + "`"
		if f.Shorthand != "" {
			name += ", `-" + f.Shorthand + "`"
		}
		fmt.Fprintf(page, "| %s | %s | %s |\n", name, defaultOf(f), cell(f.Usage))
	})
	for _, sub := range cmd.Commands() {
		writeCommand(page, sub)
	}
}

func defaultOf(f *pflag.Flag) string {
	switch f.DefValue {
	case "", "[]":
		return ""
	default:
		return "`" + f.DefValue + "`"
	}
}

// cell is a text within a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(text)
}

func unindented(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		lines = append(lines, strings.TrimPrefix(strings.TrimRight(line, "\n"), "  "))
	}
	return strings.Join(lines, "\n")
}
