package metric

import (
	"math"
	"testing"
	"unsafe"
)

func TestValue(t *testing.T) {
	var v Value
	if _, ok := v.Get(); ok || v.Why() != Unread {
		t.Error("the zero Value must be unread")
	}
	v.Set(0)
	if n, ok := v.Get(); n != 0 || !ok || v.Why() != nil {
		t.Error("zero is a number")
	}
	v.SetBool(true)
	if n, ok := v.Get(); n != 1 || !ok {
		t.Error("what holds is 1")
	}
	v.Fail(Lost)
	if n, ok := v.Get(); n != 0 || ok || v.Why() != Lost {
		t.Error("a failed Value has a reason and no number")
	}
	v.SetBool(false)
	if n, ok := v.Get(); n != 0 || !ok {
		t.Error("what does not hold is 0")
	}
	if size := unsafe.Sizeof(v); size != 16 {
		t.Errorf("a Value takes %d bytes, want 16", size)
	}
	if n := testing.AllocsPerRun(100, func() { v.Fail(Unsupported); v.Set(1) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestLabels(t *testing.T) {
	l := NewLabels(Label{"a", `x"y\z` + "\n"}, Label{"empty", ""}, Label{"b", "bad\xffbytes"})
	if want := `a="x\"y\\z\n",b="bad` + "\uFFFD" + `bytes"`; l.Text() != want {
		t.Errorf("text %s, want %s", l.Text(), want)
	}
	if len(l.Pairs()) != 2 || l.Get("b") != "bad\uFFFDbytes" || l.Get("empty") != "" {
		t.Errorf("pairs %q", l.Pairs())
	}
	var none *Labels
	if NewLabels(Label{"a", ""}) != nil || none.Text() != "" || none.Pairs() != nil || none.Get("a") != "" {
		t.Error("the empty list is nil")
	}
}

func TestHistogram(t *testing.T) {
	h := NewHistogram([]float64{0.1, 2.5})
	for _, n := range []float64{0.05, 0.1, 0.2, 2.5, 3, math.Inf(1)} {
		h.Observe(n)
	}
	c := h.Clone()
	h.Observe(0)
	if got := [3]uint64(c.Counts); got != [3]uint64{2, 2, 2} || !math.IsInf(c.Sum, 1) {
		t.Errorf("counts %v, sum %v; a bound belongs to its bucket", got, c.Sum)
	}
}

func TestSelect(t *testing.T) {
	power := &Desc{Name: "gpu.power.draw", Prom: "gpu_power_draw_watts", Group: "power"}
	energy := &Desc{Name: "gpu.energy", Prom: "gpu_energy_joules_total", Group: "power"}
	cpu := &Desc{Name: "system.cpu.time", Prom: "system_cpu_time_seconds_total", Group: "system", OptIn: true}
	all := []*Desc{power, energy, cpu}
	for _, c := range []struct {
		include, exclude []string
		want             []*Desc
		err              string
	}{
		{nil, nil, []*Desc{power, energy}, ""},
		{[]string{"system"}, nil, all, ""},
		{[]string{"system.cpu.*"}, []string{"power"}, []*Desc{cpu}, ""},
		{nil, []string{"gpu_energy_*"}, []*Desc{power}, ""},
		{nil, []string{"pwoer"}, nil, `exclude: pattern "pwoer" matches no group and no metric`},
		{[]string{"system", "["}, nil, nil, `include: pattern "[": syntax error in pattern`},
		{[]string{"gpu.energy"}, []string{"gpu.e*"}, nil, `gpu.energy is both included (by "gpu.energy") and excluded (by "gpu.e*")`},
	} {
		on, err := Select(all, c.include, c.exclude)
		if err != nil || c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%v %v: error %v, want %q", c.include, c.exclude, err, c.err)
			}
			continue
		}
		var got []*Desc
		for _, d := range all {
			if on(d) {
				got = append(got, d)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%v %v: %d metrics, want %d", c.include, c.exclude, len(got), len(c.want))
		}
		for i := range min(len(got), len(c.want)) {
			if got[i] != c.want[i] {
				t.Errorf("%v %v: metric %d is %s", c.include, c.exclude, i, got[i].Name)
			}
		}
	}
}
