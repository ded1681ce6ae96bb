package sim

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/gpumeter/gpumeter/spell"
)

// trouble is a sort of fault that happens when it is asked for, unlike those of faultSorts.
type trouble int

const (
	engineSlow trouble = iota
	engineSaturated
	engineLong
	engineErrors
	engineOutage
	troubles
)

// String returns the trouble as the description of a node writes it.
func (t trouble) String() string { return troubleNames()[t] }

func troubleNames() []string {
	return []string{"engine-slow", "engine-saturated", "engine-long", "engine-errors", "engine-outage"}
}

// asked is a trouble and when it was asked for, since the driver was loaded.
type asked struct {
	trouble  trouble
	from, to time.Duration // the end not included
}

// isTrouble tells a trouble of a node's description from boards.
func isTrouble(part string) bool {
	return strings.HasPrefix(part, "engine-") || strings.Contains(part, "@")
}

// parseTrouble reads NAME, NAME@FROM or NAME@FROM+FOR, with times such as 90s or 1h30m.
func parseTrouble(part string) (asked, error) {
	name, when, timed := strings.Cut(part, "@")
	known := troubleNames()
	for i, n := range known {
		if n != name {
			continue
		}
		a := asked{trouble: trouble(i), to: math.MaxInt64}
		if !timed {
			return a, nil
		}
		from, length, ends := strings.Cut(when, "+")
		var err error
		if a.from, err = readTime(part, from); err == nil && ends {
			var d time.Duration
			d, err = readTime(part, length)
			a.to = a.from + d
		}
		return a, err
	}
	return asked{}, fmt.Errorf("%q: no fault %q%s; faults are %s", part, name, spell.Suggest(name, known), strings.Join(known, ", "))
}

func readTime(part, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > 1000*time.Hour {
		return 0, fmt.Errorf("%q: %q is no time such as 90s or 1h30m; write NAME@FROM+FOR", part, text)
	}
	return d, nil
}

// asks are all that were asked for.
type asks []asked

// has tells whether a trouble holds at a time since the driver was loaded.
func (l asks) has(t trouble, at time.Duration) bool {
	for _, a := range l {
		if a.trouble == t && a.from <= at && at < a.to {
			return true
		}
	}
	return false
}

// strain is what holds for engines.
func (l asks) strain(at time.Duration) strain {
	x := strain{slow: 1, prompt: 1, answer: 1, errors: 0.001}
	if l.has(engineSlow, at) {
		x.slow = 8 // as beside a neighbour that takes most of the board
	}
	if l.has(engineSaturated, at) {
		x.load = 1.5
	}
	if l.has(engineLong, at) {
		x.prompt, x.answer, x.load = 6, 3, max(x.load, 0.8)
	}
	if l.has(engineErrors, at) {
		x.errors = 0.3
	}
	return x
}
