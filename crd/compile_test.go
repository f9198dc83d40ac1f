package crd

import (
	"runtime"
	"testing"
)

// BenchmarkCompile is what the first object of a kind costs besides, and what stays in memory.
func BenchmarkCompile(b *testing.B) {
	var before, after runtime.MemStats
	var kept []*Kind
	runtime.GC()
	runtime.ReadMemStats(&before)
	for b.Loop() {
		kind, err := compile("etcdclusters")
		if err != nil {
			b.Fatal(err)
		}
		kept = append(kept, kind)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(len(kept)), "B-kept/op")
	runtime.KeepAlive(kept)
}
