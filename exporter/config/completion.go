package config

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Shells are those Completion knows.
var Shells = []string{"bash", "zsh", "fish"}

// Completion writes a script that completes commands and flags in a shell. It is made of the same
// flags that Parse reads.
func Completion(w io.Writer, shell string) error {
	k, err := parser(new(Config), io.Discard, environment())
	if err != nil {
		return err
	}
	script := map[string]func(io.Writer, []command){"bash": bash, "zsh": zsh, "fish": fish}[shell]
	if script == nil {
		return fmt.Errorf("no completion for %q; there is one for %s", shell, strings.Join(Shells, ", "))
	}
	script(w, commands(k.Model))
	return nil
}

// command is what can be completed after its name.
type command struct {
	name, help string
	flags      []flag
	words      []string // positional words
}

type flag struct{ name, help string }

func commands(app *kong.Application) []command {
	var out []command
	for _, leaf := range app.Leaves(true) {
		c := command{name: leaf.Name, help: leaf.Help}
		for _, group := range leaf.AllFlags(true) {
			for _, f := range group {
				c.flags = append(c.flags, flag{f.Name, f.Help})
			}
		}
		for _, p := range leaf.Positional {
			words := cmp.Or(p.Enum, p.Tag.Get("words")) // words: some of those that are valid
			c.words = append(c.words, strings.FieldsFunc(words, func(r rune) bool { return r == ',' || r == ' ' })...)
		}
		slices.SortFunc(c.flags, func(a, b flag) int { return strings.Compare(a.name, b.name) })
		out = append(out, c)
	}
	return out
}

func bash(w io.Writer, all []command) {
	fmt.Fprint(w, "_gpumeter() {\n  local word=${COMP_WORDS[COMP_CWORD]} command=serve i\n")
	fmt.Fprintf(w, "  for ((i = 1; i < COMP_CWORD; i++)); do case ${COMP_WORDS[i]} in %s) command=${COMP_WORDS[i]} ;; esac; done\n", names(all, "|"))
	fmt.Fprint(w, "  local words\n  case $command in\n")
	for _, c := range all {
		fmt.Fprintf(w, "  %s) words=%q ;;\n", c.name, strings.Join(append(longFlags(c), c.words...), " "))
	}
	fmt.Fprintf(w, "  esac\n  [[ $COMP_CWORD == 1 ]] && words+=\" %s\"\n", names(all, " "))
	fmt.Fprint(w, "  COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n}\ncomplete -o default -F _gpumeter gpumeter\n")
}

func zsh(w io.Writer, all []command) {
	fmt.Fprint(w, "#compdef gpumeter\nautoload -Uz bashcompinit && bashcompinit\n")
	bash(w, all)
}

func fish(w io.Writer, all []command) {
	for _, c := range all {
		fmt.Fprintf(w, "complete -c gpumeter -n __fish_use_subcommand -a %s -d %s\n", c.name, quote(c.help))
		for _, f := range c.flags {
			fmt.Fprintf(w, "complete -c gpumeter -n '__fish_seen_subcommand_from %s' -l %s -d %s\n", c.name, f.name, quote(f.help))
		}
		for _, word := range c.words {
			fmt.Fprintf(w, "complete -c gpumeter -n '__fish_seen_subcommand_from %s' -a %s\n", c.name, word)
		}
	}
}

func names(all []command, sep string) string {
	var out []string
	for _, c := range all {
		out = append(out, c.name)
	}
	return strings.Join(out, sep)
}

func longFlags(c command) []string {
	var out []string
	for _, f := range c.flags {
		out = append(out, "--"+f.name)
	}
	return out
}

// quote makes one word of a text for fish.
func quote(s string) string { return "'" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(s) + "'" }
