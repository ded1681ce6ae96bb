package gpu

import (
	_ "embed" // the programs that are compiled where the test runs
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

//go:embed calls/calls.c
var callsSource string

// timing is one call of the driver's: how long it took, of fifty times.
type timing struct {
	call, where         string
	code                int
	least, median, most float64 // microseconds
}

// slowest is how long a call within a scrape may take: a page of eight GPUs with fifty calls each
// must be there well within the time a scrape has.
const slowest = 5000. // microseconds

func (c timing) slow() bool { return c.where == "scrape" && c.code == 0 && c.median > slowest }

// compiled compiles a program; the test is skipped where there is no compiler.
func compiled(t testing.TB, name, source string, flags ...string) string {
	t.Helper()
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc to compile " + name + " with")
	}
	dir := t.TempDir()
	program := filepath.Join(dir, name)
	if err := os.WriteFile(program+".c", []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"-std=gnu11", "-O2", "-Wall", "-Werror"}, flags...)
	build := exec.Command(gcc, append(args, "-o", program, program+".c", "-ldl")...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	return program
}

// timings measures the calls of the first GPU.
func (m *machine) timings(program, library, device, links string) ([]timing, error) {
	text, err := m.output(program, library, "0", device, links)
	if err != nil {
		return nil, err
	}
	var out []timing
	for line := range strings.Lines(text) {
		w := strings.Split(strings.TrimSpace(line), "\t")
		if len(w) != 6 {
			return nil, fmt.Errorf("calls: %q", line)
		}
		c := timing{call: w[0], where: w[1]}
		if c.code, err = strconv.Atoi(w[2]); err != nil {
			return nil, fmt.Errorf("calls: %q: %w", line, err)
		}
		for i, to := range []*float64{&c.least, &c.median, &c.most} {
			if *to, err = strconv.ParseFloat(w[3+i], 64); err != nil {
				return nil, fmt.Errorf("calls: %q: %w", line, err)
			}
		}
		out = append(out, c)
	}
	return out, nil
}

var fieldID = regexp.MustCompile(`\bid: (\d+)`)

// fieldIDs are the numbered fields that the exporter asks of a device, and of its links, as its own
// table has them.
func fieldIDs(t testing.TB) (device, links string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(root(t), "exporter", "source", "nvml", "zz_fields.go"))
	if err != nil {
		t.Fatal(err)
	}
	of, ofLinks, ok := strings.Cut(string(raw), "var linkFields")
	if !ok {
		t.Fatal("zz_fields.go has no linkFields")
	}
	ids := func(text string) string {
		var out []string
		for _, m := range fieldID.FindAllStringSubmatch(text, -1) {
			out = append(out, m[1])
		}
		return strings.Join(out, ",")
	}
	return ids(of), ids(ofLinks)
}
