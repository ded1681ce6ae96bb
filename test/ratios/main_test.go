package main

import (
	"strings"
	"testing"
)

const sample = `goos: linux
BenchmarkPage/text/1600/gpumeter-2   1438   190000 ns/op   100000 cpu-ns/op   62.5 cpu-ns/series   972 B/op   15 allocs/op
BenchmarkPage/text/1600/const-metric-2   18   200000 ns/op   9500000 cpu-ns/op   5937 cpu-ns/series   4037446 B/op   79936 allocs/op
BenchmarkBinary-2   1000000   0.1 ns/op   17.20 MB
PASS
`

func TestTable(t *testing.T) {
	var out strings.Builder
	if err := run(strings.NewReader(sample), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Page/text/1600/gpumeter ", "1.0 ×", "95.0 ×", "62 ns", "79936", "17.2 MB"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the table lacks %q:\n%s", want, out.String())
		}
	}
}

func TestFailuresAreNotSwallowed(t *testing.T) {
	for name, in := range map[string]string{
		"a failed benchmark": sample + "--- FAIL: BenchmarkX\n",
		"a failed package":   "FAIL\tgithub.com/x [build failed]\n",
		"nothing":            "PASS\n",
		"a broken line":      "BenchmarkX-2 1 abc ns/op\n",
	} {
		if err := run(strings.NewReader(in), new(strings.Builder)); err == nil {
			t.Errorf("%s passed", name)
		}
	}
}
