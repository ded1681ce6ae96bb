// Package config reads flags, environment variables and the optional YAML file into plain structs.
package config

import (
	"errors"
	"path"
	"slices"
	"time"
)

// Config is everything a user can set. Each flag is also an environment variable GPUMETER_… and
// a key of the file; flags win over the environment, which wins over the file.
type Config struct {
	ConfigFile string `name:"config.file" placeholder:"FILE" help:"YAML file with the keys of these flags."`
	Log        Log    `embed:"" prefix:"log."`

	Serve      Serve      `cmd:"" default:"withargs" help:"Serve metrics over HTTP (the default)."`
	Once       Once       `cmd:"" help:"Read the node once and print its devices."`
	Doctor     Doctor     `cmd:"" help:"Report what is wrong on this node and what to do, and the owner of each device."`
	Spec       Spec       `cmd:"" help:"Print what metrics mean: type, unit, labels, who reads them."`
	Bundle     Bundle     `cmd:"" help:"Print or write the rules, the mixin and the registry that go with this binary."`
	Completion Completing `cmd:"" help:"Print the script that completes commands and flags in a shell."`
	Man        Man        `cmd:"" hidden:"" help:"Print the manual page."`
	Version    Version    `cmd:"" help:"Print the version and leave."`
}

// Log says what is logged and how.
type Log struct {
	Level  string `enum:"debug,info,warn,error" default:"info" help:"Log what is at least this severe: ${enum}."`
	Format string `enum:"logfmt,json" default:"logfmt" help:"Log lines as ${enum}."`
}

// Node says what is read and how patiently.
type Node struct {
	Simulate        string        `placeholder:"NODE" help:"Read a simulated node instead of this one: h100x8, h100migx1 (split by MIG), mixed, or a list such as h100x4,l40sx2; with faults, such as engine-slow@10m+5m."`
	SimulateIfNone  bool          `help:"Read a simulated node when this one has no accelerator."`
	SimulateFaults  string        `placeholder:"FILE" help:"Where the names of faults stand that a simulated node has now, such as engine-outage or gpu-hot; it is looked at with each reading."`
	SimulateSeed    uint64        `placeholder:"N" help:"Another number is another simulated node: other UUIDs, pods and hours of work."`
	Metrics         Metrics       `embed:"" prefix:"metrics."`
	Devices         []string      `placeholder:"DEVICE" help:"Read only these devices, by index, UUID, PCI address or a glob of them; repeatable."`
	ExpectedDevices []string      `placeholder:"DEVICE" help:"Show what is not there: how many devices there should be, and their UUIDs or PCI addresses; repeatable. What is on the PCI bus, or was seen before, needs no mention."`
	Attribution     string        `enum:"auto,none" default:"auto" help:"Say whose work is on the devices, from what is found on this machine, or not: ${enum}."`
	Labels          string        `enum:"owner,join" default:"owner" help:"Put the owner's labels on the gauges of a device, or leave them to a join with gpu_owner_info, and the model to one with gpu_info: ${enum}."`
	SlurmJobMapping string        `name:"slurm.job-mapping-dir" placeholder:"DIR" help:"Where Slurm's prolog writes which job has which GPU: a file for each GPU's index, with the jobs' numbers in it."`
	SlurmGPUs       []string      `name:"slurm.gpu" placeholder:"NUMBER=DEVICE" help:"Which device, by UUID or PCI address, or MIG instance, by UUID, Slurm numbers so; repeatable. Default: /dev/nvidiaNUMBER."`
	Kubernetes      Kubernetes    `embed:"" prefix:"kubernetes."`
	SeriesLimit     int           `default:"1000" help:"Tell of at most this many workloads; those beyond are told as one."`
	WorkloadHold    time.Duration `default:"30s" help:"Tell what a workload has used as 0 for this long after it was first seen: two scrape intervals, so that increase() misses nothing of it."`
	WorkloadKeep    time.Duration `default:"10m" help:"Keep the counters of a workload for this long after its end: longer than a scrape interval."`
	ReadTimeout     time.Duration `default:"2s" help:"Leave out a device that has not answered after this long."`
	RelistInterval  time.Duration `default:"30s" help:"List the devices again this often, to find those that came or are back."`
	RetryInterval   time.Duration `default:"30s" help:"Try a driver that is not there, or fails, again this often; for a device that is lost, and stays so, ever less often."`
	ProcessLimit    int           `default:"32" help:"Tell of at most this many processes of one device, the largest by memory, where gpu.process metrics are on."`
	NVMLLibrary     string        `name:"nvml.library" placeholder:"FILE" help:"NVIDIA's libnvidia-ml, when the loader does not find it."`
	KernelLog       string        `default:"/dev/kmsg" help:"The kernel's log, which tells of XIDs the driver does not; none: it is not read."`
	HostProc        string        `name:"host.proc" default:"/proc" help:"Where the host's /proc is mounted."`
	HostSys         string        `name:"host.sys" default:"/sys" help:"Where the host's /sys is mounted."`
	HostDev         string        `name:"host.dev" default:"/dev" help:"Where the device nodes are that gpumeter doctor and once check."`
	StateDirectory  string        `name:"state.directory" placeholder:"DIR" help:"Keep what the next run should know here, such as which devices there were; nothing is kept without. Default: what systemd sets as STATE_DIRECTORY."`
}

// Metrics chooses what is exposed, and so what is read.
type Metrics struct {
	Include []string `placeholder:"PATTERN" help:"Add metrics that are off by default, by group, name or glob; repeatable."`
	Exclude []string `placeholder:"PATTERN" help:"Leave metrics out, by group, name or glob; repeatable."`
}

// Serve are the settings of the serve command.
type Serve struct {
	Node   `embed:""`
	Web    Web           `embed:"" prefix:"web."`
	MaxAge time.Duration `default:"1s" help:"Serve the last picture again while it is no older than this."`
}

// Web are the flags of Prometheus' exporter toolkit.
type Web struct {
	ListenAddress   []string `default:":9450" help:"Addresses to listen on; repeatable."`
	SystemdSocket   bool     `help:"Use systemd's socket activation instead of listen addresses."`
	EnableLifecycle bool     `help:"Let go of the devices at a POST to /-/release, and take them back at /-/acquire; so do SIGUSR1 and SIGUSR2."`
	EnableDebug     bool     `help:"Answer /debug/attribution to other machines too; it names pods, jobs and processes."`
	ConfigFile      string   `name:"config.file" placeholder:"FILE" help:"TLS, client certificates and basic authentication, as Prometheus' exporter toolkit reads them."`
}

// Once are the settings of the once command.
type Once struct {
	Node   `embed:""`
	Wait   time.Duration `default:"30s" env:"-" help:"How long to wait for a driver that is still being opened."`
	Format string        `enum:"table,json,prometheus" default:"table" env:"-" help:"Print as ${enum}."`
}

// Doctor are the settings of the doctor command.
type Doctor struct {
	Node   `embed:""`
	URL    string        `name:"url" env:"-" placeholder:"URL" help:"Print the report of the running exporter at this URL, such as http://localhost:9450, instead of examining this machine."`
	Wait   time.Duration `default:"30s" env:"-" help:"How long to wait for a driver that is still being opened, and for the kubelet and the API server."`
	Format string        `enum:"text,json" default:"text" env:"-" help:"Print as ${enum}."`
}

// Spec are the settings of the spec command.
type Spec struct {
	Names  []string `arg:"" optional:"" name:"name" help:"Metrics, groups or globs; all when there is none."`
	Format string   `enum:"text,json" default:"text" env:"-" help:"Print as ${enum}."`
}

// Bundle are the settings of the bundle command.
type Bundle struct {
	What   []string `arg:"" optional:"" name:"what" words:"rules,mixin,registry" help:"rules: the alerts and recording rules, as PrometheusRule objects for kubectl. mixin, registry, or paths, names and globs of the list that is printed without any."`
	Plain  bool     `env:"-" help:"Rules for a Prometheus that reads files; printed, they are one file."`
	Extra  bool     `env:"-" help:"The rules with the extra alerts."`
	Output string   `env:"-" placeholder:"DIR" help:"Write the files below this directory, as they lie in the repository, and print their names; all files when none is asked for."`
}

// check refuses what would have no effect.
func (b *Bundle) check() error {
	if (b.Plain || b.Extra) && !slices.ContainsFunc(b.What, func(w string) bool { return path.Clean(w) == "rules" }) {
		return errors.New("--plain and --extra say which rules: gpumeter bundle rules")
	}
	return nil
}

// Completing are the settings of the completion command.
type Completing struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"${enum}"`
}

// Man are the settings of the man command.
type Man struct {
	Date string `arg:"" help:"The page's date."`
}

// Version are the settings of the version command: none.
type Version struct{}
