package main

import (
	"context"
	"io"
	"log/slog"
	"os/signal"
	"sync"
	"syscall"

	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/expose"
	"github.com/gpumeter/gpumeter/exporter/expose/prom"
	"github.com/gpumeter/gpumeter/exporter/expose/stdout"
)

// once reads the node, prints it and returns the exit code; refuse prints why a node cannot be read as set.
func once(c config.Once, out io.Writer, log *slog.Logger, refuse func(error) int) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	c.Kubernetes.APIJitter = 0
	n, err := newNode(ctx, c.Node, 0, nil, log)
	if err != nil {
		return refuse(err)
	}
	running, quit := context.WithCancel(ctx)
	var reading sync.WaitGroup
	reading.Go(func() { n.read(running) })
	n.settle(ctx, c.ReadTimeout)
	s := n.feed.Snapshot(ctx)
	quit()
	reading.Wait()
	if missing := n.devices.unmet(s); len(missing) > 0 {
		log.Error("no such device", "devices", missing)
		return exitUsage
	}
	families := expose.NewFamilies(n.on)
	switch c.Format {
	case "json":
		err = stdout.JSON(out, families, s)
	case "prometheus":
		err = prom.NewEncoder(families, prom.Text).Encode(out, s)
	default:
		err = stdout.Table(out, s)
	}
	if err != nil {
		log.Error("not printed", "err", err)
		return exitFailed
	}
	return 0
}
