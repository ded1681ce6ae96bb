package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// ErrHelp says that help was asked for and printed.
var ErrHelp = errors.New("help")

const (
	envPrefix   = "GPUMETER"
	description = "gpumeter meters accelerators: what each GPU does, and whose work is on it."
)

// Parse reads the command line, the environment and the file they name. It returns the command
// that was chosen. Help goes to out.
func Parse(args []string, out io.Writer) (*Config, string, error) {
	c := new(Config)
	helped := false
	k, err := parser(c, out, kong.Exit(func(int) { helped = true }))
	if err != nil {
		return nil, "", err
	}
	var f *file
	if path := configFile(args); path != "" {
		if f, err = readFile(path, k.Model); err != nil {
			return nil, "", err
		}
		if err := kong.Resolvers(f).Apply(k); err != nil {
			return nil, "", err
		}
	}
	ctx, err := k.Parse(args)
	if helped {
		return nil, "", ErrHelp
	}
	if err == nil {
		err = c.check()
	}
	if err != nil {
		return nil, "", f.place(err)
	}
	return c, ctx.Selected().Name, nil
}

// parser is kong over the configuration; help goes to out.
func parser(c *Config, out io.Writer, options ...kong.Option) (*kong.Kong, error) {
	return kong.New(c, append(options,
		kong.Resolvers(kong.ResolverFunc(systemd)), // the file's comes later, and so wins
		kong.Name("gpumeter"), kong.Description(description), kong.DefaultEnvars(envPrefix),
		kong.Writers(out, out), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))...)
}

// systemd gives the state directory that systemd makes for a unit with StateDirectory=.
func systemd(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if flag.Name != "state.directory" || inEnvironment(flag) {
		return nil, nil
	}
	first, _, _ := strings.Cut(os.Getenv("STATE_DIRECTORY"), ":") // a list
	if first == "" {
		return nil, nil
	}
	return first, nil
}

// inEnvironment says whether a variable of ours sets the flag.
func inEnvironment(flag *kong.Flag) bool {
	return slices.ContainsFunc(flag.Envs, func(env string) bool { _, set := os.LookupEnv(env); return set })
}

// configFile finds the file before anything else is parsed, since it takes part in parsing.
func configFile(args []string) string {
	const flag = "--config.file"
	for i, a := range args {
		if path, ok := strings.CutPrefix(a, flag+"="); ok {
			return path
		}
		if a == flag && i+1 < len(args) {
			return args[i+1]
		}
	}
	return os.Getenv(envPrefix + "_CONFIG_FILE")
}

// check refuses settings that are well formed but make no sense.
func (c *Config) check() error {
	s := c.Serve
	var faults []error
	for _, n := range []Node{s.Node, c.Once.Node} { // only one of them is of the command that was chosen
		if n.Simulate != "" && n.SimulateIfNone {
			faults = append(faults, errors.New("--simulate and --simulate-if-none exclude each other"))
			break
		}
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"--max-age", s.MaxAge}, {"--read-timeout", s.ReadTimeout}, {"--read-timeout", c.Once.ReadTimeout},
		{"--relist-interval", s.RelistInterval}, {"--retry-interval", s.RetryInterval},
		{"--relist-interval", c.Once.RelistInterval}, {"--retry-interval", c.Once.RetryInterval},
		{"--workload-hold", s.WorkloadHold}, {"--workload-keep", s.WorkloadKeep},
		{"--workload-hold", c.Once.WorkloadHold}, {"--workload-keep", c.Once.WorkloadKeep}} {
		if d.value <= 0 {
			faults = append(faults, fmt.Errorf("%s: %v is not above zero", d.flag, d.value))
		}
	}
	if s.ProcessLimit <= 0 || c.Once.ProcessLimit <= 0 {
		faults = append(faults, errors.New("--process-limit: it is not above zero"))
	}
	if s.SeriesLimit <= 0 || c.Once.SeriesLimit <= 0 {
		faults = append(faults, errors.New("--series-limit: it is not above zero"))
	}
	for _, k := range []*Kubernetes{&c.Serve.Kubernetes, &c.Once.Kubernetes} {
		if found := k.check(); len(found) > 0 {
			faults = append(faults, found...)
			break
		}
	}
	return errors.Join(faults...)
}
