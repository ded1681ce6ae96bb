//go:build cgo

package nvml_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source/nvml"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func only(names ...string) func(*metric.Desc) bool {
	return func(d *metric.Desc) bool {
		for _, name := range names {
			if d.Name == name || d.Group == name {
				return true
			}
		}
		return false
	}
}

// Processes of a device and of its MIG instances, as the driver lists them.
func TestDriverProcesses(t *testing.T) {
	alone(t, "", func(d driver) {
		d.tell("gpus 2", "process 0 10 500 30", "process 0 20 none", "process 0 10 700 graphics", "process 0 30 600 mps",
			"mig 1 on 1g.10gb:7:0,-,3g.40gb:2:0", "process 1 40 100 7 0", "process 1 50 200 2 0 compute")
		r := d.openAs(nvml.Config{Proc: "/nowhere"})
		defer d.close(r)
		devices := d.list(r)
		for i, want := range [][]string{
			{`process_pid="10" 700 0.3`, `process_pid="30" 600 -`, `process_pid="20" - -`},
			{`gpu_partition_uuid="MIG-00000000-0000-5000-8000-000100020000",process_pid="50" 200 -`, `gpu_partition_uuid="MIG-00000000-0000-5000-8000-000100070000",process_pid="40" 100 -`},
		} {
			var got []string
			for _, p := range d.read(devices[i]).Processes {
				line := p.Labels.Text()
				for _, v := range []metric.Value{p.Read.Processes.MemoryUsage, p.Read.Processes.Utilization} {
					if n, ok := v.Get(); ok {
						line += fmt.Sprint(" ", n)
					} else {
						line += " -"
					}
				}
				got = append(got, line)
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				d.Errorf("GPU %d:\n%q, want\n%q", i, got, want)
			}
		}
	})
}

// Processes that start between the driver's telling how many there are and which are no reason to
// fail: the next read has them.
func TestDriverProcessesGrow(t *testing.T) {
	alone(t, "", func(d driver) {
		slow := []string{"gpus 1", "delay_ns 30000000"}
		few := append(slow, "process 0 10 500 30")
		many := slow
		for pid := range 50 {
			many = append(many, fmt.Sprintf("process 0 %d 500 30", 100+pid))
		}
		d.tell(few...)
		r := d.openAs(nvml.Config{On: only("processes")})
		defer d.close(r)
		gpu := d.list(r)[0]
		done := make(chan int)
		go func() {
			reads := 0
			for deadline := time.Now().Add(4 * time.Second); time.Now().Before(deadline); reads++ {
				if why := gpu.Read(context.Background(), new(telemetry.Device)); why != nil {
					d.Errorf("read with %s", why.Text)
				}
			}
			done <- reads
		}()
		for i := 0; ; i++ {
			select {
			case reads := <-done:
				if reads < 5 {
					d.Errorf("only %d reads", reads)
				}
				return
			default:
			}
			time.Sleep(rand.N(30 * time.Millisecond)) // in no step with the calls
			d.tell([][]string{many, few}[i%2]...)
		}
	})
}
