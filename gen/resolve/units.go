package resolve

import (
	"regexp"
	"slices"
	"strings"

	"github.com/gpumeter/gpumeter/gen/schema"
	"github.com/gpumeter/gpumeter/spell"
)

// CountedUnit is the form of the unit of a count of things, such as {error}.
const CountedUnit = `^\{[a-z_]+\}$`

var countedUnit = regexp.MustCompile(CountedUnit)

// Units lists the units a metric may have besides those of CountedUnit.
func Units() []string {
	return []string{"", "1", "s", "By", "W", "J", "Cel", "Hz", "V", "A", "By/s", "{USD}", "{USD}/h"}
}

// scaledUnits are what others measure in, and what we write instead.
var scaledUnits = map[string]string{
	"mW": "W", "kW": "W", "mJ": "J", "kJ": "J", "Wh": "J", "kW.h": "J", "uJ": "J",
	"KiBy": "By", "MiBy": "By", "GiBy": "By", "kBy": "By", "MBy": "By", "GBy": "By", "bit": "By",
	"ns": "s", "us": "s", "ms": "s", "min": "s", "h": "s", "d": "s",
	"kHz": "Hz", "MHz": "Hz", "GHz": "Hz", "%": "1", "K": "Cel", "mV": "V", "mA": "A",
	"KiBy/s": "By/s", "MiBy/s": "By/s", "MBy/s": "By/s", "USD": "{USD}", "USD/h": "{USD}/h",
}

func checkUnit(m schema.Metric, bad func(string, ...any)) {
	units := Units()
	if base, ok := scaledUnits[m.Unit]; ok {
		bad("unit %q is not a base unit; write %q and a scale", m.Unit, base)
	} else if !countedUnit.MatchString(m.Unit) && !slices.Contains(units, m.Unit) {
		bad("unknown unit %q%s", m.Unit, spell.Suggest(m.Unit, units))
	}
	switch {
	case m.Unit == "" && m.Instrument != "gauge":
		bad("a state or an info is a gauge, not a %s", m.Instrument)
	case m.Unit == "1" && m.Instrument != "gauge" && m.Instrument != "histogram":
		bad("a ratio is a gauge, not a %s", m.Instrument)
	case strings.Contains(m.Unit, "/") && m.Instrument != "gauge":
		bad("a rate is a gauge, not a %s", m.Instrument)
	case strings.HasSuffix(m.Name, ".info") && (m.Unit != "" || m.Instrument != "gauge"):
		bad(`an info is a gauge of unit ""`)
	}
}
