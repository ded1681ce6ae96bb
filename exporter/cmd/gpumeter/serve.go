package main

import (
	"context"
	"log/slog"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/expose"
	"github.com/gpumeter/gpumeter/exporter/expose/prom"
	"github.com/gpumeter/gpumeter/exporter/web"
)

// processPeriod is how often the go_* and process_* series are gathered at most.
const processPeriod = 5 * time.Second

// serve runs the exporter until it is told to stop, and returns the exit code.
func serve(c config.Serve, log *slog.Logger) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	n, err := newNode(ctx, c.Node, c.MaxAge, log)
	if err != nil {
		log.Error("the node can not be read as asked", "err", err)
		return 2
	}
	running, quit := context.WithCancel(context.WithoutCancel(ctx)) // for requests still in flight when told to stop
	var reading sync.WaitGroup
	reading.Go(func() { n.feed.Run(running) })
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
	handler := web.NewHandler(web.Config{Feed: n.feed, Metrics: scrapes, Version: build().Version})
	err = web.Serve(ctx, handler, web.Listen{
		Addresses: c.Web.ListenAddress, SystemdSocket: c.Web.SystemdSocket, ConfigFile: c.Web.ConfigFile,
	}, log)
	if err != nil {
		log.Error("not serving", "err", err)
		return 1
	}
	return 0
}
