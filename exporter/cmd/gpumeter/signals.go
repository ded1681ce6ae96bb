package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// releasePatience is how long drivers are waited for before what hangs is logged.
const releasePatience = 10 * time.Second

// listen receives SIGUSR1, SIGUSR2 and SIGHUP, which would end the process otherwise.
func listen() (told <-chan os.Signal, deaf func()) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGHUP)
	return c, func() { signal.Stop(c) }
}

// lifecycle is what a signal is about; a snapshot.Feed is one.
type lifecycle interface {
	Release(context.Context, time.Duration) error
	Acquire()
}

// obey releases the devices at SIGUSR1, for the default time, and acquires them at SIGUSR2, until the
// context ends. Signals are handled in their order, also while a driver hangs. SIGHUP does nothing but
// a log line.
func obey(ctx context.Context, told <-chan os.Signal, devices lifecycle, log *slog.Logger) {
	var waiting sync.WaitGroup
	stop := func() {}
	for {
		var s os.Signal
		select {
		case <-ctx.Done():
		case s = <-told:
		}
		if s == syscall.SIGHUP {
			log.Info("SIGHUP ignored: settings are read at the start only; the file of --web.config.file is re-read on each connection")
			continue
		}
		stop() // waiting for what was told before
		waiting.Wait()
		switch s {
		case syscall.SIGUSR1:
			var patience context.Context
			patience, stop = context.WithTimeout(ctx, releasePatience)
			waiting.Go(func() {
				if err := devices.Release(patience, 0); err != nil && patience.Err() != context.Canceled {
					log.Warn("devices are not let go of yet", "err", err)
				}
			})
		case syscall.SIGUSR2:
			devices.Acquire()
		default:
			return
		}
	}
}
