//go:build !cgo

package nvml

import (
	"context"
	"fmt"

	"github.com/gpumeter/gpumeter/exporter/source"
)

// opener is all there is of the source where C can not be called.
func opener(Config) func(context.Context) (source.Reader, error) {
	return func(context.Context) (source.Reader, error) {
		return nil, fmt.Errorf("nvml: %w: NVML needs a build with cgo", source.ErrUnbuilt)
	}
}
