package definition

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"unicode/utf8"
)

// width is where prose breaks: a terminal's usual one.
const width = 80

// overview lists all metrics by group, a line each.
func (s *spec) overview(b *bytes.Buffer, all []definition) {
	for _, g := range s.groups {
		t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
		title := g.Group + ": " + g.Brief + "\n"
		if b.Len() > 0 {
			title = "\n" + title
		}
		for _, d := range all {
			if d.Group == g.Group {
				fmt.Fprintf(t, "%s  %s\t%s\t%s\n", title, d.Prometheus, d.kind(), d.state())
				title = ""
			}
		}
		t.Flush() //nolint:errcheck // a buffer takes everything
	}
}

// state is the brief, and what keeps one from seeing the metric.
func (d definition) state() string {
	out := d.Brief
	if d.Enabled == "opt-in" {
		out += " Opt-in."
	}
	if d.Deprecated != nil {
		out += " Deprecated."
	}
	return out
}

// text tells all there is to say of each.
func text(b *bytes.Buffer, all []definition) {
	for i, d := range all {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(d.Prometheus + "\n")
		wrap(b, "  ", "  ", d.Brief)
		wrap(b, "  ", "  ", d.Note)
		b.WriteByte('\n')
		table(b, "  ", d.facts())
		if len(d.Labels) > 0 {
			b.WriteString("\n  Labels\n")
			for _, l := range d.Labels {
				wrap(b, "    "+l.Name+"  ", "      ", l.Brief)
				wrap(b, "      ", "      ", l.Note)
				if l.Deprecated != nil {
					wrap(b, "      ", "      ", "Deprecated "+l.Deprecated.text())
				}
				var rows [][2]string
				for _, m := range l.Members {
					rows = append(rows, [2]string{m.ID, m.Brief})
				}
				table(b, "      ", rows)
			}
		}
		title := "Read by"
		if len(d.Sources) > 1 {
			title += ", the first that answers"
		}
		b.WriteString("\n  " + title + "\n")
		table(b, "    ", reads(d.Sources))
		if len(d.Elsewhere) > 0 {
			b.WriteString("\n  Elsewhere\n")
			var rows [][2]string
			for _, e := range d.Elsewhere {
				rows = append(rows, [2]string{e.System, join(e.Name, ": ", e.Note)})
			}
			table(b, "    ", rows)
		}
	}
}

// facts are what one line says each.
func (d definition) facts() [][2]string {
	out := [][2]string{
		{"OpenTelemetry", d.OpenTelemetry + " (" + d.Instrument + ")"},
		{"Type", d.kind()},
		{"Group", d.Group + ", of scope " + d.Scope},
		{"Stability", d.Stability},
	}
	add := func(word, text string) {
		if text != "" {
			out = append(out, [2]string{word, text})
		}
	}
	if d.Enabled == "opt-in" {
		add("Opt-in", "off unless --metrics.include names it")
	}
	if d.Deprecated != nil {
		add("Deprecated", d.Deprecated.text())
	}
	var bounds []string
	for _, f := range d.Buckets {
		bounds = append(bounds, strconv.FormatFloat(f, 'g', -1, 64))
	}
	add("Buckets", strings.Join(bounds, ", "))
	if d.Foreign {
		add("Buckets", "as the source has them")
	}
	if t := d.Twin; t != nil {
		var with []string
		for _, key := range slices.Sorted(maps.Keys(t.Attributes)) {
			with = append(with, key+"="+t.Attributes[key])
		}
		add("Official twin", join(t.Name, " with ", strings.Join(with, ", ")))
	}
	return out
}

// kind is the type and the unit, as one says it.
func (d definition) kind() string {
	switch d.Unit {
	case "":
		return d.Type
	case "1":
		return d.Type + ", 0 to 1"
	}
	return d.Type + " in " + d.Unit
}

func (d deprecated) text() string {
	out := "since " + d.Since
	if d.RenamedTo != "" {
		out += "; use " + d.RenamedTo
	}
	return join(out, ". ", d.Note)
}

// join leaves the separator out where one side is empty.
func join(a, by, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + by + b
}

// reads are the sources, and where each finds the metric.
func reads(list []source) [][2]string {
	if len(list) == 0 {
		return [][2]string{{"nothing yet", ""}}
	}
	var out [][2]string
	for _, s := range list {
		how := s.where
		if s.Scale != 0 {
			how = join(how, ", ", "times "+strconv.FormatFloat(s.Scale, 'g', -1, 64))
		}
		out = append(out, [2]string{s.Name, join(how, ". ", s.Note)})
	}
	return out
}

// table writes words and, beside them, what is said of each.
func table(b *bytes.Buffer, indent string, rows [][2]string) {
	widest := 0
	for _, r := range rows {
		widest = max(widest, utf8.RuneCountInString(r[0]))
	}
	for _, r := range rows {
		pad := strings.Repeat(" ", widest-utf8.RuneCountInString(r[0])+2)
		if r[1] == "" {
			b.WriteString(indent + r[0] + "\n")
			continue
		}
		wrap(b, indent+r[0]+pad, indent+strings.Repeat(" ", widest+2), r[1])
	}
}

// wrap writes text after the first lead, and breaks it between words onto lines after the second.
func wrap(b *bytes.Buffer, first, next, text string) {
	line, empty := first, true
	for word := range strings.FieldsSeq(text) {
		if !empty && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			b.WriteString(line + "\n")
			line, empty = next, true
		}
		if !empty {
			line += " "
		}
		line, empty = line+word, false
	}
	if !empty {
		b.WriteString(line + "\n")
	}
}
