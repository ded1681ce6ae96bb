package main

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"syscall"

	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/state"
	"github.com/gpumeter/gpumeter/spell"
)

// printErrors prints each error on a line of its own and returns the exit code: exitUsage when one of
// them is a setting that cannot be used, else exitFailed.
func printErrors(err error, stderr io.Writer) int {
	for _, e := range config.Split(err) {
		fmt.Fprintf(stderr, "gpumeter: %v\n", e)
	}
	if _, ok := errors.AsType[*config.SettingError](err); ok {
		return exitUsage
	}
	return exitFailed
}

// warnOfVariables logs each GPUMETER_ variable that no flag has.
func warnOfVariables(environ []string, log *slog.Logger) {
	unknown, err := config.UnknownVariables(environ)
	if err != nil {
		log.Warn("cannot check the environment variables", "err", err)
	}
	for _, v := range unknown {
		args := []any{"variable", v.Name}
		if v.Near != "" {
			args = append(args, "did_you_mean", v.Near)
		}
		log.Warn("unknown environment variable, ignored", args...)
	}
}

// chooseMetrics returns which metrics are on. Each pattern must match at least one metric, and no metric
// may be both included and excluded.
func chooseMetrics(all []*metric.Desc, m config.Metrics) (func(*metric.Desc) bool, error) {
	var known []string
	for _, d := range all {
		known = append(known, d.Group, d.Name, d.Prom)
	}
	check := func(flag string, patterns []string) error {
		var faults []error
		for _, p := range patterns {
			if _, err := metric.Select(all, []string{p}, nil); err != nil {
				faults = append(faults, fmt.Errorf("%w%s", errors.Unwrap(err), spell.Suggest(p, known)))
			}
		}
		return config.Refuse(flag, errors.Join(faults...))
	}
	if err := errors.Join(check("metrics.include", m.Include), check("metrics.exclude", m.Exclude)); err != nil {
		return nil, err
	}
	on, err := metric.Select(all, m.Include, m.Exclude)
	return on, config.Refuse("metrics.exclude", err)
}

// openState opens the state directory. A path through a file is a wrong setting; other failures to make
// the directory, such as a read-only file system, are failures of the machine. A directory that does not
// respond costs only what is kept in it.
func openState(directory string, log *slog.Logger) (state.Store, error) {
	kept, err := state.Open(directory)
	switch {
	case errors.Is(err, state.ErrHanging):
		log.Error("starting without the state of earlier runs", "err", err)
	case errors.Is(err, syscall.ENOTDIR):
		return kept, config.Refuse("state.directory", err)
	case err != nil:
		return kept, fmt.Errorf("--state.directory: %w", err)
	}
	return kept, nil
}
