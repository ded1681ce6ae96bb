// Package host reads the machine's CPU and memory through /proc.
package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/prometheus/procfs"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// Config says where the host is read.
type Config struct {
	Proc string // where the host's /proc is mounted; empty for /proc
}

// New returns the source. It lists no devices: its Reader is a source.HostReader.
func New(c Config) source.Source {
	if c.Proc == "" {
		c.Proc = procfs.DefaultMountPoint
	}
	return source.Source{
		Name: "host",
		Doc:  "the host's CPU and memory, through /proc",
		Open: func(context.Context) (source.Reader, error) {
			proc, err := procfs.NewFS(c.Proc)
			if err != nil {
				return nil, fmt.Errorf("%w: %w", source.ErrAbsent, err)
			}
			return &reader{proc: proc}, nil
		},
	}
}

type reader struct {
	proc procfs.FS
	cpu  cpuTime
}

var _ source.HostReader = (*reader)(nil)

// Devices lists none: the host is read whole.
func (r *reader) Devices(context.Context) ([]source.Device, error) { return nil, nil }

// Close has nothing to free: each read opens its files anew.
func (r *reader) Close() error { return nil }

// ReadHost reads each file on its own, so that one that cannot be read costs only its metrics.
func (r *reader) ReadHost(_ context.Context, h *telemetry.Host) *metric.Reason {
	for _, file := range parsed {
		if why := file.read(r, h); why != nil {
			fail(h, file.name, why)
		}
	}
	return nil
}

// parsed are the files that the source reads, each with what parses it. A parser returns why the
// whole file gave nothing.
var parsed = []struct {
	name string
	read func(*reader, *telemetry.Host) *metric.Reason
}{
	{"stat", (*reader).readStat},
	{"meminfo", (*reader).readMeminfo},
}

func (r *reader) readStat(h *telemetry.Host) *metric.Reason {
	stat, err := r.proc.Stat()
	if err != nil {
		return reason(err)
	}
	return r.cpu.read(&h.System, stat)
}

func (r *reader) readMeminfo(h *telemetry.Host) *metric.Reason {
	memory, err := r.proc.Meminfo()
	if err != nil {
		return reason(err)
	}
	return readMemory(&h.System, memory)
}

// fileEntry is one metric that the spec reads from a file below /proc. procfs turns the file's numbers
// into base units, so the scale is 1.
type fileEntry[T any] struct {
	metric, file string
	scale        float64
	to           func(*T) []*metric.Value
}

// fail sets the metrics of a file to the reason why it gave nothing.
func fail(h *telemetry.Host, file string, why *metric.Reason) {
	for _, entry := range hostFiles {
		if entry.file != file {
			continue
		}
		for _, v := range entry.to(h) {
			v.Fail(why)
		}
	}
}

// each returns a pointer to each value.
func each(values []metric.Value) []*metric.Value {
	out := make([]*metric.Value, len(values))
	for i := range values {
		out[i] = &values[i]
	}
	return out
}

// reason returns the reason for a failed read of a file.
func reason(err error) *metric.Reason {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return metric.Unsupported
	case errors.Is(err, fs.ErrPermission):
		return metric.Denied
	}
	return metric.Failed
}
