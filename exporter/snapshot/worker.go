package snapshot

import (
	"context"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// panicked is the reason when a source's own code fails; the other devices go on.
var panicked = &metric.Reason{Text: "panicked", Fault: true}

// reading is what a worker brings back. Its buffer was made for it and is nobody else's.
type reading struct {
	device *telemetry.Device
	host   *telemetry.Host
	why    *metric.Reason // the whole of it failed
	took   time.Duration
}

// request asks a worker for its part of a round.
type request struct {
	round *round
	slot  int
}

// worker reads one device, or the host, and nothing else; when its driver hangs, only it hangs.
type worker struct {
	source string
	device source.Device // nil: the host
	known  *known        // nil: the host
	read   func(context.Context) reading
	log    *slog.Logger

	requests chan request
	stop     context.CancelFunc
	stopped  chan struct{}
}

func newWorker(sourceName string, dev source.Device, k *known, read func(context.Context) reading, log *slog.Logger) *worker {
	return &worker{
		source: sourceName, device: dev, known: k, read: read, log: log,
		requests: make(chan request, 1), stopped: make(chan struct{}),
	}
}

func deviceWorker(sourceName string, d source.Device, k *known, log *slog.Logger) *worker {
	return newWorker(sourceName, d, k, func(ctx context.Context) reading {
		buffer := new(telemetry.Device)
		return reading{device: buffer, why: d.Read(ctx, buffer)}
	}, log)
}

func hostWorker(sourceName string, h source.HostReader, log *slog.Logger) *worker {
	return newWorker(sourceName, nil, nil, func(ctx context.Context) reading {
		buffer := new(telemetry.Host)
		return reading{host: buffer, why: h.ReadHost(ctx, buffer)}
	}, log)
}

// ask hands over a request, unless one is waiting already.
func (w *worker) ask(r request) bool {
	select {
	case w.requests <- r:
		return true
	default:
		return false
	}
}

// start runs the worker until stop is called.
func (w *worker) start(ctx context.Context) {
	ctx, w.stop = context.WithCancel(ctx)
	go w.run(ctx)
}

func (w *worker) run(ctx context.Context) {
	defer close(w.stopped)
	var tick <-chan time.Time
	sampled, _ := w.device.(source.Sampled)
	if sampled != nil {
		t := time.NewTicker(sampled.SamplePeriod())
		defer t.Stop()
		tick = t.C
		w.guard(func() { sampled.Sample(ctx) })
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick:
			w.guard(func() { sampled.Sample(ctx) })
		case r := <-w.requests:
			got := reading{why: panicked}
			start := time.Now()
			w.guard(func() { got = w.read(ctx) })
			got.took = time.Since(start)
			r.round.put(r.slot, got)
		}
	}
}

// guard keeps a fault in one source's code from ending the process.
func (w *worker) guard(f func()) {
	defer func() {
		if p := recover(); p != nil {
			w.log.Error("reading panicked; the reading is dropped", "source", w.source, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	f()
}
