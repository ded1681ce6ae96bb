// Package nvml reads NVIDIA devices through the driver's libnvidia-ml.
package nvml

import (
	"log/slog"

	"github.com/gpumeter/gpumeter/exporter/source"
)

// Config says where the driver's library is.
type Config struct {
	Library string       // path of libnvidia-ml; empty: the loader's search for libnvidia-ml.so.1
	Logger  *slog.Logger // nil: nothing is logged
}

// New returns the source. Nothing is touched before it is opened.
func New(cfg Config) source.Source {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return source.Source{
		Name: "nvml",
		Doc:  "NVIDIA devices, through the driver's libnvidia-ml",
		Open: opener(cfg),
	}
}
