package e2e

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"

	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// severalTimes is how often one read makes a call of which the driver has one for several questions.
// All others are made once.
var severalTimes = map[string]int{
	"nvmlDeviceGetClockInfo":          4, // a clock each
	"nvmlDeviceGetMemoryErrorCounter": 8, // of two memories, corrected and not, now and ever
	"nvmlDeviceGetFieldValues":        2, // of the device and of its links, however many
	"nvmlDeviceGetSamples":            2, // how many there are, and what they are
}

// mostCalls is what one read of an H100 may take; it takes 42.
const mostCalls = 45

// sampled is what is asked while nobody scrapes, of a GPU that has it, because the driver forgets it.
var sampled = []string{"nvmlDeviceGetMigMode", "nvmlDeviceGetProcessUtilization", "nvmlDeviceGetSamples", "nvmlGpmQueryDeviceSupport", "nvmlGpmSampleGet"}

// calls are those of one GPU since an earlier count, by function.
func calls(now, before map[string]int, gpu string) map[string]int {
	out := map[string]int{}
	for key, n := range now {
		if name, of, ok := strings.Cut(key, " "); ok && of == gpu && n > before[key] {
			out[name] = n - before[key]
		}
	}
	return out
}

// What a scrape costs the driver: the same few calls for each GPU, none of them twice for one answer,
// and none of the driver as a whole. A scrape of a picture that is fresh costs none.
func TestCallsOfAScrape(t *testing.T) {
	t.Parallel()
	library, config := fakeDriver(t, fakenvml.Driver("570"))
	fakenvml.Configure(t, config, "gpus 2", "board h100")
	stats := filepath.Join(t.TempDir(), "stats")
	e := serve(t, []string{"FAKENVML_CONFIG=" + config, "FAKENVML_STATS=" + stats}, "--nvml.library", library, "--max-age", "1ns", "--relist-interval", "1h")
	page := func() map[string]*dto.MetricFamily { return parse(t, e.get(t, "/metrics", "Accept", "text/plain")) }
	for range 5 { // what a GPU can not answer is not asked for long
		page()
	}
	const scrapes = 40
	before, first := fakenvml.Stats(t, stats), page()
	for range scrapes - 2 {
		page()
	}
	last := page()
	now := fakenvml.Stats(t, stats)
	of0, of1 := calls(now, before, "0"), calls(now, before, "1")
	if a, b := slices.Sorted(maps.Keys(of0)), slices.Sorted(maps.Keys(of1)); !slices.Equal(a, b) {
		t.Errorf("two GPUs of a kind are asked\n%v\n%v", a, b)
	}
	from, _ := series(first, "gpumeter_reads_total")
	to, _ := series(last, "gpumeter_reads_total")
	if to-from != scrapes-1 {
		t.Fatalf("%v reads for %d scrapes", to-from, scrapes-1)
	}
	total := 0
	for name, n := range of0 {
		times := n / scrapes // the rest is the sampler's
		total += times
		if times > 1 && times != severalTimes[name] {
			t.Errorf("%s is called %d times a read, and not %d", name, times, max(severalTimes[name], 1))
		}
	}
	for name, times := range severalTimes {
		if of0[name]/scrapes != times {
			t.Errorf("%s is called %d times a read; %d is out of date", name, of0[name]/scrapes, times)
		}
	}
	if total > mostCalls || total < mostCalls/2 {
		t.Errorf("%d calls a read, want at most %d", total, mostCalls)
	}
	for key, n := range now {
		if n -= before[key]; !strings.Contains(key, " ") && n >= scrapes && of0[key] == 0 {
			t.Errorf("%s is called %d times in %d reads, of no GPU", key, n, scrapes)
		}
	}
}

// Nobody asks: the driver is left alone, but for what it forgets and for its events.
func TestCallsOfNoScrape(t *testing.T) {
	t.Parallel()
	library, config := fakeDriver(t, fakenvml.Driver("570"))
	fakenvml.Configure(t, config, "gpus 1", "board h100")
	stats := filepath.Join(t.TempDir(), "stats")
	e := serve(t, []string{"FAKENVML_CONFIG=" + config, "FAKENVML_STATS=" + stats}, "--nvml.library", library, "--relist-interval", "1h")
	e.get(t, "/metrics")
	before := fakenvml.Stats(t, stats)
	var asked map[string]int
	for deadline := time.Now().Add(patience); asked["nvmlGpmSampleGet"] == 0; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("never sampled: %v", asked)
		}
		asked = calls(fakenvml.Stats(t, stats), before, "0")
	}
	if got := slices.Sorted(maps.Keys(asked)); !slices.Equal(got, sampled) {
		t.Errorf("asked %v\nwant  %v", got, sampled)
	}
	if asked["nvmlDeviceGetMigMode"] != asked["nvmlGpmSampleGet"] {
		t.Errorf("asked %v", asked)
	}
}
