// Command tally reads go test -json, shows what failed and why, and counts.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	file := flag.String("summary", "", "also write the closing line to this file, together with what another run has counted there")
	flag.Parse()
	n, ok, err := tally(os.Stdin, os.Stdout)
	if err == nil && *file != "" {
		err = record(*file, n)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tally:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// counts are of tests, by how they ended.
type counts struct{ passed, failed, skipped int }

const closing = "%d passed, %d failed, %d skipped"

func (c counts) String() string { return fmt.Sprintf(closing, c.passed, c.failed, c.skipped) }

// record adds counts to those a file has, if it is there.
func record(file string, n counts) error {
	text, err := os.ReadFile(file)
	if err == nil {
		var before counts
		if _, err := fmt.Sscanf(string(text), closing, &before.passed, &before.failed, &before.skipped); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		n = counts{n.passed + before.passed, n.failed + before.failed, n.skipped + before.skipped}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return os.WriteFile(file, []byte(n.String()+"\n"), 0o600)
}

// event is one line of go test -json.
type event struct{ Action, Package, ImportPath, Test, Output string }

// tally copies to out what is said of packages and of failed tests, and returns the counts
// and whether all is well. Subtests count. A test that a dying process took with it failed; a
// package that fails with no test to blame, because it does not build, counts as one failure.
func tally(in io.Reader, out io.Writer) (n counts, ok bool, err error) {
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
	n = counts{count["pass"], count["fail"], count["skip"]}
	fmt.Fprintln(out, n)
	return n, n.failed == 0 && n.passed > 0, lines.Err()
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
