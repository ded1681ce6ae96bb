package spell

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"sources", "source", "brief", "metrics.include", "web.listen-address", "gpu.index", "s"}
	for word, want := range map[string]string{
		"sorces":             "sources",
		"breif":              "brief",
		"metrics.incude":     "metrics.include",
		"web.listen-adress":  "web.listen-address",
		"brief":              "brief",
		"entirely-different": "",
		"gpu.code":           "", // its prefix alone does not make it like another
		"x":                  "",
		"":                   "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
