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
	stat, err := r.proc.Stat()
	r.cpu.read(&h.System, stat, reason(err))
	memory, err := r.proc.Meminfo()
	readMemory(&h.System, memory, reason(err))
	return nil
}

// reason says why a file gave nothing, or nil.
func reason(err error) *metric.Reason {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return metric.Unsupported
	case errors.Is(err, fs.ErrPermission):
		return metric.Denied
	}
	return metric.Failed
}
