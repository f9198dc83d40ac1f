package main

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"time"
)

// How many tests run at a time. Tests of operators wait most of their time, so that more of them
// run than there are processors; on a slow machine too many of them make each other time out.

// The least were as many as a machine of a quarter of the reference's speed carries (2026-11-29);
// the most are what one API server was seen to carry.
const (
	leastTests = 6
	mostTests  = 12
)

// reference is the speed, as documentsPerSecond measures it, of the processor of which two carry
// nine tests. Two of 225,000 worked 90 % of the time with twelve in the layer env, and 58 % with
// six (2026-11-29).
const reference = 150_000

// testsAtOnce is how many tests so many processors of that speed carry.
func testsAtOnce(processors, documentsPerSecond int) int {
	share := float64(processors*documentsPerSecond) / (2 * reference)
	return min(max(leastTests, 4+int(5*share)), mostTests)
}

// documentsPerSecond is how many small JSON documents one processor writes and reads in a second,
// which is what an API server and its clients spend most of their time on. The best of many short
// tries counts, so that other work on the machine does not.
func documentsPerSecond() int {
	document := map[string]any{
		"metadata": map[string]any{"name": "db-0", "labels": map[string]any{"app": "etcd", "cluster": "db"}},
		"spec":     map[string]any{"containers": []any{map[string]any{"name": "etcd", "args": []any{"--name=db-0", "--data-dir=/var"}}}},
	}
	const tries, each = 50, 10 * time.Millisecond
	best := 0
	for range tries {
		n := 0
		for end := time.Now().Add(each); time.Now().Before(end); n++ {
			raw, err := json.Marshal(document)
			if err != nil {
				panic(err) // it is a constant
			}
			var read map[string]any
			if err := json.Unmarshal(raw, &read); err != nil {
				panic(err)
			}
		}
		best = max(best, n)
	}
	return best * int(time.Second/each)
}

// printParallel writes the number for `go test -parallel` to standard output, and why it is that
// one to standard error.
func printParallel() {
	processors, speed := runtime.GOMAXPROCS(0), documentsPerSecond()
	n := testsAtOnce(processors, speed)
	fmt.Fprintf(os.Stderr, "%d tests at a time, for %d processors that write and read %d documents in a second\n", n, processors, speed)
	fmt.Println(n)
}
