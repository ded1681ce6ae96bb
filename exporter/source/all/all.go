// Package all is the explicit list of sources. A new source is a folder beside this one and a line here.
package all

import (
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/source/host"
	"github.com/gpumeter/gpumeter/exporter/source/nvml"
)

// Config holds the settings of each source.
type Config struct {
	NVML nvml.Config
	Host host.Config
}

// Sources returns every source that reads real hardware.
func Sources(c Config) []source.Source {
	return []source.Source{
		nvml.New(c.NVML),
		host.New(c.Host),
	}
}
