package config

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// Manual writes the manual page, in the macros of man(7), made of the same flags that Parse reads. Its date is
// given, so that the page is the same whenever it is made.
func Manual(w io.Writer, version, date string) error {
	k, err := parser(new(Config), io.Discard, environment())
	if err != nil {
		return err
	}
	fmt.Fprintf(w, ".TH GPUMETER 1 %s \"gpumeter %s\"\n", date, roff(version))
	fmt.Fprint(w, ".SH NAME\ngpumeter \\- Prometheus exporter for GPUs and other accelerators\n.SH SYNOPSIS\n.B gpumeter\n[\\fIcommand\\fR] [\\fIflag\\fR ...]\n.SH COMMANDS\n")
	leaves := k.Model.Leaves(true)
	for _, c := range leaves {
		words := []string{c.Name}
		for _, p := range c.Positional {
			words = append(words, p.Summary())
		}
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff(strings.Join(words, " ")), paragraph(c.Help))
	}
	fmt.Fprint(w, ".SH FLAGS\nA flag is also the environment variable in brackets and a key of the\nfile given with\n.BR \\-\\-config.file :\nflags win over the environment, which wins over the file.\nLists are separated by commas.\n")
	seen := map[string]int{}
	for _, c := range leaves {
		for _, f := range flags(c) {
			seen[f.Name]++
		}
	}
	told := map[string]bool{}
	everywhere := func(f *kong.Flag) bool { return seen[f.Name] == len(leaves) }
	manualFlags(w, "Of all commands", leaves[0], told, everywhere)
	for _, c := range leaves {
		manualFlags(w, "Of "+c.Name, c, told, func(f *kong.Flag) bool { return !everywhere(f) })
	}
	fmt.Fprint(w, manualEnd)
	return nil
}

// manualEnd is what the flags do not know.
const manualEnd = `.SH EXIT STATUS
.TP
.B 0
Stopped by a signal, or done.
.TP
.B 1
The work failed, such as listening on the address.
.TP
.B 2
The command line, an environment variable or a file of settings is wrong.
.TP
.B 3
A driver was replaced under the running exporter, and only a new process
can read it.
.SH SIGNALS
.TP
.B SIGINT, SIGTERM
Stop.
.TP
.B SIGUSR1
Release the devices for 15 minutes.
.TP
.B SIGUSR2
Acquire the devices again.
.TP
.B SIGHUP
Ignored: settings are read at the start only.
The file given with \-\-web.config.file is re-read on each connection.
.SH EXAMPLES
.nf
gpumeter serve \-\-web.listen\-address=127.0.0.1:9450
gpumeter serve \-\-simulate=h100x8
gpumeter once \-\-devices=0,1 \-\-format=prometheus
gpumeter doctor \-\-url=http://localhost:9450
gpumeter spec xid79
.fi
`

// flags are those of a command in the order of their names.
func flags(c *kong.Node) []*kong.Flag {
	var out []*kong.Flag
	for _, group := range c.AllFlags(true) {
		out = append(out, group...)
	}
	slices.SortFunc(out, func(a, b *kong.Flag) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// manualFlags describes the flags of a command that were not told yet.
func manualFlags(w io.Writer, title string, c *kong.Node, told map[string]bool, of func(*kong.Flag) bool) {
	for _, f := range flags(c) {
		if told[f.Name] || !of(f) {
			continue
		}
		if title != "" {
			fmt.Fprintf(w, ".SS %s\n", roff(title))
			title = ""
		}
		told[f.Name] = true
		value := ""
		if !f.IsBool() {
			value = "=" + strings.TrimSpace(f.FormatPlaceHolder())
		}
		fmt.Fprintf(w, ".TP\n.B %s\n%s\n", roff("--"+f.Name+value), paragraph(f.Help))
		if len(f.Envs) > 0 {
			fmt.Fprintf(w, "\\%%[%s]\n", roff(f.Envs[0]))
		}
	}
}

// paragraph is a text in lines as roff wants them: short, each sentence on a new one, none like a macro.
func paragraph(s string) string {
	var out strings.Builder
	n := 0
	for word := range strings.FieldsSeq(s) {
		word = roff(word)
		switch {
		case n == 0:
		case n+len(word) >= 79 || strings.HasSuffix(out.String(), "."):
			out.WriteString("\n")
			n = 0
		default:
			out.WriteString(" ")
			n++
		}
		if n == 0 && strings.ContainsAny(word[:1], ".'") {
			word = `\&` + word
		}
		out.WriteString(word)
		n += len(word)
	}
	return out.String()
}

// roff makes a text stand as it is.
func roff(s string) string { return strings.NewReplacer(`\`, `\e`, "-", `\-`, `"`, `\(dq`).Replace(s) }
