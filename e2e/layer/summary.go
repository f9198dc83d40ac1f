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

// summarize prints the layers in these files, and writes them into a document where one is named. The
// exit code is not 0 where a layer failed, or one of the wanted has left no figures. A layer of several
// parts, such as kubernetes-1.33, leaves a file that is named after the whole.
func summarize(to io.Writer, title, into string, wanted, files []string) (int, error) {
	if len(files) == 0 {
		return 2, errors.New("-summary needs the files of the layers: layer -summary FILE")
	}
	var layers []layer
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			return 1, err
		}
		for lines := json.NewDecoder(bytes.NewReader(raw)); lines.More(); {
			var l layer
			if err := lines.Decode(&l); err != nil {
				return 1, fmt.Errorf("read %s: %w", file, err)
			}
			layers = append(layers, l)
		}
	}
	for _, name := range wanted {
		if !slices.ContainsFunc(layers, func(l layer) bool { return l.Name == name }) && !slices.ContainsFunc(files, func(f string) bool {
			return strings.HasPrefix(filepath.Base(f), name+".json")
		}) {
			layers = append(layers, layer{Name: name, Failure: "it did not run"})
		}
	}
	text := table(title, layers)
	if into != "" {
		if err := replaceSummary(into, text); err != nil {
			return 1, err
		}
	}
	code := 0
	for _, l := range layers {
		if l.Failure != "" {
			code = 1
		}
	}
	_, err := to.Write(text)
	return code, err
}

// table is Markdown: a row a layer, then the attributes that its tests set, and last the first words of the tests that failed.
func table(title string, layers []layer) []byte {
	var text bytes.Buffer
	if title != "" {
		fmt.Fprintf(&text, "%s:\n\n", title)
	}
	fmt.Fprint(&text, "| layer | time | processors | tests | skipped | result |\n| --- | ---: | ---: | ---: | ---: | --- |\n")
	row := func(l layer) {
		result := "passed"
		if l.Failure != "" {
			result = "**failed**: " + l.Failure
		}
		fmt.Fprintf(&text, "| %s | %s | %.0f %% | %d | %d | %s |\n", l.Name, l.Took.Round(time.Second), 100*l.Busy, l.Passed+l.Failed, l.Skipped, result)
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
