//go:build cgo

package nvml

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/gpumeter/gpumeter/exporter/source"
	store "github.com/gpumeter/gpumeter/exporter/state"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// machine is one whose kernel log is a file, with a driver of two devices, and what one run of the
// exporter leaves for the next.
type machine struct {
	*testing.T
	config   Config
	lib      *fakeLibrary
	sequence int
	logged   *lines
}

// lines are what was logged, also by goroutines.
type lines struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) count(word string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.b.String(), word)
}

func newMachine(t *testing.T, keeps bool) *machine {
	t.Parallel()
	m := &machine{T: t, logged: new(lines)}
	m.lib = newFakeLibrary(at("GPU-0", "00000000:0A:00.0"), at("GPU-1", "00000000:0B:00.0"))
	dir := t.TempDir()
	m.config = Config{KernelLog: filepath.Join(dir, "kmsg"), Proc: filepath.Join(dir, "proc"), Logger: slog.New(slog.NewTextHandler(m.logged, nil))}
	if keeps {
		s, err := store.Open(filepath.Join(dir, "state"))
		if err != nil {
			t.Fatal(err)
		}
		m.config.State = s
	}
	m.boots("first")
	m.says()
	return m
}

// at is a device at a PCI address.
func at(uuid, pci string) *fakeDevice {
	d := answering(uuid)
	d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
		var p nvml.PciInfo
		for i, c := range pci {
			p.BusId[i] = int8(c)
		}
		return p, nvml.SUCCESS
	}
	return d
}

func (m *machine) boots(id string) {
	m.Helper()
	random := filepath.Join(m.config.Proc, "sys", "kernel", "random")
	if err := errors.Join(os.MkdirAll(random, 0o755), os.WriteFile(filepath.Join(random, "boot_id"), []byte(id), 0o644)); err != nil {
		m.Fatal(err)
	}
}

// says appends to the kernel's log what is of now: a slot of the bus and a code, or a whole text.
func (m *machine) says(texts ...string) {
	m.Helper()
	var b strings.Builder
	for _, text := range texts {
		var slot string
		var code int
		if n, _ := fmt.Sscanf(text, "%s %d", &slot, &code); n == 2 {
			text = fmt.Sprintf("NVRM: Xid (PCI:0000:%s:00): %d, pid=7, name=x", slot, code)
		}
		m.sequence++
		fmt.Fprintf(&b, "3,%d,%d,-;%s\n", m.sequence, uptime().Microseconds(), text)
	}
	f, err := os.OpenFile(m.config.KernelLog, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err == nil {
		_, err = f.WriteString(b.String())
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		m.Fatal(err)
	}
}

// tells lets the driver tell of XIDs.
func (m *machine) tells(device int, codes ...uint64) {
	for _, code := range codes {
		m.lib.events <- nvml.EventData{Device: m.lib.devices[device].Raw(), EventType: xidEvents, EventData: code}
	}
}

// exporter is one run.
type exporter struct {
	*machine
	past    *archive
	reader  *reader
	devices []source.Device
	end     func()
}

// starts begins a run, which ends with the test at the latest.
func (m *machine) starts() *exporter {
	m.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	e := &exporter{machine: m, past: &archive{log: m.config.Logger, of: map[string]*history{}, xids: newXIDBook(m.config)}}
	stopped := make(chan struct{})
	go func() { e.past.xids.run(ctx); close(stopped) }()
	e.past.xids.start()
	e.open()
	e.end = sync.OnceFunc(func() {
		if e.reader != nil {
			closed(m, e.reader)
		}
		cancel()
		<-stopped
	})
	m.Cleanup(e.end)
	return e
}

func (e *exporter) open() {
	e.Helper()
	var err error
	if e.reader, err = open(e.lib, config(), e.past, everything()); err != nil {
		e.Fatal(err)
	}
	if e.devices, err = e.reader.Devices(e.Context()); err != nil {
		e.Fatal(err)
	}
}

func (e *exporter) close() {
	closed(e.machine, e.reader)
	e.reader = nil
}

func (e *exporter) read(device int) telemetry.XID {
	var out telemetry.Device
	_ = e.devices[device].Read(e.Context(), &out) // lost or not
	return out.XID
}

// wants waits until a device tells that, and no more.
func (e *exporter) wants(device int, what string) {
	e.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for brief(e.read(device)) != what {
		if time.Now().After(deadline) {
			e.Fatalf("device %d: %s, want %s", device, brief(e.read(device)), what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// settled waits until all that was said is read.
func (e *exporter) settled() {
	e.Helper()
	eventually(e.T, "the log is read", func() bool {
		e.past.xids.mu.Lock()
		defer e.past.xids.mu.Unlock()
		return e.past.xids.cursor.Sequence == uint64(e.sequence)
	})
}
