// Package gpu compares gpumeter with nvidia-smi on a machine with an NVIDIA GPU (make test-gpu),
// and that comparison with a driver and an nvidia-smi of our own.
package gpu

import (
	"fmt"
	"io"
	"maps"
	"os/exec"
	"slices"
	"testing"
	"time"
)

// examine does all there is to do on a machine, and prints it.
func (m *machine) examine(t *testing.T, out io.Writer, library string, length time.Duration) {
	_, gcc := exec.LookPath("gcc")
	for _, line := range withoutCompiler(gcc, m.load) {
		fmt.Fprintln(out, line)
	}
	all, err := m.told()
	fail(t, err)
	uuids := slices.Sorted(maps.Keys(all))
	if len(uuids) == 0 {
		t.Fatal("nvidia-smi lists no GPU")
	}
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
		if !slices.ContainsFunc(all, func(c timing) bool { return c.where == "scrape" && c.code == 0 }) {
			t.Errorf("none of %d calls succeeded", len(all))
		}
		for _, c := range all {
			if c.slow() {
				t.Errorf("%s takes %.0f µs of a scrape, at most %.0f are allowed", c.call, c.median, slowest)
			}
		}
	})
	var idle []sample
	t.Run("counters", func(t *testing.T) {
		idle = watch(t, s, time.Second, length)
		hold(t, out, "counters against each other", append(present(uuids, idle), counters(idle)...))
	})
	t.Run("load", func(t *testing.T) {
		l := m.startLoad(t, 2*length+2*patience)
		l.seen(t, s, uuids, patience)
		time.Sleep(settling)
		busy := watch(t, s, time.Second, length)
		hold(t, out, "counters against each other, under load", slices.Concat(present(uuids, busy), loaded(idle, busy), counters(busy)))
		m.agree(t, out, "gpumeter serve, under load", s.page)
	})
}

// settling is how long averages of the driver's take to be of the load alone.
const settling = 3 * time.Second

// withoutCompiler returns what is not done without a C compiler, nothing where there is one.
func withoutCompiler(gcc error, load string) []string {
	if gcc == nil {
		return nil
	}
	out := []string{fmt.Sprintf("no C compiler (%v): the times of the driver's calls are not measured", gcc)}
	if load == "" {
		out = append(out, "no C compiler: nothing is compared under load; set GPUMETER_GPU_LOAD to a command that keeps all GPUs busy")
	}
	return out
}

// agree compares a page with nvidia-smi.
func (m *machine) agree(t *testing.T, out io.Writer, title string, read func() (page, error)) {
	t.Helper()
	r, found := m.compare(t, read)
	fail(t, printFindings(out, title, r, found))
	for _, f := range those(found, differs) {
		t.Error(f)
	}
	if len(r.uuids()) == 0 {
		t.Error("neither nvidia-smi nor gpumeter lists a GPU")
	}
	for _, uuid := range r.uuids() {
		if !slices.ContainsFunc(found, func(f finding) bool { return f.uuid == uuid && f.verdict == same }) {
			t.Errorf("%s: no value could be compared", uuid)
		}
	}
}

// hold wants every check to hold.
func hold(t *testing.T, out io.Writer, title string, all []check) {
	t.Helper()
	fail(t, printChecks(out, title, all))
	if !slices.ContainsFunc(all, func(c check) bool { return c.lacks == "" }) {
		t.Error("nothing could be checked")
	}
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
