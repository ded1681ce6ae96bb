package snapshot

import (
	"context"
	"errors"
	"fmt"
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
	served []served       // engines
	why    *metric.Reason // the whole of it failed
}

// served is what one inference engine said.
type served struct {
	telemetry.Part[telemetry.Engine]
	why *metric.Reason // it said nothing
}

// request asks a worker for its part of a round.
type request struct {
	round *round
	slot  int
}

// worker reads one device, or the host, or the engines a source finds, and nothing else; when its
// driver hangs, only it hangs.
type worker struct {
	source string
	device source.Device // nil: none
	known  *known        // nil: no device
	called string        // what people call the device by
	read   func(context.Context) reading
	took   func(time.Duration) // is called at the end of each read, also of one that ends after its round
	log    *slog.Logger

	requests chan request
	life     context.Context
	stop     context.CancelFunc
	stopped  chan struct{}
}

func newWorker(sourceName string, dev source.Device, k *known, read func(context.Context) reading, log *slog.Logger) *worker {
	return &worker{
		source: sourceName, device: dev, known: k, read: read, took: func(time.Duration) {}, log: log,
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
	w := newWorker(sourceName, nil, nil, func(ctx context.Context) reading {
		buffer := new(telemetry.Host)
		return reading{host: buffer, why: h.ReadHost(ctx, buffer)}
	}, log)
	w.called = "host"
	return w
}

// engineWorker reads all engines of a source, which are near at hand: one that panics costs itself alone.
func engineWorker(sourceName string, r source.EngineReader, log *slog.Logger) *worker {
	w := newWorker(sourceName, nil, nil, func(ctx context.Context) reading {
		var all []served
		for _, e := range r.Engines(ctx) {
			one := served{why: panicked}
			guard(log, "read engine", func() error { //nolint:errcheck // it is logged; the reading says that it panicked
				one.Labels = e.Labels()
				one.why = e.Read(ctx, &one.Read)
				return nil
			})
			all = append(all, one)
		}
		return reading{served: all}
	}, log)
	w.called = "engines"
	return w
}

// of is what tells a worker from the others of its source.
func (w *worker) of() any {
	if w.device != nil {
		return w.device
	}
	return w.called
}

// ask hands over a request, unless one is waiting already.
func (w *worker) ask(r request) bool {
	select {
	case w.requests <- r:
	default:
		return false
	}
	if w.ended() { // too late for it to see the request
		w.refuse()
	}
	return true
}

// refuse answers the request that a stopped worker no longer will, so that its round need not wait.
func (w *worker) refuse() {
	why := metric.Lost
	if errors.Is(context.Cause(w.life), errReleased) {
		why = metric.Released
	}
	select {
	case r := <-w.requests:
		r.round.put(r.slot, reading{why: why})
	default:
	}
}

// start runs the worker until stop is called. It touches its device only once the worker that had
// it before, if any, has let go of it.
func (w *worker) start(ctx context.Context, before *worker) {
	ctx, w.stop = context.WithCancel(ctx)
	w.life = ctx
	go func() {
		if before != nil {
			<-before.stopped
		}
		if ctx.Err() == nil {
			w.run(ctx)
		}
		close(w.stopped)
		w.refuse()
	}()
}

// ended says whether the worker has let go of its device for good.
func (w *worker) ended() bool {
	select {
	case <-w.stopped:
		return true
	default:
		return false
	}
}

func (w *worker) run(ctx context.Context) {
	var tick <-chan time.Time
	sampled, _ := w.device.(source.Sampled)
	if sampled != nil {
		w.guard(func() {
			tick = time.Tick(sampled.SamplePeriod())
			sampled.Sample(ctx)
		})
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
			w.took(time.Since(start))
			r.round.put(r.slot, got)
		}
	}
}

func (w *worker) guard(f func()) {
	guard(w.log, "read", func() error { f(); return nil }) //nolint:errcheck // it is logged; the reading says that it panicked
}

// guard keeps a fault in the code of one source or stage from ending the process: it makes a
// panic an error, and logs where it came from.
func guard(log *slog.Logger, doing string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panicked: %v", p)
			log.Error("panicked", "doing", doing, "panic", p, "stack", string(debug.Stack()))
		}
	}()
	return f()
}
