package snapshot

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// keeper holds one source open, keeps a worker for each device it lists, and opens it again when
// its driver comes back.
type keeper struct {
	src     source.Source
	cfg     *Config
	devices *registry
	log     *slog.Logger

	mu      sync.Mutex
	state   telemetry.SourceState
	err     error
	workers []*worker

	// Workers of devices no longer listed that may still be in the driver; serve's goroutine alone touches it.
	leaving map[source.Device]*worker
}

var errStarting = errors.New("being opened")

func newKeeper(s source.Source, cfg *Config, devices *registry) *keeper {
	return &keeper{
		src: s, cfg: cfg, devices: devices, log: cfg.Logger.With("source", s.Name),
		state: telemetry.SourceStateFailed, err: errStarting, leaving: map[source.Device]*worker{},
	}
}

// run opens the source, and again whenever it is lost. It calls tried once the first attempt has ended.
func (k *keeper) run(ctx context.Context, tried func()) {
	for ctx.Err() == nil {
		var reader source.Reader
		err := k.call("open", func() (err error) { reader, err = k.src.Open(ctx); return err })
		if err == nil {
			err = k.serve(ctx, reader, tried)
		}
		k.fail(ctx, err)
		tried()
		if errors.Is(err, source.ErrUnbuilt) {
			return
		}
		sleep(ctx, k.cfg.Retry)
	}
}

// serve lists the devices again and again, until that fails or the context ends.
func (k *keeper) serve(ctx context.Context, reader source.Reader, tried func()) error {
	defer k.close(reader)
	if h, ok := reader.(source.HostReader); ok {
		w := hostWorker(k.src.Name, h, k.log)
		w.start(ctx, nil)
		k.set(func() { k.workers = []*worker{w} })
	}
	for ctx.Err() == nil {
		var devices []source.Device
		err := k.call("list devices", func() (err error) { devices, err = reader.Devices(ctx); return err })
		if err != nil {
			err = fmt.Errorf("list devices: %w", err)
			k.fail(ctx, err) // now, since closing may take as long as a device hangs
			return err
		}
		k.adopt(ctx, devices)
		tried()
		sleep(ctx, k.cfg.Relist)
	}
	return nil
}

// adopt keeps the workers of devices that are still there, starts those of new ones and stops the rest.
func (k *keeper) adopt(ctx context.Context, devices []source.Device) {
	have := map[source.Device]*worker{}
	var next []*worker
	for _, w := range k.current() {
		if w.device == nil {
			next = append(next, w)
		} else {
			have[w.device] = w
		}
	}
	for _, d := range devices {
		w := have[d]
		if delete(have, d); w == nil {
			var id *telemetry.Identity
			if guard(k.log, "identify", func() error { id = d.Identity(); return nil }) != nil {
				continue
			}
			if !k.cfg.Devices(id) {
				continue
			}
			w = deviceWorker(k.src.Name, d, k.devices.meet(k.src.Name, id), k.log)
			w.start(ctx, k.leaving[d])
			delete(k.leaving, d)
			k.log.Info("device found", "uuid", id.UUID, "pci", id.PCI, "model", id.Model)
		}
		next = append(next, w)
	}
	maps.DeleteFunc(k.leaving, func(_ source.Device, w *worker) bool { return w.ended() })
	for d, w := range have {
		k.dismiss(w)
		k.leaving[d] = w
		k.log.Warn("device gone", "uuid", d.Identity().UUID, "pci", d.Identity().PCI)
	}
	k.set(func() {
		if k.state != telemetry.SourceStateServing {
			k.log.Info("source serving", "devices", len(next))
		}
		k.workers, k.state, k.err = next, telemetry.SourceStateServing, nil
	})
}

func (k *keeper) dismiss(w *worker) {
	w.stop()
	k.devices.leave(w.known)
}

// close stops the workers and then the reader. A reader is not closed under a worker that hangs
// in its driver; it stays open until the driver answers.
func (k *keeper) close(reader source.Reader) {
	workers := slices.AppendSeq(k.current(), maps.Values(k.leaving))
	clear(k.leaving)
	k.set(func() { k.workers = nil })
	for _, w := range workers {
		k.dismiss(w)
	}
	for _, w := range workers {
		<-w.stopped
	}
	if err := guard(k.log, "close", reader.Close); err != nil {
		k.log.Warn("source did not close", "err", err)
	}
}

// call runs what may hang or panic in the source's code. It marks the source as failed while it
// takes longer than a device may.
func (k *keeper) call(doing string, f func() error) error {
	over := false // under the lock
	t := time.AfterFunc(k.cfg.Timeout, func() {
		k.set(func() {
			if over {
				return
			}
			k.state, k.err = telemetry.SourceStateFailed, fmt.Errorf("%s: no answer for %v", doing, k.cfg.Timeout)
			k.log.Warn("source does not answer", "doing", doing, "for", k.cfg.Timeout)
		})
	})
	defer k.set(func() {
		t.Stop()
		over = true
	})
	return guard(k.log, doing, f)
}

// fail notes why the source does not serve, and logs it when that is new.
func (k *keeper) fail(ctx context.Context, err error) {
	if ctx.Err() != nil || err == nil {
		return
	}
	state, level := telemetry.SourceStateFailed, slog.LevelWarn
	switch {
	case errors.Is(err, source.ErrAbsent):
		state, level = telemetry.SourceStateAbsent, slog.LevelInfo
	case errors.Is(err, source.ErrUnbuilt):
		state, level = telemetry.SourceStateUnbuilt, slog.LevelInfo
	}
	k.set(func() {
		if k.err == nil || k.err.Error() != err.Error() {
			k.log.Log(ctx, level, "source not serving", "state", state, "err", err)
		}
		k.state, k.err = state, err
	})
}

func (k *keeper) set(f func()) {
	k.mu.Lock()
	defer k.mu.Unlock()
	f()
}

// current returns the workers there are now.
func (k *keeper) current() []*worker {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]*worker(nil), k.workers...)
}

func (k *keeper) health() SourceHealth {
	k.mu.Lock()
	defer k.mu.Unlock()
	h := SourceHealth{Name: k.src.Name, State: k.state}
	if k.err != nil {
		h.Err = k.err.Error()
	}
	for _, w := range k.workers {
		if w.device != nil {
			h.Devices++
		}
	}
	return h
}

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
