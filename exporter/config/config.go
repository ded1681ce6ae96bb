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
	ConfigFile  string `name:"config.file" group:"general" placeholder:"FILE" help:"YAML file; its keys are the names of these flags."`
	Log         Log    `embed:"" prefix:"log." group:"general"`
	ShowVersion bool   `name:"version" group:"general" env:"-" help:"Print the version and exit."`

	Serve      Serve      `cmd:"" default:"withargs" help:"Serve metrics over HTTP (the default)."`
	Once       Once       `cmd:"" help:"Read the node once and print its devices."`
	Doctor     Doctor     `cmd:"" help:"Report what is wrong on this node and what to do, and the owner of each device."`
	Spec       Spec       `cmd:"" help:"Explain metrics, alerts and XID errors."`
	Bundle     Bundle     `cmd:"" help:"Print or write the rules, the mixin and the registry of this version."`
	Completion Completing `cmd:"" help:"Print the script that completes commands and flags in a shell."`
	Man        Man        `cmd:"" hidden:"" help:"Print the manual page."`
	NVMLProbe  NVMLProbe  `cmd:"" name:"nvml-probe" hidden:"" help:"Initialise NVML and print what it finds; gpumeter runs this to recover a device."`
	Version    Version    `cmd:"" help:"Print the version and exit."`
	HelpOf     Help       `cmd:"" name:"help" help:"Show the help of gpumeter or of a command."`

	places map[string]string // by flag: the variable, or the line of the file, that set it
}

// Log are the settings of the log.
type Log struct {
	Level  string `enum:"debug, info, warn, error" default:"info" help:"Lowest severity to log: ${enum}."`
	Format string `enum:"logfmt, json" default:"logfmt" help:"Format of the log: ${enum}."`
}

// Node are the settings of reading a node.
type Node struct {
	Metrics         Metrics  `embed:"" prefix:"metrics." group:"metrics"`
	Devices         []string `group:"metrics" placeholder:"DEVICE" help:"Read only these devices, by index, UUID, PCI address or a glob of them; repeatable."`
	ExpectedDevices []string `group:"metrics" placeholder:"DEVICE" help:"Devices that should be there: one number, and UUIDs or PCI addresses; repeatable. Devices on the PCI bus or seen before are expected without it."`
	ProcessLimit    int      `group:"metrics" default:"32" help:"Maximum number of processes shown per device, the largest by memory, where gpu.process metrics are on."`

	Attribution  string        `group:"attribution" enum:"auto, none" default:"auto" help:"Find the workload of each device with whatever this machine offers, or not at all: ${enum}."`
	Labels       string        `group:"attribution" enum:"owner, join" default:"owner" help:"Put the owner's labels on a device's gauges, or leave them to a join with gpu_owner_info, and the model to one with gpu_info: ${enum}."`
	SeriesLimit  int           `group:"attribution" default:"1000" help:"Maximum number of workloads; further workloads are folded into one."`
	WorkloadHold time.Duration `group:"attribution" default:"30s" help:"A new workload's counters stay 0 for this long: two scrape intervals, so that increase() sees everything the workload uses."`
	WorkloadKeep time.Duration `group:"attribution" default:"10m" help:"Keep a workload's counters for this long after its end: longer than a scrape interval."`

	Kubernetes Kubernetes `embed:"" prefix:"kubernetes." group:"kubernetes"`

	SlurmJobMapping string   `name:"slurm.job-mapping-dir" group:"slurm" placeholder:"DIR" help:"Directory into which Slurm's prolog writes the jobs of each GPU: a file per GPU index with the job IDs."`
	SlurmGPUs       []string `name:"slurm.gpu" group:"slurm" placeholder:"INDEX=DEVICE" help:"Device (UUID or PCI address) or MIG instance (UUID) with this index in Slurm; repeatable. Default: /dev/nvidiaINDEX."`

	ReadTimeout    time.Duration `group:"node" default:"2s" help:"Leave a device out of a collection when it has not responded after this long."`
	RelistInterval time.Duration `group:"node" default:"30s" help:"Interval at which the devices are listed again, to find new and returned ones."`
	RetryInterval  time.Duration `group:"node" default:"30s" help:"Interval at which an absent or failing driver is tried again; longer and longer, up to 10 minutes, for a device that stays lost."`
	NVMLLibrary    string        `name:"nvml.library" group:"node" placeholder:"FILE" help:"NVIDIA's libnvidia-ml, when the loader does not find it."`
	KernelLog      string        `group:"node" default:"/dev/kmsg" help:"The kernel's log, for XIDs that the driver does not report; none: do not read it."`
	HostProc       string        `name:"host.proc" group:"node" default:"/proc" help:"Where the host's /proc is mounted."`
	HostSys        string        `name:"host.sys" group:"node" default:"/sys" help:"Where the host's /sys is mounted."`
	HostDev        string        `name:"host.dev" group:"node" default:"/dev" help:"Where the device nodes are that gpumeter doctor and once check."`
	StateDirectory string        `name:"state.directory" group:"node" placeholder:"DIR" help:"Directory for what the next run needs, such as the devices seen so far; without it nothing is kept. Default: systemd's STATE_DIRECTORY."`

	Simulate       string `group:"simulation" placeholder:"NODE" help:"Read a simulated node instead of this one: h100x8, h100migx1 (with MIG), mixed, or a list such as h100x4,l40s; with Slurm (h100x8,slurm); with faults (engine-slow@10m+5m)."`
	SimulateIfNone bool   `group:"simulation" help:"Read a simulated node when this machine has no accelerator."`
	SimulateFaults string `group:"simulation" placeholder:"FILE" help:"File that lists the active faults of the simulated node, such as engine-outage or gpu-hot; re-read on every collection."`
	SimulateSeed   uint64 `group:"simulation" placeholder:"N" help:"Seed of the simulated node: another seed gives other UUIDs, pods and working hours."`
}

// Metrics chooses what is exposed, and so what is read.
type Metrics struct {
	Include []string `placeholder:"PATTERN" help:"Add metrics that are off by default, by group, name or glob; repeatable."`
	Exclude []string `placeholder:"PATTERN" help:"Leave metrics out, by group, name or glob; repeatable."`
}

// Serve are the settings of the serve command.
type Serve struct {
	Web    Web           `embed:"" prefix:"web." group:"http"`
	MaxAge time.Duration `group:"http" default:"1s" help:"Serve the last collection again while it is at most this old."`
	Node   `embed:""`
}

// Web are the flags of Prometheus' exporter toolkit, and of the endpoints beside /metrics.
type Web struct {
	ListenAddress   []string `default:":9450" help:"Addresses to listen on; repeatable."`
	SystemdSocket   bool     `help:"Use systemd's socket activation instead of listen addresses."`
	EnableLifecycle bool     `help:"Release the devices at a POST to /-/release, and acquire them again at /-/acquire; SIGUSR1 and SIGUSR2 do the same."`
	LifecycleHost   []string `placeholder:"NAME" help:"Another name of this machine under which /-/release and /-/acquire respond, beside its host name, its node's name and its IP addresses; repeatable."`
	AdminSocket     string   `placeholder:"PATH" help:"Unix socket, for the exporter's own user and root, that serves /-/release, /-/acquire and /debug/attribution without further conditions: gpumeter doctor --url unix://PATH."`
	EnableDebug     bool     `help:"Serve /debug/attribution to other machines too; it names pods, jobs and processes."`
	ConfigFile      string   `name:"config.file" placeholder:"FILE" help:"File of Prometheus' exporter toolkit for TLS, client certificates and basic authentication."`
}

// Once are the settings of the once command.
type Once struct {
	Wait   time.Duration `default:"30s" env:"-" help:"How long to wait for a driver that is still being opened."`
	Format string        `enum:"table, json, prometheus" default:"table" env:"-" help:"Output format: ${enum}."`
	Node   `embed:""`
}

// Doctor are the settings of the doctor command.
type Doctor struct {
	URL    string        `name:"url" env:"-" placeholder:"URL" help:"Query the running exporter at this URL, such as http://localhost:9450 or unix:///run/gpumeter.sock, instead of reading the node."`
	Wait   time.Duration `default:"30s" env:"-" help:"How long to wait for a driver that is still being opened, and for the kubelet, the API server and Slurm's files."`
	Format string        `enum:"text, json" default:"text" env:"-" help:"Output format: ${enum}."`
	Node   `embed:""`
}

// Spec are the settings of the spec command.
type Spec struct {
	Names  []string `arg:"" optional:"" name:"name" help:"Metrics, groups, prefixes or globs; the name of an alert; the code of an XID error. Without a name all metrics are listed."`
	Format string   `enum:"text, json" default:"text" env:"-" help:"Output format: ${enum}."`
}

// Bundle are the settings of the bundle command.
type Bundle struct {
	What   []string `arg:"" optional:"" name:"what" words:"rules,mixin,registry" help:"rules: the alerts and recording rules, as PrometheusRule objects for kubectl. mixin, registry, or paths, names and globs of the list that is printed without an argument."`
	Plain  bool     `env:"-" help:"Rules for a Prometheus that reads files; printed, they are one file."`
	Extra  bool     `env:"-" help:"The rules with the extra alerts."`
	Output string   `env:"-" placeholder:"DIR" help:"Write the files below this directory, with their paths in the repository, and print their names; all files without an argument."`
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
	Shell string `arg:"" enum:"bash, zsh, fish" help:"${enum}"`
}

// Man are the settings of the man command.
type Man struct {
	Date string `arg:"" help:"The page's date."`
}

// NVMLProbe are the settings of the nvml-probe command.
type NVMLProbe struct {
	NVMLLibrary string `name:"nvml.library" env:"-" placeholder:"FILE" help:"NVIDIA's libnvidia-ml, when the loader does not find it."`
}

// Version are the settings of the version command: none.
type Version struct{}

// Help are the settings of the help command.
type Help struct {
	Command string `arg:"" optional:"" words:"serve,once,doctor,spec,bundle,completion,version" help:"A command."`
}
