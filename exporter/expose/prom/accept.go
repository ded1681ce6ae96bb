package prom

import (
	"strconv"
	"strings"
)

// encoding chooses among those a scraper accepts: zstd when it asks for it by name, else gzip,
// else none.
func encoding(accept string) string {
	chosen := ""
	for offer := range strings.SplitSeq(accept, ",") {
		name, params, _ := strings.Cut(offer, ";")
		if q, ok := strings.CutPrefix(strings.TrimSpace(params), "q="); ok {
			if weight, err := strconv.ParseFloat(q, 64); err != nil || weight == 0 {
				continue
			}
		}
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "zstd":
			return "zstd"
		case "gzip", "*":
			chosen = "gzip"
		}
	}
	return chosen
}
