package kernellog

import (
	"cmp"
	"context"
	"testing"
	"time"
)

// kmsg opens this machine's own log.
func kmsg(t *testing.T, c Config) *Log {
	t.Helper()
	c.Path, c.Proc = "/dev/kmsg", "/proc"
	l, err := Open(c)
	if err != nil {
		t.Skipf("this machine's kernel log can not be read, so only files were: %v", err)
	}
	return l
}

// Every record of this machine's own log is understood, and none is missing.
func TestKernelsOwnLog(t *testing.T) {
	l := kmsg(t, Config{History: true})
	defer l.Close() //nolint:errcheck // it was only read
	ctx, cancel := context.WithCancel(t.Context())
	var end Cursor
	if err := l.Run(ctx, func(_ []Event, c Cursor) { end = c; cancel() }); err != nil {
		t.Fatal(err)
	}
	if l.Faults().Unreadable > 0 || end.Boot == "" || end.Sequence == 0 {
		t.Errorf("%+v, read to %+v", l.Faults(), end)
	}
	// From there, and from the end, there is nothing old.
	for name, c := range map[string]Config{"resumed": {From: end}, "the end": {}} {
		l := kmsg(t, c)
		first := uint64(0)
		for {
			line, err := l.lines.next()
			if err != nil {
				t.Fatal(err)
			}
			if line == nil {
				break
			}
			if r, ok := parseRecord(line); ok && (name == "the end" || r.sequence >= l.next) {
				first = cmp.Or(first, r.sequence)
			}
		}
		if first != 0 && first <= end.Sequence {
			t.Errorf("%s: record %d, and %d was read before", name, first, end.Sequence)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
}

// Waiting for the kernel to say something ends at once, by the context or by closing.
func TestWaitingEnds(t *testing.T) {
	for name, end := range map[string]func(*Log, context.CancelFunc){
		"cancelled": func(_ *Log, cancel context.CancelFunc) { cancel() },
		"closed": func(l *Log, _ context.CancelFunc) {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		},
	} {
		l := kmsg(t, Config{})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended, waiting := make(chan error), make(chan bool, 1)
		go func() {
			ended <- l.Run(ctx, func([]Event, Cursor) {
				select {
				case waiting <- true:
				default:
				}
			})
		}()
		<-waiting
		time.Sleep(20 * time.Millisecond)
		end(l, cancel)
		select {
		case err := <-ended:
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s, and it does not end", name)
		}
	}
}
