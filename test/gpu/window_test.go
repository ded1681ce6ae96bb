package gpu

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// sample is a page and when it was fetched: the devices were read at some time while that took.
type sample struct {
	at   time.Time
	took time.Duration
	page page
}

// watch fetches a page every period.
func watch(t testing.TB, s *server, period, length time.Duration) []sample {
	t.Helper()
	var out []sample
	for start := time.Now(); time.Since(start) < length || len(out) < 2; time.Sleep(period) {
		asked := time.Now()
		p, err := s.page()
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(asked)
		out = append(out, sample{asked.Add(took / 2), took, p})
	}
	return out
}

// check is one comparison of what gpumeter itself reports over a window. One that could not be made
// is ok, and lacks something.
type check struct {
	uuid, name, saw, want string
	ok                    bool
	lacks                 string
}

// unchecked is a check that could not be made for want of a metric.
func (w window) unchecked(name string, lacks ...string) check {
	return check{uuid: w.uuid, name: name, ok: true, lacks: strings.Join(lacks, " or ") + " is absent"}
}

// window are the samples of one GPU.
type window struct {
	uuid    string
	samples []sample
}

func (w window) seconds() float64 {
	return w.samples[len(w.samples)-1].at.Sub(w.samples[0].at).Seconds()
}

// unsure is the share of the window that may lie outside of what the counters counted, or be missing.
func (w window) unsure() float64 {
	return (w.samples[0].took + w.samples[len(w.samples)-1].took).Seconds() / 2 / w.seconds()
}

// mean is that of a gauge over time; there says that every sample has it.
func (w window) mean(selector string) (mean float64, there bool) {
	for i := 1; i < len(w.samples); i++ {
		before, had := w.samples[i-1].page.number(w.uuid, selector)
		now, has := w.samples[i].page.number(w.uuid, selector)
		if !had || !has {
			return 0, false
		}
		mean += (before + now) / 2 * w.samples[i].at.Sub(w.samples[i-1].at).Seconds()
	}
	return mean / w.seconds(), true
}

// rate is what a counter grew by a second.
func (w window) rate(selector string) (rate float64, there bool) {
	first, had := w.samples[0].page.number(w.uuid, selector)
	last, has := w.samples[len(w.samples)-1].page.number(w.uuid, selector)
	return (last - first) / w.seconds(), had && has
}

// Slack of the checks.
const (
	powerShare = .1 // of the mean power
	powerFloor = 5. // watts
	busySlack  = .1
	edge       = .5 // seconds that the newest of the driver's samples may be behind, or its counts
	gpmPeriod  = 5. // seconds between two looks of the profiler
)

// present checks that each GPU that nvidia-smi lists is on every page: what is absent from a page
// would pass all other checks.
func present(uuids []string, samples []sample) []check {
	var out []check
	for _, uuid := range uuids {
		n := 0
		for _, s := range samples {
			if slices.Contains(s.page.uuids(), uuid) {
				n++
			}
		}
		out = append(out, check{
			uuid: uuid, name: "pages that have the GPU", saw: fmt.Sprint(n), want: fmt.Sprint(len(samples)), ok: n == len(samples) && n > 0,
		})
	}
	return out
}

// counters checks the counters of each GPU against each other.
func counters(samples []sample) []check {
	var out []check
	for _, uuid := range samples[0].page.uuids() {
		w := window{uuid, samples}
		out = append(out, w.energy()...)
		out = append(out, w.busy()...)
		out = append(out, w.throttled()...)
		out = append(out, w.memory()...)
		out = append(out, w.rising())
	}
	return out
}

// close compares two numbers that should be the same.
func (w window) close(name string, saw, want, slack float64, unit string) check {
	limits := fmt.Sprintf("%s%s ± %s", show3(want), unit, show3(slack))
	return check{uuid: w.uuid, name: name, saw: show3(saw) + unit, want: limits, ok: math.Abs(saw-want) <= slack}
}

func show3(n float64) string { return fmt.Sprintf("%.3f", n) }

// energy compares how fast the energy grows with the power.
func (w window) energy() []check {
	rate, counted := w.rate("gpu_energy_joules_total")
	draw, measured := w.mean("gpu_power_draw_watts")
	if !counted || !measured {
		return []check{w.unchecked("energy counted, against power", "gpu_energy_joules_total", "gpu_power_draw_watts")}
	}
	return []check{w.close("energy counted, against power", rate, draw, max(powerFloor, powerShare*draw)+w.unsure()*draw, " W")}
}

// busy compares how fast busy time grows with the utilization, and the engine's with that.
func (w window) busy() []check {
	var out []check
	rate, counted := w.rate("gpu_busy_time_seconds_total")
	use, measured := w.mean("gpu_utilization_ratio")
	if counted && measured {
		out = append(out, w.close("busy time counted, against utilization", rate, use, busySlack+edge/w.seconds()+w.unsure(), ""))
	} else {
		out = append(out, w.unchecked("busy time counted, against utilization", "gpu_busy_time_seconds_total", "gpu_utilization_ratio"))
	}
	engine, profiled := w.rate("gpu_gr_engine_active_time_seconds_total")
	if slack := busySlack + gpmPeriod/w.seconds() + w.unsure(); counted && profiled && slack < .5 { // else it says nothing
		out = append(out, w.close("engine's active time, against busy time", engine, rate, slack, ""))
	}
	return out
}

// throttled compares how fast the time of each cause grows with whether it held at all samples, or
// at none.
func (w window) throttled() []check {
	var out []check
	for _, cause := range w.samples[0].page.values(w.uuid, "gpu_throttle_time_seconds_total", "gpu_throttle_cause") {
		rate, _ := w.rate("gpu_throttle_time_seconds_total{gpu_throttle_cause=" + cause + "}")
		held, told := w.mean("gpu_throttle_reason{gpu_throttle_cause=" + cause + "}")
		if !told {
			continue
		}
		edge := edge/w.seconds() + w.unsure()
		low, high := 0., 1+edge
		switch held {
		case 0:
			high = .3 + edge // it may hold between two samples
		case 1:
			low = .5 - edge
		}
		out = append(out, check{
			uuid: w.uuid, name: "time throttled by " + cause + ", which held in a share of " + show3(held), saw: show3(rate),
			want: show3(low) + " to " + show3(high), ok: rate >= low && rate <= high,
		})
	}
	return out
}

// memory adds up at each sample.
func (w window) memory() []check {
	parts := []string{"gpu_memory_usage_bytes", "gpu_memory_free_bytes", "gpu_memory_reserved_bytes"}
	for _, s := range w.samples {
		limit, there := s.page.number(w.uuid, "gpu_memory_limit_bytes")
		sum := 0.
		for _, part := range parts {
			n, has := s.page.number(w.uuid, part)
			sum, there = sum+n, there && has
		}
		if !there {
			return []check{w.unchecked("memory used, free and reserved, against all", append(parts, "gpu_memory_limit_bytes")...)}
		}
		if sum != limit {
			return []check{{uuid: w.uuid, name: "memory used, free and reserved, against all", saw: show(sum), want: show(limit)}}
		}
	}
	return []check{{uuid: w.uuid, name: "memory used, free and reserved, against all", saw: "equal", want: "equal", ok: true}}
}

// rising looks for a counter that falls.
func (w window) rising() check {
	n := 0
	for name, f := range w.samples[0].page {
		if f.GetType() != dto.MetricType_COUNTER {
			continue
		}
		for _, m := range w.samples[0].page.series(w.uuid, selector{name: name}) {
			n++
			last := value(m)
			for _, s := range w.samples[1:] {
				for _, later := range s.page.series(w.uuid, selector{name: name}) {
					if labels(later) != labels(m) {
						continue
					}
					if value(later) < last {
						return check{uuid: w.uuid, name: name + labels(m), saw: show(value(later)), want: "at least " + show(last)}
					}
					last = value(later)
				}
			}
		}
	}
	return check{uuid: w.uuid, name: "counters that never fall", saw: fmt.Sprint(n), want: "at least 1", ok: n > 0}
}

func labels(m *dto.Metric) string {
	var out []string
	for _, l := range m.Label {
		out = append(out, l.GetName()+"="+l.GetValue())
	}
	return "{" + strings.Join(out, ",") + "}"
}

// loaded checks that a load is seen: the GPU is busy, and draws more than before.
func loaded(idle, busy []sample) []check {
	var out []check
	for _, uuid := range busy[0].page.uuids() {
		w, before := window{uuid, busy}, window{uuid, idle}
		if use, there := w.mean("gpu_utilization_ratio"); there { // MIG has none
			out = append(out, check{uuid: uuid, name: "utilization under load", saw: show3(use), want: "at least 0.5", ok: use >= .5})
		} else {
			out = append(out, w.unchecked("utilization under load", "gpu_utilization_ratio"))
		}
		was, had := before.mean("gpu_power_draw_watts")
		if is, has := w.mean("gpu_power_draw_watts"); had && has {
			out = append(out, check{uuid: uuid, name: "power under load", saw: show3(is) + " W", want: "more than " + show3(was) + " W", ok: is > was})
		} else {
			out = append(out, w.unchecked("power under load", "gpu_power_draw_watts"))
		}
	}
	return out
}
