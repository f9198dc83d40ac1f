//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// ran is a process of a container: for how long it ran, and the most memory that was its own at
// once. Files that it reads, writes or maps are the system's to keep in memory or not, and are not
// counted (RssAnon).
type ran struct {
	args   []string
	begun  time.Time
	took   time.Duration
	memory int64
}

// lookEvery is how often processes are looked at: their times are right to that.
const lookEvery = 20 * time.Millisecond

// observe the processes of containers on this machine whose command line has all of these words,
// until stop is called, which waits for them to end. Kind's nodes are containers of this machine,
// so that it sees all that runs in them.
func observe(t *testing.T, words ...string) (stop func() []ran) {
	t.Helper()
	o := &observer{words: words, running: map[string]*ran{}, others: map[string]time.Time{}}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for again := time.NewTicker(lookEvery); ; {
			o.look(time.Now())
			if ctx.Err() != nil && len(o.running) == 0 {
				again.Stop()
				return
			}
			<-again.C
		}
	}()
	return func() []ran {
		t.Helper()
		cancel()
		select {
		case <-ended:
		case <-time.After(patience):
			t.Fatalf("waited %s for the processes with %q to end", patience, words)
		}
		if len(o.ended) == 0 {
			t.Fatalf("this machine has not seen a process with %q: the benchmark takes a Docker that runs on it", words)
		}
		return o.ended
	}
}

type observer struct {
	words   []string
	running map[string]*ran
	ended   []ran
	others  map[string]time.Time // since when they are known
}

// becoming is how long a process may take from its beginning in the container's runtime to its own
// program.
const becoming = 5 * time.Second

func (o *observer) look(now time.Time) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return // nothing is seen then, and that is told
	}
	there := map[string]bool{}
	for _, entry := range entries {
		pid := entry.Name()
		if pid[0] < '0' || pid[0] > '9' {
			continue
		}
		there[pid] = true
		if p := o.running[pid]; p != nil {
			p.memory = max(p.memory, anonymous(pid))
			continue
		}
		since, known := o.others[pid]
		if !known {
			o.others[pid] = now
		} else if now.Sub(since) > becoming {
			continue
		}
		if line, _ := os.ReadFile("/proc/" + pid + "/cmdline"); o.means(line) {
			delete(o.others, pid)
			o.running[pid] = &ran{args: strings.Split(string(bytes.TrimRight(line, "\x00")), "\x00"), begun: now, memory: anonymous(pid)}
		}
	}
	for pid := range o.others {
		if !there[pid] {
			delete(o.others, pid) // another process may have its number
		}
	}
	for pid, p := range o.running {
		if line, _ := os.ReadFile("/proc/" + pid + "/cmdline"); !o.means(line) { // one that has ended, and was not waited for, has none
			p.took = now.Sub(p.begun)
			o.ended = append(o.ended, *p)
			delete(o.running, pid)
		}
	}
}

func (o *observer) means(line []byte) bool {
	for _, word := range o.words {
		if !bytes.Contains(line, []byte(word)) {
			return false
		}
	}
	return true
}

// anonymous is the memory of a process that is no file's, in bytes.
func anonymous(pid string) int64 {
	raw, _ := os.ReadFile("/proc/" + pid + "/status") // it may have ended
	_, rest, _ := strings.Cut(string(raw), "RssAnon:")
	rest, _, _ = strings.Cut(strings.TrimSpace(rest), " ")
	kib, _ := strconv.ParseInt(rest, 10, 64)
	return kib << 10
}

// agents are the processes of an agent by their command, such as save.
func agents(t *testing.T, processes []ran) map[string]ran {
	t.Helper()
	commands := map[string]ran{}
	for _, p := range processes {
		if len(p.args) < 3 {
			t.Fatalf("a process of an agent with the arguments %q", p.args)
		}
		most, is := commands[p.args[2]]
		if !is || p.memory > most.memory {
			commands[p.args[2]] = p
		}
	}
	return commands
}

func mebibytes(bytes int64) string { return fmt.Sprintf("%d MiB", (bytes+1<<20-1)>>20) }
