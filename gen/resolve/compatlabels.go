package resolve

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gpumeter/gpumeter/spell"
)

// labels finds what becomes of each label they have. A dialect that has none of its own has those of
// the first.
func (d *dialect) labels(all []*Answer, dialect string) {
	for _, a := range all {
		for _, f := range a.There {
			ours := a.Label
			if a.Attribute != nil {
				ours = a.Attribute.Label
			}
			if f.Dialect != dialect || f.Type != "label" || ours == "" {
				continue
			}
			x := replaced{label: f.Prom, ours: ours, regex: f.Of, format: f.Format}
			if after := d.attributes[f.After]; after != nil {
				x.after = after.Label
			} else if f.After != "" {
				d.faults.Add(f.Pos, "%s: after: %q is not in spec/attributes.yaml%s", f.Name, f.After, spell.Suggest(f.After, d.attributeKeys()))
			}
			if x.regex == "" {
				x.regex = "(.*)"
			}
			if x.format == "" {
				x.format = "$1"
			}
			d.replace = append(d.replace, x)
		}
	}
}

// theirs puts their labels onto the series of an expression that has ours.
func (d *dialect) theirs(expr string, ours func(string) bool) string {
	var names []string
	for _, name := range []string{"cluster", "job", "instance"} {
		if ours(name) {
			names = append(names, name)
		}
	}
	for _, x := range d.replace {
		if !ours(x.ours) {
			continue
		}
		ours := x.ours
		if x.after != "" {
			ours = "__ours"
			expr = fmt.Sprintf("label_join(%s, %q, %q, %q, %q)", expr, ours, "/", x.after, x.ours)
		}
		if x.label != ours || x.format != "$1" {
			expr = fmt.Sprintf("label_replace(%s, %s, %s, %s, %s)", expr, strconv.Quote(x.label), strconv.Quote(x.format), strconv.Quote(ours), strconv.Quote(x.regex))
		}
		names = append(names, x.label)
	}
	return fmt.Sprintf("max by (%s) (%s)", strings.Join(unique(names), ", "), expr)
}

// keep has one more label survive the outermost aggregation.
func keep(expr, label string) string {
	if by, _, _ := strings.Cut(expr, ")"); slices.Contains(strings.FieldsFunc(by, func(c rune) bool { return strings.ContainsRune("(, ", c) }), label) {
		return expr
	}
	return strings.Replace(expr, "max by (", "max by ("+label+", ", 1)
}

func unique(names []string) []string {
	var out []string
	for _, n := range names {
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out
}

// of are the labels of an info metric.
func (d *dialect) of(m *Metric) func(string) bool {
	all := append(slices.Clone(targetLabels), m.Labels()...)
	return func(name string) bool { return slices.Contains(all, name) }
}

// devices makes the series that bear their labels, one for each device, and for each part of one.
func (d *dialect) devices(g *RuleGroup) {
	infoHas, ownerHas := d.of(d.info), d.of(d.owner)
	var owners []string
	for _, x := range d.replace {
		for _, name := range []string{x.ours, x.after} {
			if ownerHas(name) && !infoHas(name) && name != "gpu_partition_uuid" { // that says which of the device's owners it is
				owners = append(owners, name)
			}
		}
	}
	owned := func(expr string, parts bool) string {
		on, which := "cluster, instance, gpu_uuid", `{gpu_partition_uuid=""}`
		if parts {
			on, which = "cluster, instance, gpu_partition_uuid", `{gpu_partition_uuid!=""}`
		}
		if len(owners) == 0 {
			return expr
		}
		return fmt.Sprintf("(%[1]s * on (%[2]s) group_left (%[3]s) (topk by (%[2]s) (1, timestamp(%[4]s)) > bool 0) or on (%[2]s) %[1]s)",
			expr, on, strings.Join(unique(owners), ", "), d.owner.Prom+which)
	}
	has := func(name string) bool { return infoHas(name) || slices.Contains(owners, name) }
	device := d.theirs(owned(d.info.Prom+selectors(d.info, d.rules.Only), false), has)
	d.add(g, d.identity(false), keep(device, "gpu_uuid"), nil)

	if d.parts == nil {
		return
	}
	partHas := d.of(d.parts)
	var more []string
	for _, x := range d.replace {
		if infoHas(x.ours) && !partHas(x.ours) {
			more = append(more, x.ours)
		}
	}
	expr := d.parts.Prom + selectors(d.parts, d.rules.Only)
	if len(more) > 0 {
		expr = fmt.Sprintf("(%s * on (cluster, instance, gpu_uuid) group_left (%s) max by (cluster, instance, gpu_uuid, %[2]s) (%s))",
			expr, strings.Join(unique(more), ", "), d.info.Prom)
	}
	part := d.theirs(owned(expr, true), func(name string) bool { return has(name) || partHas(name) })
	d.add(g, d.identity(true), keep(part, "gpu_partition_uuid"), nil)
}

// identity names the series that bear their labels.
func (d *dialect) identity(parts bool) string {
	level := "gpu:"
	if parts {
		level = "partition:"
	}
	word := strings.NewReplacer(".", "_", "-", "_").Replace(d.word("_"))
	return level + word + "_labels:info"
}
