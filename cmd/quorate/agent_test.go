package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"quorate.dev/snapshot"
)

// runAgent runs a command of the agent with a store, and returns the result that it leaves. restore
// has no store.
func runAgent(t *testing.T, store snapshot.Config, args ...string) (agentResult, error) {
	t.Helper()
	document, err := json.Marshal(store)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "result")
	all := append([]string{"agent", args[0], "--result=" + file}, args[1:]...)
	if args[0] != "restore" {
		all = append(all, "--store="+string(document))
	}
	cmd := root()
	cmd.SetOut(t.Output())
	cmd.SetErr(t.Output())
	cmd.SetArgs(all)
	failed := cmd.ExecuteContext(t.Context())
	return readResult(t, file), failed
}

func readResult(t *testing.T, file string) agentResult {
	t.Helper()
	document, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var result agentResult
	if err := json.Unmarshal(document, &result); err != nil {
		t.Fatal(err)
	}
	return result
}

// TestAgent: what each command leaves for the operator.
func TestAgent(t *testing.T) {
	t.Parallel()
	a1, a2, b1 := taken("a-1", "a", "1a", 1), taken("a-2", "a", "1a", 2), taken("b-1", "b", "1b", 3)
	manifest := func(m snapshot.Manifest) agentResult { return agentResult{Manifest: &m} }
	failed := func(reason, message string) agentResult {
		return agentResult{Error: &agentError{Reason: reason, Message: message}}
	}
	cases := map[string]struct {
		reason string
		config *snapshot.Config // instead of a store with a-1, a-2 and b-1
		args   []string
		want   agentResult
		left   []string // the manifests in the store
	}{
		"FindNewest": {reason: "of the cluster", args: []string{"find", "--cluster=a"}, want: manifest(a2)},
		"FindNamed":  {reason: "this one", args: []string{"find", "--name=a-1"}, want: manifest(a1)},
		"FindBefore": {reason: "the last one before a time", args: []string{"find", "--cluster-id=1a", "--before=2026-11-01T12:00:00Z"}, want: manifest(a1)},
		"FindNone":   {reason: "what there is", args: []string{"find", "--name=c"}, want: failed("NotFound", "snapshot c: not found: there are b-1")},
		"Delete":     {reason: "it is gone", args: []string{"delete", "--name=a-1"}, left: []string{"a-2", "b-1"}},
		"DeleteAgain": {
			reason: "what is gone already is no error: the Pod may be the second one", args: []string{"delete", "--name=c"}, left: []string{"a-1", "a-2", "b-1"},
		},
		"DeleteOwn": {reason: "it is of the cluster", args: []string{"delete", "--name=a-1", "--cluster-id=1a"}, left: []string{"a-2", "b-1"}},
		"DeleteOther": {
			reason: "another cluster has stored it under that name", args: []string{"delete", "--name=a-1", "--cluster-id=1b"}, left: []string{"a-1", "a-2", "b-1"},
			want: failed("OtherCluster", `delete snapshot a-1: another cluster: it is of cluster "a" with ID 1a, and that of cluster ID 1b is to be deleted: it stays in the store`),
		},
		"DeleteNothing": {reason: "the whole store is no snapshot", args: []string{"delete"}, want: failed("Failed", `"" is no name of a snapshot`), left: []string{"a-1", "a-2", "b-1"}},
		"VerifyHash":    {reason: "which check failed", args: []string{"verify-hash", "--name=a-1"}, want: failed("Damaged", "snapshot a-1 is damaged: ")},
		"FetchUnknown":  {reason: "there is none", args: []string{"fetch", "--name=c", "--file=/none"}, want: failed("NotFound", "snapshot c: no manifest")},
		"SaveNoMember": {
			reason: "why", args: []string{"save", "--endpoints=http://127.0.0.1:1", "--name=c"}, want: failed("NoMember", "no member to take a snapshot from"), left: []string{"a-1", "a-2", "b-1"},
		},
		"NoStore":     {reason: "the word of the store", config: &snapshot.Config{}, args: []string{"find"}, want: failed("InvalidStore", "--store: ")},
		"NoDirectory": {reason: "the word of the store", config: &snapshot.Config{Directory: &snapshot.Directory{Path: "/none"}}, args: []string{"find"}, want: failed("NoSuchBucket", "open file:///none/: NoSuchBucket")},
	}
	// Of a manifest the name is enough; an error is compared by its beginning.
	comparing := cmp.Options{
		cmp.Comparer(func(a, b snapshot.Manifest) bool { return a.Name == b.Name }),
		cmpopts.IgnoreFields(agentResult{}, "Verification"),
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := storeOf(t, a1, a2, b1)
			config := snapshot.Config{Directory: &snapshot.Directory{Path: dir}}
			if tc.config != nil {
				config = *tc.config
			}
			got, err := runAgent(t, config, tc.args...)
			if (err != nil) != (tc.want.Error != nil) {
				t.Errorf("%s: the error is %v", tc.reason, err)
			}
			if got.Error != nil && tc.want.Error != nil {
				got.Error.Message = got.Error.Message[:min(len(got.Error.Message), len(tc.want.Error.Message))]
			}
			if diff := cmp.Diff(tc.want, got, comparing); diff != "" {
				t.Errorf("%s: -want, +got\n%s", tc.reason, diff)
			}
			if tc.left == nil {
				return
			}
			var left []string
			files, err := filepath.Glob(filepath.Join(dir, "*.manifest.json"))
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				left = append(left, strings.TrimSuffix(filepath.Base(file), ".manifest.json"))
			}
			if diff := cmp.Diff(tc.left, left); diff != "" {
				t.Errorf("%s: in the store, -want, +got\n%s", tc.reason, diff)
			}
		})
	}
}

// TestServedWithin: a large database is given the time to be read, and a small one no less than a
// slow start of etcd takes.
func TestServedWithin(t *testing.T) {
	t.Parallel()
	const gib = 1 << 30
	cases := map[string]struct {
		reason string
		args   int64
		want   time.Duration
	}{
		"Empty":   {reason: "the floor", want: 10 * time.Minute},
		"Small":   {reason: "a GiB that is begun counts", args: 1, want: 15 * time.Minute},
		"OneGiB":  {reason: "as much", args: gib, want: 15 * time.Minute},
		"Begun":   {reason: "the next one is begun", args: gib + 1, want: 20 * time.Minute},
		"Largest": {reason: "what etcd suggests at most", args: 8 * gib, want: 50 * time.Minute},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, servedWithin(tc.args)); diff != "" {
				t.Errorf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}
