package schema

// HealthFile is spec/data/health.yaml: what the health score of a device is made of.
type HealthFile struct {
	Pos   `yaml:"-"`
	Terms []Term `yaml:"terms" need:"true" doc:"One entry a member of gpu.health.term, in the same order."`
}

// Term is one thing that speaks against the health of a device.
type Term struct {
	Pos    `yaml:"-"`
	Term   string    `yaml:"term" need:"true" doc:"The member of gpu.health.term, which says what it means."`
	Weight float64   `yaml:"weight" need:"true" doc:"What it takes of the score while it holds: above 0, at most 1."`
	Window string    `yaml:"window" doc:"How long it holds after what was counted, or seen, as \"1h\" or \"5m\". None where its readings say what is now."`
	Why    string    `yaml:"why" need:"true" doc:"One sentence: why it takes so much."`
	From   []Reading `yaml:"from" need:"true" doc:"What it is judged by; it holds when one of these says so."`
}

// Reading is one metric a term is judged by: a state that is 1, a counter that rises, or a number
// that is below another.
type Reading struct {
	Pos    `yaml:"-"`
	Metric string   `yaml:"metric" need:"true" doc:"A metric of a device or of a link, with one enum attribute at most."`
	Values []string `yaml:"values" doc:"The members of its attribute that count; none: all."`
	Link   string   `yaml:"link" doc:"The sort of link that counts: a member of gpu.link.type. Needed for metrics of links."`
	Least  float64  `yaml:"least" doc:"By how much one of a counter's series must have risen in the window. Default 1."`
	Fresh  bool     `yaml:"fresh" doc:"The counter begins when the exporter does, so that what it has at first happened since."`
	Below  string   `yaml:"below" doc:"The metric of the same link that it must not be below."`
	Busy   float64  `yaml:"busy" doc:"The share of the time the device must be at work for that to count."`
}
