package prom

import (
	"strconv"
	"strings"
)

// encoding chooses among those a scraper accepts: zstd when it asks for it by name, else gzip,
// else none. A weight says only whether one is refused.
func encoding(accept string) string {
	var gzip, named, anything bool
	for offer := range strings.SplitSeq(strings.ToLower(accept), ",") {
		name, params, _ := strings.Cut(offer, ";")
		wanted := true
		if q, ok := strings.CutPrefix(strings.TrimSpace(params), "q="); ok {
			weight, err := strconv.ParseFloat(q, 64)
			wanted = err == nil && weight > 0
		}
		switch strings.TrimSpace(name) {
		case "zstd":
			if wanted {
				return "zstd"
			}
		case "gzip":
			gzip, named = wanted, true
		case "*":
			anything = wanted
		}
	}
	if gzip || anything && !named {
		return "gzip"
	}
	return ""
}
