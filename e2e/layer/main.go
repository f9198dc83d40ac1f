// Command layer runs one layer of the tests and says what it cost: its time, the share of it that
// the processors worked, and its five slowest tests. A layer that runs no test fails.
//
//	go run ./e2e/layer -name env -record bin/layers.json -- go test -tags env ./reconcile
//	go run ./e2e/layer -summary bin/layers.json
//	go run ./e2e/layer -parallel
//
// Of a `go test` it prints what failed in full, the attributes that tests set (testing.T.Attr), and
// every test that was skipped. With -v it prints everything. Any other command runs as it is.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"
)

func main() {
	code, err := run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
	}
	os.Exit(code)
}

func run() (int, error) {
	name := flag.String("name", "", "name of the layer")
	record := flag.String("record", "", "file to which the layer's figures are appended")
	code := flag.String("code", "", "name of the code that the layer tests; its figures have it, and the day")
	summarize := flag.Bool("summary", false, "print the figures that these files have as a table, and run nothing")
	parallel := flag.Bool("parallel", false, "print how many tests this machine carries at a time, for the flag -parallel of go test, and run nothing")
	title := flag.String("title", "", "with -summary: what was run")
	layers := flag.String("layers", "", "with -summary: names of layers that must be there; one that is missing counts as failed")
	into := flag.String("into", "", "with -summary: a Markdown file to write them into as well, between "+summaryBegin+" and "+summaryEnd)
	ledger := flag.String("ledger", "", "with -summary: a file with the last figures of every layer; those of these files are written to it, and the table is of all that it has")
	flag.Parse()
	switch {
	case *parallel:
		printParallel()
		return 0, nil
	case *summarize:
		return summary{
			title: *title, wanted: strings.Fields(*layers), document: *into, ledger: *ledger,
		}.of(os.Stdout, flag.Args())
	case *name == "" || flag.NArg() == 0:
		return 2, errors.New("a name and a command are missing: layer -name NAME -- COMMAND")
	}
	// An interrupt reaches the command too; this process waits for it to end.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()

	l := layer{Name: *name}
	begun, worked := time.Now(), processorTime()
	if *code != "" {
		l.Code = *code + ", " + begun.Format(time.DateOnly)
	}
	err := l.execute(ctx, flag.Args())
	l.Took = time.Since(begun)
	if now := processorTime(); now.all > worked.all {
		l.Busy = float64(now.busy-worked.busy) / float64(now.all-worked.all)
	}
	if err != nil {
		l.Failure = err.Error()
	}
	fmt.Println(&l)
	if *record != "" {
		if err := l.append(*record); err != nil {
			return 1, err
		}
	}
	if err != nil {
		return 1, fmt.Errorf("layer %s: %w", *name, err)
	}
	return 0, nil
}

// execute the command. What it prints is passed on, except that of a `go test`, which is judged.
func (l *layer) execute(ctx context.Context, args []string) error {
	isTest := len(args) > 1 && args[0] == "go" && args[1] == "test"
	if isTest {
		args = slices.Insert(slices.Clone(args), 2, "-json")
	}
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	const grace = time.Minute // for tests to remove their clusters and processes
	cmd.Cancel, cmd.WaitDelay = func() error { return cmd.Process.Signal(os.Interrupt) }, grace
	cmd.Stderr = os.Stderr
	if !isTest {
		cmd.Stdout = os.Stdout
		return cmd.Run()
	}
	events, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	j := newJudge(os.Stdout, slices.Contains(args, "-v"))
	readErr := j.read(events)
	waitErr := cmd.Wait()
	l.Passed, l.Failed, l.Skipped, l.Slowest, l.Said = j.count("pass"), j.count("fail"), j.count("skip"), j.slowest(5), j.attributes
	l.Broken = j.broken
	return errors.Join(waitErr, readErr, j.verdict(args))
}
