package main

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestJudge(t *testing.T) {
	type want struct {
		Passed, Failed, Skipped int
		Printed                 string
		Broken                  []string
		NoTest                  bool
	}
	cases := map[string]struct {
		reason  string
		args    string
		verbose bool
		events  []string
		want    want
	}{
		"Passed": {
			reason: "what a test that passes has logged is not printed; its attributes are",
			args:   "go test ./p",
			events: []string{
				`{"Action":"output","Package":"x/p","Test":"TestA","Output":"noise\n"}`,
				`{"Action":"attr","Package":"x/p","Test":"TestA","Key":"seed","Value":"7"}`,
				`{"Action":"pass","Package":"x/p","Test":"TestA","Elapsed":2}`,
				`{"Action":"pass","Package":"x/p","Elapsed":2.5}`,
			},
			want: want{Passed: 1, Printed: "p TestA: seed: 7\nok  \tx/p\t2.5s\n"},
		},
		"Failed": {
			reason: "what a test that fails has logged is printed, and only that",
			args:   "go test ./p",
			events: []string{
				`{"Action":"output","Package":"x/p","Test":"TestA","Output":"noise\n"}`,
				`{"Action":"output","Package":"x/p","Test":"TestB","Output":"broken\n"}`,
				`{"Action":"pass","Package":"x/p","Test":"TestA"}`,
				`{"Action":"fail","Package":"x/p","Test":"TestB"}`,
				`{"Action":"output","Package":"x/p","Output":"FAIL\n"}`,
				`{"Action":"fail","Package":"x/p"}`,
			},
			want: want{Passed: 1, Failed: 1, Printed: "broken\nFAIL\n", Broken: []string{"p TestB: failed, and logged nothing"}},
		},
		"FailedInSubtest": {
			reason: "what was logged first is kept for the end, of the subtest alone, and no more lines than can be read",
			args:   "go test ./p",
			events: append(
				slices.Repeat([]string{`{"Action":"output","Package":"x/p","Test":"TestA/One","Output":"    a_test.go:3: lost\n        the rest\n"}`}, 9),
				`{"Action":"fail","Package":"x/p","Test":"TestA/One"}`,
				`{"Action":"output","Package":"x/p","Test":"TestA","Output":"--- FAIL: TestA\n"}`,
				`{"Action":"fail","Package":"x/p","Test":"TestA"}`,
			),
			want: want{
				Failed: 1, Printed: strings.Repeat("    a_test.go:3: lost\n        the rest\n", 9) + "--- FAIL: TestA\n",
				Broken: slices.Repeat([]string{"p TestA/One: a_test.go:3: lost"}, 8),
			},
		},
		"TimedOut": {
			reason: "a test that did not end is printed with its package",
			args:   "go test ./p",
			events: []string{
				`{"Action":"output","Package":"x/p","Test":"TestA","Output":"so far\n"}`,
				`{"Action":"output","Package":"x/p","Output":"panic: test timed out\n"}`,
				`{"Action":"fail","Package":"x/p"}`,
			},
			want: want{Printed: "so far\npanic: test timed out\n", NoTest: true, Broken: []string{"p TestA: did not end"}},
		},
		"Subtests": {
			reason: "a test with subtests is not counted beside them",
			args:   "go test ./p",
			events: []string{
				`{"Action":"pass","Package":"x/p","Test":"TestA/One"}`,
				`{"Action":"skip","Package":"x/p","Test":"TestA/Two"}`,
				`{"Action":"pass","Package":"x/p","Test":"TestA"}`,
			},
			want: want{Passed: 1, Skipped: 1},
		},
		"Nothing": {
			reason: "a package without tests proves nothing",
			args:   "go test -run ^TestGone$ ./p",
			events: []string{`{"Action":"pass","Package":"x/p","Elapsed":1}`},
			want:   want{NoTest: true, Printed: "ok  \tx/p\t1.0s\n"},
		},
		"SkippedOnly": {
			reason: "nor does a test that was skipped",
			args:   "go test ./p",
			events: []string{`{"Action":"skip","Package":"x/p","Test":"TestA"}`},
			want:   want{Skipped: 1, NoTest: true},
		},
		"OneNameMissing": {
			reason: "each name of a pattern must have run",
			args:   "go test -run ^Test(A|Gone)$ ./p",
			events: []string{`{"Action":"pass","Package":"x/p","Test":"TestA"}`},
			want:   want{Passed: 1, NoTest: true},
		},
		"AllNames": {
			reason: "subtests are not part of a name",
			args:   "go test -run=^(TestA|TestB)$/x ./p",
			events: []string{
				`{"Action":"pass","Package":"x/p","Test":"TestA/x"}`,
				`{"Action":"pass","Package":"x/p","Test":"TestA"}`,
				`{"Action":"pass","Package":"x/p","Test":"TestB"}`,
			},
			want: want{Passed: 2},
		},
		"OnePackageMissing": {
			reason: "each package that is named must have run a test",
			args:   "go test -skip ^TestA$ ./p ./q/...",
			events: []string{
				`{"Action":"pass","Package":"x/p","Test":"TestB"}`,
				`{"Action":"pass","Package":"x/q","Elapsed":1}`,
			},
			want: want{Passed: 1, NoTest: true, Printed: "ok  \tx/q\t1.0s\n"},
		},
		"AllPackages": {
			reason: "of a pattern that ends with /... one package is enough",
			args:   "go test ./a/p ./q/... ./...",
			events: []string{
				`{"Action":"pass","Package":"x/a/p","Test":"TestA"}`,
				`{"Action":"pass","Package":"x/q/deep","Test":"TestB"}`,
			},
			want: want{Passed: 2},
		},
		"Verbose": {
			reason:  "everything is printed once, in the order in which it was said",
			args:    "go test -v ./p",
			verbose: true,
			events: []string{
				`{"Action":"output","Package":"x/p","Test":"TestA","Output":"=== RUN TestA\n"}`,
				`{"Action":"fail","Package":"x/p","Test":"TestA"}`,
				`{"Action":"output","Package":"x/p","Output":"FAIL\n"}`,
				`{"Action":"fail","Package":"x/p"}`,
			},
			want: want{Failed: 1, Printed: "=== RUN TestA\nFAIL\n", Broken: []string{"p TestA: failed, and logged nothing"}},
		},
		"NotJSON": {
			reason: "what the go command says itself is passed on",
			args:   "go test ./p",
			events: []string{`go: cannot find main module`},
			want:   want{Printed: "go: cannot find main module\n", NoTest: true},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var printed bytes.Buffer
			j := newJudge(&printed, tc.verbose)
			if err := j.read(strings.NewReader(strings.Join(tc.events, "\n") + "\n")); err != nil {
				t.Fatal(err)
			}
			got := want{
				Passed: j.count("pass"), Failed: j.count("fail"), Skipped: j.count("skip"),
				Printed: printed.String(), Broken: j.broken, NoTest: errors.Is(j.verdict(strings.Fields(tc.args)), errNoTest),
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestSlowest(t *testing.T) {
	j := newJudge(&bytes.Buffer{}, false)
	for _, e := range []event{
		{Action: "pass", Package: "x/p", Test: "TestA/One", Elapsed: 3},
		{Action: "pass", Package: "x/p", Test: "TestA", Elapsed: 9},
		{Action: "pass", Package: "x/q", Test: "TestB", Elapsed: 5},
		{Action: "fail", Package: "x/q", Test: "TestC", Elapsed: 1},
	} {
		j.hear(e)
	}
	want := []slow{{"q TestB", 5 * time.Second}, {"p TestA/One", 3 * time.Second}}
	if diff := cmp.Diff(want, j.slowest(2)); diff != "" {
		t.Errorf("a test with subtests is their sum, and not listed: -want +got:\n%s", diff)
	}
}

// TestExecute runs the go command itself.
func TestExecute(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   string
		passed int
		noTest bool
	}{
		"OneTest": {reason: "its result is counted", args: "go test -count=1 -run ^TestSlowest$ .", passed: 1},
		"NoTest":  {reason: "a pattern that matches nothing fails", args: "go test -run ^TestGone$ .", noTest: true},
		"NoGo":    {reason: "another command is not judged", args: "go version"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var l layer
			err := l.execute(t.Context(), strings.Fields(tc.args))
			if l.Passed != tc.passed || errors.Is(err, errNoTest) != tc.noTest || (err != nil && !tc.noTest) {
				t.Errorf("%s: %d passed, error %v", tc.reason, l.Passed, err)
			}
		})
	}
}
