// Package gpu compares gpumeter with nvidia-smi on a machine with an NVIDIA GPU (make test-gpu),
// and that comparison with a driver and an nvidia-smi of our own.
package gpu

import (
	"io"
	"testing"
	"time"
)

// examine does all there is to do on a machine, and prints it.
func (m *machine) examine(t *testing.T, out io.Writer, library string, length time.Duration) {
	t.Run("once", func(t *testing.T) { m.agree(t, out, "gpumeter once", m.once) })
	s := m.serve(t)
	t.Run("serve", func(t *testing.T) { m.agree(t, out, "gpumeter serve", s.page) })
	t.Run("calls", func(t *testing.T) {
		device, links := fieldIDs(t)
		all, err := m.timings(compiled(t, "calls", callsSource), library, device, links)
		if err != nil {
			t.Fatal(err)
		}
		fail(t, printTimings(out, all))
		for _, c := range all {
			if c.slow() {
				t.Errorf("%s takes %.0f µs of a scrape, at most %.0f are allowed", c.call, c.median, slowest)
			}
		}
	})
	var idle []sample
	t.Run("counters", func(t *testing.T) {
		idle = watch(t, s, time.Second, length)
		hold(t, out, "counters against each other", counters(idle))
	})
	t.Run("load", func(t *testing.T) {
		l := m.startLoad(t, 2*length+2*patience)
		l.seen(t, s, patience)
		time.Sleep(settling)
		busy := watch(t, s, time.Second, length)
		hold(t, out, "counters against each other, under load", append(loaded(idle, busy), counters(busy)...))
		m.agree(t, out, "gpumeter serve, under load", s.page)
	})
}

// settling is how long averages of the driver's take to be of the load alone.
const settling = 3 * time.Second

// agree compares a page with nvidia-smi.
func (m *machine) agree(t *testing.T, out io.Writer, title string, read func() (page, error)) {
	t.Helper()
	r, found := m.compare(t, read)
	fail(t, printFindings(out, title, r, found))
	for _, f := range those(found, differs) {
		t.Error(f)
	}
	if len(those(found, same)) == 0 {
		t.Error("nothing could be compared")
	}
}

// hold wants every check to hold.
func hold(t *testing.T, out io.Writer, title string, all []check) {
	t.Helper()
	fail(t, printChecks(out, title, all))
	for _, c := range all {
		if !c.ok {
			t.Errorf("%s of %s: %s, want %s", c.name, c.uuid, c.saw, c.want)
		}
	}
}

func fail(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
