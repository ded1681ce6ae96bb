package nvml

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// shell is a prober whose process runs a script.
func shell(script string) *prober {
	return &prober{command: []string{"sh", "-c", script}, timeout: 10 * time.Second}
}

func TestProber_HoldsUntilReleased(t *testing.T) {
	p := shell(`echo '{"init_seconds": 1.5, "uuids": ["GPU-0", "GPU-1"]}'; cat >/dev/null`)
	found, err := p.start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if found.init != 1500*time.Millisecond || !found.uuids["GPU-0"] || !found.uuids["GPU-1"] || len(found.uuids) != 2 {
		t.Errorf("found %+v", found)
	}
	if n := p.alive.Load(); n != 1 {
		t.Errorf("%d processes while it holds the devices, want 1", n)
	}
	found.release()
	if n := p.alive.Load(); n != 0 {
		t.Errorf("%d processes after it was released, want none", n)
	}
	found.release() // once more has no effect
}

func TestProber_ReportThatIsNone(t *testing.T) {
	for script, want := range map[string]string{
		`exit 3`:                             "ended without a report",
		`echo driver says no >&2; exit 1`:    "driver says no",
		`echo nonsense`:                      "report: invalid character",
		`echo '{"error": "nvml: init: no"}'`: "nvml: init: no",
		`exec cat /dev/zero`:                 "ended without a report", // without an end
	} {
		p := shell(script)
		if _, err := p.start(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", script, err, want)
		}
		if n := p.alive.Load(); n != 0 {
			t.Errorf("%s: %d processes are left", script, n)
		}
	}
	if _, err := (&prober{command: []string{"/no/such/program"}, timeout: time.Second}).start(t.Context()); err == nil {
		t.Error("a program that is not there gives no error")
	}
}

// A process that hangs in Init is given up, and no more of them are started than may ever be needed.
func TestProber_ProcessThatHangs(t *testing.T) {
	p := shell(`exec sleep 1000`)
	p.timeout = 50 * time.Millisecond
	if _, err := p.start(t.Context()); err == nil || !strings.Contains(err.Error(), "not initialised within 50ms") {
		t.Errorf("it ends with %v", err)
	}
	p.alive.Store(maxAlive)
	if _, err := p.start(t.Context()); !errors.Is(err, errAlive) {
		t.Errorf("with processes that cannot be killed it ends with %v, want %v", err, errAlive)
	}
}

func TestProber_EndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(50*time.Millisecond, cancel)
	p := shell(`exec sleep 1000`)
	if _, err := p.start(ctx); err == nil {
		t.Error("it goes on without its context")
	}
	if n := p.alive.Load(); n != 0 {
		t.Errorf("%d processes are left", n)
	}
}
