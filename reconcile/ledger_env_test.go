//go:build env

package reconcile_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"quorate.dev/e2e/history"
)

// ledger is a file of the plans that have ended, a line each. A run that was interrupted goes on
// with the others, and with those that failed.
type ledger struct {
	mu     sync.Mutex
	file   *os.File
	known  map[string]ledgerLine // plans that ended well in earlier runs
	failed []string              // plans that failed in earlier runs
}

type ledgerLine struct {
	Plan   string
	Failed bool `json:",omitempty"`
	Met    bool
	Unread int
	Writes history.Result
	Took   time.Duration
}

// openLedger reads what is there, and adds to it. Without a path nothing is kept.
func openLedger(path string) (*ledger, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	l := &ledger{file: f, known: map[string]ledgerLine{}}
	lines := json.NewDecoder(f)
	for {
		whole := lines.InputOffset()
		var line ledgerLine
		err := lines.Decode(&line)
		switch {
		case errors.Is(err, io.EOF):
			return l, nil
		case errors.Is(err, io.ErrUnexpectedEOF): // the run ended while it wrote
			if _, err := f.Seek(whole, io.SeekStart); err != nil {
				return nil, err
			}
			return l, f.Truncate(whole)
		case err != nil:
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		if line.Failed {
			l.failed = append(l.failed, line.Plan)
		} else {
			l.known[line.Plan] = line
		}
	}
}

func (l *ledger) keep(line ledgerLine) error {
	if l == nil {
		return nil
	}
	raw, err := json.Marshal(line)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	_, err = l.file.Write(append(raw, '\n'))
	return err
}

// remaining are the plans that have not ended in an earlier run; those that have are counted as
// they ended.
func (l *ledger) remaining(plans []trial, count func(name string, e ending, took time.Duration)) []trial {
	if l == nil {
		return plans
	}
	var left []trial
	for _, p := range plans {
		if line, ended := l.known[p.name]; ended {
			count(p.name, ending{met: line.Met, unread: line.Unread, writes: line.Writes}, line.Took)
		} else {
			left = append(left, p)
		}
	}
	return left
}
