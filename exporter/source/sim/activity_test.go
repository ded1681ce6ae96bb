package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// activeTime is a counter of the time something was active, and the gauge it is the integral of.
type activeTime[T any] struct {
	series         string
	gauge, counter func(*T) *metric.Value
}

// activeTimes finds them by their names: gpu.sm.active.time is the integral of gpu.sm.active.
func activeTimes[T any](families []telemetry.Family[T]) (all []activeTime[T]) {
	gauges := map[string]telemetry.Family[T]{}
	for _, f := range families {
		gauges[f.Desc.Name] = f
	}
	for _, f := range families {
		name, isTime := strings.CutSuffix(f.Desc.Name, ".time")
		gauge, has := gauges[name]
		if !isTime || !has {
			continue
		}
		for i := range f.Rows {
			all = append(all, activeTime[T]{f.Desc.Name + "{" + f.Desc.Rows[i].Text() + "}", gauge.Rows[i], f.Rows[i]})
		}
	}
	return all
}

// The time something was active is the integral of the gauge that another reader sees every second.
func TestActiveTimeIsIntegral(t *testing.T) {
	slow, scraped := start(t, "h100x1,b200x8", 3) // the last four answer requests
	fast, watched := start(t, "h100x1,b200x8", 3)
	counters := activeTimes(telemetry.DeviceFamilies)
	if len(counters) < 8 {
		t.Fatalf("%d counters have a gauge", len(counters))
	}
	for i, d := range scraped {
		past := make([]float64, len(counters)) // of the ticks that are over
		random := rand.New(rand.NewPCG(4, uint64(i)))
		over := time.Duration(0)
		for at := time.Duration(0); at < 40*time.Minute; {
			at += time.Duration(random.Int64N(int64(3 * time.Minute)))
			for ; over+time.Second <= at; over += time.Second {
				fast.moveTo(over)
				x := read(t, watched[i])
				for k, c := range counters {
					past[k] += number(t, *c.gauge(x))
				}
			}
			slow.moveTo(at)
			x := read(t, d)
			for k, c := range counters {
				want := past[k] + (at-over).Seconds()*number(t, *c.gauge(x))
				near(t, fmt.Sprintf("board %d after %v: %s", i, at, c.series), number(t, *c.counter(x)), want)
			}
			if t.Failed() {
				return
			}
		}
	}
}

// filled says what is wrong between the units of a chip: multiprocessors work while the engine does,
// and everything on them while they do.
func filled(x *telemetry.Profiling) (wrong []string) {
	get := func(v metric.Value) float64 { n, _ := v.Get(); return n }
	sm := get(x.SMActive)
	if sm > get(x.GrEngineActive) {
		wrong = append(wrong, fmt.Sprintf("multiprocessors work for %v of the time, the engine for %v", sm, get(x.GrEngineActive)))
	}
	if get(x.SMOccupancy) > sm {
		wrong = append(wrong, fmt.Sprintf("%v of the warps on %v of the multiprocessors", get(x.SMOccupancy), sm))
	}
	for p, v := range x.PipeActive {
		if get(v) > sm || get(v) < 0 {
			wrong = append(wrong, fmt.Sprintf("pipe %v is active for %v, the multiprocessors for %v", telemetry.Pipe(p), get(v), sm))
		}
	}
	return wrong
}
