// Package config reads flags, environment variables and the optional YAML file into plain structs.
package config

import "time"

// Config is everything a user can set. Each flag is also an environment variable GPUMETER_… and
// a key of the file; flags win over the environment, which wins over the file.
type Config struct {
	ConfigFile string `name:"config.file" placeholder:"FILE" help:"YAML file with the keys of these flags."`
	Log        Log    `embed:"" prefix:"log."`

	Serve   Serve   `cmd:"" default:"withargs" help:"Serve metrics over HTTP (the default)."`
	Version Version `cmd:"" help:"Print the version and leave."`
}

// Log says what is logged and how.
type Log struct {
	Level  string `enum:"debug,info,warn,error" default:"info" help:"Log what is at least this severe: ${enum}."`
	Format string `enum:"logfmt,json" default:"logfmt" help:"Log lines as ${enum}."`
}

// Serve are the settings of the serve command.
type Serve struct {
	Web            Web           `embed:"" prefix:"web."`
	Metrics        Metrics       `embed:"" prefix:"metrics."`
	Simulate       string        `placeholder:"NODE" help:"Serve a simulated node instead of this one: h100x8, a100x4, mixed, or a list such as h100x4,l40sx2."`
	SimulateIfNone bool          `help:"Serve a simulated node when this one has no accelerator."`
	MaxAge         time.Duration `default:"1s" help:"Serve the last picture again while it is no older than this."`
	ReadTimeout    time.Duration `default:"2s" help:"Leave out a device that has not answered after this long."`
	NVMLLibrary    string        `name:"nvml.library" placeholder:"FILE" help:"NVIDIA's libnvidia-ml, when the loader does not find it."`
	HostProc       string        `name:"host.proc" default:"/proc" help:"Where the host's /proc is mounted."`
}

// Web are the flags of Prometheus' exporter toolkit.
type Web struct {
	ListenAddress []string `default:":9450" help:"Addresses to listen on; repeatable."`
	SystemdSocket bool     `help:"Use systemd's socket activation instead of listen addresses."`
	ConfigFile    string   `name:"config.file" placeholder:"FILE" help:"TLS, client certificates and basic authentication, as Prometheus' exporter toolkit reads them."`
}

// Metrics chooses what is exposed.
type Metrics struct {
	Include []string `placeholder:"PATTERN" help:"Add metrics that are off by default, by group, name or glob; repeatable."`
	Exclude []string `placeholder:"PATTERN" help:"Leave metrics out, by group, name or glob; repeatable."`
}

// Version are the settings of the version command: none.
type Version struct{}
