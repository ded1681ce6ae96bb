package prom

import (
	"bytes"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
)

// Process holds the go_* and process_* series. Gathering them costs more than streaming a node,
// so it is done at most once a period, and the bytes are kept.
type Process struct {
	gatherer prometheus.Gatherer
	period   time.Duration

	mu       sync.Mutex
	taken    time.Time
	families []*dto.MetricFamily
	texts    [2][]byte // by Format
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
		p.taken, p.texts = now, [2][]byte{}
	}
}

// text returns the series in a text format, without an end mark.
func (p *Process) text(f Format) []byte {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	if p.texts[f] == nil {
		var b bytes.Buffer
		for _, family := range p.families {
			write := expfmt.MetricFamilyToText
			if f == OpenMetrics {
				write = openMetrics
			}
			write(&b, family) //nolint:errcheck // a bytes.Buffer never fails
		}
		p.texts[f] = b.Bytes()
	}
	return p.texts[f]
}

// gather returns the same as families, which are not changed any more.
func (p *Process) gather() []*dto.MetricFamily {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refresh()
	return p.families
}
