package doctor

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"
)

// Text prints the report for people.
func (r *Report) Text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "SOURCE\tSTATE\tDETAIL")
	for _, s := range r.Sources {
		fmt.Fprintf(t, "%s\t%s\t%s\n", s.Name, s.State, cmp.Or(plain(s.Err), plural(s.Devices, "device", "devices")))
	}
	if len(r.Witnesses) > 0 {
		fmt.Fprintln(t, "PROVIDER\tSTATE\tDETAIL")
	}
	for _, x := range r.Witnesses {
		fmt.Fprintf(t, "%s\t%s\t%s\n", x.Name, x.State, strings.Join(r.said(&x), "; "))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	var b strings.Builder
	vendors := map[string]bool{}
	for i := range r.Devices {
		vendors[r.Devices[i].Vendor] = true
	}
	for i := range r.Devices {
		r.Devices[i].text(&b, len(vendors) > 1)
	}
	for i, s := range r.Strays {
		if i == 0 {
			b.WriteByte('\n')
		}
		where := "no device here has this ID"
		if s.Driver != "" {
			where = "given to a virtual machine (driver " + plain(s.Driver) + "), not read here"
		}
		fmt.Fprintf(&b, "%s holds %s %s (%s): %s\n", plain(s.Holder), plain(s.Resource), plain(s.ID), s.Names, where)
	}
	r.findings(&b)
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// findings prints what is wrong and what to do.
func (r *Report) findings(b *strings.Builder) {
	if len(r.Findings) > 0 {
		b.WriteString("\nFindings:\n")
	}
	for _, f := range r.Findings {
		fmt.Fprintf(b, "  %-7s  %s\n           %s\n", f.Severity, plain(string(f.ID)), plain(sentence(f.Message)))
		if f.Advice != "" {
			wrap(b, "           ", "What to do: "+plain(f.Advice))
		}
	}
	if r.Healthy() {
		b.WriteString("\nNothing needs to be changed.\n")
	}
}

// sentence begins with a capital letter.
func sentence(s string) string {
	if s == "" {
		return s
	}
	first, size := utf8.DecodeRuneInString(s)
	return string(unicode.ToUpper(first)) + s[size:]
}

// width is how long a line of wrapped text may be.
const width = 110

// wrap prints a text behind a head, in lines that are indented as far. A word is never cut.
func wrap(b *strings.Builder, head, text string) {
	indent := strings.Repeat(" ", utf8.RuneCountInString(head))
	line := head
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
			line += word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width:
			b.WriteString(line + "\n")
			line = indent + word
		default:
			line += " " + word
		}
	}
	b.WriteString(line + "\n")
}

// said returns the details of a provider.
func (r *Report) said(x *Witness) []string {
	out := []string{x.Tells}
	if x.Knows != "" {
		out = append(out, x.Knows)
	}
	if x.State != WitnessOK && !x.Read.IsZero() {
		out = append(out, "last response "+r.ago(x.Read))
	}
	if x.Err != "" {
		out = append(out, plain(x.Err))
	}
	return out
}

func (r *Report) ago(t time.Time) string {
	return r.Taken.Sub(t).Round(time.Second).String() + " ago"
}

func (d *Device) text(b *strings.Builder, vendor bool) {
	words := []string{strconv.Itoa(d.Index)}
	if vendor {
		words = append(words, d.Vendor)
	}
	for _, w := range []string{d.Model, cmp.Or(d.UUID, d.PCI), d.State} {
		if w != "" {
			words = append(words, plain(w))
		}
	}
	fmt.Fprintf(b, "\n%s\n", strings.Join(words, "  "))
	for i := range d.Parts {
		if p := &d.Parts[i]; !d.repeats(p) {
			p.text(b)
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(d.Absent)) {
		wrap(b, "   ", "absent, "+reason+": "+strings.Join(d.Absent[reason], " "))
	}
}

// repeats reports whether the whole device, as one of the parts, says no more than its partitions.
func (d *Device) repeats(whole *Part) bool {
	if whole.Partition != "" || len(d.Parts) == 1 || len(whole.Processes) > 0 {
		return false
	}
	return !slices.ContainsFunc(whole.Owners, func(o Owner) bool {
		return !slices.ContainsFunc(d.Parts, func(p Part) bool {
			return p.Partition != "" && slices.ContainsFunc(p.Owners, func(q Owner) bool { return q.Who == o.Who })
		})
	})
}

func (p *Part) text(b *strings.Builder) {
	indent := "   "
	if p.Partition != "" {
		fmt.Fprintf(b, "%s%s\n", indent, plain(strings.TrimSpace(p.ID+" "+p.Profile+" "+p.Partition)))
		indent = "      "
	}
	for _, o := range p.Owners {
		fmt.Fprintf(b, "%sowner %s", indent, plain(o.Who))
		if p.Sharing == "shared" {
			fmt.Fprintf(b, ", share %.3g", o.Share)
		}
		fmt.Fprintf(b, " [%s]", o.How)
		if o.Chain != "" {
			fmt.Fprintf(b, "; created by %s", plain(o.Chain))
		}
		b.WriteByte('\n')
	}
	for _, x := range p.Processes {
		fmt.Fprintf(b, "%sprocess %d: ", indent, x.PID)
		if x.Why != "" {
			b.WriteString("owner unknown, " + x.Why)
		} else {
			fmt.Fprintf(b, "%s [%s]", plain(x.Who), x.How)
		}
		if x.Memory != nil {
			fmt.Fprintf(b, "; %.2f GiB", *x.Memory/(1<<30))
		}
		if x.Busy != nil {
			fmt.Fprintf(b, "; %.1f s busy", *x.Busy)
		}
		b.WriteByte('\n')
	}
	for _, w := range p.Why {
		fmt.Fprintf(b, "%s%s\n", indent, w)
	}
}

// plain is a text from outside, without what a terminal would obey.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if strconv.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, s)
}

func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + more
}
