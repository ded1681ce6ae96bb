package kernellog

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const boot = "7a91ebd6-1bac-4a19-8e6f-9fad3d755d98"

// proc is a /proc of a machine started under that id.
func proc(t *testing.T, id string) string {
	t.Helper()
	dir := t.TempDir()
	at := filepath.Join(dir, "sys", "kernel", "random")
	if err := errors.Join(os.MkdirAll(at, 0o755), os.WriteFile(filepath.Join(at, "boot_id"), []byte(id+"\n"), 0o644)); err != nil {
		t.Fatal(err)
	}
	return dir
}

// journal is a log in a file, and the sequence of its last record.
type journal struct {
	*testing.T
	path     string
	sequence int
}

// says appends records of the kernel.
func (j *journal) says(texts ...string) {
	j.Helper()
	var b strings.Builder
	for _, text := range texts {
		j.sequence++
		fmt.Fprintf(&b, "3,%d,%d,-;%s\n", j.sequence, 1000*j.sequence, text)
	}
	j.write(b.String())
}

func (j *journal) write(raw string) {
	j.Helper()
	f, err := os.OpenFile(j.path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.WriteString(raw)
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		j.Fatal(err)
	}
}

func newJournal(t *testing.T) *journal {
	return &journal{T: t, path: filepath.Join(t.TempDir(), "kmsg")}
}

// heard is what a log that runs has delivered.
type heard struct {
	*testing.T
	mu     sync.Mutex
	codes  []uint64
	events []Event
	cursor Cursor
	faults Faults
}

// listen opens a log and runs it until the test ends.
func listen(t *testing.T, c Config) *heard {
	t.Helper()
	l, err := Open(c)
	if err != nil {
		t.Fatal(err)
	}
	return run(t, l)
}

func run(t *testing.T, l *Log) *heard {
	t.Helper()
	h := &heard{T: t}
	ended := make(chan error)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		ended <- l.Run(ctx, func(events []Event, c Cursor) {
			h.mu.Lock()
			defer h.mu.Unlock()
			for _, e := range events {
				h.codes = append(h.codes, e.Code)
			}
			h.events, h.cursor, h.faults = append(h.events, events...), c, l.Faults()
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-ended, l.Close()); err != nil {
			t.Error(err)
		}
	})
	return h
}

// until waits until the log was read that far and that was heard.
func (h *heard) until(sequence int, codes ...uint64) {
	h.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for time.Now().Before(deadline) {
		h.mu.Lock()
		ok := h.cursor.Sequence == uint64(sequence) && slices.Equal(h.codes, codes)
		h.mu.Unlock()
		if ok {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Fatalf("heard %v up to %+v, want %v up to %d", h.codes, h.cursor, codes, sequence)
}

func xid(code int) string { return fmt.Sprintf("NVRM: Xid (PCI:0000:83:00): %d, pid=7, name=x", code) }

func TestWhereItBegins(t *testing.T) {
	here := proc(t, boot)
	for name, c := range map[string]struct {
		config Config
		want   []uint64
	}{
		"nothing is kept":                {Config{Proc: here}, []uint64{45}},
		"no earlier run":                 {Config{Proc: here, History: true}, []uint64{13, 31, 43, 45}},
		"an earlier run of this boot":    {Config{Proc: here, History: true, From: Cursor{boot, 2}}, []uint64{43, 45}},
		"the same, and nothing is kept":  {Config{Proc: here, From: Cursor{boot, 1}}, []uint64{31, 43, 45}},
		"an earlier run that read all":   {Config{Proc: here, History: true, From: Cursor{boot, 3}}, []uint64{45}},
		"an earlier run of another boot": {Config{Proc: here, History: true, From: Cursor{"other", 2}}, []uint64{13, 31, 43, 45}},
		"a boot that can not be told":    {Config{Proc: t.TempDir(), History: true}, []uint64{45}},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJournal(t)
			j.says(xid(13), xid(31), xid(43))
			c.config.Path = j.path
			l, err := Open(c.config)
			if err != nil {
				t.Fatal(err)
			}
			j.says(xid(45))
			h := run(t, l)
			h.until(4, c.want...)
			if h.cursor.Boot != l.boot {
				t.Errorf("the cursor is of boot %q, want %q", h.cursor.Boot, l.boot)
			}
		})
	}
}

// A sequence that the kernel cannot have come to, in the log or in the cursor that a run before has left, does
// not end reading.
func TestLog_ImpossibleSequence(t *testing.T) {
	here := proc(t, boot)
	t.Run("in the log", func(t *testing.T) {
		j := newJournal(t)
		j.says(xid(13))
		for _, sequence := range []uint64{math.MaxUint64, math.MaxUint64 - 1, 1 << 60} {
			j.write(fmt.Sprintf("3,%d,1500,-;%s\n", sequence, xid(62)))
		}
		j.says(xid(31))
		h := listen(t, Config{Path: j.path, Proc: here, History: true})
		h.until(2, 13, 31)
		j.says(xid(43))
		h.until(3, 13, 31, 43)
		if h.faults.Unreadable != 3 || h.faults.Overwritten != 0 {
			t.Errorf("%+v", h.faults)
		}
	})
	for name, kept := range map[string]uint64{"in the cursor": math.MaxUint64 - 1, "in the cursor, beyond the end": 1000} {
		t.Run(name, func(t *testing.T) {
			j := newJournal(t)
			j.says(xid(13), xid(31))
			l, err := Open(Config{Path: j.path, Proc: here, History: true, From: Cursor{boot, kept}})
			if err != nil {
				t.Fatal(err)
			}
			j.says("seen by whoever reads from here")
			h := run(t, l)
			h.until(3)
			j.says(xid(45))
			h.until(4, 45)
		})
	}
}

// What is no event is passed over, and what is no record is counted.
func TestPassedOver(t *testing.T) {
	j := newJournal(t)
	j.says("Linux version 6.18", xid(13), "NVRM: GPU at PCI:0000:83:00: GPU-c4a80165-86e4-bfbb-ecfa-1d81a70b138a")
	j.write(" SUBSYSTEM=pci\n DEVICE=+pci:0000:83:00.0\n")
	j.write("12,4,4000,-;" + xid(62) + "\n") // by a process: facility 1
	j.write("no record\n\n")
	j.write(strings.Repeat("x", maxRecord) + "3,5,5000,-;" + xid(62) + "\n") // one line, and too long
	j.sequence = 7
	j.says(xid(31))
	j.write("3,9,9000,-;NVRM: Xid (PCI:00")
	h := listen(t, Config{Path: j.path, Proc: proc(t, boot), History: true})
	h.until(8, 13, 31)
	j.write("00:84:00): 43\n")
	h.until(9, 13, 31, 43)
	if want := (Faults{Overwritten: 3, Unreadable: 3}); h.faults != want {
		t.Errorf("%+v, want %+v", h.faults, want)
	}
	const uuid = "GPU-c4a80165-86e4-bfbb-ecfa-1d81a70b138a"
	for i, want := range []Event{
		{PCI: "0000:83:00.0", Code: 13, Text: "pid=7, name=x"},
		{PCI: "0000:83:00.0", Code: 31, Text: "pid=7, name=x", UUID: uuid},
		{PCI: "0000:84:00.0", Code: 43},
	} {
		got := h.events[i]
		got.At = want.At
		if got != want {
			t.Errorf("event %d: %+v, want %+v", i, got, want)
		}
	}
}

// said is a log that says what it was told to, and then nothing.
type said struct{ told []string }

func (s *said) next() ([]byte, error) {
	if len(s.told) == 0 {
		return nil, nil
	}
	line := s.told[0]
	s.told = s.told[1:]
	return []byte(line), nil
}

func (s *said) wait(ctx context.Context, until time.Time) error {
	d := time.Hour
	if !until.IsZero() {
		d = time.Until(until)
	}
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return nil
}

func (s *said) skip() error  { return nil }
func (s *said) Close() error { return nil }

const (
	sentence = "NVRM: GPU 0000:83:00.0: GPU has fallen off the bus."
	other    = "NVRM: GPU 0000:84:00.0: GPU has fallen off the bus."
)

// Of the two lines that say that a device has fallen off the bus, in any order, one is counted; and
// events come in the order of the log all the same.
func TestFallenOffTheBus(t *testing.T) {
	at := func(second float64, text string) string { return fmt.Sprintf("3,%%d,%d,-;%s", int64(second*1e6), text) }
	for name, c := range map[string]struct {
		lines []string
		want  string // code, and the second it is delivered
	}{
		"the number alone":              {[]string{at(0, xid(79))}, "79@0"},
		"the sentence alone":            {[]string{at(0, sentence)}, "79@2"},
		"the sentence first":            {[]string{at(0, sentence), at(0, xid(79))}, "79@0"},
		"the number first":              {[]string{at(0, xid(79)), at(0, sentence)}, "79@0"},
		"the sentence twice":            {[]string{at(0, sentence), at(0, sentence)}, "79@2"},
		"of two devices":                {[]string{at(0, other), at(0, sentence), at(0, xid(79))}, "79@2 79@2"},
		"another error waits behind it": {[]string{at(0, sentence), at(0, xid(119))}, "79@2 119@2"},
		"long ago, and apart":           {[]string{at(-100, xid(79)), at(-97, sentence), at(-94, xid(79))}, "79@0 79@0 79@0"},
		"long ago, and near":            {[]string{at(-100, sentence), at(-98.5, xid(79)), at(-98, sentence)}, "79@0"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begin := time.Now()
				s := new(said)
				for i, line := range c.lines {
					second := strings.SplitN(line, ",", 4)[2]
					var micros int64
					fmt.Sscan(second, &micros) //nolint:errcheck // it was printed above
					s.told = append(s.told, fmt.Sprintf(strings.Replace(line, ","+second+",", ",%d,", 1), i+1, micros+200e6))
				}
				l := &Log{lines: s, boot: boot, now: time.Now, start: begin.Add(-200 * time.Second), uuids: map[string]string{}, gone: map[string]time.Time{}}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				var got []string
				if err := l.Run(ctx, func(events []Event, c Cursor) {
					for _, e := range events {
						got = append(got, fmt.Sprintf("%d@%d", e.Code, int(time.Since(begin).Seconds())))
					}
					if held := len(l.queue); held > 0 && c.Sequence != l.queue[0].sequence-1 {
						t.Errorf("the cursor is at %d while %d is held", c.Sequence, l.queue[0].sequence)
					}
				}); err != nil {
					t.Fatal(err)
				}
				if got := strings.Join(got, " "); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
			})
		})
	}
}

// While one line is waited for, others do not pile up without end.
func TestHeldIsBounded(t *testing.T) {
	s := &said{told: []string{"3,1,0,-;" + sentence}}
	for i := range 3 * maxHeld {
		s.told = append(s.told, fmt.Sprintf("3,%d,0,-;%s", i+2, xid(119)))
	}
	l := &Log{lines: s, now: time.Now, start: time.Now(), uuids: map[string]string{}, gone: map[string]time.Time{}}
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	if err := l.Run(ctx, func(events []Event, _ Cursor) {
		n += len(events)
		if len(l.queue) > maxHeld {
			t.Errorf("%d are held", len(l.queue))
		}
		if n == 3*maxHeld+1 {
			cancel()
		}
	}); err != nil {
		t.Fatal(err)
	}
}

// The log's clock is not ours: what is read late is placed by it, what is waited for happens now,
// and nothing happens in the future.
func TestTimes(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	l := &Log{now: func() time.Time { return now }, start: now.Add(-time.Hour)}
	when := func(since time.Duration) time.Duration { return l.when(record{since: since}).Sub(now) }
	for _, c := range []struct {
		fresh       bool
		since, want time.Duration
	}{
		{false, 20 * time.Minute, -40 * time.Minute},
		{false, 61 * time.Minute, 0},
		{true, 50 * time.Minute, 0}, // the log's clock was 10 minutes behind
		{false, 49 * time.Minute, -time.Minute},
		{false, 51 * time.Minute, 0},
		{true, 70 * time.Minute, 0}, // and is 10 minutes ahead
		{false, 69 * time.Minute, -time.Minute},
	} {
		l.fresh = c.fresh
		if got := when(c.since); got != c.want {
			t.Errorf("%+v: %v from now", c, got)
		}
	}
}

// Addresses are forgotten rather than kept without end.
func TestAddressesAreBounded(t *testing.T) {
	of := map[string]string{}
	for i := range 1000 {
		keep(of, fmt.Sprint(i), "x")
		if len(of) > maxDevices || of[fmt.Sprint(i)] != "x" {
			t.Fatalf("%d addresses", len(of))
		}
	}
}

func TestReadBoot(t *testing.T) {
	if got := readBoot(proc(t, boot)); got != boot {
		t.Errorf("%q, want %q", got, boot)
	}
	if got := readBoot(t.TempDir()); got != "" {
		t.Errorf("%q where nothing is", got)
	}
}
