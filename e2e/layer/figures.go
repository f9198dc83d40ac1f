package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// layer is what one layer of the tests has cost, and how it ended.
type layer struct {
	Name                    string
	Code                    string `json:",omitempty"` // which code it was, and when
	Took                    time.Duration
	Busy                    float64 // share of the processors' time, of everything on this machine; 0 is unknown
	Passed, Failed, Skipped int
	Slowest                 []slow
	Said                    []string `json:",omitempty"` // the attributes of its tests
	Failure                 string   `json:",omitempty"`
	Broken                  []string `json:",omitempty"` // the first words of the tests that failed
}

func (l *layer) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\nlayer %s: %s, %s\n", l.Name, l.Took.Round(time.Second), l.busy())
	for _, s := range l.Slowest {
		fmt.Fprintf(&b, "  %6.1f s  %s\n", s.Took.Seconds(), s.Name)
	}
	if l.Passed+l.Failed+l.Skipped > 0 {
		fmt.Fprintf(&b, "%s: %d passed, %d failed, %d skipped\n", l.Name, l.Passed, l.Failed, l.Skipped)
	}
	return b.String()
}

func (l *layer) busy() string {
	if l.Busy == 0 {
		return "processors not measured"
	}
	return fmt.Sprintf("%.0f %% of %d processors", 100*l.Busy, runtime.NumCPU())
}

func (l *layer) append(file string) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	if err := json.NewEncoder(f).Encode(l); err != nil {
		_ = f.Close() // the first error says more
		return err
	}
	return f.Close()
}

// ticks of all processors of this machine, as proc_stat(5) counts them.
type ticks struct{ busy, all uint64 }

// processorTime is zero where the system does not tell. It counts what runs in containers as well,
// which are no children of this process.
func processorTime() ticks {
	raw, err := os.ReadFile("/proc/stat")
	if err != nil {
		return ticks{}
	}
	line, _, _ := strings.Cut(string(raw), "\n")
	var t ticks
	const idle, iowait, steal, guest = 4, 5, 8, 9
	for n, field := range strings.Fields(line) {
		count, err := strconv.ParseUint(field, 10, 64)
		if err != nil || n >= guest { // a guest's time is in the user's
			continue
		}
		t.all += count
		if n != idle && n != iowait && n != steal {
			t.busy += count
		}
	}
	return t
}
