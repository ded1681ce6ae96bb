package host

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// without returns text less the lines that start so.
func without(text, start string) string {
	var kept []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, start) {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// upTo returns text up to the first of mark, as a file that is cut short there.
func upTo(text, mark string) string {
	before, _, _ := strings.Cut(text, mark)
	return before
}

func TestBadStat(t *testing.T) {
	for name, x := range map[string]struct {
		stat         string
		time, online *metric.Reason
	}{
		"no file":        {"", metric.Unsupported, metric.Unsupported},
		"blank":          {"\n", metric.Failed, metric.Failed},
		"garbage":        {"\x00\xff not a stat file\n", metric.Failed, metric.Failed},
		"no cpu line":    {without(stat, "cpu "), metric.Unsupported, nil},
		"no cpuN lines":  {without(without(stat, "cpu0"), "cpu3"), nil, metric.Unsupported},
		"all zero":       {"cpu  0 0 0 0 0 0 0 0 0 0\nbtime 1\n", metric.Unsupported, metric.Unsupported},
		"cut in cpu":     {"cpu  1000 20", metric.Failed, metric.Failed},
		"cut in cpu0":    {upTo(stat, "450 50"), metric.Failed, metric.Failed},
		"cut after cpu0": {upTo(stat, "cpu3"), metric.Failed, metric.Failed},
		"few columns":    {"cpu  1000 200 300\ncpu0 1 2 3\nbtime 1\n", metric.Implausible, nil},
		"word":           {strings.Replace(stat, "40000", "many", 1), metric.Failed, metric.Failed},
		"negative":       {strings.Replace(stat, "40000", "-1", 1), metric.Implausible, nil},
		"not a number":   {strings.Replace(stat, "40000", "NaN", 1), metric.Implausible, nil},
		"infinite":       {strings.Replace(stat, "40000", "Inf", 1), metric.Implausible, nil},
		"beyond counting": {
			strings.Replace(stat, "40000", strings.Repeat("9", 300), 1), metric.Implausible, nil,
		},
		"no cpu number": {strings.Replace(stat, "cpu0", "cpux", 1), metric.Failed, metric.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t, open(t, proc(t, x.stat, meminfo)))
			for mode := range s.CPUTime {
				if why := s.CPUTime[mode].Why(); why != x.time {
					t.Errorf("%s: %v, want %v", telemetry.CPUMode(mode), why, x.time)
				}
			}
			if why := s.CPUOnline.Why(); why != x.online {
				t.Errorf("online: %v, want %v", why, x.online)
			}
			checkSum(t, s) // the other file is not concerned
		})
	}
}

func TestBadMeminfo(t *testing.T) {
	const un, failed, odd = "not supported", "failed", "implausible"
	for name, x := range map[string]struct {
		meminfo                                        string
		limit, available, used, free, buffers, cached_ string // reasons
	}{
		"no file":        {"", un, un, un, un, un, un},
		"blank":          {" ", failed, failed, failed, failed, failed, failed},
		"garbage":        {"\x00\xff not a meminfo file\n", failed, failed, failed, failed, failed, failed},
		"no known line":  {"Odd: 1 kB\n", failed, failed, failed, failed, failed, failed},
		"word":           {strings.Replace(meminfo, "4000000", "many", 1), failed, failed, failed, failed, failed, failed},
		"negative":       {strings.Replace(meminfo, " 4000000", "-4000000", 1), failed, failed, failed, failed, failed, failed},
		"other unit":     {strings.Replace(meminfo, "4000000 kB", "4000000 MB", 1), failed, failed, failed, failed, failed, failed},
		"no total":       {without(meminfo, "MemTotal"), un, "", un, "", "", ""},
		"no free":        {without(meminfo, "MemFree"), "", "", un, un, "", ""},
		"no available":   {without(meminfo, "MemAvailable"), "", un, "", "", "", ""},
		"no buffers":     {without(meminfo, "Buffers"), "", "", un, "", un, ""},
		"no cached":      {without(meminfo, "Cached"), "", "", un, "", "", un},
		"no shared":      {without(meminfo, "Shmem"), "", "", "", "", "", ""},
		"cut in free":    {upTo(meminfo, "000 kB\nMemAvailable"), "", un, failed, failed, un, un},
		"cut in shared":  {upTo(meminfo, "000 kB\nHugePages"), "", "", failed, "", "", failed},
		"free too big":   {strings.Replace(meminfo, "4000000", "14000000", 1), "", "", odd, odd, odd, odd},
		"available more": {strings.Replace(meminfo, "9000000", "90000000", 1), "", odd, "", "", "", ""},
		"beyond bytes":   {strings.Replace(meminfo, "16000000", "18446744073709551615", 1), odd, "", odd, "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := read(t, open(t, proc(t, stat, x.meminfo)))
			for _, c := range []struct {
				what string
				v    metric.Value
				want string
			}{
				{"limit", s.MemoryLimit, x.limit}, {"available", s.MemoryLinuxAvailable, x.available},
				{"used", s.MemoryUsage[telemetry.SystemMemoryStateUsed], x.used},
				{"free", s.MemoryUsage[telemetry.SystemMemoryStateFree], x.free},
				{"buffers", s.MemoryUsage[telemetry.SystemMemoryStateBuffers], x.buffers},
				{"cached", s.MemoryUsage[telemetry.SystemMemoryStateCached], x.cached_},
			} {
				got := ""
				if why := c.v.Why(); why != nil {
					got = why.Text
				}
				if got != c.want {
					t.Errorf("%s: %q, want %q", c.what, got, c.want)
				}
			}
			want(t, "online", s.CPUOnline, 2) // the other file is not concerned
		})
	}
}

func TestDenied(t *testing.T) {
	if os.Geteuid() == 0 {
		if why := reason(os.ErrPermission); why != metric.Denied {
			t.Errorf("permission: %v", why)
		}
		return // no file denies root
	}
	dir := proc(t, stat, meminfo)
	if err := os.Chmod(filepath.Join(dir, "stat"), 0); err != nil {
		t.Fatal(err)
	}
	if why := read(t, open(t, dir)).CPUOnline.Why(); why != metric.Denied {
		t.Errorf("no permission on stat: %v", why)
	}
}

// Whatever stands in the files, every metric is a number that can be or a reason, and the states
// add up when all are known.
func FuzzReadHost(f *testing.F) {
	f.Add(stat, meminfo)
	f.Add(stat[:60], meminfo[:60])
	f.Add("cpu-1 1 2 3 4\nbtime 1\n", "MemTotal: 1\n")
	f.Fuzz(func(t *testing.T, stat, meminfo string) {
		h := readHost(t, open(t, proc(t, stat, meminfo)))
		for _, family := range telemetry.HostFamilies {
			for i, row := range family.Rows {
				v := row(h)
				n, ok := v.Get()
				if ok && (math.IsNaN(n) || math.IsInf(n, 0) || n < 0) {
					t.Errorf("%s[%d] = %v", family.Desc.Name, i, n)
				}
				if v.Why() == metric.Unread {
					t.Errorf("%s[%d] was not read", family.Desc.Name, i)
				}
			}
		}
		for state := range h.System.MemoryUsage {
			if h.System.MemoryUsage[state].Why() != nil {
				return
			}
		}
		checkSum(t, &h.System)
	})
}
