package process

import (
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// The budget is 1 µs for the longest usual path. Beside ours stands what exporters usually do: one
// regular expression for each sort of id.
func BenchmarkParse(b *testing.B) {
	text := "0::/kubepods.slice/kubepods-burstable.slice/" + s + "/cri-containerd-" + cid + ".scope\n"
	for _, way := range []struct {
		name  string
		parse func(string) Place
	}{{"gpumeter", func(text string) Place { return Parse(text, nil) }}, {"regexp", byExpressions()}} {
		parse := way.parse
		if got := parse(text); got.Pod != uid || got.Container != cid {
			b.Fatalf("%s: %+v", way.name, got)
		}
		b.Run(way.name, func(b *testing.B) {
			b.ReportAllocs()
			start := processorTime(b)
			for range b.N {
				parse(text)
			}
			b.ReportMetric(float64(processorTime(b)-start)/float64(b.N), "cpu-ns/op")
		})
	}
}

// byExpressions returns a parser that knows of pods, containers and jobs.
func byExpressions() func(string) Place {
	pod := regexp.MustCompile(`pod([0-9a-f]{8}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{4}[-_][0-9a-f]{12})`)
	container := regexp.MustCompile(`[0-9a-f]{64}`)
	job := regexp.MustCompile(`/job_([0-9]+)`)
	return func(text string) (p Place) {
		if m := pod.FindStringSubmatch(text); m != nil {
			p.Pod = strings.ReplaceAll(m[1], "_", "-")
		}
		p.Container = container.FindString(text)
		if m := job.FindStringSubmatch(text); m != nil {
			p.Job = m[1]
		}
		return p
	}
}

// processorTime is what this process has used so far, in nanoseconds.
func processorTime(b *testing.B) int64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return u.Utime.Nano() + u.Stime.Nano()
}
