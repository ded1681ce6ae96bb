package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// machine is a simulated node of the cluster.
type machine struct {
	name, simulate string
	seed           int
}

// nodes are the cluster. The seeds of the first two are of those whose trainings begin at once and last, so
// that a fault soon has a victim.
var nodes = []machine{
	{"node-1", "h100x8", 471},
	{"node-2", "h100x8,slurm", 630},
	{"node-3", "h100migx1", 3},
	{"node-4", "mixed", 4},
}

// demo is a running cluster.
type demo struct {
	dir                      string
	exporters                []*child
	prometheus, alertmanager *child
}

func (d *demo) faultFile(node string) string { return filepath.Join(d.dir, node+".faults") }

// children are all that run, those first that end first.
func (d *demo) children() []*child {
	var all []*child
	for _, c := range append([]*child{d.prometheus, d.alertmanager}, d.exporters...) {
		if c != nil {
			all = append(all, c)
		}
	}
	return all
}

// start starts all and waits until all answer. What it started before it failed is ended.
func start(ctx context.Context, s settings, out io.Writer) (d *demo, err error) {
	dir, err := os.MkdirTemp("", "gpumeter-demo-")
	if err != nil {
		return nil, fmt.Errorf("a folder for the demo: %w", err)
	}
	d = &demo{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.stop())
		}
	}()
	if s.rules, err = filepath.Abs(s.rules); err != nil {
		return d, fmt.Errorf("rules: %w", err)
	}
	if files, err := filepath.Glob(filepath.Join(s.rules, "*.yaml")); err != nil || len(files) == 0 {
		return d, fmt.Errorf("no rules in %s: %w", s.rules, errors.Join(err, os.ErrNotExist))
	}
	for _, request := range s.faults {
		if _, err := d.ask(request); err != nil {
			return d, err
		}
	}
	ports, err := findPorts(s, out)
	if err != nil {
		return d, err
	}
	if err := d.launch(s, ports); err != nil {
		return d, err
	}
	for _, c := range d.children() {
		if err := c.await(ctx); err != nil {
			return d, err
		}
	}
	return d, nil
}

// launch starts the programs, each on its port: the exporters', Prometheus' and Alertmanager's.
func (d *demo) launch(s settings, ports []int) (err error) {
	at := func(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }
	ours, its := ports[len(nodes)], ports[len(nodes)+1]
	for i, n := range nodes {
		c, err := launch(d.dir, n.name, ports[i], "/readyz", s.gpumeter, "serve", "--web.listen-address", at(ports[i]),
			"--simulate", n.simulate, "--simulate-seed", fmt.Sprint(n.seed), "--simulate-faults", d.faultFile(n.name))
		if err != nil {
			return err
		}
		d.exporters = append(d.exporters, c)
	}
	config := filepath.Join(d.dir, "alertmanager.yml")
	if err := os.WriteFile(config, []byte(alertmanagerConfig), 0o600); err != nil {
		return fmt.Errorf("the configuration of Alertmanager: %w", err)
	}
	if d.alertmanager, err = launch(d.dir, "alertmanager", its, "/-/ready", s.alertmanager, "--config.file="+config,
		"--storage.path="+filepath.Join(d.dir, "alertmanager"), "--web.listen-address="+at(its), "--cluster.listen-address="); err != nil {
		return err
	}
	config = filepath.Join(d.dir, "prometheus.yml")
	if err := os.WriteFile(config, []byte(prometheusConfig(s.rules, ports[:len(nodes)], its)), 0o600); err != nil {
		return fmt.Errorf("the configuration of Prometheus: %w", err)
	}
	d.prometheus, err = launch(d.dir, "prometheus", ours, "/-/ready", s.prometheus, "--config.file="+config,
		"--storage.tsdb.path="+filepath.Join(d.dir, "prometheus"), "--web.listen-address="+at(ours))
	return err
}

// findPorts finds a port for each exporter, Prometheus and Alertmanager. Where one that is wanted is
// taken it says so and takes another.
func findPorts(s settings, out io.Writer) ([]int, error) {
	type want struct {
		name string
		port int
	}
	var wanted []want
	for i, n := range nodes {
		port := 0
		if s.exportersAt != 0 {
			port = s.exportersAt + i
		}
		wanted = append(wanted, want{n.name, port})
	}
	wanted = append(wanted, want{"Prometheus", s.prometheusAt}, want{"Alertmanager", s.alertmanagerAt})
	var ports []int
	for _, w := range wanted {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", w.port))
		if err != nil && w.port != 0 {
			taken := err
			if l, err = net.Listen("tcp", "127.0.0.1:0"); err == nil {
				fmt.Fprintf(out, "%s can not have its port, and has %d: %v\n", w.name, l.Addr().(*net.TCPAddr).Port, taken)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("a port for %s: %w", w.name, err)
		}
		defer l.Close() //nolint:errcheck // held until all are found, so that none is found twice
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// Alerts are only to be looked at.
const alertmanagerConfig = `route:
  receiver: nobody
  group_by: [alertname, cluster, instance]
  group_wait: 5s
receivers:
  - name: nobody
`

// prometheusConfig has the targets named as our ServiceMonitor does.
func prometheusConfig(rules string, exporters []int, alertmanager int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `global:
  scrape_interval: 5s
  evaluation_interval: 5s
  external_labels: {cluster: demo}
rule_files: [%q]
alerting:
  alertmanagers:
    - static_configs: [{targets: ["127.0.0.1:%d"]}]
scrape_configs:
  - job_name: gpumeter
    static_configs:
`, filepath.Join(rules, "*.yaml"), alertmanager)
	for i, n := range nodes {
		fmt.Fprintf(&b, "      - {targets: [\"127.0.0.1:%d\"], labels: {instance: %s, node: %s}}\n", exporters[i], n.name, n.name)
	}
	return b.String()
}

// introduce says what there is to see and to do.
func (d *demo) introduce(out io.Writer) {
	fmt.Fprintf(out, "\nA simulated cluster: no number of a device is real.\n\n")
	fmt.Fprintf(out, "  Prometheus    %s/alerts\n  Alertmanager  %s\n", d.prometheus.url, d.alertmanager.url)
	for i, c := range d.exporters {
		fmt.Fprintf(out, "  %-13s %s/metrics  %s\n", c.name, c.url, nodes[i].simulate)
	}
	fmt.Fprintf(out, "\nType a node and a fault, such as %q, and %q to end it; or write into\n%s. Ctrl-C ends all.\n\n%s\n",
		nodes[0].name+" "+faults[0].name, nodes[0].name+" "+none, d.faultFile(nodes[0].name), faultHelp())
}

// wait waits until the context ends, or something that was started does.
func (d *demo) wait(ctx context.Context) error {
	all := d.children()
	gone := make(chan *child, len(all))
	for _, c := range all {
		go func() {
			<-c.ended
			gone <- c
		}()
	}
	select {
	case <-ctx.Done():
		return nil
	case c := <-gone:
		return c.obituary()
	}
}

// stop ends all that runs and removes its files.
func (d *demo) stop() error {
	all := d.children()
	errs := make([]error, len(all))
	var ends sync.WaitGroup
	for i, c := range all {
		ends.Go(func() { errs[i] = c.end() })
	}
	ends.Wait()
	if err := os.RemoveAll(d.dir); err != nil {
		errs = append(errs, fmt.Errorf("the demo's files: %w", err))
	}
	return errors.Join(errs...)
}
