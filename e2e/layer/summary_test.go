package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestSummarize(t *testing.T) {
	passed := layer{Name: "unit", Took: time.Minute, Busy: 1, Passed: 9, Said: []string{"p TestA: states: 7"}}
	failed := layer{Name: "env", Took: 3 * time.Minute, Busy: 0.5, Passed: 1, Failed: 1, Failure: "exit status 1", Broken: []string{"p TestB: b_test.go:1: lost"}}
	const head = "| layer | time | processors | tests | skipped | result |\n| --- | ---: | ---: | ---: | ---: | --- |\n"
	cases := map[string]struct {
		reason   string
		layers   []layer
		wanted   []string
		ledger   []layer // what it has before
		document string
		want     string
		code     int
		fails    bool
	}{
		"OneFailed": {
			reason:   "the sum of layers fails with one of them, and its share of the processors is by time",
			layers:   []layer{passed, failed},
			document: "a\n" + summaryBegin + "\nold\n" + summaryEnd + "\nb\n",
			want: "a\n" + summaryBegin + "\nrun:\n\n" + head +
				"| unit | 1m0s | 100 % | 9 | 0 | passed |\n" +
				"| env | 3m0s | 50 % | 2 | 0 | **failed**: exit status 1 |\n" +
				"| all | 4m0s | 62 % | 11 | 0 | **failed**: exit status 1 |\n" +
				"\nunit:\n\n- p TestA: states: 7\n\nFailed in env:\n\n- p TestB: b_test.go:1: lost\n" + summaryEnd + "\nb\n",
			code: 1,
		},
		"NotRun": {
			reason:   "a layer that left no figures has failed",
			layers:   []layer{passed},
			wanted:   []string{"unit", "kind"},
			document: summaryBegin + summaryEnd,
			want: summaryBegin + "\nrun:\n\n" + head +
				"| unit | 1m0s | 100 % | 9 | 0 | passed |\n" +
				"| kind | 0s | 0 % | 0 | 0 | **failed**: it did not run |\n" +
				"| all | 1m0s | 100 % | 9 | 0 | **failed**: it did not run |\n" +
				"\nunit:\n\n- p TestA: states: 7\n" + summaryEnd,
			code: 1,
		},
		"Ledger": {
			reason: "the last figures of every layer, each with the code that it tested; a layer that did not run this time keeps its own",
			layers: []layer{{Name: "unit", Code: "b, 2026-02-02", Took: 2 * time.Minute, Busy: 1, Passed: 10}},
			ledger: []layer{
				{Name: "unit", Code: "a, 2026-01-01", Took: time.Minute, Busy: 1, Passed: 9, Failed: 1, Failure: "exit status 1"},
				{Name: "explore", Code: "a, 2026-01-01", Took: time.Minute, Busy: 1, Passed: 3},
			},
			wanted:   []string{"unit", "explore"},
			document: summaryBegin + summaryEnd,
			want: summaryBegin + "\nrun:\n\n" +
				"| layer | time | processors | tests | skipped | result | code |\n| --- | ---: | ---: | ---: | ---: | --- | --- |\n" +
				"| unit | 2m0s | 100 % | 10 | 0 | passed | b, 2026-02-02 |\n" +
				"| explore | 1m0s | 100 % | 3 | 0 | passed | a, 2026-01-01 |\n" +
				"| all | 3m0s | 100 % | 13 | 0 | passed |  |\n" + summaryEnd,
			code: 1,
		},
		"NoMarks": {
			reason:   "a document without a place for it stays as it is",
			layers:   []layer{passed},
			document: "a\n", want: "a\n", code: 1, fails: true,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			record, document := filepath.Join(dir, "new", "layers.json"), filepath.Join(dir, "page.md")
			for _, l := range tc.layers {
				if err := l.append(record); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.WriteFile(document, []byte(tc.document), 0o600); err != nil {
				t.Fatal(err)
			}
			run := summary{title: "run", document: document, wanted: tc.wanted}
			for _, l := range tc.ledger {
				run.ledger = filepath.Join(dir, "ledger.jsonl")
				if err := l.append(run.ledger); err != nil {
					t.Fatal(err)
				}
			}
			code, err := run.of(&bytes.Buffer{}, []string{record})
			if code != tc.code || (err != nil) != tc.fails {
				t.Errorf("%s: code %d, error %v", tc.reason, code, err)
			}
			got, err := os.ReadFile(document)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
