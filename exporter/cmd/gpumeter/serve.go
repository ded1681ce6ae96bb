package main

import (
	"context"
	"errors"
	"log/slog"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/doctor"
	"github.com/gpumeter/gpumeter/exporter/expose"
	"github.com/gpumeter/gpumeter/exporter/expose/prom"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/web"
)

// processPeriod is how often the go_* and process_* series are gathered at most.
const processPeriod = 5 * time.Second

// serve runs the exporter until it is told to stop, and returns the exit code.
func serve(c config.Serve, log *slog.Logger) int {
	told, deaf := listen()
	defer deaf()
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	n, err := newNode(ctx, c.Node, c.MaxAge, func(name string, err error) {
		log.Error("only a new process can read this source again; this one ends", "source", name, "err", err)
		end(err)
	}, log)
	if err != nil {
		log.Error("the node can not be read as asked", "err", err)
		return exitUsage
	}
	running, quit := context.WithCancel(context.WithoutCancel(ctx)) // for requests still in flight when told to stop
	var reading sync.WaitGroup
	reading.Go(func() { n.run(running) })
	reading.Go(func() { obey(running, told, n.feed, log) })
	defer reading.Wait()
	defer quit()
	if len(c.Devices) > 0 {
		reading.Go(func() {
			if missing := n.devices.unmet(n.feed.Snapshot(running)); len(missing) > 0 {
				log.Warn("no such device so far", "devices", missing)
			}
		})
	}

	scrapes := prom.NewHandler(n.feed, expose.NewFamilies(n.on), prom.NewProcess(processPeriod), slog.NewLogLogger(log.Handler(), slog.LevelWarn))
	handler := web.NewHandler(web.Config{
		Feed: n.feed, Metrics: scrapes, Attribution: doctor.Handler(n.report), Version: build().Version,
		Lifecycle: c.Web.EnableLifecycle, Debug: c.Web.EnableDebug,
	})
	err = web.Serve(ctx, handler, web.Listen{
		Addresses: c.Web.ListenAddress, SystemdSocket: c.Web.SystemdSocket, ConfigFile: c.Web.ConfigFile,
	}, log)
	if err != nil {
		log.Error("not serving", "err", err)
		return exitFailed
	}
	return ended(ctx)
}

// ended is the exit code by what ended the context.
func ended(ctx context.Context) int {
	if errors.Is(context.Cause(ctx), source.ErrStale) {
		return exitStale
	}
	return 0
}
