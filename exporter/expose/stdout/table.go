package stdout

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

const gibi = 1 << 30

// Table prints a header and a line per device, then which sources and metrics fail. The vendor is a column
// where there are devices of several.
func Table(w io.Writer, s *snapshot.Snapshot) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	devices := s.ByVendor()
	several := slices.ContainsFunc(devices, func(d *snapshot.Device) bool { return d.Identity.Vendor != devices[0].Identity.Vendor })
	line := func(index, vendor string, cells ...string) {
		head := []string{index}
		if several {
			head = append(head, vendor)
		}
		fmt.Fprintln(t, strings.Join(append(head, cells...), "\t"))
	}
	line("INDEX", "VENDOR", "MODEL", "STATE", "BUSY", "MEMORY", "POWER", "TEMP", "THROTTLED", "XIDS", "OWNER", "UUID")
	for _, d := range devices {
		r := &d.Read
		line(
			d.Labels.Get("gpu_index"), d.Identity.Vendor, cmp.Or(d.Labels.Get("gpu_model"), absent), d.State(),
			one(r.Utilization.Utilization, 100, "%.0f %%"),
			of(r.Memory.Usage, r.Memory.Limit, 1.0/gibi, "%.1f", "GiB"),
			of(r.Power.Draw, r.Power.Limit[telemetry.PowerLimitTypeEnforced], 1, "%.0f", "W"),
			one(r.Thermal.Temperature[telemetry.TemperatureSensorCore], 1, "%.0f °C"),
			throttled(r), xids(r), cmp.Or(d.Whose(), shared(s, d), absent), cmp.Or(d.Labels.Get("gpu_uuid"), d.Identity.PCI, absent),
		)
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("table: %w", err)
	}
	for _, h := range s.Health.Sources {
		if h.Err != "" {
			fmt.Fprintf(w, "source %s is %s: %s\n", h.Name, h.State, h.Err)
		}
	}
	for _, f := range s.Health.Faults {
		what := promName(f.Metric)
		if f.Metric == "*" {
			what = "a device"
		}
		fmt.Fprintf(w, "source %s cannot read %s: %s\n", f.Source, what, f.Reason)
	}
	return nil
}

// promName returns the Prometheus name of a metric.
func promName(name string) string {
	for _, d := range telemetry.Descs() {
		if d.Name == name {
			return d.Prom
		}
	}
	return name
}

// shared says that a device has several owners; empty: it has not.
func shared(s *snapshot.Snapshot, d *snapshot.Device) string {
	for i := range s.Owners {
		o := &s.Owners[i]
		if n, _ := o.Read.Ownership.Info[telemetry.SharingShared].Get(); n == 1 && o.Labels.Get("gpu_uuid") == d.Identity.UUID && o.Labels.Get("gpu_partition_uuid") == "" {
			return telemetry.SharingShared.String()
		}
	}
	return ""
}

// absent is printed where there is no value.
const absent = "-"

func one(v metric.Value, scale float64, format string) string {
	n, ok := v.Get()
	if !ok {
		return absent
	}
	return fmt.Sprintf(format, n*scale)
}

// of shows a part and its whole.
func of(part, whole metric.Value, scale float64, format, unit string) string {
	have, limit := one(part, scale, format), one(whole, scale, format)
	switch {
	case have == absent && limit == absent:
		return absent
	case limit == absent:
		return have + " " + unit
	}
	return have + " / " + limit + " " + unit
}

// throttled names the causes that hold the clocks down.
func throttled(d *telemetry.Device) string {
	var causes []string
	known := false
	for i, v := range d.Throttle.Reason {
		n, ok := v.Get()
		known = known || ok
		if n == 1 {
			causes = append(causes, telemetry.ThrottleCause(i).String())
		}
	}
	switch {
	case len(causes) > 0:
		return strings.Join(causes, ",")
	case known:
		return "no"
	}
	return absent
}

// xids lists the codes seen and how often.
func xids(d *telemetry.Device) string {
	var seen []string
	for _, k := range d.XID.Errors {
		seen = append(seen, one(k.Value, 1, k.Labels.Get("gpu_xid")+"×%.0f"))
	}
	if len(seen) == 0 {
		return absent
	}
	return strings.Join(seen, ",")
}
