package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"quorate.dev/snapshot"
)

// storeOf makes a store in a directory, with snapshots that cannot be restored: their data is one
// byte.
func storeOf(t *testing.T, manifests ...snapshot.Manifest) string {
	t.Helper()
	dir := t.TempDir()
	write := func(name string, content []byte) {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range manifests {
		m.Format, m.Object = 1, m.Name+".db.zst"
		m.Size, m.StoredSize, m.SHA256, m.StoredSHA256, m.Revision, m.EtcdVersion = 1, 1, "aa", "bb", 1, "3.6.16"
		document, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		verification, err := json.Marshal(snapshot.Verification{Format: 1, Name: m.Name, Mode: snapshot.ModeHash, SHA256: m.SHA256})
		if err != nil {
			t.Fatal(err)
		}
		write(m.Object, []byte("x"))
		write(m.Name+".manifest.json", document)
		write(m.Name+".verified.json", verification)
	}
	return dir
}

func taken(name, cluster, id string, day int) snapshot.Manifest {
	return snapshot.Manifest{Name: name, Cluster: cluster, ClusterID: id, TakenAt: time.Date(2026, 11, day, 0, 0, 0, 0, time.UTC)}
}

// TestSnapshotBadInput: what is wrong, and what to write instead.
func TestSnapshotBadInput(t *testing.T) {
	dir := t.TempDir()
	one := storeOf(t, taken("a-1", "a", "1a", 1))
	two := storeOf(t, taken("a-1", "a", "1a", 1), taken("b-1", "b", "1b", 2))
	notes := filepath.Join(dir, "notes")
	if err := os.WriteFile(notes, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		args   string
		want   string
	}{
		"SaveNoStore":        {reason: "which kinds there are", args: "save", want: "--store is missing: write a directory, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX or azblob://ACCOUNT/CONTAINER/PREFIX"},
		"SaveOtherStore":     {reason: "which kinds there are", args: "save --store ftp://a/b", want: `scheme "ftp" is none of a store: write s3://`},
		"SaveNoDirectory":    {reason: "it may be a mount that is missing", args: "save --store " + dir + "/none", want: "create the directory, or mount the volume there"},
		"SaveOutput":         {reason: "what there is", args: "save --store " + dir + " -o yaml", want: `--output "yaml" is not known: write text or json`},
		"SaveName":           {reason: "it becomes a key", args: "save --store " + dir + " --name A/B", want: `"A/B" is no name of a snapshot: write small letters`},
		"SaveRecipient":      {reason: "before anything is asked", args: "save --store " + dir + " --recipient age1", want: `malformed recipient "age1"`},
		"SaveNobody":         {reason: "why each member was not taken", args: "save --store " + dir + " --endpoints http://127.0.0.1:1", want: "no member to take a snapshot from: status of etcd http://127.0.0.1:1"},
		"SaveArgument":       {reason: "etcdctl has it there", args: "save snapshot.db", want: "save takes no file: write the directory as --store, and --name for another name than the time"},
		"SaveBoth":           {reason: "it runs, or it does not", args: "save --data-dir " + dir + " --endpoints http://127.0.0.1:1", want: "--endpoints is for members that run, and --data-dir for one that does not: write one of both"},
		"SaveScratch":        {reason: "a flag without effect is a mistake", args: "save --scratch " + dir + " --store " + dir, want: "--scratch is for a member that does not run: write its --data-dir too, or leave --scratch away"},
		"SaveNoDataDir":      {reason: "what is missing there", args: "save --data-dir " + dir + " --store " + dir, want: dir + " is no data directory of etcd: it has no member/snap/db"},
		"VerifyNothing":      {reason: "what a snapshot is called", args: "verify --store " + one, want: "write one snapshot: its name as list shows it, or latest, with --store; or a file, without"},
		"VerifyTwo":          {reason: "one by one", args: "verify a b --store " + one, want: "write one snapshot"},
		"VerifyLatest":       {reason: "latest of what", args: "verify latest", want: "--store is missing: write where latest is to be looked for, or a file"},
		"VerifyNoFile":       {reason: "a name without --store is a file", args: "verify a-1", want: "without --store the argument is a file: stat a-1: no such file"},
		"VerifyOtherFile":    {reason: "which check failed", args: "verify " + notes, want: "snapshot " + notes + " is damaged: trailer"},
		"VerifyMode":         {reason: "what there is", args: "verify a-1 --mode hash --store " + one, want: `--mode "hash" is not known: write Restore or Hash`},
		"VerifyNoEtcd":       {reason: "the way without", args: "verify a-1 --store " + one, want: "no etcd is in PATH to serve the restored data: write --etcd PATH; or --mode Hash"},
		"VerifyOtherEtcd":    {reason: "the flag", args: "verify a-1 --etcd " + dir + "/etcd --store " + one, want: "--etcd: "},
		"VerifyUnknown":      {reason: "what there is", args: "verify c-1 --mode Hash --store " + two, want: "snapshot c-1: not found: there are b-1 (2026-11-02T00:00:00Z, cluster b 1b), a-1"},
		"VerifySeveral":      {reason: "the newest of which", args: "verify latest --mode Hash --store " + two, want: "name the snapshot (--cluster, or --cluster-id)"},
		"VerifyNoIdentity":   {reason: "the flag", args: "verify a-1 --mode Hash --identity " + dir + "/none --store " + one, want: "--identity: open "},
		"VerifyBadIdentity":  {reason: "what is in such a file", args: "verify a-1 --mode Hash --identity " + notes + " --store " + one, want: "is no file of age-keygen: it must have a line AGE-SECRET-KEY-1"},
		"VerifyDamaged":      {reason: "which check failed", args: "verify a-1 --mode Hash --store " + one, want: "snapshot a-1 is damaged: "},
		"RestoreNoDirectory": {reason: "where to", args: "restore a-1 --store " + one, want: "--data-dir is missing"},
		"RestoreNotEmpty":    {reason: "how to keep what is there", args: "restore a-1 --store " + one + " --data-dir " + dir, want: "is not empty, and nothing is written over: move it away first (mv " + dir + " " + dir + ".old)"},
		"RestoreLatest":      {reason: "latest of what", args: "restore latest --data-dir " + dir + "/d", want: "--store is missing: write where latest is to be looked for"},
		"RestoreNoFile":      {reason: "a name without --store is a file", args: "restore a-1 --data-dir " + dir + "/d", want: "without --store the argument is a file: stat a-1: no such file"},
		"RestoreBefore":      {reason: "how a time is written", args: "restore latest --before yesterday --store " + one + " --data-dir " + dir + "/d", want: `--before: "yesterday" is no time: write it as 2026-11-25T07:50:00Z`},
		"RestoreNameBefore":  {reason: "one or the other", args: "restore a-1 --before 2026-11-25T07:50:00Z --store " + one + " --data-dir " + dir + "/d", want: "--before chooses among snapshots, and a-1 is one: write latest for it"},
		"RestoreTooEarly":    {reason: "what there is", args: "restore latest --before 2025-11-25T07:50:00Z --store " + one + " --data-dir " + dir + "/d", want: "snapshot latest before 2025-11-25T07:50:00Z of cluster ID 1a: not found: there are a-1"},
		"RestoreDamaged":     {reason: "nothing is restored of it", args: "restore a-1 --store " + one + " --data-dir " + dir + "/d", want: "snapshot a-1 is damaged: "},
		"ListOutput":         {reason: "what there is", args: "list --store " + one + " -o text", want: "write table or wide or json"},
		"PruneNothing":       {reason: "what can be said", args: "prune --store " + one, want: "nothing says what to keep: write at least one of --keep-last"},
		"PruneNegative":      {reason: "no number", args: "prune --keep-last -1 --store " + one, want: "-1 is no number of snapshots to keep"},
		"PruneAge":           {reason: "no age", args: "prune --max-age -1h --store " + one, want: `"-1h" is no age: write it in hours, such as 720h`},
		"PruneDays":          {reason: "Go has no unit for a day", args: "prune --max-age 30d --store " + one, want: `"30d" is no age: write it in hours, such as 720h`},
		"PruneZone":          {reason: "what one is called", args: "prune --keep-daily 1 --time-zone CEST --store " + one, want: `--time-zone: "CEST" is not known: write UTC, or a name such as Europe/Berlin`},
		"PruneSeveral":       {reason: "one cluster's at a time", args: "prune --keep-last 1 --store " + two, want: "write --cluster-id with one of 1a (a), 1b (b)"},
		"DeleteLatest":       {reason: "it may be another one by now", args: "delete latest --store " + one, want: "latest is not deleted: write the name of the snapshot"},
		"DeleteUnknown":      {reason: "a mistake is told", args: "delete a-2 --store " + one, want: "snapshot a-2: not found: there are a-1"},
	}
	t.Setenv("PATH", dir)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			cmd := root()
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SetArgs(append([]string{"snapshot"}, strings.Fields(tc.args)...))
			err := cmd.ExecuteContext(t.Context())
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: want an error with %q, got %v", tc.reason, tc.want, err)
			}
		})
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || !cmp.Equal(left, []string{notes}) {
		t.Errorf("refused commands have left %v (%v)", left, err)
	}
}

// TestPrune: what is shown is what goes, once it is said.
func TestPrune(t *testing.T) {
	t.Parallel()
	store := storeOf(t, taken("a-1", "a", "1a", 1), taken("a-2", "a", "1a", 2), taken("a-3", "a", "1a", 3), taken("b-1", "b", "1b", 1))
	names := func(args ...string) []string {
		t.Helper()
		var stored []listedSnapshot
		if err := json.Unmarshal([]byte(execute(t, append([]string{"snapshot", "--store=" + store, "--output=json"}, args...)...)), &stored); err != nil {
			t.Fatal(err)
		}
		all := []string{}
		for _, s := range stored {
			all = append(all, s.Manifest.Name)
		}
		return all
	}
	prune := []string{"prune", "--keep-last=1", "--cluster-id=1a"}
	for _, step := range []struct {
		args []string
		want []string
	}{
		{prune, []string{"a-1", "a-2"}},
		{[]string{"list"}, []string{"a-3", "a-2", "a-1", "b-1"}},
		{append(prune, "--yes"), []string{"a-1", "a-2"}},
		{[]string{"list"}, []string{"a-3", "b-1"}},
		{prune, []string{}},
	} {
		if diff := cmp.Diff(step.want, names(step.args...)); diff != "" {
			t.Errorf("%s: -want, +got\n%s", step.args, diff)
		}
	}
	execute(t, "snapshot", "delete", "a-3", "--store="+store)
	if diff := cmp.Diff([]string{"b-1"}, names("list")); diff != "" {
		t.Errorf("after delete: -want, +got\n%s", diff)
	}
	if left, err := filepath.Glob(filepath.Join(store, "a-*")); err != nil || len(left) > 0 {
		t.Errorf("delete has left %v (%v)", left, err)
	}
}
