// Package source says what a source of telemetry is. Each driver is one package below this one.
package source

import (
	"context"
	"errors"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Why a source does not open, beside its driver's own errors.
var (
	ErrAbsent  = errors.New("no such hardware or driver on this machine") // tried again later
	ErrUnbuilt = errors.New("not part of this build")                     // never tried again
	ErrStale   = errors.New("only a new process can read it again")       // such as a library that stays loaded while its driver was replaced
)

// Source is one driver, as a value that documents itself.
type Source struct {
	Name string // as written under sources: in the spec
	Doc  string // one line
	// Open reaches the driver. It may hang with it; whoever calls it does not wait for it in a scrape.
	// The context ends when the devices are released.
	Open func(context.Context) (Reader, error)
	// Run does what must go on while the devices are released, such as following the kernel log. The feed
	// calls it once, in parallel with Open, and ends its context when the feed ends. Run must hold
	// nothing of the driver. It may return early; it is not called again, also not after a panic. Nil: none.
	Run func(context.Context)
}

// Reader is an opened source.
type Reader interface {
	// Devices lists the devices that are there now, each once. Each is a pointer; a device that was listed
	// before is the same pointer as before. The feed reads no device that breaks these rules, and counts a
	// fault of the source. An error means the driver is gone: the Reader is then closed and opened again.
	Devices(context.Context) ([]Device, error)
	// Close frees everything held of the driver. No Device is used during or after it.
	Close() error
}

// Notifier is a Reader that knows when its devices should be listed before the next period has passed.
type Notifier interface {
	// Changed delivers when Devices should be called now.
	Changed() <-chan struct{}
}

// Device reads one device. Its methods are never called at the same time.
type Device interface {
	// Identity is fixed while the Device lives.
	Identity() *telemetry.Identity
	// Read fills the buffer with what the driver says now. What failed alone says so in its Value.
	// A returned reason means that the device as a whole does not answer; what the buffer holds all
	// the same, such as the errors counted until then, is served.
	Read(context.Context, *telemetry.Device) *metric.Reason
}

// Sampled is a Device that must be looked at between reads for its counters to be right,
// because its driver forgets.
type Sampled interface {
	Device
	Sample(context.Context)
	SamplePeriod() time.Duration
}

// HostReader is a Reader that reads the host itself.
type HostReader interface {
	ReadHost(context.Context, *telemetry.Host) *metric.Reason
}

// EngineReader is a Reader that finds inference engines. They are listed at each reading, not with
// the devices: they come and go with their pods. Neither listing nor reading waits for an engine:
// one that is far is asked in the background, on a period of its own.
type EngineReader interface {
	Engines(context.Context) []Engine
}

// Engine is an inference engine that answers, whatever devices it runs on. Its methods are never
// called at the same time as those of another of its Reader.
type Engine interface {
	// Labels say which engine it is and whose. They are made when it is found, not at each read.
	Labels() *metric.Labels
	// Read fills the buffer with what the engine said last. A returned reason means that it said
	// nothing; then nothing is told of it.
	Read(context.Context, *telemetry.Engine) *metric.Reason
}
