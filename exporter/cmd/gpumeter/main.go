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

// Exit codes beside 0; the README tells them.
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
		fmt.Fprintf(stderr, "gpumeter: %v\n", err)
		return exitUsage
	}
	switch command {
	case "version":
		b := build()
		fmt.Fprintf(stdout, "gpumeter %s (%s, %s, %s/%s)\n", b.Version, b.Revision, b.GoVersion, runtime.GOOS, runtime.GOARCH)
		return 0
	case "spec":
		err = definition.Write(stdout, gpumeter.Spec(), telemetry.Descs(), c.Spec.Names, c.Spec.Format)
	case "bundle":
		var root fs.FS
		if root, err = gpumeter.Bundle(); err == nil {
			err = unpack(c.Bundle, root, stdout)
		}
	case "completion":
		err = config.Completion(stdout, c.Completion.Shell)
	case "man":
		err = config.Manual(stdout, build().Version, c.Man.Date)
	case "once":
		if c.Log.Level == "info" { // who reads a table does not want to know how it came about
			c.Log.Level = "warn"
		}
		return once(c.Once, stdout, newLogger(c.Log, stderr))
	case "doctor":
		if c.Log.Level == "info" {
			c.Log.Level = "error" // the report tells of what goes wrong
		}
		return examine(c.Doctor, stdout, newLogger(c.Log, stderr))
	default:
		return serve(c.Serve, newLogger(c.Log, stderr))
	}
	switch {
	case errors.Is(err, definition.ErrName), errors.Is(err, errAsked):
		fmt.Fprintf(stderr, "gpumeter: %v\n", err)
		return exitUsage
	case err != nil:
		fmt.Fprintf(stderr, "gpumeter: %v\n", err)
		return exitFailed
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
