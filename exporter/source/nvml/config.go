// Package nvml reads NVIDIA devices through the driver's libnvidia-ml.
package nvml

import (
	"log/slog"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
)

// Config says where the driver's library is, and what to read through it.
type Config struct {
	On      func(*metric.Desc) bool // what is off is not asked for; nil: everything is on
	Library string                  // path of libnvidia-ml; empty: the loader's search for libnvidia-ml.so.1
	Logger  *slog.Logger            // nil: nothing is logged
}

// New returns the source. Nothing is touched before it is opened.
func New(cfg Config) source.Source {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.On == nil {
		cfg.On = func(*metric.Desc) bool { return true }
	}
	return source.Source{
		Name: "nvml",
		Doc:  "NVIDIA devices, through the driver's libnvidia-ml",
		Open: opener(cfg),
	}
}
