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
)

// Text prints the report for people.
func (r *Report) Text(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "READS\tSTATE\tWHAT")
	for _, s := range r.Sources {
		fmt.Fprintf(t, "%s\t%s\t%s\n", s.Name, s.State, cmp.Or(plain(s.Err), plural(s.Devices, "device", "devices")))
	}
	fmt.Fprintln(t, "ASKED\tSTATE\tWHAT")
	for _, x := range r.Witnesses {
		fmt.Fprintf(t, "%s\t%s\t%s\n", x.Name, x.State, strings.Join(r.said(&x), "; "))
	}
	if len(r.Witnesses) == 0 {
		fmt.Fprintln(t, "nobody")
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	var b strings.Builder
	for i := range r.Devices {
		r.Devices[i].text(&b)
	}
	if len(r.Devices) == 0 {
		b.WriteString("\nNo accelerator is found here.\n")
	}
	for _, s := range r.Strays {
		where := "is no device here"
		if s.Driver != "" {
			where = plain(s.Driver) + " has for a virtual machine; it can not be read here"
		}
		fmt.Fprintf(&b, "\n%s holds %s %s (%s), which %s.", plain(s.Holder), plain(s.Resource), plain(s.ID), s.Names, where)
	}
	if len(r.Strays) > 0 {
		b.WriteByte('\n')
	}
	if len(r.Advice) > 0 {
		b.WriteString("\nWhat to change:\n")
		for i, a := range r.Advice {
			fmt.Fprintf(&b, "%2d. %s\n", i+1, a)
		}
	} else {
		b.WriteString("\nNothing needs to be changed.\n")
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// said is a line on a witness.
func (r *Report) said(x *Witness) []string {
	out := []string{x.Tells}
	if x.Knows != "" {
		out = append(out, x.Knows)
	}
	if x.State != WitnessOK && !x.Read.IsZero() {
		out = append(out, "last told "+r.ago(x.Read))
	}
	if x.Err != "" {
		out = append(out, plain(x.Err))
	}
	return out
}

func (r *Report) ago(t time.Time) string {
	return r.Taken.Sub(t).Round(time.Second).String() + " ago"
}

func (d *Device) text(b *strings.Builder) {
	fmt.Fprintf(b, "\n%d  %s  %s  %s\n", d.Index, plain(d.Model), plain(d.UUID), d.State)
	for i := range d.Parts {
		d.Parts[i].text(b)
	}
	for _, reason := range slices.Sorted(maps.Keys(d.Absent)) {
		fmt.Fprintf(b, "   absent, %s: %s\n", reason, strings.Join(d.Absent[reason], " "))
	}
}

func (p *Part) text(b *strings.Builder) {
	if p.Partition != "" {
		fmt.Fprintf(b, "   %s\n", plain(p.Partition))
	}
	for _, o := range p.Owners {
		fmt.Fprintf(b, "   held by %s", plain(o.Who))
		if p.Sharing == "shared" {
			fmt.Fprintf(b, ", share %.3g", o.Share)
		}
		fmt.Fprintf(b, " [%s]", o.How)
		if o.Chain != "" {
			fmt.Fprintf(b, "; made by %s", plain(o.Chain))
		}
		b.WriteByte('\n')
	}
	for _, x := range p.Processes {
		fmt.Fprintf(b, "   process %d: ", x.PID)
		if x.Why != "" {
			b.WriteString("not known, " + x.Why)
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
		fmt.Fprintf(b, "   %s\n", w)
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
