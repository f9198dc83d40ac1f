package main

import (
	"fmt"
	"io"
	"time"

	"github.com/dustin/go-humanize"

	"quorate.dev/snapshot"
)

// progressEvery is how much time passes between two lines. What takes less is not told of.
const progressEvery = 3 * time.Second

// progress writes a line every few seconds while a stage goes on.
type progress struct {
	out   io.Writer
	now   func() time.Time
	stage string
	last  time.Time
}

// reporter tells on out how far a long call is, or is nil where nothing is to be told.
func reporter(out io.Writer, quiet bool) func(snapshot.Progress) {
	if quiet {
		return nil
	}
	p := &progress{out: out, now: time.Now}
	return p.report
}

func (p *progress) report(at snapshot.Progress) {
	now := p.now()
	if at.Stage != p.stage {
		p.stage, p.last = at.Stage, now
	}
	if now.Sub(p.last) < progressEvery {
		return
	}
	p.last = now
	line := at.Stage
	switch {
	case at.Total > 0:
		line += fmt.Sprintf(": %s of %s (%d %%)", size(at.Done), size(at.Total), at.Done*100/at.Total)
	case at.Done > 0:
		line += ": " + size(at.Done)
	}
	_, _ = fmt.Fprintln(p.out, line) // where it cannot be written there is no progress to see
}

// size is a number of bytes as people read it.
func size(bytes int64) string { return humanize.IBytes(uint64(max(bytes, 0))) }
