package prom

import (
	"errors"
	"io"
	"math"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/proto"

	"github.com/gpumeter/gpumeter/exporter/expose"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// The streamed protobuf page decodes to what client_golang writes of the same snapshot.
func TestPage_ProtobufEqualsClientGolang(t *testing.T) {
	s := oddNode()
	big := metric.NewHistogram([]float64{math.Inf(-1), -1, 0, 300})
	big.Counts = []uint64{1, 127, 128, 1 << 40, 1 << 62}
	big.Sum = math.NaN()
	s.Engines[0].Labels = metric.NewLabels(metric.Label{Name: "inference_model", Value: strings.Repeat("long ü ", 100)})
	fillWith(telemetry.EngineFamilies, &s.Engines[0].Read, big)
	h := handler(s)
	other := reference(h.families, s, h.process)
	for _, query := range append([]string{""}, choices(t, h)...) {
		streamed := get(t, h, "/metrics"+query, "Accept", acceptProto)
		gathered := get(t, other, "/metrics"+query, "Accept", acceptProto)
		if a, b := streamed.Header().Get("Content-Type"), gathered.Header().Get("Content-Type"); a != b {
			t.Errorf("content types %q and %q", a, b)
		}
		ours, theirs := decode(t, streamed.Body), decode(t, gathered.Body)
		if len(ours) != len(theirs) || query == "" && len(ours) < 200 {
			t.Errorf("%.40s: %d families streamed, %d gathered", query, len(ours), len(theirs))
		}
		kinds := map[dto.MetricType]int{}
		for name, m := range theirs {
			kinds[m.GetType()]++
			if !proto.Equal(m, ours[name]) {
				t.Errorf("%.40s: %s differs:\nstreamed %v\ngathered %v", query, name, ours[name], m)
			}
		}
		if query == "" && len(kinds) < 3 {
			t.Errorf("the page has only types %v", kinds)
		}
	}
}

// decode reads delimited protobuf with client_golang's decoder.
func decode(t testing.TB, page io.Reader) map[string]*dto.MetricFamily {
	t.Helper()
	decoder := expfmt.NewDecoder(page, expfmt.NewFormat(expfmt.TypeProtoDelim))
	families := map[string]*dto.MetricFamily{}
	for {
		m := new(dto.MetricFamily)
		err := decoder.Decode(m)
		if errors.Is(err, io.EOF) {
			return families
		}
		if err != nil {
			t.Fatal(err)
		}
		if families[m.GetName()] != nil {
			t.Errorf("%s comes twice", m.GetName())
		}
		families[m.GetName()] = m
	}
}

// No series of a page costs an allocation.
func TestEncode_AllocatesNothing(t *testing.T) {
	s := node(2)
	for f := range formats {
		e := newEncoder(newLayout(expose.NewFamilies(everything), f))
		encode := func() {
			if err := e.encode(io.Discard, s, nil); err != nil {
				t.Error(err)
			}
		}
		encode() // renders what is kept
		if n := testing.AllocsPerRun(10, encode); n > 20 {
			t.Errorf("format %d: %v allocations a page", f, n)
		}
	}
}

// Nobody asks for protobuf in text form; it is answered with text.
func TestProtobufTextIsNotOffered(t *testing.T) {
	h := handler(node(1))
	for _, encoding := range []string{"text", "compact-text"} {
		page := get(t, h, "/metrics", "Accept", "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding="+encoding)
		if got := page.Header().Get("Content-Type"); !strings.HasPrefix(got, "text/plain;") {
			t.Errorf("%s: %s", encoding, got)
		}
	}
}
