package gpu

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// verdict is what came of comparing one value.
type verdict string

const (
	same    verdict = "ok"
	differs verdict = "DIFFERS"
	neither verdict = "neither"  // both say that there is none
	untold  verdict = "not told" // this nvidia-smi does not speak of it, or of nothing that could be compared
	unread  verdict = "not read" // of a driver this old only nvidia-smi has it
)

// finding is one value, what was told of it, and the verdict.
type finding struct {
	uuid, value, source string // the value is a selector, the source the element or field that told
	before, after, ours string
	verdict             verdict
	why                 string // of what differs
}

func (f finding) String() string {
	return fmt.Sprintf("%s of %s: nvidia-smi's %s says %q before and %q after, gpumeter %q: %s", f.value, f.uuid, f.source, f.before, f.after, f.ours, f.why)
}

// reading is a page, with what nvidia-smi said just before and just after it, by UUID.
type reading struct {
	before, after map[string]told
	page          page
}

// uuids are the GPUs that any of the three tells of.
func (r reading) uuids() []string {
	seen := map[string]bool{}
	for uuid := range r.before {
		seen[uuid] = true
	}
	for _, uuid := range r.page.uuids() {
		seen[uuid] = true
	}
	var out []string
	for uuid := range seen {
		out = append(out, uuid)
	}
	slices.Sort(out)
	return out
}

// judge compares all values of all GPUs.
func (r reading) judge() []finding {
	var out []finding
	for _, uuid := range r.uuids() {
		for _, w := range append(rows(), r.parts(uuid)...) {
			for _, source := range w.sources() {
				out = append(out, r.compare(uuid, w, source))
			}
		}
	}
	return out
}

// compare judges one value by one source.
func (r reading) compare(uuid string, w row, source string) finding {
	f := finding{uuid: uuid, value: w.ours, source: source}
	before, after := r.before[uuid], r.after[uuid]
	text, by, there := before.text(source)
	later, _, still := after.text(source)
	f.before, f.after = text, later
	if there {
		f.source = by
	}
	if !there && !still && !w.sure || !w.applies(before) || !w.applies(after) {
		f.verdict = untold
		return f
	}
	none := isNone(f.before) && isNone(f.after)
	if w.word {
		r.compareWords(w, &f)
	} else {
		r.compareNumbers(w, &f, none)
	}
	driver, _ := strconv.Atoi(strings.Split(before["driver_version"], ".")[0])
	if f.verdict == differs && f.ours == "" && driver < w.since {
		f.verdict, f.why = unread, fmt.Sprintf("read from R%d on", w.since)
	}
	return f
}

// applies says whether what the row depends on is so.
func (w row) applies(t told) bool {
	if w.when == "" {
		return true
	}
	path, want, exact := strings.Cut(w.when, "=")
	text, _, there := t.text(path)
	if exact {
		return text == want
	}
	return there && !isNone(text) && text != "0"
}

func (r reading) compareWords(w row, f *finding) {
	f.ours = r.page.word(f.uuid, w.ours)
	if f.ours == "not_supported" { // a state for what nvidia-smi says is not there
		f.ours = ""
	}
	as := func(text string) string {
		if isNone(text) {
			return ""
		}
		if w.as != nil {
			return w.as(text)
		}
		return text
	}
	first, second := as(f.before), as(f.after)
	switch {
	case f.ours == first || f.ours == second:
		f.verdict = same
		if f.ours == "" {
			f.verdict = neither
		}
	case w.lax && first == "" && second == "":
		f.verdict = untold
	default:
		f.verdict = differs
		f.why = missing(first == "" && second == "", f.ours == "", fmt.Sprintf("want %q", first))
	}
}

// missing explains a difference, where one of the two has nothing in particular.
func missing(there, here bool, otherwise string) string {
	switch {
	case there:
		return "nvidia-smi has none"
	case here:
		return "gpumeter has none"
	}
	return otherwise
}

func (r reading) compareNumbers(w row, f *finding, none bool) {
	got, has := r.page.number(f.uuid, w.ours)
	if has {
		f.ours = show(got)
	}
	f.verdict = same
	low, high, grain, understood := math.Inf(1), math.Inf(-1), 0., true
	for _, text := range []string{f.before, f.after} {
		if isNone(text) {
			continue
		}
		q, ok := w.quantity(text)
		understood = understood && ok
		low, high, grain = min(low, q.value), max(high, q.value), max(grain, q.grain)
	}
	slack := grain + w.abs + w.rel*max(math.Abs(low), math.Abs(high)) + 1e-9*math.Abs(got)
	came := isNone(f.before) != isNone(f.after) // or went, between the two
	switch {
	case !understood:
		f.verdict, f.why = differs, "not understood"
	case none && !has:
		f.verdict = neither
	case none && w.lax:
		f.verdict = untold
	case none || !has && !came:
		f.verdict, f.why = differs, missing(none, !has, "")
	case has && (got < low-slack || got > high+slack):
		f.verdict, f.why = differs, fmt.Sprintf("want %s to %s", show(low-slack), show(high+slack))
	}
}

// quantity reads a text as the row says.
func (w row) quantity(text string) (quantity, bool) {
	if w.zero != "" {
		q := quantity{value: 1}
		if text == w.zero {
			q.value = 0
		}
		return q, true
	}
	q, ok := number(text)
	if w.scale != 0 {
		q = quantity{q.value * w.scale, q.grain * w.scale}
	}
	return q, ok
}

// parts are the rows of a GPU's partitions and processes, as either tells them.
func (r reading) parts(uuid string) []row {
	var out []row
	seen := map[string]bool{}
	each := func(within, end string, do func(id string)) {
		for _, t := range []told{r.before[uuid], r.after[uuid]} {
			for path := range t {
				rest, ok := strings.CutPrefix(path, within+"[")
				id, tail, closed := strings.Cut(rest, "]")
				if ok && closed && tail == end && !seen[within+id] {
					seen[within+id] = true
					do(id)
				}
			}
		}
	}
	each("mig_devices/mig_device", "/device_attributes/shared/multiprocessor_count", func(id string) { out = append(out, r.partition(uuid, id)...) })
	for _, id := range r.page.values(uuid, "gpu_partition_multiprocessors", "gpu_partition_id") {
		if !seen["mig_devices/mig_device"+id] {
			out = append(out, r.partition(uuid, id)...)
		}
	}
	process := func(pid string) {
		out = append(out, row{ours: "gpu_process_memory_usage_bytes{process_pid=" + pid + "}", theirs: "process[" + pid + "]", abs: 16 * mebi, sure: true})
	}
	each("process", "", process)
	for _, pid := range r.page.values(uuid, "gpu_process_memory_usage_bytes", "process_pid") {
		if !seen["process"+pid] {
			process(pid)
		}
	}
	each("csv:app", "", func(pid string) {
		out = append(out, row{ours: "gpu_process_memory_usage_bytes{process_pid=" + pid + "}", csv: "app[" + pid + "]", abs: 16 * mebi})
	})
	slices.SortStableFunc(out, func(a, b row) int { return strings.Compare(a.ours, b.ours) })
	return out
}

// partition are the rows of one MIG instance. Memory is told of its GPU instance, which has the
// first of the two numbers, where several share that.
func (r reading) partition(uuid, id string) []row {
	at := "mig_devices/mig_device[" + id + "]/"
	holder := id
	whole, _, _ := strings.Cut(id, "/")
	if slices.Contains(r.page.values(uuid, "gpu_partition_memory_limit_bytes", "gpu_partition_id"), whole) {
		holder = whole
	}
	of := func(name, id string) string { return name + "{gpu_partition_id=" + id + "}" }
	return []row{
		{ours: of("gpu_partition_multiprocessors", id), theirs: at + "device_attributes/shared/multiprocessor_count", sure: true},
		{ours: of("gpu_partition_memory_limit_bytes", holder), theirs: at + "fb_memory_usage/total"},
		{ours: of("gpu_partition_memory_usage_bytes", holder), theirs: at + "fb_memory_usage/used", abs: 16 * mebi},
		{ours: of("gpu_partition_memory_free_bytes", holder), theirs: at + "fb_memory_usage/free", abs: 16 * mebi},
		{ours: of("gpu_partition_memory_reserved_bytes", holder), theirs: at + "fb_memory_usage/reserved", abs: 2 * mebi},
	}
}
