// Package metric holds the words every other package speaks: a reading, the reason there is none,
// labels, and the description of a metric.
package metric

// Kind is the instrument of a metric.
type Kind uint8

// The instruments of the spec. An OpenTelemetry updowncounter is a Prometheus gauge.
const (
	KindGauge Kind = iota
	KindCounter
	KindUpDownCounter
	KindHistogram
)

// String returns the kind as the spec writes it.
func (k Kind) String() string {
	return [...]string{"gauge", "counter", "updowncounter", "histogram"}[k]
}

// Prom returns the kind as the Prometheus text format writes it.
func (k Kind) Prom() string {
	if k == KindUpDownCounter {
		k = KindGauge
	}
	return k.String()
}

// Desc is what the spec says of one metric. It is generated and never changed.
type Desc struct {
	Name     string    // OpenTelemetry: gpu.power.draw
	Prom     string    // Prometheus, counters with _total: gpu_power_draw_watts
	Unit     string    // UCUM: W
	PromUnit string    // the unit's word at the end of Prom: watts; empty when there is none
	Help     string    // one sentence
	Kind     Kind      //
	Scope    string    // whose number it is: device, host, self …
	Group    string    // the spec file it stands in
	OptIn    bool      // off unless asked for
	Sources  []string  // who may read it, the first wins
	Rows     []*Labels // the label combinations of its closed attributes; one nil when it has none
}
