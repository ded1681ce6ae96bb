//go:build cgo

package nvml

import (
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// The parts of one number are told apart by its scope, and each is refused on its own.
func TestPowerParts(t *testing.T) {
	d := answering("GPU-0")
	var parts, means [3]nvml.FieldValue
	answer := d.GetFieldValuesFunc
	d.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
		ret := answer(values)
		for i := range values {
			switch v := &values[i]; v.FieldId {
			case 185:
				id, scope := v.FieldId, v.ScopeId
				*v = means[scope]
				v.FieldId, v.ScopeId = id, scope
			case 186:
				id, scope := v.FieldId, v.ScopeId
				*v = parts[scope]
				v.FieldId, v.ScopeId = id, scope
			case 274:
				v.ValueType, v.Value = uint32(u32), valued(u32, 50).Value
			}
		}
		return ret
	}
	l := newFakeLibrary(d)
	l.driver = "590.48.01"
	const device, module, memory = telemetry.PowerDomainDevice, telemetry.PowerDomainModule, telemetry.PowerDomainMemory
	parts = [3]nvml.FieldValue{valued(u32, 626260), failing(nvml.ERROR_NOT_SUPPORTED), failing(nvml.ERROR_INVALID_ARGUMENT)}
	means = [3]nvml.FieldValue{valued(u32, 631950), failing(nvml.ERROR_NOT_SUPPORTED), valued(u32, 120_000)}
	out, _ := readOnce(t, l)
	want(t, "device", out.Power.Instant[device], 626.26)
	want(t, "mean of a module that is none", out.Power.Average[module], metric.Unsupported)
	want(t, "mean of a memory that has no instant", out.Power.Average[memory], 120.0)
	want(t, "module of a board that has none", out.Power.Instant[module], metric.Unsupported)
	want(t, "memory of a board that does not tell", out.Power.Instant[memory], metric.Unsupported)
	want(t, "share of the peak current", out.Power.EdppMultiplier, 0.5)
	parts = [3]nvml.FieldValue{valued(u32, 800_000), valued(u32, 1_300_000), valued(u32, 120_000)}
	out, _ = readOnce(t, l)
	for domain, watts := range map[telemetry.PowerDomain]float64{device: 800, module: 1300, memory: 120} {
		want(t, domain.String(), out.Power.Instant[domain], watts)
	}
	l.driver = "530.41.03"
	out, _ = readOnce(t, l)
	want(t, "device, before R535", out.Power.Instant[device], metric.Unsupported)
	want(t, "share of the peak current, before R590", out.Power.EdppMultiplier, metric.Unsupported)
}

// sampled is a driver whose power samples a test gives; those of utilization it has not.
type sampled struct {
	list []nvml.Sample
	ret  nvml.Return
}

func (s *sampled) of(d *fakeDevice) {
	d.GetSamplesFunc = func(of nvml.SamplingType, since uint64) (nvml.ValueType, []nvml.Sample, nvml.Return) {
		if of != nvml.TOTAL_POWER_SAMPLES {
			return 0, nil, nvml.ERROR_NOT_SUPPORTED
		}
		return nvml.VALUE_TYPE_UNSIGNED_INT, s.list, s.ret
	}
}

func TestPowerPeak(t *testing.T) {
	d, s := answering("GPU-0"), new(sampled)
	s.of(d)
	n := started(t, newFakeLibrary(d))
	h := n.list()[0]
	peak := func() metric.Value { return n.read(h).Power.Peak }
	look := func(list ...nvml.Sample) {
		s.list = list
		h.Sample(t.Context())
	}
	want(t, "before the first look", peak(), metric.NoData)
	look(sample(900, 999_000), sample(939, 950_000), sample(941, 700_000), sample(1000, 300_000))
	want(t, "of what the driver had kept, that of the last minute", peak(), 700.)
	n.turn(30 * time.Second)
	look(sample(1010, 500_000), sample(1030, 450_000), nvml.Sample{})
	want(t, "the highest so far", peak(), 700.)
	n.turn(31 * time.Second)
	want(t, "without the first look", peak(), 500.)
	look(sample(1061, 808334905), sample(1062, 100_000), sample(1063, 0xffff_ffff))
	want(t, "with samples that can not be", peak(), 500.)
	s.ret = nvml.ERROR_TIMEOUT
	look()
	want(t, "when a look fails", peak(), 500.)
	n.turn(30 * time.Second)
	want(t, "without the second", peak(), 100.)
	n.turn(60 * time.Second)
	want(t, "nothing for a minute", peak(), faults[nvml.ERROR_TIMEOUT])
	s.ret = nvml.ERROR_NOT_FOUND
	look()
	want(t, "nothing new", peak(), metric.NoData)
	s.ret = nvml.SUCCESS
	look(sample(1200, 808334905))
	want(t, "nothing but nonsense", peak(), metric.Implausible)
	s.ret = nvml.ERROR_NOT_SUPPORTED
	look()
	want(t, "a board that takes none", peak(), metric.Unsupported)
}

// Where a board keeps no count of its energy, its power samples are integrated.
func TestEnergyOfSamples(t *testing.T) {
	d, s := answering("GPU-0"), new(sampled)
	s.of(d)
	d.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
	l, past := newFakeLibrary(d), newArchive()
	r, err := open(l, config(), past, everything())
	if err != nil {
		t.Fatal(err)
	}
	n := &node{TB: t, reader: r}
	h := n.list()[0]
	energy := func() metric.Value { return n.read(h).Power.Energy }
	look := func(list ...nvml.Sample) {
		s.list = list
		h.Sample(t.Context())
	}
	want(t, "before the first look", energy(), metric.Unsupported)
	look(sample(99, 400_000), sample(100, 400_000))
	want(t, "after the first look, which only says where to begin", energy(), 0.)
	look(sample(100.5, 300_000), sample(101.5, 200_000))
	want(t, "150 J and 200 J on", energy(), 350.)
	look(sample(101.5, 200_000), sample(102, 808334905), sample(103, 100_000))
	want(t, "100 J on, without what can not be", energy(), 450.)
	look(sample(163, 500_000), sample(164, 500_000))
	want(t, "a minute nobody saw is not counted", energy(), 950.)
	s.ret = nvml.ERROR_NOT_FOUND
	look()
	want(t, "nothing new", energy(), 950.)
	s.ret = nvml.ERROR_TIMEOUT
	look()
	want(t, "a look that fails", energy(), faults[nvml.ERROR_TIMEOUT])
	closed(t, r)

	// Opened again, the count goes on.
	if r, err = open(l, config(), past, everything()); err != nil {
		t.Fatal(err)
	}
	defer closed(t, r)
	n = &node{TB: t, reader: r}
	h, s.ret = n.list()[0], nvml.SUCCESS
	want(t, "opened again", energy(), 950.)
	look(sample(200, 100_000), sample(201, 100_000))
	want(t, "what was kept meanwhile is not counted", energy(), 950.)
	look(sample(202, 50_000))
	want(t, "50 J on", energy(), 1000.)
}

// Who counts the energy is settled once: a board's count of its life and the exporter's own in turn
// would look like all of it over again.
func TestEnergyIsCountedByOne(t *testing.T) {
	for name, c := range map[string]struct {
		refused [3]bool // the board's count, at each read
		want    [3]any
	}{
		"the board, refused for a moment": {[3]bool{false, true, false}, [3]any{5000., metric.Unsupported, 5000.}},
		"the board":                       {[3]bool{false, false, false}, [3]any{5000., 5000., 5000.}},
		"the exporter":                    {[3]bool{true, true, true}, [3]any{0., 100., 200.}},
		"the exporter, though the board comes to it": {[3]bool{true, true, false}, [3]any{0., 100., 200.}},
	} {
		t.Run(name, func(t *testing.T) {
			d, s := answering("GPU-0"), new(sampled)
			s.of(d)
			n := started(t, newFakeLibrary(d))
			h := n.list()[0]
			for i, refused := range c.refused {
				ret := nvml.SUCCESS
				if refused {
					ret = nvml.ERROR_NOT_SUPPORTED
				}
				d.GetTotalEnergyConsumptionFunc = func() (uint64, nvml.Return) { return 5_000_000, ret }
				s.list = []nvml.Sample{sample(100+float64(i), 100_000)}
				n.turn(2 * forgetEvery)
				h.Sample(t.Context())
				switch w := c.want[i].(type) {
				case float64:
					want(t, "energy", n.read(h).Power.Energy, w)
				case *metric.Reason:
					want(t, "energy", n.read(h).Power.Energy, w)
				}
			}
		})
	}
}
