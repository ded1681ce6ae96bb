package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gpumeter/gpumeter/exporter/source"
)

// diary notes what it is told; a release takes as long as the test says.
type diary struct {
	mu    sync.Mutex
	lines []string
	takes time.Duration
}

func (d *diary) note(line string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
}

func (d *diary) Release(ctx context.Context, t time.Duration) error {
	d.note(fmt.Sprint("release ", t))
	select {
	case <-time.After(d.takes):
		d.note("released")
		return nil
	case <-ctx.Done():
		d.note("held")
		return errors.New("still held: GPU-b")
	}
}

// listenTo is a channel with these signals in it.
func listenTo(all ...os.Signal) <-chan os.Signal {
	c := make(chan os.Signal, len(all))
	for _, s := range all {
		c <- s
	}
	return c
}

func (d *diary) Acquire() { d.note("acquire") }

// The signals are obeyed in their order, whatever hangs.
func TestObey(t *testing.T) {
	for name, c := range map[string]struct {
		takes time.Duration
		told  []os.Signal
		want  string
		logs  int
	}{
		"release":                 {time.Second, []os.Signal{syscall.SIGUSR1}, "release 0s, released", 0},
		"release and acquire":     {0, []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2}, "release 0s, released, acquire", 0},
		"a driver hangs":          {time.Hour, []os.Signal{syscall.SIGUSR1}, "release 0s, held", 1},
		"acquire while one hangs": {time.Hour, []os.Signal{syscall.SIGUSR1, syscall.SIGUSR2}, "release 0s, held, acquire", 0},
		"release again":           {time.Hour, []os.Signal{syscall.SIGUSR1, syscall.SIGUSR1}, "release 0s, held, release 0s, held", 1},
		"acquire":                 {0, []os.Signal{syscall.SIGUSR2}, "acquire", 0},
		"hang-up while releasing": {time.Second, []os.Signal{syscall.SIGUSR1, syscall.SIGHUP}, "release 0s, released", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(context.Background())
				told, d := make(chan os.Signal), &diary{takes: c.takes}
				var logs bytes.Buffer
				ended := make(chan struct{})
				go func() { obey(ctx, told, d, slog.New(slog.NewTextHandler(&logs, nil))); close(ended) }()
				for _, s := range c.told {
					told <- s
					synctest.Wait()
					time.Sleep(time.Millisecond)
				}
				time.Sleep(time.Minute)
				cancel()
				<-ended
				if got := strings.Join(d.lines, ", "); got != c.want || strings.Count(logs.String(), "GPU-b") != c.logs {
					t.Errorf("%s; want %s, %d times logged\n%s", got, c.want, c.logs, logs.String())
				}
			})
		})
	}
}

// The exporter ends while a driver that it was told to let go of hangs.
func TestObeyEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		told, start := make(chan os.Signal, 1), time.Now()
		told <- syscall.SIGUSR1
		time.AfterFunc(time.Second, cancel)
		obey(ctx, told, &diary{takes: time.Hour}, slog.New(slog.DiscardHandler))
		if took := time.Since(start); took != time.Second {
			t.Errorf("ended after %v", took)
		}
	})
}

// A supervisor starts a new process where that alone helps, and sees a plain end as one.
func TestEnded(t *testing.T) {
	for want, cause := range map[int]error{exitStale: fmt.Errorf("nvml: %w", source.ErrStale), 0: context.Canceled} {
		parent, end := context.WithCancelCause(context.Background())
		ctx, stop := context.WithCancel(parent)
		end(cause)
		stop()
		if got := ended(ctx); got != want {
			t.Errorf("%v: exit code %d, want %d", cause, got, want)
		}
	}
}
