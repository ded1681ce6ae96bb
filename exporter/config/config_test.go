package config

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "gpumeter.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDefaults(t *testing.T) {
	c, command, err := Parse(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if command != "serve" || !slices.Equal(c.Serve.Web.ListenAddress, []string{":9450"}) || c.Serve.MaxAge != time.Second ||
		c.Serve.ReadTimeout != 2*time.Second || c.Log.Level != "info" || c.Serve.SimulateIfNone {
		t.Errorf("command %s, %+v", command, c)
	}
}

// Flags win over the environment, which wins over the file, which wins over defaults.
func TestPrecedence(t *testing.T) {
	path := write(t, `
simulate: from-file
max-age: 3s
log: {level: debug}
web:
  listen-address: [":1", ":2"]
  config.file: web.yaml
metrics.include: [system]
simulate-if-none: false
`)
	t.Setenv("GPUMETER_MAX_AGE", "4s")
	t.Setenv("GPUMETER_SIMULATE", "from-environment")
	c, _, err := Parse([]string{"--config.file", path, "--simulate", "from-flag"}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	s := c.Serve
	if s.Simulate != "from-flag" || s.MaxAge != 4*time.Second || c.Log.Level != "debug" ||
		!slices.Equal(s.Web.ListenAddress, []string{":1", ":2"}) || s.Web.ConfigFile != "web.yaml" ||
		!slices.Equal(s.Metrics.Include, []string{"system"}) {
		t.Errorf("%+v", c)
	}
	t.Setenv("GPUMETER_CONFIG_FILE", path)
	if c, _, err = Parse(nil, io.Discard); err != nil || c.Serve.Simulate != "from-environment" || c.Log.Level != "debug" {
		t.Errorf("the file named by the environment: %+v, %v", c, err)
	}
}

func TestEveryFlagHasAnEnvironmentVariable(t *testing.T) {
	for env, flag := range map[string]func(*Config) string{
		"GPUMETER_WEB_LISTEN_ADDRESS": func(c *Config) string { return strings.Join(c.Serve.Web.ListenAddress, " ") },
		"GPUMETER_WEB_CONFIG_FILE":    func(c *Config) string { return c.Serve.Web.ConfigFile },
		"GPUMETER_NVML_LIBRARY":       func(c *Config) string { return c.Serve.NVMLLibrary },
		"GPUMETER_HOST_PROC":          func(c *Config) string { return c.Serve.HostProc },
		"GPUMETER_HOST_SYS":           func(c *Config) string { return c.Serve.HostSys },
		"GPUMETER_STATE_DIRECTORY":    func(c *Config) string { return c.Serve.StateDirectory },
		"GPUMETER_EXPECTED_DEVICES":   func(c *Config) string { return strings.Join(c.Serve.ExpectedDevices, " ") },
		"GPUMETER_METRICS_EXCLUDE":    func(c *Config) string { return strings.Join(c.Serve.Metrics.Exclude, " ") },
	} {
		t.Run(env, func(t *testing.T) {
			t.Setenv(env, "x:1")
			c, _, err := Parse([]string{"serve"}, io.Discard)
			if err != nil || flag(c) != "x:1" {
				t.Errorf("%s is not taken: %v", env, err)
			}
		})
	}
}

// systemd's variable is a default: whatever the user says of the state directory wins.
func TestStateDirectory(t *testing.T) {
	file := write(t, "state.directory: /file\nweb.enable-lifecycle: true\nexpected-devices: [8, GPU-00000000]\nhost: {sys: /s}\n")
	for name, c := range map[string]struct {
		systemd string
		env     map[string]string
		args    []string
		want    string
	}{
		"nothing":              {"", nil, nil, ""},
		"systemd's":            {"/var/lib/gpumeter", nil, nil, "/var/lib/gpumeter"},
		"the first of several": {"/var/lib/gpumeter:/var/lib/other", nil, nil, "/var/lib/gpumeter"},
		"our variable, empty":  {"/systemd", map[string]string{"GPUMETER_STATE_DIRECTORY": ""}, nil, ""},
		"text of its own":      {"/var/${state_directory}", nil, nil, "/var/${state_directory}"},
		"a file over it":       {"/systemd", nil, []string{"--config.file", file}, "/file"},
		"our variable":         {"/systemd", map[string]string{"GPUMETER_STATE_DIRECTORY": "/ours"}, []string{"--config.file", file}, "/ours"},
		"a flag":               {"/systemd", nil, []string{"--config.file", file, "--state.directory", "/flag"}, "/flag"},
		"nothing, as a flag":   {"/systemd", nil, []string{"--state.directory="}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("STATE_DIRECTORY", c.systemd)
			for k, v := range c.env {
				t.Setenv(k, v)
			}
			got, _, err := Parse(c.args, io.Discard)
			if err != nil || got.Serve.StateDirectory != c.want {
				t.Fatalf("%q, %v; want %q", got.Serve.StateDirectory, err, c.want)
			}
			s := got.Serve
			if fromFile := len(c.args) > 1; s.Web.EnableLifecycle != fromFile || (len(s.ExpectedDevices) == 2) != fromFile || (s.HostSys == "/s") != fromFile {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestBadFiles(t *testing.T) {
	for text, want := range map[string]string{
		"max-age: 1s\nsimulat: h100x8\n":         `:2: unknown key "simulat"; did you mean "simulate"?`,
		"web:\n  listen-adress: :1\n":            `:2: unknown key "web.listen-adress"; did you mean "web.listen-address"?`,
		"completely-unknown: 1\n":                `:1: unknown key "completely-unknown"`,
		"a: 1\nb: 2\n":                           `:2: unknown key "b"`,
		"simulate: {a: b}\n":                     `:1: simulate: not a value or a list of values`,
		"metrics.include: [[a]]\n":               `:1: metrics.include: not a list of plain values`,
		"- a\n":                                  `:1: not a mapping of keys to values`,
		"max-age: soon\n":                        `:1: max-age: invalid duration "soon"`,
		"simulate: a\nsimulate: b\n":             `:2: key "simulate" is set twice`,
		"log.level: debug\nlog: {level: info}\n": `:2: key "log.level" is set twice`,
		"log.level: loud\n":                      `:1: log.level: invalid value "loud"; use debug, info, warn or error`,
		"simulate: [unclosed\n":                  `line 1`,
		"max-age: -1s\n":                         `:1: max-age: -1s is not above zero`,
		"slurm.gpu: [zero]\n":                    `:1: slurm.gpu: "zero" is not like 0=GPU-…`,
		"config.file: other.yaml\n":              `unknown key "config.file"`,
	} {
		_, _, err := Parse([]string{"--config.file=" + write(t, text)}, io.Discard)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	if _, _, err := Parse([]string{"--max-age=0s", "--config.file", write(t, "max-age: 1s\n")}, io.Discard); err == nil || strings.Contains(err.Error(), "gpumeter.yaml") {
		t.Errorf("a bad flag over a good file: %v", err)
	}
	for _, path := range []string{filepath.Join(t.TempDir(), "none.yaml"), t.TempDir(), "/dev/zero"} {
		if _, _, err := Parse([]string{"--config.file", path}, io.Discard); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v", path, err)
		}
	}
	if _, _, err := Parse([]string{"--config.file", write(t, "# nothing but a comment\n")}, io.Discard); err != nil {
		t.Errorf("an empty file: %v", err)
	}
}

func TestBadFlags(t *testing.T) {
	for args, want := range map[string]string{
		"--max-ag=1s":                      `unknown flag --max-ag; did you mean "--max-age"?`,
		"--max-age=soon":                   `--max-age: invalid duration "soon"`,
		"--max-age":                        `--max-age: the value is missing; write --max-age=VALUE`,
		"--max-age=0s":                     "--max-age: 0s is not above zero",
		"--log.level=loud":                 `--log.level: invalid value "loud"; use debug, info, warn or error`,
		"--log.level=debgu":                `--log.level: invalid value "debgu"; did you mean "debug"?; use debug, info, warn or error`,
		"--series-limit=many":              `--series-limit: invalid number "many"`,
		"--process-limit=0":                "--process-limit: 0 is not above zero",
		"--simulate-seed=-1":               `--simulate-seed: invalid number "-1"`,
		"--simulate-if-none=x":             `--simulate-if-none: invalid value "x"; use true or false`,
		"severs":                           `unknown command "severs"; gpumeter --help lists the commands`,
		"serv":                             `unknown command "serv"; did you mean "serve"?`,
		"--max-age=1s serv":                `unknown command "serv"; did you mean "serve"?`,
		"help doctr":                       `unknown command "doctr"; did you mean "doctor"?`,
		"once now":                         `once takes no argument "now"`,
		"completion":                       `the argument "<shell>" is missing`,
		"completion tcsh":                  `<shell>: invalid value "tcsh"; use bash, zsh or fish`,
		"--read-timeout=1ns":               "--read-timeout: 1ns is too short; the shortest is 10ms",
		"--relist-interval=1ns":            "--relist-interval: 1ns is too short; the shortest is 100ms",
		"--retry-interval=-1s":             "--retry-interval: -1s is too short; the shortest is 100ms",
		"--workload-hold=0s":               "--workload-hold: 0s is not above zero",
		"--workload-keep=-1s":              "--workload-keep: -1s is not above zero",
		"doctor --wait=-1s":                "--wait: -1s is below zero",
		"--slurm.gpu=0=GPU-x,0=GPU-y":      "--slurm.gpu: index 0 has two devices, GPU-x and GPU-y",
		"--slurm.gpu=1=a --slurm.gpu=01=a": "--slurm.gpu: index 1 has two devices, a and a",
		"--simulate=x --simulate-if-none":  "--simulate-if-none: cannot be combined with --simulate",
		"--web.listen-address=9450":        `--web.listen-address: "9450" is not like :9450 or 127.0.0.1:9450`,
		"--web.listen-address=:99999":      `--web.listen-address: ":99999" is not like :9450 or 127.0.0.1:9450`,
		"bundle --plain":                   "--plain and --extra say which rules: gpumeter bundle rules",
	} {
		if _, _, err := Parse(strings.Fields(args), io.Discard); err == nil || err.Error() != want {
			t.Errorf("%s: error %v, want %q", args, err, want)
		}
	}
	for _, args := range []string{"--read-timeout=10ms --relist-interval=100ms --retry-interval=100ms --kubernetes.poll=100ms", "--slurm.gpu=0=a,1=a", "doctor --wait=0s",
		"--web.listen-address=vsock://:9450", "--web.listen-address=[::1]:0", "--web.systemd-socket --web.listen-address=x"} {
		if _, _, err := Parse(strings.Fields(args), io.Discard); err != nil {
			t.Errorf("%s: %v", args, err)
		}
	}
}

// What says which rules has no effect on anything else.
func TestBundle(t *testing.T) {
	for args, want := range map[string]bool{
		"":                         true,
		"rules --plain --extra":    true,
		"mixin rules/ --plain":     true,
		"registry --output x":      true,
		"--plain":                  false,
		"--extra --output x":       false,
		"rules/objects --extra":    false,
		"mixin --plain --output x": false,
	} {
		_, command, err := Parse(append([]string{"bundle"}, strings.Fields(args)...), io.Discard)
		if want && (err != nil || command != "bundle") || !want && (err == nil || !strings.Contains(err.Error(), "gpumeter bundle rules")) {
			t.Errorf("bundle %s: command %q, error %v", args, command, err)
		}
	}
}

func FuzzFile(f *testing.F) {
	f.Add("simulate: h100x8\nweb: {listen-address: [':1']}\n")
	f.Add("a: &x [*x]\n")
	f.Add("<<: {simulate: 1}\n")
	f.Fuzz(func(t *testing.T, text string) {
		Parse([]string{"--config.file", write(t, text)}, io.Discard) //nolint:errcheck // it must not panic
	})
}
