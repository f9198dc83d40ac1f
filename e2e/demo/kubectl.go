package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// kubectl runs the kubectl of this machine, or, where there is none, the one that every kind node
// has.
type kubectl struct {
	command    []string // that kubectl itself is
	kubeconfig string
}

func findKubectl(kubeconfig string) kubectl {
	if _, err := exec.LookPath("kubectl"); err == nil {
		return kubectl{command: []string{"kubectl", "--kubeconfig=" + kubeconfig}, kubeconfig: kubeconfig}
	}
	return kubectl{command: []string{"docker", "exec", "--interactive", name + "-control-plane", "kubectl"}, kubeconfig: kubeconfig}
}

// setup is what a person types so that kubectl means this cluster.
func (k kubectl) setup() string {
	if k.command[0] == "kubectl" {
		return "export KUBECONFIG=" + k.kubeconfig
	}
	return fmt.Sprintf("alias kubectl='%s'    (or your own, with KUBECONFIG=%s)", strings.Join(k.command, " "), k.kubeconfig)
}

// output of what waits no longer than patience by its own account.
func (k kubectl) output(ctx context.Context, stdin []byte, args ...string) (string, error) {
	const most = patience + time.Minute
	ctx, cancel := context.WithTimeoutCause(ctx, most, fmt.Errorf("not done within %s", most))
	defer cancel()
	return outputOf(ctx, k.cmd(ctx, stdin, args...))
}

// show runs it as a person would see it.
func (k kubectl) show(ctx context.Context, args ...string) error {
	fmt.Printf("     $ kubectl %s\n", quoted(args))
	out, err := k.output(ctx, nil, args...)
	fmt.Print(indented(out))
	return err
}

// ending shows the last lines of what it prints.
func (k kubectl) ending(ctx context.Context, args ...string) error {
	const enough = 15
	fmt.Printf("     $ kubectl %s | tail -%d\n", quoted(args), enough)
	out, err := k.output(ctx, nil, args...)
	lines := strings.SplitAfter(out, "\n")
	fmt.Print(indented(strings.Join(lines[max(0, len(lines)-1-enough):], "")))
	return err
}

func (k kubectl) cmd(ctx context.Context, stdin []byte, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, k.command[0], append(k.command[1:len(k.command):len(k.command)], args...)...)
	cmd.Stdin = bytes.NewReader(stdin)
	return cmd
}

// investigate prints what a person would look at first after a failure, as far as it can be had.
func (k kubectl) investigate(ctx context.Context, clues [][]string) {
	if k.command == nil {
		return
	}
	const enough = 25 * time.Second
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), enough) // the demo's own may have ended
	defer cancel()
	fmt.Println("\nIt did not go as it should. What there is to see:")
	for _, args := range clues {
		fmt.Println()
		if err := k.ending(ctx, args...); err != nil {
			fmt.Printf("     %v\n", err)
		}
	}
}

var operatorClues = [][]string{
	{"get", "pods", "--namespace=quorate-system", "--output=wide"},
	{"get", "events", "--namespace=quorate-system", "--sort-by=.lastTimestamp"},
	{"logs", "deployment/quorate", "--namespace=quorate-system"},
}

var etcdClues = [][]string{
	{"get", "etcdcluster,pods,pvc"},
	{"get", "etcdcluster", `--output=jsonpath={range .items[*].status.conditions[*]}{.type}={.status} {.reason}: {.message}{"\n"}{end}`},
	{"get", "events", "--sort-by=.lastTimestamp"},
}

// output runs a command whose output matters only when it fails.
func output(ctx context.Context, name string, args ...string) (string, error) {
	return outputOf(ctx, exec.CommandContext(ctx, name, args...))
}

func outputOf(ctx context.Context, cmd *exec.Cmd) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return stdout.String(), fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, indented(stdout.String()+stderr.String()))
	}
	return stdout.String(), nil
}

// quoted is a command line for a shell.
func quoted(args []string) string {
	words := make([]string, 0, len(args))
	for _, word := range args {
		if strings.ContainsAny(word, " {}\"") {
			word = "'" + word + "'"
		}
		words = append(words, word)
	}
	return strings.Join(words, " ")
}

func indented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if strings.TrimSpace(line) != "" {
			b.WriteString("     ")
		}
		b.WriteString(line)
	}
	return b.String()
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
