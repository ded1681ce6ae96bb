// Command gen writes every generated file of this repository from spec/.
//
// With -check it writes nothing, and fails when a file is missing, stale or orphaned.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gpumeter/gpumeter/gen/bundle"
	"github.com/gpumeter/gpumeter/gen/emit"
	"github.com/gpumeter/gpumeter/gen/emit/catalogue"
	"github.com/gpumeter/gpumeter/gen/emit/chart"
	"github.com/gpumeter/gpumeter/gen/emit/compat"
	"github.com/gpumeter/gpumeter/gen/emit/dashboard"
	"github.com/gpumeter/gpumeter/gen/emit/fieldtable"
	"github.com/gpumeter/gpumeter/gen/emit/gostruct"
	"github.com/gpumeter/gpumeter/gen/emit/health"
	"github.com/gpumeter/gpumeter/gen/emit/jsonschema"
	"github.com/gpumeter/gpumeter/gen/emit/markdown"
	"github.com/gpumeter/gpumeter/gen/emit/mixin"
	"github.com/gpumeter/gpumeter/gen/emit/promrules"
	"github.com/gpumeter/gpumeter/gen/emit/runbook"
	"github.com/gpumeter/gpumeter/gen/emit/semconv"
	"github.com/gpumeter/gpumeter/gen/emit/xids"
	"github.com/gpumeter/gpumeter/gen/resolve"
	"github.com/gpumeter/gpumeter/gen/schema"
)

// emitters is every output. A new one is a folder under emit and a line here.
var emitters = []emit.Emitter{
	gostruct.Emitter,
	fieldtable.Emitter,
	jsonschema.Emitter,
	markdown.Emitter,
	catalogue.Emitter,
	semconv.Emitter,
	compat.Emitter,
	xids.Emitter,
	health.Emitter,
	promrules.Emitter,
	dashboard.Emitter,
	runbook.Emitter,
	mixin.Emitter,
	chart.Emitter,
}

func main() {
	check := flag.Bool("check", false, "write nothing; fail when a generated file is missing, stale or orphaned")
	root := flag.String("root", ".", "the repository")
	flag.Usage = usage
	flag.Parse()
	if flag.NArg() > 0 {
		fmt.Fprintf(os.Stderr, "unexpected argument %q\n", flag.Arg(0))
		usage()
		os.Exit(2)
	}
	if err := run(*root, emitters, *check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		if _, ok := errors.AsType[schema.Faults](err); ok {
			os.Exit(2) // the spec is wrong, not what was made of it
		}
		os.Exit(1)
	}
}

func usage() {
	out := flag.CommandLine.Output()
	fmt.Fprintln(out, "usage: go run ./gen [-check] [-root DIR]")
	flag.PrintDefaults()
	fmt.Fprintln(out, "emitters:")
	for _, e := range emitters {
		fmt.Fprintf(out, "  %-12s %s (%s)\n", e.Name, e.Doc, strings.Join(e.Owns, " "))
	}
	fmt.Fprintln(out, "and at last, of what they made and the mixin: what the binary carries (bundle.zip)")
}

// run renders everything, packs the bundle, and only then compares or writes.
func run(root string, emitters []emit.Emitter, check bool) error {
	spec, err := schema.Load(os.DirFS(filepath.Join(root, "spec")))
	if err != nil {
		return err
	}
	model, err := resolve.Resolve(spec)
	if err != nil {
		return err
	}
	tree := tree{root: root, want: map[string][]byte{}}
	for _, e := range emitters {
		files, err := e.Run(model)
		if err != nil {
			return fmt.Errorf("emitter %s: %w", e.Name, err)
		}
		if err := tree.add(e, files); err != nil {
			return err
		}
	}
	packed, err := bundle.Make(os.DirFS(root), tree.want)
	if err != nil {
		return err
	}
	tree.want[packed.Path] = packed.Data
	if check {
		return tree.check()
	}
	return tree.write()
}
