//go:build !cgo

package nvml

import (
	"context"
	"fmt"

	"github.com/gpumeter/gpumeter/exporter/source"
)

// build returns the functions of the source where C cannot be called.
func build(Config) (opener func(context.Context) (source.Reader, error), follow func(context.Context)) {
	return func(context.Context) (source.Reader, error) {
		return nil, fmt.Errorf("nvml: %w: NVML needs a build with cgo", source.ErrUnbuilt)
	}, nil
}
