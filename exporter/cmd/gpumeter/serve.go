package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/expose"
	"github.com/gpumeter/gpumeter/exporter/expose/prom"
	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/self"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/source/all"
	"github.com/gpumeter/gpumeter/exporter/source/host"
	"github.com/gpumeter/gpumeter/exporter/source/nvml"
	"github.com/gpumeter/gpumeter/exporter/source/sim"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
	"github.com/gpumeter/gpumeter/exporter/web"
)

// processPeriod is how often the go_* and process_* series are gathered at most.
const processPeriod = 5 * time.Second

// serve runs the exporter until it is told to stop, and returns the exit code.
func serve(c *config.Config, log *slog.Logger) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	on, err := metric.Select(telemetry.Descs(), c.Serve.Metrics.Include, c.Serve.Metrics.Exclude)
	if err != nil {
		log.Error("metrics chosen wrongly", "err", err)
		return 2
	}
	sources, err := chooseSources(ctx, c.Serve, log)
	if err != nil {
		log.Error("no source", "err", err)
		return 2
	}
	b := build()
	feed := snapshot.NewFeed(snapshot.Config{
		Sources: needed(sources, on),
		Stages:  []snapshot.Stage{self.New(b).Stage},
		MaxAge:  c.Serve.MaxAge,
		Timeout: c.Serve.ReadTimeout,
		Logger:  log,
	})
	running, quit := context.WithCancel(ctx)
	var reading sync.WaitGroup
	reading.Go(func() { feed.Run(running) })
	defer reading.Wait()
	defer quit()

	scrapes := prom.NewHandler(feed, expose.NewFamilies(on), prom.NewProcess(processPeriod), slog.NewLogLogger(log.Handler(), slog.LevelWarn))
	handler := web.NewHandler(web.Config{Feed: feed, Metrics: scrapes, Version: b.Version})
	err = web.Serve(ctx, handler, web.Listen{
		Addresses: c.Serve.Web.ListenAddress, SystemdSocket: c.Serve.Web.SystemdSocket, ConfigFile: c.Serve.Web.ConfigFile,
	}, log)
	if err != nil {
		log.Error("not serving", "err", err)
		return 1
	}
	return 0
}

// chooseSources returns this machine's sources, or a simulated node when that was asked for.
func chooseSources(ctx context.Context, c config.Serve, log *slog.Logger) ([]source.Source, error) {
	hostSource := host.New(host.Config{Proc: c.HostProc})
	if c.Simulate != "" {
		s, err := sim.New(sim.Config{Node: c.Simulate})
		if err != nil {
			return nil, fmt.Errorf("--simulate: %w", err)
		}
		log.Warn("serving a SIMULATED node; no number of a device is real", "node", c.Simulate)
		return []source.Source{s, hostSource}, nil
	}
	real := all.Sources(all.Config{NVML: nvml.Config{Library: c.NVMLLibrary, Logger: log}, Host: host.Config{Proc: c.HostProc}})
	if !c.SimulateIfNone || anyDevice(ctx, real, log) {
		return real, nil
	}
	const node = "h100x8"
	log.Warn("this machine has no accelerator gpumeter can read; serving a SIMULATED node instead", "node", node)
	s, err := sim.New(sim.Config{Node: node})
	return []source.Source{s, hostSource}, err
}

// anyDevice says whether a source has a device here, or has a driver that fails: a sick machine
// is shown as it is, not as a simulated one.
func anyDevice(ctx context.Context, sources []source.Source, log *slog.Logger) bool {
	for _, s := range sources {
		reader, err := s.Open(ctx)
		if errors.Is(err, source.ErrAbsent) || errors.Is(err, source.ErrUnbuilt) {
			log.Info("no accelerator", "source", s.Name, "err", err)
			continue
		}
		if err != nil {
			return true
		}
		devices, err := reader.Devices(ctx)
		if closing := reader.Close(); closing != nil {
			log.Warn("source did not close", "source", s.Name, "err", closing)
		}
		if err != nil || len(devices) > 0 {
			return true
		}
	}
	return false
}

// needed leaves out sources none of whose metrics is on.
func needed(sources []source.Source, on func(*metric.Desc) bool) []source.Source {
	return slices.DeleteFunc(sources, func(s source.Source) bool {
		return !slices.ContainsFunc(telemetry.Descs(), func(d *metric.Desc) bool {
			return on(d) && slices.Contains(d.Sources, s.Name)
		})
	})
}
