package prometheus

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/prometheus/rules"
)

// scenario is how an alert comes to fire: what the nodes serve, and what is then to be seen of it.
type scenario struct {
	alert  string
	page   func(*scene)
	held   time.Duration     // for how long it must be true, as shipped
	window time.Duration     // as far back as the expression looks
	sick   time.Duration     // from the onset until the expression is true, where things are sick
	above  time.Duration     // and where they are just above the threshold; 0: sick is that
	event  bool              // it happens once, at the onset
	about  map[string]string // labels of the one that is sick, the pod's excepted
	pod    string            // the sick one's first pod; empty: nobody's is named
	past   time.Duration     // what must be known of earlier; 0: the window
	sudden bool              // it is true at once where its pod dies
	victim bool              // the pod it happened to is named, though that has ended
	alive  string            // why the alert is not about what dies with its pod; empty: it is
}

// slack is by how much later an alert may fire and end than it could: by two evaluations.
const slack = 2 * interval

// mean is how long the mean of a window takes, when its rate goes from one to another, to pass the limit.
// Of the scrapes in a window, each stands for the time since the one before, and the first for none.
func mean(window time.Duration, from, to, limit float64) time.Duration {
	steps := float64(window/interval) - 1
	needs := math.Floor(steps*(limit-from)/(to-from)) + 1
	return time.Duration(needs-1) * interval
}

// offset is when in an interval the targets are scraped and the rules evaluated: Prometheus spreads both.
type offset struct{ scraped, evaluated time.Duration }

var (
	usual = offset{7 * time.Second, 9 * time.Second}
	// In these, nearly two intervals go by from a scrape to the evaluation after the next full half minute.
	latest  = offset{time.Second, 29 * time.Second}
	crossed = offset{29 * time.Second, time.Second}
)

// run is a scenario as it is played once.
type run struct {
	testing.TB
	*scenario
	scene            *scene
	server           *server
	rule             *rules.AlertingRule
	at               level
	when             offset
	reacts           time.Duration // from the onset until the expression is true
	first, end, last int           // intervals, from the onset on
	fired, resolved  time.Duration // since the onset, and since the end; below 0: not
}

// lasts is for how long it goes on once the alert must fire.
const lasts = 10 * time.Minute

func newRun(t testing.TB, sc *scenario, file string, at level, when offset) *run {
	t.Helper()
	r := &run{TB: t, scenario: sc, scene: newScene(), server: newServer(t, file), at: at, when: when, reacts: sc.sick, fired: -1, resolved: -1}
	if at == above {
		r.reacts = sc.above
	}
	r.server.groups = slices.DeleteFunc(r.server.groups, func(g *rules.Group) bool {
		for _, rule := range g.AlertingRules() {
			if rule.Name() == sc.alert {
				r.rule = rule
				return false
			}
		}
		return true // the others' alerts are not asked for
	})
	intervals := func(d time.Duration) int { return int(d / interval) }
	r.first = -intervals(max(sc.past, sc.window)) - 4
	r.end = intervals(r.reacts + sc.held + slack + lasts)
	r.last = r.end + intervals(sc.window+slack) + 4
	if at == under {
		r.end = intervals(2 * (sc.held + sc.window))
		r.last = r.end
	}
	return r
}

func (r *run) play() {
	for tick := r.first; tick <= r.last; tick++ {
		if r.when.scraped < r.when.evaluated {
			r.serve(tick)
			r.evaluate(tick)
		} else {
			r.evaluate(tick)
			r.serve(tick)
		}
	}
	switch {
	case r.at == under:
		return
	case r.fired < 0:
		r.Fatalf("%s does not fire within %s of the onset", r.alert, time.Duration(r.end)*interval)
	case r.resolved < 0:
		r.Fatalf("%s still fires %s after the end", r.alert, r.window+slack)
	}
	if r.event {
		r.resolved += time.Duration(r.end) * interval // it ended as it began
	}
	if r.resolved > r.window+slack {
		r.Errorf("%s ends %s after the end, want at most %s", r.alert, r.resolved, r.window+slack)
	}
}

// time is that of an interval, such that the first scrape is near the origin.
func (r *run) time(tick int) time.Time { return origin.Add(time.Duration(tick-r.first) * interval) }

func (r *run) serve(tick int) {
	r.scene.tick, r.scene.level = tick, r.at
	if tick < 0 || tick >= r.end {
		r.scene.level = healthy
	}
	r.scene.scrape(r.server, r.time(tick).Add(r.when.scraped), r.page)
}

// evaluate has the rules evaluated, and says what is wrong with the alerts that fire.
func (r *run) evaluate(tick int) {
	if tick < -5 { // nothing can fire yet
		return
	}
	r.server.evaluate(r.time(tick).Add(r.when.evaluated))
	since := time.Duration(tick)*interval + r.when.evaluated - r.when.scraped
	alerts := slices.DeleteFunc(r.rule.ActiveAlerts(), func(a *rules.Alert) bool { return a.State != rules.StateFiring })
	if len(alerts) == 0 {
		switch {
		case r.fired >= 0 && tick < r.end && !r.event:
			r.Fatalf("%s ends after %s, and nothing is well", r.alert, since)
		case r.fired >= 0 && r.event && since+slack < r.window:
			r.Fatalf("%s ends after %s, want it to fire for %s", r.alert, since, r.window)
		case r.fired >= 0 && r.resolved < 0:
			r.resolved = since - time.Duration(r.end)*interval
		}
		return
	}
	switch from, to := r.bounds(); {
	case r.at == under:
		r.Fatalf("%s fires after %s, and was not enough: %s", r.alert, since, alerts[0].Labels)
	case r.resolved >= 0:
		r.Fatalf("%s fires again after %s: %s", r.alert, since, alerts[0].Labels)
	case r.fired < 0:
		if r.fired = since; since < from || since > to {
			r.Errorf("%s fires after %s, want from %s to %s", r.alert, since, from, to)
		}
	}
	if r.scene.every == 0 && len(alerts) != 1 { // else one that is there no more may fire for as long as a window has it
		r.Errorf("%d alerts %s fire after %s, want that of %v alone", len(alerts), r.alert, since, r.about)
	}
	for _, a := range alerts {
		r.check(a)
	}
}

// bounds are when the alert is to fire at the soonest, and at the latest.
func (r *run) bounds() (from, to time.Duration) {
	from = r.reacts + r.held
	if r.sudden && r.scene.ends {
		from = r.held
	}
	return from, from + slack
}

// check says what is wrong with an alert that fires: whose it is, and what it tells.
func (r *run) check(a *rules.Alert) {
	for name, want := range r.about {
		if got := a.Labels.Get(name); got != want {
			r.Fatalf("%s fires for %s %q, want %q: %s", r.alert, name, got, want, a.Labels)
		}
	}
	text := a.Annotations.Get("summary") + "\n" + a.Annotations.Get("description")
	tells := slices.Collect(maps.Values(r.about))
	namespace, pod := a.Labels.Get("namespace"), a.Labels.Get("pod")
	switch {
	case r.pod == "" && pod != "" || r.pod != "" && r.scene.ends && !r.victim && pod != "":
		r.Fatalf("%s fires for pod %q, want nobody's: %s", r.alert, pod, a.Labels)
	case r.pod == "" || r.scene.ends && !r.victim, pod == "" && r.pod == trainPod && !r.victim && r.scene.between():
	case r.scene.every > 0 && !r.victim && strings.HasPrefix(pod, strings.TrimSuffix(r.pod, "0")) && namespace == "ml", pod == r.pod && namespace == "ml":
		tells = append(tells, namespace+"/"+pod)
	default:
		r.Fatalf("%s fires for pod %q in %q, want %s in ml: %s", r.alert, pod, namespace, r.pod, a.Labels)
	}
	for _, want := range tells {
		if !strings.Contains(text, want) {
			r.Fatalf("%s does not tell %s:\n%s", r.alert, want, text)
		}
	}
	for _, hole := range []string{"<no value>", "<error", "()", "[]", "//"} {
		if strings.Contains(text, hole) {
			r.Fatalf("%s tells of %q:\n%s", r.alert, hole, text)
		}
	}
}
