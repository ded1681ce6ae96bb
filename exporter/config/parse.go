package config

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
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

// check refuses settings that are well formed but make no sense. Only one of the nodes is of the command
// that was chosen; the others are as by default.
func (c *Config) check() error {
	var faults []error
	if c.Serve.MaxAge <= 0 {
		faults = append(faults, fmt.Errorf("--max-age: %v is not above zero", c.Serve.MaxAge))
	}
	if err := c.Bundle.check(); err != nil {
		faults = append(faults, err)
	}
	for _, n := range []*Node{&c.Serve.Node, &c.Once.Node, &c.Doctor.Node} {
		if found := n.check(); len(found) > 0 {
			return errors.Join(append(faults, found...)...)
		}
	}
	return errors.Join(faults...)
}

// check refuses what makes no sense of a node.
func (n *Node) check() (faults []error) {
	if n.Simulate != "" && n.SimulateIfNone {
		faults = append(faults, errors.New("--simulate and --simulate-if-none exclude each other"))
	}
	for _, d := range []struct {
		flag  string
		value time.Duration
	}{{"--read-timeout", n.ReadTimeout}, {"--relist-interval", n.RelistInterval}, {"--retry-interval", n.RetryInterval},
		{"--workload-hold", n.WorkloadHold}, {"--workload-keep", n.WorkloadKeep}} {
		if d.value <= 0 {
			faults = append(faults, fmt.Errorf("%s: %v is not above zero", d.flag, d.value))
		}
	}
	for _, d := range []struct {
		flag  string
		value int
	}{{"--process-limit", n.ProcessLimit}, {"--series-limit", n.SeriesLimit}} {
		if d.value <= 0 {
			faults = append(faults, errors.New(d.flag+": it is not above zero"))
		}
	}
	for _, text := range n.SlurmGPUs {
		number, device, ok := strings.Cut(text, "=")
		if _, err := strconv.ParseUint(number, 10, 16); err != nil || !ok || device == "" {
			faults = append(faults, fmt.Errorf("--slurm.gpu: %q is not like 0=GPU-…, the number that Slurm has and the device", text))
		}
	}
	return append(faults, n.Kubernetes.check()...)
}
