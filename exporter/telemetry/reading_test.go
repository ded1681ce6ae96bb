package telemetry

import (
	"slices"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

// fill fails every reading of a device, of its parts and of its lists.
func fill(d *Device) {
	d.Partitions, d.Links, d.Processes = make([]Part[Partition], 2), make([]Part[Link], 3), make([]Part[Process], 1)
	failAll(DeviceFamilies, d)
	for i := range d.Partitions {
		d.Partitions[i].Labels = PartitionAttributes{PartitionUUID: "MIG"}.Labels()
		failAll(PartitionFamilies, &d.Partitions[i].Read)
	}
	for i := range d.Links {
		d.Links[i].Labels = LinkAttributes{LinkID: int64(i)}.Labels()
		failAll(LinkFamilies, &d.Links[i].Read)
	}
	for i := range d.Processes {
		d.Processes[i].Labels = ProcessAttributes{ProcessPid: 1}.Labels()
		failAll(ProcessFamilies, &d.Processes[i].Read)
	}
}

func failAll[T any](families []Family[T], read *T) {
	for _, f := range families {
		for _, row := range f.Rows {
			row(read).Fail(metric.Failed)
		}
		if f.Keyed != nil {
			one := metric.Keyed{}
			one.Value.Fail(metric.Failed)
			*f.Keyed(read) = []metric.Keyed{one}
		}
		if f.Histograms != nil {
			*f.Histograms(read) = []KeyedHistogram{{Histogram: metric.NewHistogram(nil)}}
		}
	}
}

// The walk over a device visits every reading of each metric, once for each part that the metric is of.
func TestDevice_EachVisitsEveryReadingOfTheDeviceAndItsParts(t *testing.T) {
	var d Device
	fill(&d)
	visits := map[string]int{}
	d.Each(func(desc *metric.Desc, r Reading) {
		if (r.Part != nil) != (desc.Scope != "device") {
			t.Errorf("%s of scope %s: part labels %q", desc.Name, desc.Scope, r.Part.Text())
		}
		if r.Histogram == nil && r.Value.Why() != metric.Failed {
			t.Errorf("%s: visited with reason %v, want failed", desc.Name, r.Value.Why())
		}
		visits[desc.Name]++
	})
	parts := map[string]int{"device": 1, "partition": 2, "link": 3, "process": 1}
	all := NewDeviceMetrics(func(*metric.Desc) bool { return true })
	for i, desc := range all.Descs() {
		want := max(len(desc.Rows), 1) * parts[desc.Scope]
		if visits[desc.Name] != want {
			t.Errorf("%s: %d readings visited, want %d", desc.Name, visits[desc.Name], want)
		}
		byIndex := 0
		all.Each(i, &d, func(Reading) { byIndex++ })
		if byIndex != want {
			t.Errorf("%s: %d readings visited by index, want %d", desc.Name, byIndex, want)
		}
	}
}

func TestNewDeviceMetrics_KeepsWhatIsChosenInOrder(t *testing.T) {
	chosen := []string{"gpu.power.draw", "gpu.link.up"}
	m := NewDeviceMetrics(func(d *metric.Desc) bool { return slices.Contains(chosen, d.Name) })
	var names []string
	for _, d := range m.Descs() {
		names = append(names, d.Name)
	}
	if !slices.Equal(names, chosen) {
		t.Errorf("metrics %v, want %v", names, chosen)
	}
	var d Device
	fill(&d)
	for i, want := range []int{1, 3} {
		n := 0
		m.Each(i, &d, func(Reading) { n++ })
		if n != want {
			t.Errorf("%s: %d readings, want %d", names[i], n, want)
		}
	}
}
