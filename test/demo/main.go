// Command demo runs a simulated cluster on this machine: exporters, a Prometheus with the rules and an
// Alertmanager, and faults on request.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"syscall"
)

func main() {
	runtime.LockOSThread() // what is started ends with the thread that started it
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	err := run(ctx, os.Args[1:], os.Stdin, os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

// settings say what is run and where.
type settings struct {
	gpumeter, prometheus, alertmanager        string // programs
	rules                                     string // a folder of rule files
	exportersAt, prometheusAt, alertmanagerAt int    // ports; zero: any that are free
	faults                                    []string
}

// run runs the demo until its context ends or something it started does.
func run(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	var s settings
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.StringVar(&s.gpumeter, "gpumeter", "bin/gpumeter", "the exporter's `program`")
	flags.StringVar(&s.prometheus, "prometheus", "prometheus", "Prometheus' `program`")
	flags.StringVar(&s.alertmanager, "alertmanager", "alertmanager", "Alertmanager's `program`")
	flags.StringVar(&s.rules, "rules", "rules/plain", "the `folder` of rules that Prometheus is given")
	flags.IntVar(&s.exportersAt, "exporter-port", 9451, "the first exporter's `port`; 0: any that is free")
	flags.IntVar(&s.prometheusAt, "prometheus-port", 9090, "Prometheus' `port`; 0: any that is free")
	flags.IntVar(&s.alertmanagerAt, "alertmanager-port", 9093, "Alertmanager's `port`; 0: any that is free")
	flags.Func("fault", "a fault to begin with, as `NODE=FAULT`; repeatable", func(text string) error {
		_, _, err := parseRequest(text)
		s.faults = append(s.faults, text)
		return err
	})
	flags.Usage = func() {
		fmt.Fprintf(flags.Output(), "Usage: demo [flags]\n\n%s\nFlags:\n", faultHelp())
		flags.PrintDefaults()
	}
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no flag; a fault is asked for as --fault NODE=FAULT", flags.Arg(0))
	}
	d, err := start(ctx, s, out)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil //nolint:nilerr // it was told to end before it had begun
	default:
		return err
	}
	d.introduce(out)
	go d.listen(in, out)
	err = d.wait(ctx)
	fmt.Fprintln(out, "\nending all …")
	return errors.Join(err, d.stop())
}
