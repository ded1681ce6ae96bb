package stdout

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

const gibi = 1 << 30

// Table prints a line per device, then what is wrong.
func Table(w io.Writer, s *snapshot.Snapshot) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	if len(s.Devices) > 0 {
		fmt.Fprintln(t, "INDEX\tMODEL\tSTATE\tBUSY\tMEMORY\tPOWER\tTEMP\tTHROTTLED\tXIDS\tWHOSE\tUUID")
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		r := &d.Read
		fmt.Fprintln(t, strings.Join([]string{
			d.Labels.Get("gpu_index"), d.Labels.Get("gpu_model"), d.State(),
			one(r.Utilization.Utilization, 100, "%.0f %%"),
			of(r.Memory.Usage, r.Memory.Limit, 1.0/gibi, "%.1f", "GiB"),
			of(r.Power.Draw, r.Power.Limit[telemetry.PowerLimitTypeEnforced], 1, "%.0f", "W"),
			one(r.Thermal.Temperature[telemetry.TemperatureSensorCore], 1, "%.0f °C"),
			throttled(r), xids(r), cmp.Or(d.Whose(), absent), d.Labels.Get("gpu_uuid"),
		}, "\t"))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(s.Devices) == 0 {
		fmt.Fprintln(w, "no device")
	}
	for _, h := range s.Health.Sources {
		if h.Err != "" {
			fmt.Fprintf(w, "source %s is %s: %s\n", h.Name, h.State, h.Err)
		}
	}
	for _, f := range s.Health.Faults {
		fmt.Fprintf(w, "source %s could not read %s: %s\n", f.Source, f.Metric, f.Reason)
	}
	return nil
}

// absent stands where there is no number.
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
