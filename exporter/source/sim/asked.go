package sim

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode"

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
	gpuXID
	gpuECC
	gpuHot
	gpuIdle
)

// troubleNames are theirs, as the description of a node writes them.
func troubleNames() []string {
	return []string{"engine-slow", "engine-saturated", "engine-long", "engine-errors", "engine-outage",
		"gpu-xid", "gpu-ecc", "gpu-hot", "gpu-idle"}
}

// asked is a trouble and when it was asked for, since the driver was loaded.
type asked struct {
	trouble  trouble
	from, to time.Duration // the end not included
}

// isTrouble tells a trouble of a node's description from boards.
func isTrouble(part string) bool {
	return strings.HasPrefix(part, "engine-") || strings.HasPrefix(part, "gpu-") || strings.Contains(part, "@")
}

// parseTrouble reads NAME, NAME@FROM or NAME@FROM+FOR, with times such as 90s or 1h30m.
func parseTrouble(part string) (asked, error) {
	name, when, timed := strings.Cut(part, "@")
	i := slices.Index(troubleNames(), name)
	if i < 0 {
		return asked{}, fmt.Errorf("%q: %w", part, noFault(name))
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

func readTime(part, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > 1000*time.Hour {
		return 0, fmt.Errorf("%q: invalid time %q; write NAME@FROM+FOR with times such as 90s or 1h30m", part, text)
	}
	return d, nil
}

// asks are all that is asked for of a node.
type asks []asked

// at are those that hold at a time since the driver was loaded.
func (l asks) at(t time.Duration) (f Faults) {
	for _, a := range l {
		if a.from <= t && t < a.to {
			f |= 1 << a.trouble
		}
	}
	return f
}

// Faults are sorts of fault that hold; the zero Faults are none.
type Faults uint

// ParseFaults reads the names of faults, between commas or white space.
func ParseFaults(text string) (Faults, error) {
	var all Faults
	var mistakes []error
	for _, name := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		i := slices.Index(troubleNames(), name)
		if i < 0 {
			mistakes = append(mistakes, noFault(name))
			continue
		}
		all |= 1 << i
	}
	return all, errors.Join(mistakes...)
}

func noFault(name string) error {
	known := troubleNames()
	return fmt.Errorf("no fault %q%s; faults are %s", name, spell.Suggest(name, known), strings.Join(known, ", "))
}

func (f Faults) has(t trouble) bool { return f&(1<<t) != 0 }

// strain is what they are to an engine.
func (f Faults) strain() strain {
	x := strain{slow: 1, prompt: 1, answer: 1, errors: 0.001}
	if f.has(engineSlow) {
		x.slow = 8 // as beside a neighbour that takes most of the board
	}
	if f.has(engineSaturated) {
		x.load = 1.5
	}
	if f.has(engineLong) {
		x.prompt, x.answer, x.load = 6, 3, max(x.load, 0.8)
	}
	if f.has(engineErrors) {
		x.errors = 0.3
	}
	return x
}
