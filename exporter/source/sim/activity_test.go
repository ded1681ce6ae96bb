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
type activeTime struct {
	series         string
	gauge, counter float64
}

// activeTimes finds those of a board and its partitions by their names: gpu.sm.active.time is the
// integral of gpu.sm.active.
func activeTimes(x *telemetry.Device) []activeTime {
	all := pairs(telemetry.DeviceFamilies, "", x)
	for i := range x.Partitions {
		all = append(all, pairs(telemetry.PartitionFamilies, x.Partitions[i].Labels.Text(), &x.Partitions[i].Read)...)
	}
	return all
}

func pairs[T any](families []telemetry.Family[T], of string, x *T) (all []activeTime) {
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
		for i, row := range f.Rows {
			now, told := gauge.Rows[i](x).Get()
			sum, counted := row(x).Get()
			if told && counted {
				all = append(all, activeTime{f.Desc.Name + "{" + of + f.Desc.Rows[i].Text() + "}", now, sum})
			}
		}
	}
	return all
}

// The time something was active is the integral of the gauge that another reader sees every second.
func TestActiveTimeIsIntegral(t *testing.T) {
	const node = "h100x1,b200x5,h100migx1" // the fifth answers requests
	slow, scraped := start(t, node, 3)
	fast, watched := start(t, node, 3)
	met := map[string]bool{}
	for i, d := range scraped {
		past := map[string]float64{} // of the ticks that are over
		random := rand.New(rand.NewPCG(4, uint64(i)))
		over := time.Duration(0)
		for at := time.Duration(0); at < 40*time.Minute; {
			at += time.Duration(random.Int64N(int64(3 * time.Minute)))
			for ; over+time.Second <= at; over += time.Second {
				fast.moveTo(over)
				for _, a := range activeTimes(read(t, watched[i])) {
					past[a.series] += a.gauge
				}
			}
			slow.moveTo(at)
			for _, a := range activeTimes(read(t, d)) {
				met[a.series] = true
				want := past[a.series] + (at-over).Seconds()*a.gauge
				near(t, fmt.Sprintf("board %d after %v: %s", i, at, a.series), a.counter, want)
			}
			if t.Failed() {
				return
			}
		}
	}
	if len(met) != (1+4)*8 {
		t.Errorf("%d series of a board and four partitions have a gauge; want 8 of each", len(met))
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
