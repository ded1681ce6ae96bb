package health

import (
	"slices"
	"time"
)

// grains is into how many parts a window is divided: rises in one part are kept as one, so that what
// is remembered does not grow with how often devices are read.
const grains = 60

// count is what a counter did as far back as its term looks. Times are of the judge's clock.
type count struct {
	met   bool
	n     float64       // as last told
	last  time.Duration // when that was
	since time.Duration // from when on nothing was missed
	rises []rise        // the oldest first
}

// rise is by how much it rose, as seen at one time or in one grain.
type rise struct {
	from, at time.Duration // the first and the last time one was seen
	more     float64
}

// see takes in a reading. After longer than the window it is not known when a rise was, and below the
// last reading it was set back: nothing is counted then, and the window is watched anew. A fresh
// counter was 0 when the clock was.
func (c *count) see(n float64, now, window time.Duration, fresh bool) {
	c.met = c.met || fresh
	switch {
	case !c.met || now-c.last > window:
		*c = count{met: true, since: now}
	case n > c.n:
		c.rise(n-c.n, now, window)
	case n < c.n:
		c.since = now
	}
	c.n, c.last = n, now
}

func (c *count) rise(more float64, now, window time.Duration) {
	c.rises = slices.DeleteFunc(c.rises, func(r rise) bool { return now-r.at >= window })
	if i := len(c.rises) - 1; i >= 0 && now-c.rises[i].from < window/grains {
		c.rises[i].at, c.rises[i].more = now, c.rises[i].more+more
		return
	}
	c.rises = append(c.rises, rise{from: now, at: now, more: more})
}

// within is by how much it rose in the window that ends now.
func (c *count) within(now, window time.Duration) (sum float64) {
	for _, r := range c.rises {
		if now-r.at < window {
			sum += r.more
		}
	}
	return sum
}

// watched says whether nothing was missed in the window that ends now.
func (c *count) watched(now, window time.Duration) bool {
	return c.met && now-c.since >= window
}

func (c *count) clone() *count {
	out := *c
	out.rises = slices.Clone(c.rises)
	return &out
}
