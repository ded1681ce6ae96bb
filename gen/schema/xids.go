package schema

// XIDFile is spec/data/xids.yaml: what the numbers of NVIDIA's XID errors mean.
type XIDFile struct {
	Pos    `yaml:"-"`
	Source string `yaml:"source" need:"true" doc:"Where the facts are from."`
	Date   string `yaml:"date" need:"true" doc:"The day on which they were so, as \"2025-10-29\"."`
	XIDs   []XID  `yaml:"xids" need:"true" doc:"One entry a code, codes rising."`
}

// XID is one code.
type XID struct {
	Pos      `yaml:"-"`
	Code     uint32 `yaml:"code" need:"true" doc:"The number the driver reports."`
	Mnemonic string `yaml:"mnemonic" need:"true" doc:"The driver's own name of it."`
	Brief    string `yaml:"brief" need:"true" doc:"One sentence: what happened."`
	Severity string `yaml:"severity" need:"true" enum:"critical,warning,info" doc:"critical: the device, or a link of it, is out of order. warning: work was lost, or will be. info: nothing is lost."`
	Who      string `yaml:"who" need:"true" enum:"operator,application,vendor,nobody" doc:"Who can do something about it."`
	Action   string `yaml:"action" need:"true" doc:"The member of gpu.xid_action under which it is counted."`
	Advice   string `yaml:"advice" need:"true" doc:"One sentence: what to do."`
	Note     string `yaml:"note" doc:"Why it is classed so, where the catalogue does not say."`
}
