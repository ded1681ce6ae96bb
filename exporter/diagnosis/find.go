package diagnosis

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Find returns the findings about the sources and devices of a snapshot, the worst first. m is nil for a
// simulated node, which has nothing to do with this machine.
func Find(s *snapshot.Snapshot, m *Machine) []Finding {
	x := &examination{snapshot: s, machine: m, explained: map[string]bool{}}
	if m == nil {
		x.add(Finding{ID: Simulated, Severity: Info, Message: "the node is SIMULATED; no value comes from hardware"})
		x.machine = new(Machine)
	}
	for i := range s.Health.Sources {
		x.source(&s.Health.Sources[i])
	}
	x.devices()
	if m != nil {
		x.bus()
	}
	Sort(x.found)
	return x.found
}

// examination is one call of Find.
type examination struct {
	snapshot  *snapshot.Snapshot
	machine   *Machine
	found     []Finding
	explained map[string]bool // PCI addresses of devices whose absence another finding explains
}

func (x *examination) add(f Finding) { x.found = append(x.found, f) }

// source examines one source.
func (x *examination) source(h *snapshot.SourceHealth) {
	switch {
	case h.State == telemetry.SourceStateServing:
	case h.State == telemetry.SourceStateReleased:
		x.add(Finding{
			ID: DevicesReleased, Severity: Warning, Message: "source " + h.Name + " has released its devices on request",
			Advice: "To acquire them again, send SIGUSR2 to the exporter, or POST to /-/acquire.",
		})
	case x.silent(h):
	case h.Name == "nvml":
		x.nvml(h)
	case h.State == telemetry.SourceStateFailed:
		x.failed(h)
	}
}

// silent reports whether a driver has not answered, and says for how long.
func (x *examination) silent(h *snapshot.SourceHealth) bool {
	opening := !h.Opening.IsZero() && h.State == telemetry.SourceStateFailed
	if !errors.Is(h.Cause, snapshot.ErrNoAnswer) && !opening {
		return false
	}
	said := h.Err
	if opening {
		said = fmt.Sprintf("it has been starting for %d s", int(max(0, x.snapshot.Taken.Sub(h.Opening).Seconds())))
	}
	x.add(Finding{
		ID: DriverSilent, Severity: Error, Message: "the driver of source " + h.Name + " does not respond: " + said,
		Advice: "Many GPUs without persistence mode take a while to start: enable nvidia-persistenced, or wait longer with --wait. " +
			"A driver that never responds hangs: look for NVRM and Xid lines in the kernel log (dmesg), then reset the GPU or reboot.",
	})
	x.explainNVIDIA(h)
	return true
}

// failed is for a source that reports an error nothing more is known about.
func (x *examination) failed(h *snapshot.SourceHealth) {
	x.add(Finding{
		ID: SourceFailed, Severity: Error, Message: "source " + h.Name + " fails: " + h.Err,
		Advice: "Fix what the error names. For a driver, compare with the vendor's own tool (nvidia-smi) and look at the kernel log (dmesg).",
	})
	x.explainNVIDIA(h)
}

// explainNVIDIA notes that the devices of NVIDIA's driver are not read because of a source's finding.
func (x *examination) explainNVIDIA(h *snapshot.SourceHealth) {
	if h.Name != "nvml" {
		return
	}
	for _, d := range x.machine.on("nvidia", "nvidia") {
		x.explained[telemetry.NormalizePCI(d.Address)] = true
	}
	for i := range x.snapshot.Devices {
		if d := &x.snapshot.Devices[i]; d.Identity.Vendor == "nvidia" && d.State() == telemetry.StateLost.String() {
			x.explained[d.Identity.PCI] = true
		}
	}
}

// Headline returns one line for a user who sees only the devices: what keeps some from being read, or why there
// are none, or that they are simulated; empty: nothing of that.
func Headline(all []Finding) string {
	worst := Worst(all, Error)
	if len(worst) == 0 {
		for _, f := range all {
			if f.ID == NoAccelerator || f.ID == Simulated {
				return f.Message
			}
		}
		return ""
	}
	line := fmt.Sprintf("%s [%s]", worst[0].Message, worst[0].ID)
	if more := len(worst) - 1; more > 0 {
		line += fmt.Sprintf(" and %d more", more)
	}
	return strings.ReplaceAll(line, "\n", " ") + `; "gpumeter doctor" says what to do`
}

func plural(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
