//go:build cgo

package nvml_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// partitions are those of a read, each as one line: labels, multiprocessors, memory and memory used.
func partitions(d *telemetry.Device) []string {
	text := func(v metric.Value) string {
		if n, ok := v.Get(); ok {
			return fmt.Sprintf("%.0f", n)
		}
		return "-"
	}
	var out []string
	for _, p := range d.Partitions {
		x := p.Read.Partitions
		uuid := p.Labels.Get("gpu_partition_uuid")
		out = append(out, strings.TrimSpace(fmt.Sprintf("%s %s %s: %s, %s, %s", uuid[max(0, len(uuid)-12):], p.Labels.Get("gpu_partition_id"),
			p.Labels.Get("gpu_partition_profile"), text(x.Multiprocessors), text(x.MemoryLimit), text(x.MemoryUsage))))
	}
	return out
}

// held is what the driver holds for us.
func (d driver) held() [3]int {
	s := fakenvml.Stats(d, os.Getenv("FAKENVML_STATS"))
	return [3]int{s["users"], s["sets"], s["samples"]}
}

// MIG instances as the driver lists them, with holes, and cut anew between two reads.
func TestDriverPartitions(t *testing.T) {
	alone(t, "", func(d driver) {
		const gb = 1 << 30
		steps := []struct {
			mig     string
			want    []string
			samples int // of the profiler: two of the device and of each GPU instance
		}{
			{"mig 0 off", nil, 2},
			{"mig 0 on -,1g.10gb:9:0,-,-,3g.40gb:2:0", []string{
				fmt.Sprint("000000090000 9/0 1g.10gb: 16, ", 10*gb, ", ", 7), fmt.Sprint("000000020000 2/0 3g.40gb: 48, ", 40*gb, ", ", 5),
			}, 6},
			{"mig 0 on 1c.3g.40gb:2:0,-,2c.3g.40gb:2:1", []string{
				fmt.Sprint("2 3g.40gb: -, ", 40*gb, ", ", 5), "000000020000 2/0 1c.3g.40gb: 16, -, -", "000000020001 2/1 2c.3g.40gb: 32, -, -",
			}, 4},
			{"mig 0 on 2g.20gb:2:0", []string{fmt.Sprint("000000020000 2/0 2g.20gb: 32, ", 20*gb, ", ", 5)}, 4},
			{"mig 0 on", nil, 2},
			{"mig 0 on 1g.10gb:7:0,1g.10gb:8:0,1g.10gb:9:0,1g.10gb:11:0,1g.10gb:12:0,1g.10gb:13:0,1g.10gb:14:0", []string{
				fmt.Sprint("000000070000 7/0 1g.10gb: 16, ", 10*gb, ", ", 0), fmt.Sprint("000000080000 8/0 1g.10gb: 16, ", 10*gb, ", ", 0),
				fmt.Sprint("000000090000 9/0 1g.10gb: 16, ", 10*gb, ", ", 7), fmt.Sprint("0000000b0000 11/0 1g.10gb: 16, ", 10*gb, ", ", 0),
				fmt.Sprint("0000000c0000 12/0 1g.10gb: 16, ", 10*gb, ", ", 0), fmt.Sprint("0000000d0000 13/0 1g.10gb: 16, ", 10*gb, ", ", 0),
				fmt.Sprint("0000000e0000 14/0 1g.10gb: 16, ", 10*gb, ", ", 0),
			}, 16},
			{"mig 0 off", nil, 2},
		}
		tell := func(mig string) { d.tell("gpus 2", mig, "process 0 40 7 9 0", "process 0 50 5 2 0") }
		tell(steps[0].mig)
		r := d.open()
		gpu := d.list(r)[0]
		for _, s := range steps {
			tell(s.mig)
			for range 2 {
				out := d.read(gpu)
				gpu.(source.Sampled).Sample(d.Context())
				if got := partitions(out); !slices.Equal(got, s.want) {
					d.Errorf("%s:\n%s\nwant:\n%s", s.mig, strings.Join(got, "\n"), strings.Join(s.want, "\n"))
				}
				utilization, on := out.Utilization.Utilization, strings.Contains(s.mig, " on")
				if on {
					d.lacks("utilization under MIG", utilization, metric.Unsupported)
				} else {
					d.want("utilization", utilization, 0.4)
				}
				if held := d.held(); held != [3]int{1, 1, s.samples} {
					d.Errorf("%s: users, event sets and samples held are %v, want 1, 1, %d", s.mig, held, s.samples)
				}
			}
		}
		tell("mig 0 on 1g.10gb:7:0")
		gpu.(source.Sampled).Sample(d.Context())
		d.close(r)
		if held := d.held(); held != [3]int{} {
			d.Errorf("users, event sets and samples held in the end are %v", held)
		}
	})
}

// Averages and counts of a device and of each GPU instance are those of their own load.
func TestDriverProfile(t *testing.T) {
	alone(t, "", func(d driver) {
		cut := "mig 1 on 1g.10gb:9:0,1c.3g.40gb:2:0,1c.3g.40gb:2:1"
		d.tell("gpus 3", "board a100 2", "gpm 0 2 80", "gpm 0 10 25", "gpm 0 5 808334905", cut, "gpm 1/9 2 10", "gpm 1/2 2 60")
		r := d.open()
		defer d.close(r)
		devices := d.list(r)
		look := func() (out [3]*telemetry.Device) {
			for i, x := range devices {
				x.(source.Sampled).Sample(d.Context())
				out[i] = d.read(x)
			}
			return out
		}
		near := func(what string, v metric.Value, want, slack float64) {
			d.Helper()
			if n, ok := v.Get(); !ok || math.Abs(n-want) > slack {
				d.Errorf("%s = %v (%v), want %v", what, n, v.Why(), want)
			}
		}
		look()
		start := time.Now()
		time.Sleep(time.Second)
		d.tell("gpus 3", "board a100 2", "gpm 0 2 20", "gpm 0 10 25", "gpm 0 5 808334905", cut, "gpm 1/9 2 10", "gpm 1/2 2 60")
		turned := time.Since(start).Seconds()
		time.Sleep(time.Second)
		out := look()
		took := time.Since(start).Seconds()
		mean := (0.8*turned + 0.2*(took-turned)) / took
		near("mean of a load that changed", out[0].Profiling.SMActive, mean, 0.1)
		near("its seconds", out[0].Profiling.SMActiveTime, mean*took, 0.3)
		near("memory", out[0].Profiling.DramActive, 0.25, 1e-6)
		d.lacks("808334905 percent", out[0].Profiling.PipeActive[telemetry.PipeTensor], metric.Implausible)
		d.want("the seconds of it", out[0].Profiling.PipeActiveTime[telemetry.PipeTensor], 0)
		d.lacks("a board without a profiler", out[2].Profiling.SMActive, metric.Unsupported)
		d.lacks("its seconds", out[2].Profiling.SMActiveTime, metric.Unsupported)
		for _, p := range out[1].Partitions {
			x := p.Read.Profiling
			switch p.Labels.Get("gpu_partition_id") {
			case "9/0":
				near("the small instance", x.SMActive, 0.1, 1e-6)
				near("its seconds", x.SMActiveTime, 0.1*took, 0.1)
			case "2":
				near("the large instance", x.SMActive, 0.6, 1e-6)
				near("its seconds", x.SMActiveTime, 0.6*took, 0.3)
			default:
				if why := x.SMActive.Why(); why != metric.Unread {
					d.Errorf("%s has %v of what it shares", p.Labels.Text(), why)
				}
			}
		}

		// Less than 100 ms on, there is no new window, and the old one stands.
		again := look()
		near("at once", again[0].Profiling.SMActive, mean, 0.1)
		if a, b := again[0].Profiling.SMActiveTime, out[0].Profiling.SMActiveTime; a != b {
			d.Errorf("seconds %v, want %v", a, b)
		}

		// A hole is neither averaged over nor counted.
		broken := []string{"gpus 3", "board a100 2", "gpm 0 2 20", cut, "fail nvmlGpmSampleGet 10 0"}
		d.tell(broken...)
		time.Sleep(150 * time.Millisecond)
		hole := look()
		if why := hole[0].Profiling.SMActive.Why(); why == nil || !why.Fault {
			d.Errorf("in a hole: %v", why)
		}
		if a, b := hole[0].Profiling.SMActiveTime, out[0].Profiling.SMActiveTime; a != b {
			d.Errorf("seconds in a hole %v, want %v", a, b)
		}
		time.Sleep(time.Second)
		d.tell(broken[:4]...)
		d.lacks("behind a hole", look()[0].Profiling.SMActive, metric.NoData)
		time.Sleep(500 * time.Millisecond)
		behind := look()
		near("a window later", behind[0].Profiling.SMActive, 0.2, 1e-6)
		near("its seconds", behind[0].Profiling.SMActiveTime, mean*took+0.2*0.5, 0.3)
	})
}
