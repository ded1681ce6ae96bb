package downtime

import (
	"context"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/state"
)

var quiet = slog.New(slog.DiscardHandler)

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

func TestWhatIsKeptMakesNoSense(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	for text, want := range map[string]float64{
		`{"alive":"2100-01-01T00:00:00Z","seconds":7}`:  7, // the clock was set back
		`{"alive":"2027-01-15T07:59:50Z","seconds":-7}`: 10,
		`{"alive":`: 0,
		`[]`:        0,
	} {
		dir, store := keep(t)
		if err := os.WriteFile(filepath.Join(dir, "downtime.json"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, known := Open(store, now, quiet).Seconds(); got != want || !known {
			t.Errorf("%s: %v s, %v; want %v", text, got, known, want)
		}
	}
	if _, known := Open(state.Store{}, now, quiet).Seconds(); known {
		t.Error("it is known without a state")
	}
}
