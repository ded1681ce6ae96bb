package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os/signal"
	"strings"
	"syscall"

	"github.com/gpumeter/gpumeter/exporter/config"
	"github.com/gpumeter/gpumeter/exporter/diagnosis"
	"github.com/gpumeter/gpumeter/exporter/expose"
	"github.com/gpumeter/gpumeter/exporter/expose/prom"
	"github.com/gpumeter/gpumeter/exporter/expose/stdout"
	"github.com/gpumeter/gpumeter/exporter/parts"
)

// once reads the node, prints it and returns the exit code: 0 when every device that should be there was read.
// Progress goes to errs; refuse prints why a node cannot be read as set.
func once(c config.Once, out, errs io.Writer, log *slog.Logger, refuse func(error) int) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	c.Kubernetes.APIJitter = 0
	n, err := newNode(ctx, c.Node, 0, nil, log)
	if err != nil {
		return refuse(err)
	}
	running, quit := context.WithCancel(ctx)
	var reading parts.Group
	n.read(running, &reading)
	n.opened(ctx, c.Wait, errs)
	n.settle(ctx, c.ReadTimeout)
	s := n.feed.Snapshot(ctx)
	findings := diagnosis.Find(s, n.machine(ctx))
	quit()
	unended(&reading) // the page is whole without what hangs
	failed := len(diagnosis.Worst(findings, diagnosis.Error)) > 0
	if missing := n.devices.unmet(s); len(missing) > 0 && !failed {
		fmt.Fprintf(errs, "gpumeter: --devices: no such device: %s\n", strings.Join(missing, ", "))
		return exitUsage
	}
	families := expose.NewFamilies(n.on)
	switch c.Format {
	case "json":
		err = stdout.JSON(out, families, s, findings)
	case "prometheus":
		err = prom.NewEncoder(families, prom.Text).Encode(out, s)
	default:
		err = stdout.Table(out, s)
	}
	if err != nil {
		fmt.Fprintf(errs, "gpumeter: %v\n", err)
		return exitFailed
	}
	if line := diagnosis.Headline(findings); line != "" {
		fmt.Fprintf(errs, "gpumeter: %s\n", line)
	}
	if failed {
		return exitFailed
	}
	return 0
}
