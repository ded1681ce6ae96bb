package metric

// Reason says why a reading has no number. Reasons are package-level values, compared by pointer
// and never made while reading; a source declares those it alone needs.
type Reason struct {
	Text  string // a few words, the value of the label gpumeter_reason
	Fault bool   // counted as a read fault; false where absence is normal
}

// The reasons every source shares.
var (
	Unread      = &Reason{Text: "not read"}
	Unsupported = &Reason{Text: "not supported"}            // the device does not have it
	NoData      = &Reason{Text: "no data yet"}              // the driver has it, but nothing so far
	Denied      = &Reason{Text: "no permission"}            // said once, not a fault of the device
	Released    = &Reason{Text: "released"}                 // the exporter let go of the device on request
	Late        = &Reason{Text: "late", Fault: true}        // no answer before the deadline
	Lost        = &Reason{Text: "lost", Fault: true}        // the device is gone from the bus
	Implausible = &Reason{Text: "implausible", Fault: true} // a number no device can have
	Failed      = &Reason{Text: "failed", Fault: true}      // any other error of the driver
)
