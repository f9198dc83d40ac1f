package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	summaryBegin = "<!-- test-long: begin -->"
	summaryEnd   = "<!-- test-long: end -->"
)

// summary is what the layers of a run have cost, and how they ended.
type summary struct {
	title    string
	wanted   []string // layers that must be there
	document string   // Markdown to write the table into; optional
	ledger   string   // file with the last figures of each layer, of whichever run; optional
}

// of prints the layers in these files, and writes them into the document. The exit code is not 0
// where a layer in the files failed, or one of the wanted has no figures. A layer of several parts,
// such as kubernetes-1.33, leaves a file that is named after the whole.
func (s summary) of(to io.Writer, files []string) (int, error) {
	if len(files) == 0 {
		return 2, errors.New("-summary needs the files of the layers: layer -summary FILE")
	}
	var layers []layer
	for _, file := range files {
		read, err := readLayers(file)
		if err != nil {
			return 1, err
		}
		layers = append(layers, read...)
	}
	code := 0
	if slices.ContainsFunc(layers, func(l layer) bool { return l.Failure != "" }) {
		code = 1
	}
	missing := slices.DeleteFunc(slices.Clone(s.wanted), func(name string) bool {
		return slices.ContainsFunc(layers, func(l layer) bool { return l.Name == name }) ||
			slices.ContainsFunc(files, func(f string) bool { return strings.HasPrefix(filepath.Base(f), name+".json") })
	})
	if s.ledger != "" {
		var err error
		if layers, err = enter(layers, s.ledger); err != nil {
			return 1, err
		}
	}
	for _, name := range missing {
		code = 1
		if !slices.ContainsFunc(layers, func(l layer) bool { return l.Name == name }) {
			layers = append(layers, layer{Name: name, Failure: "it did not run"})
		}
	}
	text := table(s.title, layers)
	if s.document != "" {
		if err := replaceSummary(s.document, text); err != nil {
			return 1, err
		}
	}
	_, err := to.Write(text)
	return code, err
}

func readLayers(file string) ([]layer, error) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var layers []layer
	for lines := json.NewDecoder(bytes.NewReader(raw)); lines.More(); {
		var l layer
		if err := lines.Decode(&l); err != nil {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		layers = append(layers, l)
	}
	return layers, nil
}

// enter writes the layers into the ledger, each in place of its earlier figures, and returns all
// that it has.
func enter(layers []layer, ledger string) ([]layer, error) {
	all, err := readLayers(ledger)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, l := range layers {
		if n := slices.IndexFunc(all, func(was layer) bool { return was.Name == l.Name }); n >= 0 {
			all[n] = l
		} else {
			all = append(all, l)
		}
	}
	if err := os.Remove(ledger); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, l := range all {
		if err := l.append(ledger); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// table is Markdown: a row a layer, then the attributes that its tests set, and last the first
// words of the tests that failed. Where layers say which code they tested, that is the last column.
func table(title string, layers []layer) []byte {
	var text bytes.Buffer
	if title != "" {
		fmt.Fprintf(&text, "%s:\n\n", title)
	}
	coded := slices.ContainsFunc(layers, func(l layer) bool { return l.Code != "" })
	line := func(cells string, code string) {
		if coded {
			cells += " " + code + " |"
		}
		fmt.Fprintln(&text, cells)
	}
	line("| layer | time | processors | tests | skipped | result |", "code")
	line("| --- | ---: | ---: | ---: | ---: | --- |", "---")
	row := func(l layer) {
		result := "passed"
		if l.Failure != "" {
			result = "**failed**: " + l.Failure
		}
		line(fmt.Sprintf("| %s | %s | %.0f %% | %d | %d | %s |", l.Name, l.Took.Round(time.Second), 100*l.Busy, l.Passed+l.Failed, l.Skipped, result), l.Code)
	}
	sum := layer{Name: "all"}
	for _, l := range layers {
		row(l)
		if l.Failure != "" {
			sum.Failure = l.Failure
		}
		if took := (sum.Took + l.Took).Seconds(); took > 0 {
			sum.Busy = (sum.Busy*sum.Took.Seconds() + l.Busy*l.Took.Seconds()) / took
		}
		sum.Took += l.Took
		sum.Passed, sum.Failed, sum.Skipped = sum.Passed+l.Passed, sum.Failed+l.Failed, sum.Skipped+l.Skipped
	}
	row(sum)
	for _, l := range layers {
		list(&text, l.Name, l.Said)
	}
	for _, l := range layers {
		list(&text, "Failed in "+l.Name, l.Broken)
	}
	return text.Bytes()
}

func list(text *bytes.Buffer, title string, items []string) {
	for n, item := range items {
		if n == 0 {
			fmt.Fprintf(text, "\n%s:\n\n", title)
		}
		fmt.Fprintf(text, "- %s\n", item)
	}
}

// replaceSummary replaces what stands between the marks.
func replaceSummary(file string, text []byte) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begins := bytes.Cut(raw, []byte(summaryBegin))
	_, after, ends := bytes.Cut(rest, []byte(summaryEnd))
	if !begins || !ends {
		return fmt.Errorf("%s has no %s with a %s after it", file, summaryBegin, summaryEnd)
	}
	var whole bytes.Buffer
	fmt.Fprintf(&whole, "%s%s\n%s%s%s", before, summaryBegin, text, summaryEnd, after)
	return os.WriteFile(file, whole.Bytes(), 0o644)
}
