// Command gpumeter serves what a node's accelerators do, and whose work is on them.
package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"runtime/debug"

	"github.com/gpumeter/gpumeter"
	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/definition"
	"github.com/gpumeter/gpumeter/exporter/self"
	"github.com/gpumeter/gpumeter/exporter/source/nvml"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Set by the linker; see the Makefile.
var (
	version  = "dev"
	revision = ""
)

func main() {
	reduceFootprint()
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// Exit codes beside 0; the README lists them.
const (
	exitFailed = 1 // the work failed
	exitUsage  = 2 // the command line, the environment or the config file is wrong
	exitStale  = 3 // only a new process can read a source again
)

// run returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	c, command, err := config.Parse(args, stdout)
	switch {
	case errors.Is(err, config.ErrHelp):
		return 0
	case err != nil:
		printErrors(err, stderr)
		return exitUsage
	}
	log := newLogger(c.Log, stderr)
	refuse := func(err error) int { return printErrors(c.Locate(err), stderr) }
	switch command {
	case "version":
		b := build()
		fmt.Fprintf(stdout, "gpumeter %s (%s, %s, %s/%s)\n", b.Version, b.Revision, b.GoVersion, runtime.GOOS, runtime.GOARCH)
		return 0
	case "spec":
		var rules fs.FS
		if rules, err = gpumeter.Bundle(); err == nil {
			err = definition.Write(stdout, definition.Sources{Spec: gpumeter.Spec(), Rules: rules, Metrics: telemetry.Descs()}, c.Spec.Names, c.Spec.Format)
		}
	case "bundle":
		var root fs.FS
		if root, err = gpumeter.Bundle(); err == nil {
			err = unpack(c.Bundle, root, stdout)
		}
	case "completion":
		err = config.Completion(stdout, c.Completion.Shell)
	case "nvml-probe":
		err = nvml.Probe(c.NVMLProbe.NVMLLibrary, os.Stdin, stdout)
	case "man":
		err = config.Manual(stdout, build().Version, c.Man.Date)
	case "once":
		warnOfVariables(os.Environ(), log)
		if c.Log.Level == "info" {
			c.Log.Level = "error" // one line says what goes wrong
		}
		return once(c.Once, stdout, stderr, newLogger(c.Log, stderr), refuse)
	case "doctor":
		warnOfVariables(os.Environ(), log)
		if c.Log.Level == "info" {
			c.Log.Level = "error" // the report tells of what goes wrong
		}
		return examine(c.Doctor, stdout, stderr, newLogger(c.Log, stderr), refuse)
	default:
		warnOfVariables(os.Environ(), log)
		return serve(c.Serve, log, refuse)
	}
	switch {
	case errors.Is(err, definition.ErrName), errors.Is(err, errAsked):
		printErrors(err, stderr)
		return exitUsage
	case err != nil:
		return printErrors(err, stderr)
	}
	return 0
}

// build says what was built; a plain `go build` knows its commit.
func build() self.Build {
	b := self.Build{Version: version, Revision: revision, GoVersion: runtime.Version()}
	if info, ok := debug.ReadBuildInfo(); ok && b.Revision == "" {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = s.Value
			}
		}
	}
	if b.Revision == "" {
		b.Revision = "unknown"
	}
	return b
}

func newLogger(c config.Log, w io.Writer) *slog.Logger {
	var level slog.Level
	level.UnmarshalText([]byte(c.Level)) //nolint:errcheck // the parser let only known levels through
	options := &slog.HandlerOptions{Level: level}
	if c.Format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
