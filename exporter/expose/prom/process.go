package prom

import (
	"bytes"
	"io"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"google.golang.org/protobuf/encoding/protodelim"
)

// Process holds the go_* and process_* series. Gathering them costs more than streaming a node,
// so it is done at most once a period, and the bytes are kept.
type Process struct {
	gatherer prometheus.Gatherer
	period   time.Duration

	mu       sync.Mutex
	taken    time.Time
	families []*dto.MetricFamily
	pages    [formats]*rendered // by Format; nil: not rendered in this period
}

// rendered are the families of a Process in one format. It never changes.
type rendered struct {
	text []byte
	ends []int // by family: where its text ends
	name []string
}

// NewProcess returns the series of this process, gathered at most once a period.
func NewProcess(period time.Duration) *Process {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return &Process{gatherer: r, period: period}
}

// refresh gathers again when the period is over. What fails is missing; the rest is served.
func (p *Process) refresh() {
	if now := time.Now(); p.families == nil || now.Sub(p.taken) >= p.period {
		p.families, _ = p.gatherer.Gather()
		p.taken, p.pages = now, [formats]*rendered{}
	}
}

// write writes the wanted series in a format, without an end mark.
func (p *Process) write(w io.Writer, f Format, only *choice) error {
	r := p.render(f)
	if only == nil {
		_, err := w.Write(r.text)
		return err
	}
	start := 0
	for i, end := range r.ends {
		if only.has(r.name[i]) {
			if _, err := w.Write(r.text[start:end]); err != nil {
				return err
			}
		}
		start = end
	}
	return nil
}

// render returns the series in a format.
func (p *Process) render(f Format) *rendered {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	if p.pages[f] == nil {
		r := new(rendered)
		b := new(bytes.Buffer)
		for _, family := range p.families {
			write(b, family, f) //nolint:errcheck // a bytes.Buffer never fails
			r.ends, r.name = append(r.ends, b.Len()), append(r.name, family.GetName())
		}
		r.text = b.Bytes()
		p.pages[f] = r
	}
	return p.pages[f]
}

// write writes a family in a format.
func write(w io.Writer, family *dto.MetricFamily, f Format) (err error) {
	switch f {
	case OpenMetrics:
		_, err = expfmt.MetricFamilyToOpenMetrics(w, family)
	case Protobuf:
		_, err = protodelim.MarshalTo(w, family)
	default:
		_, err = expfmt.MetricFamilyToText(w, family)
	}
	return err
}
