package main

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// event is one line of `go test -json`: see `go doc test2json`.
type event struct {
	Action, Package, Test, Output string
	Key, Value                    string  // of an attribute
	Elapsed                       float64 // seconds
}

// testID names a test; Test is empty for its package.
type testID struct{ Package, Test string }

func (id testID) String() string { return path.Base(id.Package) + " " + id.Test }

// judge reads what `go test -json` tells, prints what a person needs of it, and keeps the results.
type judge struct {
	to      io.Writer
	verbose bool
	said    map[testID]*bytes.Buffer // by tests that have not ended yet, and by packages
	results map[testID]result

	attributes []string // of tests that are not subtests
	broken     []string // the first words of what failed
}

type result struct {
	Action string // pass, fail or skip
	Took   time.Duration
	leaf   bool // it has no subtests
}

func newJudge(to io.Writer, verbose bool) *judge {
	return &judge{to: to, verbose: verbose, said: map[testID]*bytes.Buffer{}, results: map[testID]result{}}
}

// print what a person sees; if that cannot be written, the exit code still tells the result.
func (j *judge) print(format string, args ...any) { _, _ = fmt.Fprintf(j.to, format, args...) }

func (j *judge) read(events io.Reader) error {
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if jsonErr := json.Unmarshal(line, &e); jsonErr != nil {
				j.print("%s", line) // not of a test: what the go command says itself
			} else {
				j.hear(e)
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read the events of go test: %w", err)
		}
	}
}

func (j *judge) hear(e event) {
	id := testID{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		j.print("%s", e.Output)
	case "output":
		if j.verbose {
			j.print("%s", e.Output)
		}
		if j.said[id] == nil {
			j.said[id] = &bytes.Buffer{}
		}
		j.said[id].WriteString(e.Output)
	case "attr":
		said := fmt.Sprintf("%s: %s: %s", id, e.Key, e.Value)
		if !strings.Contains(e.Test, "/") {
			j.attributes = append(j.attributes, said)
		}
		if !j.verbose {
			j.print("%s\n", said)
		}
	case "pass", "fail", "skip":
		j.ended(id, result{Action: e.Action, Took: time.Duration(e.Elapsed * float64(time.Second)), leaf: true})
	}
}

func (j *judge) ended(id testID, r result) {
	said := j.said[id]
	delete(j.said, id)
	if id.Test == "" {
		j.endedPackage(id, r, said)
		return
	}
	if was, ok := j.results[id]; ok {
		r.leaf = was.leaf
	}
	j.results[id] = r
	for parent := path.Dir(id.Test); parent != "."; parent = path.Dir(parent) {
		up := testID{id.Package, parent}
		of := j.results[up]
		of.leaf = false
		j.results[up] = of
	}
	if said == nil || r.Action == "pass" {
		return
	}
	if r.Action == "fail" {
		j.broken = append(j.broken, firstWords(id, said.String(), r.leaf)...)
	}
	if !j.verbose {
		j.print("%s", said)
	}
}

// firstWords are the first lines with which a test has logged something, cut to a length that can
// be read at the end of a long run. A test says what is wrong first, and prints the state of
// everything after that. One that fails because of a subtest has logged nothing itself.
func firstWords(id testID, said string, leaf bool) []string {
	const most, longest = 8, 400
	var words []string
	for line := range strings.Lines(said) {
		line, logged := strings.CutPrefix(strings.TrimRight(line, "\n"), "    ")
		if !logged || !source.MatchString(line) {
			continue
		}
		if len(line) > longest {
			line = strings.ToValidUTF8(line[:longest], "") + " ..."
		}
		if words = append(words, id.String()+": "+line); len(words) == most {
			break
		}
	}
	if len(words) == 0 && leaf {
		words = []string{id.String() + ": failed, and logged nothing"}
	}
	return words
}

// source is how the testing package begins what a test logs.
var source = regexp.MustCompile(`^\w+\.go:\d+: `)

// endedPackage prints a package's own last words: its result, and what it said outside of tests.
func (j *judge) endedPackage(id testID, r result, said *bytes.Buffer) {
	if r.Action == "fail" {
		for test, unfinished := range j.said { // a panic or a time-out has ended them
			if test.Package != id.Package {
				continue
			}
			j.broken = append(j.broken, test.String()+": did not end")
			if !j.verbose {
				j.print("%s", unfinished)
			}
			delete(j.said, test)
		}
	}
	if j.verbose {
		return
	}
	if r.Action == "fail" {
		if said != nil {
			j.print("%s", said)
		}
	}
	if r.Action == "pass" {
		j.print("ok  \t%s\t%.1fs\n", id.Package, r.Took.Seconds())
	}
}

func (j *judge) count(action string) int {
	n := 0
	for _, r := range j.results {
		if r.Action == action && r.leaf {
			n++
		}
	}
	return n
}

// slow is a test and its time. For a parallel test that is the time from when it got its turn.
type slow struct {
	Name string
	Took time.Duration
}

func (j *judge) slowest(most int) []slow {
	var all []slow
	for id, r := range j.results {
		if r.leaf {
			all = append(all, slow{id.String(), r.Took})
		}
	}
	slices.SortFunc(all, func(a, b slow) int { return cmp.Or(cmp.Compare(b.Took, a.Took), cmp.Compare(a.Name, b.Name)) })
	return all[:min(most, len(all))]
}
