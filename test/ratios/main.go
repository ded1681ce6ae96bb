// Command ratios reads the output of `go test -bench` and prints one table: each figure beside
// its budget, and what users would pick instead as a multiple of ours.
package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"text/tabwriter"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "ratios:", err)
		os.Exit(1)
	}
}

// result is one benchmark: its path, and its figures by unit.
type result struct {
	name    string
	figures map[string]float64
}

func run(in io.Reader, out io.Writer) error {
	results, failed, err := read(in)
	if err != nil {
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "benchmark\tcpu\tper series\tB/op\tallocs/op\tagainst gpumeter\tother")
	for _, r := range results {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.name, cpu(r), figure(r, "cpu-ns/series", "%.0f ns"),
			figure(r, "B/op", "%.0f"), figure(r, "allocs/op", "%.0f"), against(r, results), others(r))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if failed != "" {
		return fmt.Errorf("a benchmark failed:\n%s", failed)
	}
	if len(results) == 0 {
		return fmt.Errorf("no benchmark in the input")
	}
	return nil
}

// read takes the benchmark lines, and those that tell of a failure.
func read(in io.Reader) (results []result, failed string, err error) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "FAIL") || strings.HasPrefix(line, "--- FAIL") || strings.HasPrefix(line, "panic:") {
			failed += line + "\n"
		}
		fields := strings.Fields(line)
		if len(fields) < 4 || !strings.HasPrefix(fields[0], "Benchmark") {
			continue
		}
		r := result{name: strings.TrimPrefix(fields[0], "Benchmark"), figures: map[string]float64{}}
		if i := strings.LastIndexByte(r.name, '-'); i > 0 { // -2: the number of processors
			if _, err := strconv.Atoi(r.name[i+1:]); err == nil {
				r.name = r.name[:i]
			}
		}
		for i := 2; i+1 < len(fields); i += 2 {
			n, err := strconv.ParseFloat(fields[i], 64)
			if err != nil {
				return nil, "", fmt.Errorf("%q: %w", line, err)
			}
			r.figures[fields[i+1]] = n
		}
		results = append(results, r)
	}
	return results, failed, lines.Err()
}

// cpu is the processor time where the benchmark measures it, else the time on the clock.
func cpu(r result) string {
	if n, ok := r.figures["cpu-ns/op"]; ok {
		return fmt.Sprintf("%.1f µs", n/1e3)
	}
	return figure(r, "ns/op", "%.0f ns (clock)")
}

func figure(r result, unit, format string) string {
	n, ok := r.figures[unit]
	if !ok {
		return ""
	}
	return fmt.Sprintf(format, n)
}

// against is how many times the processor time of gpumeter's own way this one takes: the sibling
// of the same path that ends in /gpumeter.
func against(r result, all []result) string {
	i := strings.LastIndexByte(r.name, '/')
	for _, own := range all {
		if i > 0 && own.name == r.name[:i]+"/gpumeter" && own.figures["cpu-ns/op"] > 0 {
			return fmt.Sprintf("%.1f ×", r.figures["cpu-ns/op"]/own.figures["cpu-ns/op"])
		}
	}
	return ""
}

// others are the figures of units no column shows.
func others(r result) string {
	var b strings.Builder
	for _, unit := range []string{"MiB-resident", "MB"} {
		b.WriteString(figure(r, unit, "%.1f "+strings.ReplaceAll(unit, "-", " ")))
	}
	return b.String()
}
