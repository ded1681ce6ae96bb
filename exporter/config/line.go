package config

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/gpumeter/gpumeter/spell"
)

// line is the command line, before the environment and the file are read.
type line struct {
	args       []string // "help once" as "once --help"
	command    string
	given      map[string]bool // the flags in it
	configFile string          // the value of --config.file
}

// readLine finds the command and its flags, and refuses a command line that is not well formed.
func readLine(args []string) (*line, error) {
	k, err := parser(new(Config), io.Discard)
	if err != nil {
		return nil, err
	}
	ctx, err := kong.Trace(k, args)
	if err == nil {
		err = ctx.Error
	}
	commands := commandNames(k.Model)
	if err != nil {
		return nil, unknownCommand(usage(err), args, commands)
	}
	l := &line{args: args, command: "serve", given: map[string]bool{}}
	if selected := ctx.Selected(); selected != nil {
		l.command = selected.Name
	}
	topic := ""
	for _, p := range ctx.Path {
		switch {
		case p.Flag != nil:
			l.given[p.Flag.Name] = true
			if p.Flag.Name == "config.file" {
				l.configFile = ctx.Value(p).String()
			}
		case p.Positional != nil && l.command == "help":
			topic = ctx.Value(p).String()
		}
	}
	if topic != "" && !slices.Contains(commands, topic) {
		return nil, noCommand(topic, commands)
	}
	if l.command == "help" && !l.given["help"] {
		l.args, l.given["help"] = []string{"--help"}, true
		if topic != "" {
			l.args = []string{topic, "--help"}
		}
	}
	return l, nil
}

// readsNode reports whether the command reads a node. The others need neither the environment nor
// the file, and work with a fault in either.
func (l *line) readsNode() bool {
	return slices.Contains([]string{"serve", "once", "doctor"}, l.command)
}

// environment has kong read the environment, where the command needs it.
func (l *line) environment() kong.Option {
	if !l.readsNode() && !l.given["help"] {
		return kong.Resolvers()
	}
	return environment()
}

// environment has kong read variables, ours and systemd's.
func environment() kong.Option {
	return kong.OptionFunc(func(k *kong.Kong) error {
		return errors.Join(kong.DefaultEnvars(envPrefix).Apply(k), kong.Resolvers(kong.ResolverFunc(systemd)).Apply(k))
	})
}

// settingsIn returns the flags of the command, and those of serve: a fault in a variable that serve
// uses is found by once and doctor too.
func (l *line) settingsIn(app *kong.Application) (out []*kong.Flag) {
	seen := map[string]bool{}
	for _, leaf := range app.Leaves(false) {
		if leaf.Name != l.command && leaf.Name != "serve" {
			continue
		}
		for _, flag := range slices.Concat(leaf.AllFlags(false)...) {
			if !seen[flag.Name] {
				seen[flag.Name] = true
				out = append(out, flag)
			}
		}
	}
	return out
}

// commandNames are the commands, the hidden ones too.
func commandNames(app *kong.Application) []string {
	var out []string
	for _, leaf := range app.Leaves(false) {
		out = append(out, leaf.Name)
	}
	return out
}

// usage returns an error of kong's in the words that this package uses.
func usage(err error) error {
	text := strings.Replace(err.Error(), ", did you mean ", "; did you mean ", 1)
	if missing, ok := strings.CutPrefix(text, "expected "); ok {
		text = "the argument " + missing + " is missing"
	}
	return errors.New(text)
}

// unknownCommand says of a word where a command should be that it is none.
func unknownCommand(err error, args, commands []string) error {
	word, ok := strings.CutPrefix(err.Error(), "unexpected argument ")
	if !ok {
		return err
	}
	for _, a := range args {
		if a == word {
			return noCommand(word, commands)
		}
		if slices.Contains(commands, a) {
			return fmt.Errorf("%s takes no argument %q", a, word)
		}
	}
	return err
}

func noCommand(word string, commands []string) error {
	suggestion := spell.Suggest(word, commands)
	if suggestion == "" {
		suggestion = "; gpumeter --help lists the commands"
	}
	return fmt.Errorf("unknown command %q%s", word, suggestion)
}
