package prometheus

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"
)

// packs are the files of the alerts: the core of three and the extra one.
func packs(t *testing.T) (files map[string]string) {
	t.Helper()
	files = map[string]string{}
	all, err := filepath.Glob("../../rules/plain/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range all {
		if strings.Contains(file, "compat") {
			continue
		}
		for _, group := range newServer(t, file).groups {
			for _, rule := range group.AlertingRules() {
				files[rule.Name()] = file
			}
		}
	}
	return files
}

func scenarios() []*scenario {
	return slices.Concat(infrastructureAlerts(), fleetAlerts(), inferenceAlerts(), extraAlerts())
}

// Each alert has a scenario.
func TestEveryAlertIsPlayed(t *testing.T) {
	played := map[string]bool{}
	for _, sc := range scenarios() {
		played[sc.alert] = true
	}
	files := packs(t)
	for alert, file := range files {
		if !played[alert] {
			t.Errorf("%s of %s has no scenario", alert, filepath.Base(file))
		}
		delete(played, alert)
	}
	if len(files) < 26 {
		t.Errorf("%d alerts are found, want the 26 that are shipped", len(files))
	}
	for alert := range played {
		t.Errorf("%s has a scenario, and is no alert", alert)
	}
}

// Each alert fires when its time is over, whatever becomes of pods meanwhile; is silent just below its
// threshold; and ends.
func TestAlertsFire(t *testing.T) {
	files := packs(t)
	all := scenarios()
	lines := make([]string, len(all))
	t.Run("alert", func(t *testing.T) {
		for i, sc := range all {
			t.Run(sc.alert, func(t *testing.T) {
				t.Parallel()
				lines[i] = sc.play(t, files[sc.alert])
			})
		}
	})
	var table strings.Builder
	w := tabwriter.NewWriter(&table, 0, 0, 1, ' ', tabwriter.Debug)
	fmt.Fprintln(w, "alert\t for\t its window takes\t fires after\t pod dies with it\t short pods\t just under\t resolves after")
	for _, line := range lines {
		fmt.Fprintln(w, line)
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	t.Logf("\n%s", &table)
}

// play has a scenario in all its variants, and says in a line of the table what was seen.
func (sc *scenario) play(t *testing.T, file string) string {
	fired := map[string][]time.Duration{}
	var resolved []time.Duration
	variant := func(name string, at level, change func(*scene), offsets ...offset) bool {
		return t.Run(name, func(t *testing.T) {
			for _, when := range offsets {
				r := newRun(t, sc, file, at, when)
				change(r.scene)
				r.play()
				fired[name] = append(fired[name], r.fired)
				if name == "steady" {
					resolved = append(resolved, r.resolved)
				}
			}
		})
	}
	stays := func(*scene) {}
	silent := "silent"
	variant("steady", sick, stays, usual, latest, crossed)
	if sc.above > 0 {
		variant("just above", above, stays, latest)
	}
	if !variant("just under", under, stays, usual) {
		silent = "FIRES"
	}
	if sc.window == 0 && sc.held > 0 && !variant("just too short", under, func(c *scene) { c.blinks = sc.held }, usual, latest, crossed) {
		silent = "FIRES"
	}
	dies := sc.alive
	if dies == "" {
		variant("pod dies", sick, func(c *scene) { c.ends = true }, latest)
		dies = span(fired["pod dies"])
	}
	life := sc.held / 3
	if life == 0 {
		life = 2 * time.Minute
	}
	variant("short pods", sick, func(c *scene) { c.every = int(life / interval) }, usual, crossed)
	return fmt.Sprintf("%s\t %s\t %s\t %s\t %s\t %s\t %s\t %s",
		sc.alert, brief(sc.held), brief(sc.sick), span(fired["steady"]), dies, span(fired["short pods"]), silent, span(resolved))
}

// span is from the shortest to the longest.
func span(all []time.Duration) string {
	if len(all) == 0 {
		return "NEVER"
	}
	from, to := slices.Min(all), slices.Max(all)
	if from == to {
		return brief(to)
	}
	return brief(from) + " to " + brief(to)
}

// brief leaves out the zeros at the end of a time.
func brief(d time.Duration) string {
	text := strings.TrimSuffix(d.String(), "m0s")
	if text != d.String() {
		text += "m"
	}
	return text
}
