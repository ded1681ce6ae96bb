package attribution

import (
	"fmt"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// cut is a node of eight devices with seven partitions each, all of them worked on.
func cut(pods int) (*snapshot.Snapshot, []Claim) {
	s := &snapshot.Snapshot{Taken: time.Unix(1_800_000_000, 0)}
	var claims []Claim
	for i := range 8 {
		id := &telemetry.Identity{UUID: fmt.Sprintf("GPU-%d", i), Model: "H100", Vendor: "nvidia", Index: i}
		d := snapshot.Device{Identity: id, Labels: id.Labels(), Owned: id.Labels()}
		d.Read.Power.Energy.Set(1)
		d.Read.Power.Draw.Set(100)
		d.Read.Memory.Usage.Set(70)
		d.Read.Processes = []telemetry.Part[telemetry.Process]{}
		for n := range 7 {
			uuid := fmt.Sprintf("MIG-%d-%d", i, n)
			p := telemetry.Part[telemetry.Partition]{Labels: telemetry.PartitionAttributes{PartitionUUID: uuid}.Labels()}
			p.Read.Partitions.Slices.Set(1)
			p.Read.Partitions.MemoryUsage.Set(10)
			p.Read.Profiling.GrEngineActiveTime.Set(1)
			d.Read.Partitions = append(d.Read.Partitions, p)
		}
		s.Devices = append(s.Devices, d)
	}
	for n := range pods {
		i, part := n%8, n/8%7
		claims = append(claims, Claim{Thing: Thing{fmt.Sprintf("GPU-%d", i), fmt.Sprintf("MIG-%d-%d", i, part)}, Share: 0.5, Workload: pod(fmt.Sprint("pod-", n))})
		p := telemetry.Part[telemetry.Process]{Labels: metric.NewLabels(
			metric.Label{Name: "gpu_partition_uuid", Value: claims[n].Thing.Partition}, metric.Label{Name: "process_pid", Value: fmt.Sprint(n)},
		)}
		p.Read.Processes.MemoryUsage.Set(1)
		s.Devices[i].Read.Processes = append(s.Devices[i].Read.Processes, p)
	}
	return s, claims
}

// What attribution adds to a picture.
func BenchmarkStage(b *testing.B) {
	for _, pods := range []int{100, 1000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			s, claims := cut(pods)
			a := New(Config{
				Claims: []func([]DeviceRef) []Claim{func([]DeviceRef) []Claim { return claims }},
				Place:  func(pid int64) (Workload, string, bool) { return claims[pid].Workload, "test", true },
				Limit:  5000,
			})
			b.ReportAllocs()
			for b.Loop() {
				s.Taken = s.Taken.Add(time.Second)
				one := *s
				a.Stage(&one)
			}
		})
	}
}
