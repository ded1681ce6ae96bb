package gpu

import (
	"maps"
	"strings"
	"sync"
	"testing"
)

// boards are those of the fake driver, each as a generation of drivers sees it.
var boards = []struct {
	name, driver string
	lines        []string
}{
	{"h200", "580", nil},
	{"h200", "610", []string{"throttle 0 0x44", "recovery 0 1", "fabric 0 3 0 2 0x1155"}},
	{"h100", "590", []string{"fabric 0 2 0 0 0", "recovery 0 1", "process 0 4711 1048576000 50", "process 0 4711 1048576000 graphics", "process 0 4712 none"}},
	{"h100", "535", []string{"fabric 0 3 0 0 0"}},
	{"h200", "550", []string{"fabric 0 2 0 0 0"}},
	{"a100", "570", []string{"set 0 display_active 1", "set 0 persistence 0", "set 0 pstate 8", "throttle 0 0x1a2"}},
	{"l40s", "595", []string{"set 0 virtualization 1", "set 0 compute_mode 3", "set 0 fbc_sessions 1", "set 0 fbc_fps 30", "set 0 fbc_latency 700"}},
	{"rtx2080", "610", []string{"set 0 throttle_power 1000000"}},
	{"rtx4080", "590", []string{"set 0 ecc none"}},
	{"v100", "535", []string{"set 0 ecc_corrected 7", "set 0 retired_dbe 3"}},
	{"b200", "595", []string{"set 0 unrepairable 1", "set 0 repair_tpc 1"}},
	{"gb200", "610", []string{"set 0 remap_pending 1", "set 0 banks_low 3"}},
	{"everything", "610", []string{"set 0 sram_parity 2", "set 0 sram_l2 2", "set 0 pcie_replay 150", "set 0 pcie_gen 1"}},
	{"everything", "580", []string{"gpus 2", "set 1 temperature 71", "process 1 4711 1048576000"}},
	{"everything", "450", nil},
	{"h100", "580", []string{"mig 0 on 3g.40gb:2:0,1c.3g.40gb:1:0,1c.3g.40gb:1:1", "used 0 2 5000000000", "process 0 4711 1048576000 1 0"}},
}

// untellable are rows that no fake board has an answer for, and why.
func untellable(ours string) bool {
	for _, part := range []string{
		"gpu_chassis_", "gpu_platform_guid", // the fake rack has no names
		"gpu_inforom_power",                                                                      // captures have it of no board
		"=l1_cache", "=l2_cache", "=register_file", "=texture_memory", "=shared_memory", "=cbu}", // no error was seen by these
	} {
		if strings.Contains(ours, part) {
			return true
		}
	}
	return false
}

// What nvidia-smi says of every fake board is what gpumeter says, and each of the values is seen to
// differ when it does: another number or word there, none there, none here.
func TestAgreement(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	var mu sync.Mutex
	compared := map[[2]string]bool{}
	t.Run("board", func(t *testing.T) {
		for _, board := range boards {
			t.Run(board.name+" "+board.driver, func(t *testing.T) {
				t.Parallel()
				m := b.machine(t, board.driver, append([]string{"gpus 1", "board " + board.name}, board.lines...)...)
				r, found := m.compare(t, m.once)
				for _, f := range those(found, differs) {
					t.Error(f)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, uuid := range r.uuids() {
					for _, w := range append(rows(), r.parts(uuid)...) {
						for _, source := range w.sources() {
							if f := r.compare(uuid, w, source); f.verdict == same {
								compared[[2]string{w.ours, source}] = true
								seenToFail(t, r, w, uuid, source)
							}
						}
					}
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	for _, w := range rows() {
		for _, source := range w.sources() {
			if got := compared[[2]string{w.ours, source}]; got == untellable(w.ours) {
				t.Errorf("%s by %s was compared: %v", w.ours, source, got)
			}
		}
	}
}

// seenToFail makes a value that agrees differ, in each way it can.
func seenToFail(t *testing.T, r reading, w row, uuid, source string) {
	t.Helper()
	for _, change := range []struct {
		name string
		to   func(reading) reading
		why  string
	}{
		{"another there", func(r reading) reading { return r.altered(uuid, source, w.another) }, "want"},
		{"none there", func(r reading) reading {
			return r.altered(uuid, source, func(string) string { return "N/A" })
		}, "nvidia-smi has none"},
		{"none here", func(r reading) reading { return reading{r.before, r.after, r.page.without(uuid, w.ours)} }, "gpumeter has none"},
	} {
		if w.lax && change.name == "none there" {
			continue
		}
		got := change.to(r).compare(uuid, w, source)
		if got.verdict != differs || !strings.Contains(got.why, change.why) || !strings.Contains(got.String(), w.ours) {
			t.Errorf("%s, with %s: %s: %v", w.ours, change.name, got.verdict, got)
		}
	}
}

// altered is the reading with another text for all paths of a source that have an answer.
func (r reading) altered(uuid, source string, to func(string) string) reading {
	change := func(all map[string]told) map[string]told {
		out := maps.Clone(all)
		out[uuid] = maps.Clone(all[uuid])
		for path := range strings.SplitSeq(source, "|") {
			if text, ok := all[uuid][path]; ok && !isNone(text) {
				out[uuid][path] = to(text)
			}
		}
		return out
	}
	return reading{change(r.before), change(r.after), r.page}
}

// another is a text that means something else.
func (w row) another(text string) string {
	if w.zero != "" && text != w.zero {
		return w.zero
	}
	for word, n := range switches {
		if before, ok := switches[text]; ok && n != before {
			return word
		}
	}
	if digits, ok := strings.CutPrefix(text, "P"); ok && digits != "" && digits[0] >= '0' && digits[0] <= '9' {
		return "P99"
	}
	if m := printed.FindStringSubmatch(text); m != nil {
		return "9" + strings.TrimPrefix(m[1], "-") + "9999999" + strings.TrimPrefix(text, m[1])
	}
	return "another " + text
}
