// Package nvml reads NVIDIA devices through the driver's libnvidia-ml.
package nvml

import (
	"context"
	"log/slog"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	store "github.com/gpumeter/gpumeter/exporter/state" // state is a unit here
)

// Config says where the driver's library is, and what to read through it.
type Config struct {
	On        func(*metric.Desc) bool // what is off is not asked for; nil: everything is on
	Library   string                  // path of libnvidia-ml; empty: where the loader or a known system keeps it
	Proc      string                  // the host's /proc, for the names of processes; empty: /proc
	KernelLog string                  // /dev/kmsg, or a file with its records, for XIDs; empty: it is not read
	State     store.Store             // where the next run finds how far the kernel's log was read
	Hold      time.Duration           // an XID code is 0 for so long from the first reading that has it; 0: one reading
	Processes int                     // the most processes told of one device; 0: 32
	Owners    bool                    // the processes are read in any case: somebody wants to know whose work they do
	// Sys is the host's /sys, which shows the devices on the PCI bus: the driver lists one that was put in, or
	// is back, only when it is initialised again. Empty: nothing is known of the bus.
	Sys string
	// Probe is a command that runs Probe in a process of its own, to see what initialising NVML again would
	// bring. Without it a lost device is recovered only when no other is read.
	Probe   []string
	Timeout time.Duration // how long a scrape waits for a device, and so for NVML to be initialised again; 0: 2 s
	Retry   time.Duration // between the first two probes for a missing device, doubled with each further one; 0: 30 s
	Logger  *slog.Logger  // nil: nothing is logged

	now        func() time.Time                      // nil: time.Now
	startProbe func(context.Context) (*probe, error) // instead of Probe
}

// mostProcesses is how many are told of one device by default: enough for any sensible sharing.
const mostProcesses = 32

// New returns the source. Nothing is touched before it is opened.
func New(cfg Config) source.Source {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Proc == "" {
		cfg.Proc = "/proc"
	}
	if cfg.On == nil {
		cfg.On = func(*metric.Desc) bool { return true }
	}
	if cfg.Processes == 0 {
		cfg.Processes = mostProcesses
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 2 * time.Second
	}
	if cfg.now == nil {
		cfg.now = time.Now
	}
	opener, follow := build(cfg)
	return source.Source{
		Name: "nvml",
		Doc:  "NVIDIA devices, through the driver's libnvidia-ml",
		Open: opener,
		Run:  follow,
	}
}
