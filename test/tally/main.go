// Command tally reads go test -json, shows what failed and why, and counts.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	file := flag.String("summary", "", "also write the closing line to this file")
	flag.Parse()
	summary, ok, err := tally(os.Stdin, os.Stdout)
	if err == nil && *file != "" {
		err = os.WriteFile(*file, []byte(summary+"\n"), 0o600)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// event is one line of go test -json.
type event struct{ Action, Package, ImportPath, Test, Output string }

// tally copies to out what is said of packages and of failed tests, and returns the closing line
// and whether all is well. Subtests count. A test that a dying process took with it failed; a
// package that fails with no test to blame, because it does not build, counts as one failure.
func tally(in io.Reader, out io.Writer) (summary string, ok bool, err error) {
	count := map[string]int{}
	said := map[[2]string]*strings.Builder{} // by package and test, until it ends
	sick := map[string]bool{}                // packages with a failed test
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			fmt.Fprintln(out, lines.Text()) // not of go test: what make echoes
			continue
		}
		key := [2]string{e.Package, e.Test}
		switch e.Action {
		case "output", "build-output":
			if e.Test == "" {
				fmt.Fprint(out, e.Output)
			} else if b := said[key]; b != nil {
				b.WriteString(e.Output)
			}
		case "run":
			said[key] = &strings.Builder{}
		case "pass", "skip", "fail":
			if e.Test != "" {
				count[e.Action]++
				sick[e.Package] = sick[e.Package] || e.Action == "fail"
				if b := said[key]; b != nil && e.Action != "pass" {
					fmt.Fprint(out, b.String()) // why it failed, or was skipped
				}
				delete(said, key)
			} else if e.Action == "fail" {
				n := unfinished(said, e.Package, out)
				if n == 0 && !sick[e.Package] {
					n = 1
				}
				count["fail"] += n
			}
		}
	}
	summary = fmt.Sprintf("%d passed, %d failed, %d skipped", count["pass"], count["fail"], count["skip"])
	fmt.Fprintln(out, summary)
	return summary, count["fail"] == 0 && count["pass"] > 0, lines.Err()
}

// unfinished shows what the tests said that a dying process took with it.
func unfinished(said map[[2]string]*strings.Builder, pkg string, out io.Writer) int {
	n := 0
	for key, b := range said {
		if key[0] == pkg {
			fmt.Fprint(out, b.String())
			delete(said, key)
			n++
		}
	}
	return n
}
