package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// layer is what one layer of the tests has cost, and how it ended.
type layer struct {
	Name                    string
	Took                    time.Duration
	Busy                    float64 // share of the processors' time, of everything on this machine; 0 is unknown
	Passed, Failed, Skipped int
	Slowest                 []slow
	Failure                 string `json:",omitempty"`
}

func (l *layer) print(to io.Writer) {
	fmt.Fprintf(to, "\nlayer %s: %s, %s\n", l.Name, l.Took.Round(time.Second), l.busy())
	for _, s := range l.Slowest {
		fmt.Fprintf(to, "  %6.1f s  %s\n", s.Took.Seconds(), s.Name)
	}
	if l.Passed+l.Failed+l.Skipped > 0 {
		fmt.Fprintf(to, "%s: %d passed, %d failed, %d skipped\n", l.Name, l.Passed, l.Failed, l.Skipped)
	}
	fmt.Fprintln(to)
}

func (l *layer) busy() string {
	if l.Busy == 0 {
		return "processors not measured"
	}
	return fmt.Sprintf("%.0f %% of %d processors", 100*l.Busy, runtime.NumCPU())
}

func (l *layer) append(file string) error {
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

// printSummary prints the layers in a file as a table of Markdown. It fails where one of them did.
func printSummary(to io.Writer, file string) (int, error) {
	f, err := os.Open(file)
	if err != nil {
		return 1, err
	}
	defer func() { _ = f.Close() }() // it was only read
	code, sum := 0, layer{Name: "all"}
	table := tabwriter.NewWriter(to, 0, 0, 1, ' ', tabwriter.Debug)
	row := func(l layer) {
		result := "passed"
		if l.Failure != "" {
			result = "**failed**"
		}
		fmt.Fprintf(table, "\t %s\t %s\t %.0f %%\t %d\t %d\t %s\t\n", l.Name, l.Took.Round(time.Second), 100*l.Busy, l.Passed+l.Failed, l.Skipped, result)
	}
	fmt.Fprintf(table, "\t layer\t time\t processors\t tests\t skipped\t result\t\n\t ---\t ---:\t ---:\t ---:\t ---:\t ---\t\n")
	for lines := json.NewDecoder(f); lines.More(); {
		var l layer
		if err := lines.Decode(&l); err != nil {
			return 1, fmt.Errorf("read %s: %w", file, err)
		}
		row(l)
		if l.Failure != "" {
			code, sum.Failure = 1, l.Failure
		}
		sum.Busy = (sum.Busy*sum.Took.Seconds() + l.Busy*l.Took.Seconds()) / max(1, (sum.Took+l.Took).Seconds())
		sum.Took += l.Took
		sum.Passed, sum.Failed, sum.Skipped = sum.Passed+l.Passed, sum.Failed+l.Failed, sum.Skipped+l.Skipped
	}
	row(sum)
	return code, table.Flush()
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
