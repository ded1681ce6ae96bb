package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/doctor"
	"github.com/gpumeter/gpumeter/exporter/expose"
	"github.com/gpumeter/gpumeter/exporter/expose/prom"
	"github.com/gpumeter/gpumeter/exporter/parts"
	"github.com/gpumeter/gpumeter/exporter/snapshot"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/web"
)

// processPeriod is how often the go_* and process_* series are gathered at most.
const processPeriod = 5 * time.Second

// serve runs the exporter until it is stopped, and returns the exit code; refuse prints why a setting
// cannot be used. It returns within shutdownPatience after the exporter is told to stop, whatever hangs.
func serve(c config.Serve, log *slog.Logger, refuse func(error) int) int {
	if err := web.CheckConfig(c.Web.ConfigFile); err != nil {
		return refuse(config.Refuse("web.config.file", err))
	}
	b := build()
	log.Info("starting gpumeter", "version", b.Version, "revision", b.Revision, "go", b.GoVersion)
	told, deaf := listen()
	defer deaf()
	ctx, end := context.WithCancelCause(context.Background())
	defer end(nil)
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	var all parts.Group
	unusable := make(chan int, 1)
	all.Go("start", func() {
		n, err := newNode(ctx, c.Node, c.MaxAge, func(name string, err error) {
			log.Error("only a new process can read this source again; this one ends", "source", name, "err", err)
			end(err)
		}, log)
		if err != nil {
			unusable <- refuse(err)
			return
		}
		all.Go("requests", func() { n.serve(ctx, end, c, &all, told, log) })
	})
	select {
	case code := <-unusable:
		return code
	case <-ctx.Done():
	}
	start := time.Now()
	if left := unended(&all); len(left) > 0 {
		log.Warn("stopping although parts of the exporter have not ended", "parts", strings.Join(left, ", "), "after", time.Since(start).Round(time.Millisecond))
	}
	code := ended(ctx)
	if code != exitFailed {
		log.Info("stopped", "reason", context.Cause(ctx))
	}
	return code
}

// shutdownPatience is how long the exporter takes at most to stop. Requests in flight have requestPatience of it.
const shutdownPatience, requestPatience = 5 * time.Second, 4 * time.Second

// unended waits for parts that were told to stop, and returns those that do not.
func unended(all *parts.Group) []string {
	deadline, cancel := context.WithTimeout(context.Background(), shutdownPatience)
	defer cancel()
	all.Wait(deadline)
	return all.Running()
}

// errNotServing is why the exporter ends when it cannot listen.
var errNotServing = errors.New("not serving")

// serve reads the node and answers until the context ends, or ends it when it cannot listen.
func (n *node) serve(ctx context.Context, end func(error), c config.Serve, all *parts.Group, told <-chan os.Signal, log *slog.Logger) {
	running, quit := context.WithCancel(context.WithoutCancel(ctx)) // for requests in flight at the end
	defer quit()
	n.run(ctx, running, all)
	all.Go("signals", func() { obey(running, told, n.feed, log) })
	if len(c.Devices) > 0 {
		all.Go("device check", func() {
			if missing := n.devices.unmet(n.feed.Snapshot(running)); len(missing) > 0 {
				log.Warn("no such device so far", "devices", missing)
			}
		})
	}

	limits := web.NewLimits(log)
	scrapes := prom.NewHandler(n.feed, expose.NewFamilies(n.on), prom.NewProcess(processPeriod), limits.Scrapes())
	handlers := web.NewHandlers(web.Config{
		Feed: n.feed, Metrics: scrapes, Attribution: doctor.Handler(n.report), Version: build().Version,
		Lifecycle: c.Web.EnableLifecycle, Debug: c.Web.EnableDebug, Hosts: hostNames(c), Limits: limits, Logger: log,
	})
	err := web.Serve(ctx, handlers, web.Listen{
		Addresses: c.Web.ListenAddress, SystemdSocket: c.Web.SystemdSocket, ConfigFile: c.Web.ConfigFile,
		AdminSocket: c.Web.AdminSocket, Limits: limits, Grace: requestPatience,
		Opened: func(url string) { all.Go("announcement", func() { announce(running, url, n.feed, log) }) },
	}, log)
	if err != nil {
		log.Error("not serving", "err", err)
		end(errNotServing)
	}
}

// hostNames returns the names of this machine: its own with and without the domain, the node's, and those
// of --web.lifecycle-host.
func hostNames(c config.Serve) []string {
	names := append(slices.Clone(c.Web.LifecycleHost), c.Kubernetes.Node)
	if own, err := os.Hostname(); err == nil {
		short, _, _ := strings.Cut(own, ".")
		names = append(names, own, short)
	}
	return names
}

// sources are tried one after the other; a snapshot.Feed has them.
type sources interface {
	Started() bool
	Sources() []snapshot.SourceHealth
}

// announcePatience is how long sources are waited for before they are logged as they are.
const announcePatience = 10 * time.Second

// announce logs where the exporter serves and the state of its sources, once all have been tried.
func announce(ctx context.Context, url string, from sources, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, announcePatience)
	defer cancel()
	for !from.Started() && ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return
	}
	var states []string
	for _, s := range from.Sources() {
		text := s.Name + " " + s.State.String()
		if s.Devices > 0 {
			text += fmt.Sprintf(" (%d devices)", s.Devices)
		}
		states = append(states, text)
	}
	log.Info("serving", "url", url, "sources", strings.Join(states, ", "))
}

// ended is the exit code by what ended the context. A part that hangs does not change it: the exporter was told
// to stop, and stops.
func ended(ctx context.Context) int {
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, source.ErrStale):
		return exitStale
	case errors.Is(cause, errNotServing):
		return exitFailed
	}
	return 0
}
