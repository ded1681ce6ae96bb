package downtime

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/state"
)

var quiet = slog.New(slog.DiscardHandler)

// setClock sets the clock of a bubble, which starts in the year 2000.
func setClock() { time.Sleep(time.Until(time.Unix(1_800_000_000, 0))) }

func keep(t *testing.T) (string, state.Store) {
	t.Helper()
	dir := t.TempDir()
	s, err := state.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, s
}

// What passes between the end of a run and the beginning of the next is counted, over all runs, and
// the time of a run is not.
func TestTimeBetweenRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		setClock()
		_, store := keep(t)
		want := 0.
		for _, apart := range []time.Duration{0, 5 * time.Minute, time.Hour} {
			time.Sleep(apart)
			if apart > 0 {
				want += apart.Seconds()
			}
			d := Open(store, time.Now(), quiet)
			ctx, end := context.WithCancel(t.Context())
			go d.Run(ctx)
			time.Sleep(90 * time.Second)
			if got, known := d.Seconds(); !known || math.Abs(got-want) > .001 {
				t.Errorf("after %v: %v s, %v; want %v", apart, got, known, want)
			}
			end()
			synctest.Wait()
		}
	})
}

// A run that is killed had last noted that it lives at most a minute before.
func TestKilled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		setClock()
		dir, store := keep(t)
		d := Open(store, time.Now(), quiet)
		ctx, end := context.WithCancel(t.Context())
		go d.Run(ctx)
		time.Sleep(10*time.Minute + 30*time.Second)
		synctest.Wait()
		noted, err := os.ReadFile(filepath.Join(dir, "downtime.json"))
		if err != nil {
			t.Fatal(err)
		}
		end()
		synctest.Wait()
		if err := os.WriteFile(filepath.Join(dir, "downtime.json"), noted, 0o600); err != nil { // as if it had not ended well
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if got, _ := Open(store, time.Now(), quiet).Seconds(); got != 3630 {
			t.Errorf("%v s, want an hour and what passed since it was noted", got)
		}
	})
}

// A record that no run can have written is named in one warning, and the count starts from zero.
func TestOpen_RefusesRecordsThatMakeNoSense(t *testing.T) {
	now := time.Unix(1_800_000_000, 0) // 2027-01-15T08:00:00Z
	for text, want := range map[string]struct {
		seconds float64
		warned  string
	}{
		`{"alive":"2027-01-15T07:59:50Z","seconds":7}`:     {17, ""},
		`{"alive":"2027-01-15T09:00:00Z","seconds":7}`:     {7, ""}, // the clock was set back
		`{"alive":"2100-01-01T00:00:00Z","seconds":7}`:     {0, "in the future"},
		`{"alive":"1970-01-01T00:02:00Z","seconds":7}`:     {0, "the clock was not set"},
		`{"alive":"2027-01-15T07:59:50Z","seconds":-7}`:    {0, "not possible"},
		`{"alive":"2027-01-15T07:59:50Z","seconds":1e300}`: {0, "not possible"},
		`{"alive":"2027-01-15T07:59:50Z","seconds":9e9}`:   {0, "not possible"},
		`{"seconds":7}`: {0, "no time of the last run"},
		`{}`:            {0, "no time of the last run"},
		`null`:          {0, "no time of the last run"},
		`{"alive":`:     {0, "unexpected end"},
		`[]`:            {0, "cannot unmarshal"},
	} {
		dir, store := keep(t)
		if err := os.WriteFile(filepath.Join(dir, "downtime.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var logs bytes.Buffer
		got, known := Open(store, now, slog.New(slog.NewTextHandler(&logs, nil))).Seconds()
		lines := strings.Count(logs.String(), "\n")
		if got != want.seconds || !known || !strings.Contains(logs.String(), want.warned) || (want.warned != "") != (lines == 1) {
			t.Errorf("%s: %v s, %v, want %v s and a warning with %q\n%s", text, got, known, want.seconds, want.warned, logs.String())
		}
	}
	if _, known := Open(state.Store{}, now, quiet).Seconds(); known {
		t.Error("it is known without a state")
	}
}

// Where the clock is not set nothing is added, and nothing is written that the next run could not believe.
func TestDowntime_ClockThatIsNotSetIsNotBelieved(t *testing.T) {
	_, store := keep(t)
	alive := time.Unix(1_800_000_000, 0)
	if err := store.Save(name, record{alive, 7}); err != nil {
		t.Fatal(err)
	}
	d := Open(store, time.Unix(120, 0), quiet)
	if got, _ := d.Seconds(); got != 7 {
		t.Errorf("%v s, want the 7 of before", got)
	}
	d.note(time.Unix(180, 0))
	if got, _ := Open(store, alive.Add(time.Minute), quiet).Seconds(); got != 67 {
		t.Errorf("%v s once the clock is set, want 67", got)
	}
}

// frozen is a disk that hangs at each save.
type frozen struct{ thaw chan struct{} }

func (frozen) Keeps() bool                    { return true }
func (frozen) Load(string, any) (bool, error) { return false, nil }
func (f frozen) Save(string, any) error       { <-f.thaw; return nil }

// A scrape reads the downtime while the state directory hangs.
func TestDowntime_SecondsDoesNotWaitForTheDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		disk := frozen{make(chan struct{})}
		d := Open(disk, time.Unix(1_800_000_000, 0), quiet)
		d.seconds = 7
		go d.note(time.Unix(1_800_000_000, 0))
		synctest.Wait()
		read := make(chan float64)
		go func() { n, _ := d.Seconds(); read <- n }()
		select {
		case n := <-read:
			if n != 7 {
				t.Errorf("%v s, want 7", n)
			}
		case <-time.After(time.Hour):
			t.Error("a scrape waits for the disk")
		}
		close(disk.thaw)
		synctest.Wait()
	})
}

// Whatever the file holds, the downtime is a sum of seconds that can have passed.
func FuzzRecord(f *testing.F) {
	f.Add(`{"alive":"2027-01-15T07:59:50Z","seconds":7}`)
	f.Add(`{}`)
	f.Add(`null`)
	f.Add(`{"alive":"0001-01-01T00:00:00Z","seconds":1e308}`)
	now := time.Unix(1_800_000_000, 0)
	f.Fuzz(func(t *testing.T, raw string) {
		d := Open(kept(raw), now, quiet)
		if got, _ := d.Seconds(); !(got >= 0 && got <= now.Sub(earliest).Seconds()+clockSteps.Seconds()) {
			t.Errorf("%q: %v s", raw, got)
		}
	})
}

// kept is a store with one file.
type kept string

func (kept) Keeps() bool                             { return true }
func (k kept) Load(_ string, into any) (bool, error) { return true, json.Unmarshal([]byte(k), into) }
func (kept) Save(string, any) error                  { return nil }
