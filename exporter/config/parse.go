package config

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// ErrHelp says that help was asked for and printed.
var ErrHelp = errors.New("help")

const (
	envPrefix   = "GPUMETER"
	description = "gpumeter is a Prometheus exporter for GPUs and other accelerators."
)

// Parse reads the command line, and for commands that read the node the environment and the file
// they name. It returns the command that was chosen. Help goes to out. The error joins everything
// that is wrong with the settings; each part is one line.
func Parse(args []string, out io.Writer) (*Config, string, error) {
	line, err := readLine(args)
	if err != nil {
		return nil, "", err
	}
	if line.given["version"] {
		return new(Config), "version", nil
	}
	c, helped := new(Config), false
	k, err := parser(c, out, line.environment(), kong.Exit(func(int) { helped = true }))
	if err != nil {
		return nil, "", err
	}
	if err := c.locate(k, line); err != nil {
		return nil, "", err
	}
	ctx, err := k.Parse(line.args)
	if helped {
		return nil, "", ErrHelp
	}
	if err != nil {
		return nil, "", usage(err)
	}
	if err := c.check(ctx.Selected().Name); err != nil {
		return nil, "", c.Locate(err)
	}
	return c, ctx.Selected().Name, nil
}

// parser is kong over the configuration; help goes to out.
func parser(c *Config, out io.Writer, options ...kong.Option) (*kong.Kong, error) {
	options = append(append(options, decoders()...), groups())
	return kong.New(c, append(options,
		kong.Name("gpumeter"), kong.Description(description),
		kong.Writers(out, out), kong.Help(printHelp), kong.ConfigureHelp(kong.HelpOptions{Compact: true}))...)
}

// locate finds where the settings come from that the command line does not set, the environment or
// the file, and refuses those whose value cannot be read, all at once.
func (c *Config) locate(k *kong.Kong, l *line) error {
	if !l.readsNode() || l.given["help"] {
		return nil
	}
	c.places = map[string]string{}
	var f *file
	path, given := l.configFile, l.given["config.file"]
	if env := envPrefix + "_CONFIG_FILE"; !given {
		c.places["config.file"] = env
		path = os.Getenv(env)
	}
	if path != "" {
		var err error
		if f, err = readFile(path, k.Model); err != nil {
			return c.Locate(err)
		}
		if err := kong.Resolvers(f).Apply(k); err != nil { // after systemd's, and so it wins
			return err
		}
	}
	var faults []error
	for _, flag := range l.settingsIn(k.Model) {
		if l.given[flag.Name] {
			continue
		}
		place, value := origin(flag, f)
		if place == "" {
			continue
		}
		c.places[flag.Name] = place
		if err := readable(flag, value); err != nil {
			faults = append(faults, &SettingError{Flag: flag.Name, Err: err})
		}
	}
	return c.Locate(errors.Join(faults...))
}

// origin returns where a flag that the command line does not set has its value from, and the value.
func origin(flag *kong.Flag, f *file) (place string, value any) {
	for _, env := range flag.Envs {
		if text, set := os.LookupEnv(env); set {
			return env, text
		}
	}
	if f != nil {
		if value, set := f.values[flag.Name]; set {
			return f.at(flag.Name), value
		}
	}
	if flag.Name == "state.directory" && stateDirectory() != "" {
		return stateVariable, stateDirectory()
	}
	return "", nil
}

// stateVariable is where systemd says which directories it made for a unit with StateDirectory=.
const stateVariable = "STATE_DIRECTORY"

func stateDirectory() string {
	first, _, _ := strings.Cut(os.Getenv(stateVariable), ":") // a list
	return first
}

// systemd gives the state directory that systemd made.
func systemd(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	if flag.Name != "state.directory" || inEnvironment(flag) || stateDirectory() == "" {
		return nil, nil
	}
	return stateDirectory(), nil
}

// inEnvironment reports whether a variable of ours sets the flag.
func inEnvironment(flag *kong.Flag) bool {
	return slices.ContainsFunc(flag.Envs, func(env string) bool { _, set := os.LookupEnv(env); return set })
}
