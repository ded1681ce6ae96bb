package gpu

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// printFindings prints what was compared, GPU by GPU, and what was not in one line each.
func printFindings(out io.Writer, title string, r reading, all []finding) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, uuid := range r.uuids() {
		count := map[verdict]int{}
		for _, f := range all {
			if f.uuid == uuid {
				count[f.verdict]++
			}
		}
		fmt.Fprintf(w, "\n%s: %s %s, driver %s: %d values agree, %d differ, %d neither has, %d not read of this driver, %d not told\n", title,
			r.page.word(uuid, "gpu_info@gpu_model"), uuid, r.page.word(uuid, "gpu_info@gpu_driver_version"),
			count[same], count[differs], count[neither], count[unread], count[untold])
		fmt.Fprintln(w, "value\tnvidia-smi\tgpumeter\tverdict\tas nvidia-smi calls it")
		for _, f := range all {
			if f.uuid != uuid || f.verdict == untold || f.verdict == neither {
				continue
			}
			verdict := string(f.verdict)
			if f.why != "" {
				verdict += ": " + f.why
			}
			said := f.before
			if f.after != f.before {
				said += " … " + f.after
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", f.value, said, f.ours, verdict, f.source)
		}
		if err := w.Flush(); err != nil {
			return fmt.Errorf("print: %w", err)
		}
		for _, v := range []verdict{neither, untold} {
			var values []string
			for _, f := range those(all, v) {
				if f.uuid == uuid {
					values = append(values, f.value)
				}
			}
			fmt.Fprintf(out, "%s: %s\n", v, strings.Join(slices.Compact(values), " "))
		}
	}
	return nil
}

// printChecks prints the counters' checks.
func printChecks(out io.Writer, title string, all []check) error {
	fmt.Fprintf(out, "\n%s\n", title)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "gpu\tcheck\tgpumeter\twant\tverdict")
	for _, c := range all {
		v := string(same)
		switch {
		case !c.ok:
			v = string(differs)
		case c.lacks != "":
			v = "not checked: " + c.lacks
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", c.uuid, c.name, c.saw, c.want, v)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}

// printTimings prints how long each call took.
func printTimings(out io.Writer, all []timing) error {
	fmt.Fprintln(out, "\ncall times in microseconds, of fifty calls each")
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "min\tmedian\tmax\treturned\tmade in\t call")
	for _, c := range all {
		slow := ""
		if c.slow() {
			slow = " TOO SLOW"
		}
		fmt.Fprintf(w, "%.1f\t%.1f\t%.1f\t%d\t%s\t %s%s\n", c.least, c.median, c.most, c.code, c.where, c.call, slow)
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
