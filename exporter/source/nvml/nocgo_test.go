//go:build !cgo

package nvml

import (
	"errors"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/source"
)

func TestUnbuilt(t *testing.T) {
	if _, err := New(Config{}).Open(t.Context()); !errors.Is(err, source.ErrUnbuilt) {
		t.Errorf("opened with %v, want %v", err, source.ErrUnbuilt)
	}
}
