package spell

import "testing"

func TestNearest(t *testing.T) {
	known := []string{"sources", "source", "brief", "metrics.include", "web.listen-address"}
	for word, want := range map[string]string{
		"sorces":             "sources",
		"breif":              "brief",
		"metrics.incude":     "metrics.include",
		"web.listen-adress":  "web.listen-address",
		"brief":              "brief",
		"entirely-different": "",
		"":                   "",
	} {
		if got := Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
