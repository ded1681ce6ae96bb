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

// listen hears SIGUSR1 and SIGUSR2, which would end the process otherwise.
func listen() (told <-chan os.Signal, deaf func()) {
	c := make(chan os.Signal, 4)
	signal.Notify(c, syscall.SIGUSR1, syscall.SIGUSR2)
	return c, func() { signal.Stop(c) }
}

// lifecycle is what a signal is about; a snapshot.Feed is one.
type lifecycle interface {
	Release(context.Context, time.Duration) error
	Acquire()
}

// obey lets go of the devices at SIGUSR1, for the default time, and takes them back at SIGUSR2,
// until the context ends. What comes is done in its order, and not held up by a driver that hangs.
func obey(ctx context.Context, told <-chan os.Signal, devices lifecycle, log *slog.Logger) {
	var waiting sync.WaitGroup
	stop := func() {}
	for {
		var s os.Signal
		select {
		case <-ctx.Done():
		case s = <-told:
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
