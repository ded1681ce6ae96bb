package config

import (
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// The shortest durations that make sense: less only costs CPU, or leaves every device out.
const (
	minTimeout  = 10 * time.Millisecond
	minInterval = 100 * time.Millisecond
	minDuration = time.Nanosecond
)

// check refuses settings of the command that are well formed but make no sense.
func (c *Config) check(command string) error {
	switch command {
	case "serve":
		faults := append(c.Serve.Web.check(), atLeast("max-age", c.Serve.MaxAge, minDuration))
		return errors.Join(append(faults, c.Serve.Node.check()...)...)
	case "once":
		return errors.Join(c.Once.Node.check()...)
	case "doctor":
		return errors.Join(append(c.Doctor.Node.check(), atLeast("wait", c.Doctor.Wait, 0))...)
	case "bundle":
		return c.Bundle.check()
	}
	return nil
}

// atLeast refuses a duration below the least.
func atLeast(flag string, d, least time.Duration) error {
	switch {
	case d >= least:
		return nil
	case least == minDuration:
		return &SettingError{Flag: flag, Err: fmt.Errorf("%v is not above zero", d)}
	case least == 0:
		return &SettingError{Flag: flag, Err: fmt.Errorf("%v is below zero", d)}
	}
	return &SettingError{Flag: flag, Err: fmt.Errorf("%v is too short; the shortest is %v", d, least)}
}

// check refuses addresses that nobody can listen on.
func (w *Web) check() (faults []error) {
	if w.AdminSocket != "" && !filepath.IsAbs(w.AdminSocket) {
		faults = append(faults, &SettingError{Flag: "web.admin-socket", Err: fmt.Errorf("%q is no absolute path such as /run/gpumeter.sock", w.AdminSocket)})
	}
	if w.SystemdSocket {
		return faults
	}
	for _, a := range w.ListenAddress {
		_, port, err := net.SplitHostPort(a)
		if err == nil {
			_, err = net.LookupPort("tcp", port)
		}
		if err != nil && !strings.HasPrefix(a, "vsock://") {
			faults = append(faults, &SettingError{Flag: "web.listen-address", Err: fmt.Errorf("%q is not like :9450 or 127.0.0.1:9450", a)})
		}
	}
	return faults
}

// check refuses what makes no sense of a node.
func (n *Node) check() (faults []error) {
	if n.Simulate != "" && n.SimulateIfNone {
		faults = append(faults, &SettingError{Flag: "simulate-if-none", Err: errors.New("cannot be combined with --simulate")})
	}
	faults = append(faults,
		atLeast("read-timeout", n.ReadTimeout, minTimeout),
		atLeast("relist-interval", n.RelistInterval, minInterval),
		atLeast("retry-interval", n.RetryInterval, minInterval),
		atLeast("workload-hold", n.WorkloadHold, minDuration),
		atLeast("workload-keep", n.WorkloadKeep, minDuration))
	for _, limit := range []struct {
		flag  string
		value int
	}{{"process-limit", n.ProcessLimit}, {"series-limit", n.SeriesLimit}} {
		if limit.value <= 0 {
			faults = append(faults, &SettingError{Flag: limit.flag, Err: fmt.Errorf("%d is not above zero", limit.value)})
		}
	}
	return append(append(faults, n.checkSlurm()...), n.Kubernetes.check()...)
}

// checkSlurm refuses indices of Slurm that name no device, or two.
func (n *Node) checkSlurm() (faults []error) {
	devices := map[uint64]string{}
	for _, text := range n.SlurmGPUs {
		index, device, ok := strings.Cut(text, "=")
		number, err := strconv.ParseUint(index, 10, 16)
		before, twice := devices[number]
		switch {
		case err != nil || !ok || device == "":
			err = fmt.Errorf("%q is not like 0=GPU-…, Slurm's index and the device", text)
		case twice:
			err = fmt.Errorf("index %d has two devices, %s and %s", number, before, device)
		default:
			devices[number] = device
			continue
		}
		faults = append(faults, &SettingError{Flag: "slurm.gpu", Err: err})
	}
	return faults
}
