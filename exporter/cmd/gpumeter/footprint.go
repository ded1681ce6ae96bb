package main

import (
	"os"
	"runtime"
	"runtime/debug"
)

// gcPercent makes the garbage collector run when the heap has grown by a third. The live heap of a node
// with 8 GPUs is 3 MB, so a collection takes little time, and garbage is what most of the rest is.
const gcPercent = 35

// reduceFootprint keeps the exporter within its memory budget (test/budget) and within the limit of its
// cgroup, near which garbage is collected sooner. GOGC overrides the percentage, GOMEMLIMIT the limit. Nothing reads the runtime's memory profile, whose table takes 1.4 MB.
func reduceFootprint() {
	runtime.MemProfileRate = 0
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	if limit, ok := memoryLimit("/"); ok && os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(float64(limit) * memoryShare))
	}
}
