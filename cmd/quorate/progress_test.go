package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"quorate.dev/snapshot"
)

// TestProgress: a line every few seconds, and none of what is short.
func TestProgress(t *testing.T) {
	t.Parallel()
	start := time.Unix(0, 0)
	var out bytes.Buffer
	var at time.Duration
	p := &progress{out: &out, now: func() time.Time { return start.Add(at) }}
	for _, step := range []struct {
		at time.Duration
		snapshot.Progress
	}{
		{0, snapshot.Progress{Stage: "save"}},
		{time.Second, snapshot.Progress{Stage: "save", Done: 1 << 20, Total: 4 << 20}},
		{progressEvery, snapshot.Progress{Stage: "save", Done: 2 << 20, Total: 4 << 20}},
		{progressEvery + time.Second, snapshot.Progress{Stage: "save", Done: 3 << 20, Total: 4 << 20}},
		{2*progressEvery - time.Second, snapshot.Progress{Stage: "read"}},
		{2 * progressEvery, snapshot.Progress{Stage: "read", Done: 5 << 20}},
		{3 * progressEvery, snapshot.Progress{Stage: "read", Done: 6 << 20}},
	} {
		at = step.at
		p.report(step.Progress)
	}
	want := "save: 2.0 MiB of 4.0 MiB (50 %)\nread: 6.0 MiB\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("-want, +got\n%s", diff)
	}
	if reporter(&out, true) != nil {
		t.Error("with --quiet nothing is told")
	}
}
