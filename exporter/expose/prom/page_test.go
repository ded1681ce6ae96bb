package prom

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/gpumeter/gpumeter/exporter/expose"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// node returns a snapshot of n devices in which every reading of the spec has a number.
func node(n int) *snapshot.Snapshot {
	s := &snapshot.Snapshot{Taken: time.Unix(1e9, 0), Host: new(telemetry.Host)}
	for i := range n {
		id := &telemetry.Identity{
			UUID: fmt.Sprintf("GPU-6b1f3c1e-94f5-4a5f-9c4b-%012d", i), Index: i, Vendor: "nvidia", Model: "NVIDIA H100 80GB HBM3",
			PCI: fmt.Sprintf("0000:%02x:00.0", i%256), DriverVersion: "580.65.06",
		}
		owner := []metric.Label{
			{Name: "k8s_namespace_name", Value: "team-research"}, {Name: "k8s_pod_name", Value: fmt.Sprintf("llama-pretrain-%d", i)},
			{Name: "k8s_container_name", Value: "trainer"}, {Name: "k8s_workload_kind", Value: "StatefulSet"},
			{Name: "k8s_workload_name", Value: "llama-pretrain"}, {Name: "slurm_job_id", Value: "123456"}, {Name: "slurm_user", Value: "ada"},
		}
		d := snapshot.Device{Identity: id, Labels: id.Labels(), Owned: metric.NewLabels(append(id.Labels().Pairs(), owner...)...)}
		fill(telemetry.DeviceFamilies, &d.Read)
		d.Read.Partitions = parts(telemetry.PartitionFamilies, 1, "gpu_partition_uuid")
		d.Read.Links = parts(telemetry.LinkFamilies, 2, "gpu_link_id")
		d.Read.Processes = parts(telemetry.ProcessFamilies, 1, "process_pid")
		s.Devices = append(s.Devices, d)
	}
	s.Engines = parts(telemetry.EngineFamilies, 2, "inference_model")
	fill(telemetry.HostFamilies, s.Host)
	fill(telemetry.SelfFamilies, &s.Self)
	change(s, 0)
	return s
}

func fill[T any](families []telemetry.Family[T], read *T) {
	h := metric.NewHistogram([]float64{0.1, 2.5, 99.5})
	for _, n := range []float64{0.05, 0.1, 3, 1000} {
		h.Observe(n)
	}
	fillWith(families, read, h)
}

// fillWith gives families by key one key, and those of histograms h.
func fillWith[T any](families []telemetry.Family[T], read *T, h *metric.Histogram) {
	for _, f := range families {
		if f.Keyed != nil {
			*f.Keyed(read) = []metric.Keyed{{Labels: metric.NewLabels(metric.Label{Name: "key", Value: f.Desc.Name})}}
		}
		if f.Histograms != nil {
			*f.Histograms(read) = []telemetry.KeyedHistogram{{Labels: metric.NewLabels(metric.Label{Name: "key", Value: "h"}), Histogram: h}}
		}
	}
}

// parts makes n parts of a device, told apart by one label.
func parts[T any](families []telemetry.Family[T], n int, label string) []telemetry.Part[T] {
	out := make([]telemetry.Part[T], n)
	for i := range out {
		out[i].Labels = metric.NewLabels(metric.Label{Name: label, Value: fmt.Sprint(i)})
		fill(families, &out[i].Read)
	}
	return out
}

// change gives every reading another number, half of them with 16 digits.
func change(s *snapshot.Snapshot, round int) {
	n := round
	next := func(v *metric.Value) {
		n++
		if n%2 == 0 {
			v.Set(float64(n%100000 + round))
		} else {
			v.Set(float64(n)*math.Pi + float64(round)/7)
		}
	}
	for i := range s.Devices {
		d := &s.Devices[i].Read
		each(telemetry.DeviceFamilies, d, next)
		for j := range d.Partitions {
			each(telemetry.PartitionFamilies, &d.Partitions[j].Read, next)
		}
		for j := range d.Links {
			each(telemetry.LinkFamilies, &d.Links[j].Read, next)
		}
		for j := range d.Processes {
			each(telemetry.ProcessFamilies, &d.Processes[j].Read, next)
		}
	}
	for i := range s.Engines {
		each(telemetry.EngineFamilies, &s.Engines[i].Read, next)
	}
	each(telemetry.HostFamilies, s.Host, next)
	each(telemetry.SelfFamilies, &s.Self, next)
}

func each[T any](families []telemetry.Family[T], read *T, f func(*metric.Value)) {
	for _, x := range families {
		for _, row := range x.Rows {
			f(row(read))
		}
		if x.Keyed != nil {
			for i := range *x.Keyed(read) {
				f(&(*x.Keyed(read))[i].Value)
			}
		}
	}
}

func everything(*metric.Desc) bool { return true }

type fixed struct{ s *snapshot.Snapshot }

func (f fixed) Snapshot(context.Context) *snapshot.Snapshot { return f.s }

func handler(s *snapshot.Snapshot) *Handler {
	return NewHandler(fixed{s}, expose.NewFamilies(everything), NewProcess(time.Hour), Gates{})
}

const (
	acceptText        = "text/plain;version=0.0.4"
	acceptOpenMetrics = "application/openmetrics-text;version=1.0.0"
	acceptProto       = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
)

func get(t testing.TB, h http.Handler, url string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequest("GET", url, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		t.Fatalf("%s: status %d: %s", url, w.Code, w.Body)
	}
	return w
}

// The streamed text pages hold line for line what client_golang writes of the same snapshot.
func TestPage_TextEqualsClientGolang(t *testing.T) {
	s := oddNode()
	h := handler(s)
	other := reference(h.families, s, h.process)
	for _, query := range append([]string{""}, choices(t, h)...) {
		for _, accept := range []string{acceptText, acceptOpenMetrics} {
			streamed := get(t, h, "/metrics"+query, "Accept", accept)
			gathered := get(t, other, "/metrics"+query, "Accept", accept)
			if a, b := streamed.Header().Get("Content-Type"), gathered.Header().Get("Content-Type"); a != b {
				t.Errorf("%s: content types %q and %q", accept, a, b)
			}
			// client_golang knows no info, which OpenMetrics wants this one to be.
			page := strings.NewReplacer("# HELP target ", "# HELP target_info ", "# TYPE target info\n", "# TYPE target_info gauge\n").Replace(streamed.Body.String())
			a, b := sorted(page), sorted(gathered.Body.String())
			if query == "" && len(a) < 200 {
				t.Fatalf("%s: only %d lines", accept, len(a))
			}
			for i := range max(len(a), len(b)) {
				if i >= len(a) || i >= len(b) || a[i] != b[i] {
					t.Fatalf("%s %.40s: sorted line %d differs:\nstreamed %q\ngathered %q", accept, query, i, at(a, i), at(b, i))
				}
			}
		}
	}
}

// oddNode returns a node whose first device has numbers that are hard to write.
func oddNode() *snapshot.Snapshot {
	s := node(3)
	odd := []float64{0, math.Copysign(0, -1), 1, -1, 999999, 1e6, 1e21, 1e-5, 0.1, math.Inf(1), math.Inf(-1), math.NaN(), 123456.5, math.MaxFloat64, 5e-324, 1 << 53}
	i := 0
	each(telemetry.DeviceFamilies, &s.Devices[0].Read, func(v *metric.Value) { v.Set(odd[i%len(odd)]); i++ })
	return s
}

// choices are queries for all metrics by name, for a few, and for one that does not exist.
func choices(t *testing.T, h *Handler) []string {
	t.Helper()
	all := "?"
	for _, d := range telemetry.Descs() {
		all += "name[]=" + d.Prom + "&"
	}
	process := h.process.render(Text).name
	if len(process) < 10 {
		t.Fatalf("the process has only %d families", len(process))
	}
	for _, name := range process {
		all += "name[]=" + name + "&"
	}
	return []string{all, "?name[]=go_goroutines&name[]=gpu_up&name[]=target_info&name[]=process_max_fds", "?name[]=nothing", "?name[]="}
}

func sorted(page string) []string {
	lines := strings.Split(page, "\n")
	slices.Sort(lines)
	return lines
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return "(none)"
}

// OpenMetrics wants the target to be an info, whose family has no _info in its name; the text format has no such type.
func TestTargetInfo(t *testing.T) {
	h := handler(node(1))
	for accept, want := range map[string]string{
		acceptOpenMetrics: "# TYPE target info\ntarget_info{key=\"target.info\"} ",
		acceptText:        "# TYPE target_info gauge\ntarget_info{key=\"target.info\"} ",
	} {
		if page := get(t, h, "/metrics", "Accept", accept).Body.String(); strings.Count(page, want) != 1 {
			t.Errorf("%s: want %q once", accept, want)
		}
	}
}

func parse(t testing.TB, page []byte) map[string]*dto.MetricFamily {
	t.Helper()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		t.Fatalf("the page does not parse: %v\n%s", err, page)
	}
	return families
}

func TestNameFilter(t *testing.T) {
	families := parse(t, get(t, handler(node(2)), "/metrics?name[]=gpu_up&name[]=gpu_power_draw_watts").Body.Bytes())
	if len(families) != 2 || families["gpu_up"] == nil || families["gpu_power_draw_watts"] == nil {
		t.Errorf("got %d families", len(families))
	}
}

// A reading without a number is absent, and a family without a series has no header.
func TestAbsentIsNotZero(t *testing.T) {
	s := node(1)
	s.Devices[0].Read.Power.Draw.Fail(metric.Unsupported)
	s.Devices[0].Read.Power.Energy = metric.Value{}
	for _, accept := range []string{acceptText, acceptOpenMetrics} {
		page := get(t, handler(s), "/metrics", "Accept", accept).Body.String()
		for _, name := range []string{"gpu_power_draw_watts", "gpu_energy_joules"} {
			if strings.Contains(page, name) {
				t.Errorf("%s: %s is on the page", accept, name)
			}
		}
	}
}

// Counters keep the labels of the device alone, and so do infos, which have many; other gauges bear the owner's too.
func TestOwnerOnGaugesOnly(t *testing.T) {
	families := parse(t, get(t, handler(node(1)), "/metrics", "Accept", acceptText).Body.Bytes())
	for name, f := range families {
		if !strings.HasPrefix(name, "gpu_") {
			continue
		}
		owned := slices.ContainsFunc(f.Metric[0].Label, func(l *dto.LabelPair) bool { return l.GetName() == "k8s_pod_name" })
		if bears := f.GetType() != dto.MetricType_COUNTER && !strings.HasSuffix(name, "_info"); owned != bears {
			t.Errorf("%s: has the owner's labels: %v, want %v", name, owned, bears)
		}
	}
}

func TestEnd(t *testing.T) {
	h := handler(node(1))
	if p := get(t, h, "/metrics", "Accept", acceptOpenMetrics).Body.String(); !strings.HasSuffix(p, "\n# EOF\n") {
		t.Errorf("OpenMetrics ends with %q", p[len(p)-20:])
	}
	if p := get(t, h, "/metrics", "Accept", acceptText).Body.String(); strings.Contains(p, "# EOF") {
		t.Error("the text format has no end mark")
	}
}

func TestLint(t *testing.T) {
	problems, err := promlint.New(get(t, handler(node(2)), "/metrics", "Accept", acceptText).Body).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestEncodings(t *testing.T) {
	h := handler(node(4))
	want := get(t, h, "/metrics", "Accept", acceptText).Body.String()
	open := map[string]func(io.Reader) (io.Reader, error){
		"":     func(r io.Reader) (io.Reader, error) { return r, nil },
		"gzip": func(r io.Reader) (io.Reader, error) { return gzip.NewReader(r) },
		"zstd": func(r io.Reader) (io.Reader, error) { return zstd.NewReader(r) },
	}
	for accept, encoding := range map[string]string{
		"": "", "identity": "", "gzip": "gzip", "zstd,gzip": "zstd", "gzip;q=0": "", "br, GZIP;q=0.5": "gzip", "*": "gzip", "zstd;q=0, gzip": "gzip", "gzip;q=x": "",
		"gzip;q=0, *": "", "*, gzip;q=0": "", "*;q=0, gzip": "gzip", "gzip;Q=0": "", "gzip;q=-1": "", "zstd;q=0, *": "gzip",
	} {
		for range 2 { // the second time from the pool
			w := get(t, h, "/metrics", "Accept", acceptText, "Accept-Encoding", accept)
			if got := w.Header().Get("Vary"); got != "Accept, Accept-Encoding" {
				t.Errorf("Vary: %q; a cache would give one scraper another's page", got)
			}
			if got := w.Header().Get("Content-Encoding"); got != encoding {
				t.Errorf("Accept-Encoding %q: %q, want %q", accept, got, encoding)
			}
			r, err := open[w.Header().Get("Content-Encoding")](w.Body)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := io.ReadAll(r); err != nil || string(body) != want {
				t.Errorf("Accept-Encoding %q: body of %d bytes differs, %v", accept, len(body), err)
			}
		}
	}
}

// However a scraper asks, it is answered with a page it can read.
func TestOddAccept(t *testing.T) {
	h := handler(node(1))
	for _, accept := range []string{
		"", ",", ";", "*/*", "text/*;q=0.1", "text/html", "text/plain;version=9", "application/openmetrics-text;version=9;escaping=none",
		"a/b/c;;q=2,=;=", strings.Repeat("x", 10_000), "text/plain;q=NaN", "application/openmetrics-text;q=1e400", "\xff",
		"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,*/*;q=0.1",
	} {
		page := get(t, h, "/metrics", "Accept", accept)
		open := strings.HasPrefix(page.Header().Get("Content-Type"), "application/openmetrics-text")
		if body := page.Body.String(); open != strings.HasSuffix(body, "# EOF\n") || !strings.Contains(body, "\ngpu_up{") {
			t.Errorf("Accept %.40q: %d bytes of %s", accept, len(body), page.Header().Get("Content-Type"))
		}
	}
}

// Scrapes in all formats at once share the handler's pools and nothing else.
func TestConcurrentScrapes(t *testing.T) {
	h := handler(node(8))
	ask := func(accept, encoding, url string) string {
		return get(t, h, url, "Accept", accept, "Accept-Encoding", encoding).Body.String()
	}
	var all sync.WaitGroup
	for _, accept := range []string{acceptText, acceptOpenMetrics, acceptProto} {
		for _, encoding := range []string{"", "gzip", "zstd"} {
			for _, url := range []string{"/metrics", "/metrics?name[]=gpu_up&name[]=gpu_power_draw_watts"} {
				want := ask(accept, encoding, url)
				for range 4 {
					all.Go(func() {
						if ask(accept, encoding, url) != want {
							t.Errorf("%s %s %s: another page than alone", accept, encoding, url)
						}
					})
				}
			}
		}
	}
	all.Wait()
}

func TestDeadline(t *testing.T) {
	for value, want := range map[string]time.Duration{
		"0.001": 900 * time.Microsecond, "10": 9750 * time.Millisecond, "": 0, "x": 0, "-1": 0, "NaN": 0, "Inf": 0, "0": 0,
	} {
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.Header.Set("X-Prometheus-Scrape-Timeout-Seconds", value)
		start := time.Now()
		ctx, cancel := deadline(r)
		end, has := ctx.Deadline()
		cancel()
		if has != (want > 0) || has && (end.Before(start.Add(want)) || end.After(time.Now().Add(want))) {
			t.Errorf("%q: deadline %v (%v), want %v", value, end.Sub(start), has, want)
		}
	}
}
