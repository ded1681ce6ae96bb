package stdout

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/diagnosis"
	"github.com/gpumeter/gpumeter/exporter/expose"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

func node() *snapshot.Snapshot {
	id := &telemetry.Identity{UUID: "GPU-1", Vendor: "nvidia", Model: "NVIDIA H100"}
	d := snapshot.Device{Identity: id, Labels: id.Labels(), Owned: telemetry.OwnerAttributes{UUID: id.UUID, K8sNamespaceName: "team", K8sPodName: "llama-0"}.Labels()}
	r := &d.Read
	r.Presence.State[telemetry.StateOK].Set(1)
	r.Utilization.Utilization.Set(0.87)
	r.Memory.Usage.Set(60 << 30)
	r.Memory.Limit.Set(80 << 30)
	r.Power.Draw.Set(412.6)
	r.Power.Energy.Set(math.Inf(1))
	r.Thermal.Temperature[telemetry.TemperatureSensorCore].Set(61)
	r.Throttle.Reason[telemetry.ThrottleCauseSWPowerCap].Set(1)
	r.Throttle.Reason[telemetry.ThrottleCauseSWThermal].Set(0)
	xid := metric.Keyed{Labels: telemetry.XIDErrorsAttributes{XID: 31}.Labels()}
	xid.Value.Set(2)
	r.XID.Errors = []metric.Keyed{xid}
	lost := snapshot.Device{Identity: id, Labels: telemetry.DeviceAttributes{UUID: "GPU-2", Index: 1, Model: "NVIDIA H100"}.Labels()}
	lost.Owned = telemetry.OwnerAttributes{SlurmJobID: "7", SlurmUser: "ada"}.Labels()
	lost.Read.Presence.State[telemetry.StateLost].Set(1)
	s := &snapshot.Snapshot{Taken: time.Unix(0, 0), Devices: []snapshot.Device{d, lost}}
	h := metric.NewHistogram([]float64{0.5})
	h.Observe(0.1)
	h.Observe(7)
	s.Self.Exporter.ReadDuration = []telemetry.KeyedHistogram{{Histogram: h}}
	s.Health.Sources = []snapshot.SourceHealth{{Name: "nvml"}, {Name: "dcgm", State: telemetry.SourceStateFailed, Err: "no answer"}}
	s.Health.Faults = []snapshot.Fault{{Source: "nvml", Metric: "*", Reason: "lost"}, {Source: "nvml", Metric: "gpu.power.draw", Reason: "failed"}}
	return s
}

func TestTable(t *testing.T) {
	var b strings.Builder
	if err := Table(&b, node()); err != nil {
		t.Fatal(err)
	}
	want := `INDEX  MODEL        STATE  BUSY  MEMORY           POWER  TEMP   THROTTLED     XIDS  OWNER         UUID
0      NVIDIA H100  ok     87 %  60.0 / 80.0 GiB  413 W  61 °C  sw_power_cap  31×2  team/llama-0  GPU-1
1      NVIDIA H100  lost   -     -                -      -      -             -     job 7 ada     GPU-2
source dcgm is failed: no answer
source nvml cannot read a device: lost
source nvml cannot read gpu_power_draw_watts: failed
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
	b.Reset()
	if err := Table(&b, new(snapshot.Snapshot)); err != nil || b.String() != "INDEX  MODEL  STATE  BUSY  MEMORY  POWER  TEMP  THROTTLED  XIDS  OWNER  UUID\n" {
		t.Errorf("an empty node: %q, %v", b.String(), err)
	}
}

// Devices of several vendors stand together by vendor, each vendor's by index, whatever the names sort like.
func TestTable_GroupsVendors(t *testing.T) {
	s := new(snapshot.Snapshot)
	for _, id := range []*telemetry.Identity{
		{Vendor: "amd", Index: 2, UUID: "a2"}, {Vendor: "nvidia", Index: 0, UUID: "n0"}, {Vendor: "nvidia", Index: 10, UUID: "n10"}, {Vendor: "nvidia", Index: 9, UUID: "n9"},
	} {
		s.Devices = append(s.Devices, snapshot.Device{Identity: id, Labels: id.Labels(), Owned: id.Labels()})
	}
	shared := telemetry.Part[telemetry.Owner]{Labels: telemetry.OwnerAttributes{UUID: "n9"}.Labels()}
	shared.Read.Ownership.Info[telemetry.SharingShared].Set(1)
	s.Owners = append(s.Owners, shared)
	var b strings.Builder
	if err := Table(&b, s); err != nil {
		t.Fatal(err)
	}
	want := `INDEX  VENDOR  MODEL  STATE  BUSY  MEMORY  POWER  TEMP  THROTTLED  XIDS  OWNER   UUID
0      nvidia  -             -     -       -      -     -          -     -       n0
9      nvidia  -             -     -       -      -     -          -     shared  n9
10     nvidia  -             -     -       -      -     -          -     -       n10
2      amd     -             -     -       -      -     -          -     -       a2
`
	if b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestJSON(t *testing.T) {
	var b strings.Builder
	if err := JSON(&b, expose.NewFamilies(func(*metric.Desc) bool { return true }), node(), []diagnosis.Finding{{ID: diagnosis.DeviceLost, Severity: diagnosis.Error, Device: "GPU-2", Message: "it is lost"}}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Taken    time.Time
		Findings []diagnosis.Finding
		Metrics  []struct {
			Name, Type string
			Series     []struct {
				Labels  map[string]string
				Value   any
				Buckets map[string]int
				Sum     float64
				Count   int
			}
		}
	}
	if err := json.Unmarshal([]byte(b.String()), &got); err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	seen := 0
	for _, m := range got.Metrics {
		switch x := m.Series[0]; m.Name {
		case "gpu_power_draw_watts":
			seen++
			if x.Value != 412.6 || x.Labels["gpu_uuid"] != "GPU-1" || len(m.Series) != 1 {
				t.Errorf("%+v", m)
			}
		case "gpu_energy_joules_total":
			seen++
			if x.Value != "+Inf" || m.Type != "counter" {
				t.Errorf("%+v", m)
			}
		case "gpumeter_read_duration_seconds":
			seen++
			if x.Buckets["0.5"] != 1 || x.Buckets["+Inf"] != 2 || x.Count != 2 || x.Sum != 7.1 || x.Value != nil {
				t.Errorf("%+v", m)
			}
		}
	}
	if len(got.Findings) != 1 || got.Findings[0].ID != diagnosis.DeviceLost || got.Findings[0].Device != "GPU-2" {
		t.Errorf("findings %+v", got.Findings)
	}
	if seen != 3 || got.Taken.Unix() != 0 {
		t.Errorf("%d of three metrics are there", seen)
	}
}
