package snapshot

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/source"
)

// notifying is a driver whose reader asks to be listed again.
type notifying struct {
	*driver
	changed chan struct{}
}

func (n notifying) Changed() <-chan struct{} { return n.changed }

func TestKeeper_ListsWhenTheReaderAsks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := notifying{&driver{devices: []source.Device{newGPU(0)}}, make(chan struct{}, 1)}
		src := n.source("nvml")
		src.Open = func(context.Context) (source.Reader, error) { return n, nil }
		f := run(t, Config{Sources: []source.Source{src}, Relist: time.Hour})
		n.set(func() { n.devices = append(n.devices, newGPU(1)) })
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := f.Sources()[0].Devices; got != 1 {
			t.Fatalf("%d devices before the reader asks", got)
		}
		n.changed <- struct{}{}
		synctest.Wait()
		if got := f.Sources()[0].Devices; got != 2 {
			t.Errorf("%d devices after the reader asked to be listed, want 2", got)
		}
	})
}
