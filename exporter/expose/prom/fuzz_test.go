package prom

import (
	"math"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gpumeter/gpumeter/exporter/metric"
)

// Whatever a driver says a device is called, and whatever number it gives, the page parses and
// gives the same back.
func FuzzPage(f *testing.F) {
	f.Add("NVIDIA H100", 1.5)
	f.Add(`a "quote", a \backslash\ and a`+"\nnewline", math.NaN())
	f.Add("\xff\xfe not UTF-8 \x00", math.Inf(-1))
	f.Add(`trailing \`, math.Copysign(0, -1))
	f.Fuzz(func(t *testing.T, name string, number float64) {
		s := node(1)
		labels := metric.NewLabels(metric.Label{Name: "gpu_uuid", Value: "GPU-0"}, metric.Label{Name: "gpu_model", Value: name})
		s.Devices[0].Labels, s.Devices[0].Owned = labels, labels
		s.Devices[0].Read.Power.Draw.Set(number)
		h := handler(s)
		families := parse(t, get(t, h, "/metrics", "Accept", acceptText).Body.Bytes())
		m := families["gpu_power_draw_watts"].Metric[0]
		if got := m.GetGauge().GetValue(); got != number && !(math.IsNaN(got) && math.IsNaN(number)) {
			t.Errorf("number %v came back as %v", number, got)
		}
		want := strings.ToValidUTF8(name, "\uFFFD")
		got := ""
		for _, l := range m.Label {
			if l.GetName() == "gpu_model" {
				got = l.GetValue()
			}
		}
		if got != want || !utf8.ValidString(got) {
			t.Errorf("label %q came back as %q", name, got)
		}
		streamed := sorted(get(t, h, "/metrics", "Accept", acceptOpenMetrics).Body.String())
		if n := len(streamed); streamed[n-1] == "" || !strings.Contains(strings.Join(streamed, "\n"), "# EOF") {
			t.Errorf("OpenMetrics page of %d lines is not whole", n)
		}
	})
}
