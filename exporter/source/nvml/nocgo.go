//go:build !cgo

package nvml

import (
	"context"
	"fmt"
	"io"

	"github.com/gpumeter/gpumeter/exporter/source"
)

// build returns the functions of the source where C cannot be called.
func build(Config) (opener func(context.Context) (source.Reader, error), follow func(context.Context)) {
	return func(context.Context) (source.Reader, error) {
		return nil, fmt.Errorf("nvml: %w: NVML needs a build with cgo", source.ErrUnbuilt)
	}, nil
}

// Probe needs a build with cgo.
func Probe(string, io.Reader, io.Writer) error { return source.ErrUnbuilt }
