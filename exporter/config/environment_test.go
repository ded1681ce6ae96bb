package config

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
)

// An unusable variable names itself and its value, whichever command reads it.
func TestParse_BadVariableNamesItself(t *testing.T) {
	for variable, want := range map[string]string{
		"GPUMETER_READ_TIMEOUT=abc":                   `GPUMETER_READ_TIMEOUT: invalid duration "abc"`,
		"GPUMETER_READ_TIMEOUT=1ms":                   "GPUMETER_READ_TIMEOUT: 1ms is too short; the shortest is 10ms",
		"GPUMETER_READ_TIMEOUT=":                      `GPUMETER_READ_TIMEOUT: invalid duration ""`,
		"GPUMETER_MAX_AGE=abc":                        `GPUMETER_MAX_AGE: invalid duration "abc"`,
		"GPUMETER_WEB_ENABLE_DEBUG=2":                 `GPUMETER_WEB_ENABLE_DEBUG: invalid value "2"; use true or false`,
		"GPUMETER_SERIES_LIMIT=0":                     "GPUMETER_SERIES_LIMIT: 0 is not above zero",
		"GPUMETER_SERIES_LIMIT=all":                   `GPUMETER_SERIES_LIMIT: invalid number "all"`,
		"GPUMETER_SIMULATE_IF_NONE=perhaps":           `GPUMETER_SIMULATE_IF_NONE: invalid value "perhaps"; use true or false`,
		"GPUMETER_LOG_LEVEL=loud":                     `GPUMETER_LOG_LEVEL: invalid value "loud"; use debug, info, warn or error`,
		"GPUMETER_KUBERNETES_POLL=abc":                `GPUMETER_KUBERNETES_POLL: invalid duration "abc"`,
		"GPUMETER_KUBERNETES_POD_METADATA=kublet":     `GPUMETER_KUBERNETES_POD_METADATA: invalid value "kublet"; did you mean "kubelet"?; use auto, kubelet, api or none`,
		"GPUMETER_SLURM_GPU=0=a,0=b":                  "GPUMETER_SLURM_GPU: index 0 has two devices, a and b",
		"GPUMETER_CONFIG_FILE=/nope/none.yaml":        "GPUMETER_CONFIG_FILE: stat /nope/none.yaml: no such file or directory",
		"GPUMETER_KUBERNETES_API_URL=unix:///run/api": `GPUMETER_KUBERNETES_API_URL: "unix:///run/api" is not like https://10.0.0.7:10250`,
	} {
		name, value, _ := strings.Cut(variable, "=")
		t.Run(variable, func(t *testing.T) {
			t.Setenv(name, value)
			for _, command := range []string{"serve", "once", "doctor"} {
				if _, _, err := Parse([]string{command}, io.Discard); err == nil || err.Error() != want {
					t.Errorf("%s: error %v, want %s", command, err, want)
				}
			}
			for _, args := range []string{"version", "--version", "serve --version", "help", "help once", "--help", "once --help", "completion bash", "man 2026-01-01", "spec gpu_up", "bundle rules"} {
				if _, _, err := Parse(strings.Fields(args), io.Discard); err != nil && !errors.Is(err, ErrHelp) {
					t.Errorf("%s, which does not use it: %v", args, err)
				}
			}
		})
	}
}

// All that is wrong is reported at once, each by the place where it was set.
func TestParse_ReportsAllFaults(t *testing.T) {
	file := write(t, "series-limit: none\nworkload-keep: 10m\nrelist-interval: soon\n")
	t.Setenv("GPUMETER_READ_TIMEOUT", "abc")
	t.Setenv("GPUMETER_RETRY_INTERVAL", "1m")
	_, _, err := Parse([]string{"once", "--config.file", file}, io.Discard)
	var got []string
	for _, e := range Split(err) {
		got = append(got, e.Error())
	}
	want := []string{file + `:1: series-limit: invalid number "none"`, `GPUMETER_READ_TIMEOUT: invalid duration "abc"`, file + `:3: relist-interval: invalid duration "soon"`}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if _, _, err := Parse([]string{"once", "--config.file", file, "--series-limit=5", "--relist-interval=5s", "--read-timeout=1s"}, io.Discard); err != nil {
		t.Errorf("what flags replace is not read: %v", err)
	}
}

// What the rest of the program refuses is named by the place too.
func TestConfig_Locate(t *testing.T) {
	t.Setenv("GPUMETER_SIMULATE", "h10x8")
	c, _, err := Parse([]string{"--config.file", write(t, "web: {config.file: web.yaml}\n"), "--devices=["}, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	for flag, want := range map[string]string{"simulate": "GPUMETER_SIMULATE: a", "web.config.file": "gpumeter.yaml:1: web.config.file: a", "devices": "--devices: a", "max-age": "--max-age: a"} {
		if got := c.Locate(Refuse(flag, io.EOF)).Error(); !strings.HasSuffix(got, strings.TrimSuffix(want, "a")+"EOF") {
			t.Errorf("%s: %s, want %s", flag, got, want)
		}
	}
	if c.Locate(nil) != nil || Refuse("x", nil) != nil {
		t.Error("nothing wrong is an error")
	}
}

// A misspelt variable is found; what Kubernetes sets for a Service of our name is none of ours.
func TestUnknownVariables(t *testing.T) {
	got, err := UnknownVariables([]string{
		"PATH=/bin", "GPUMETER_MAX_AGE=1s", "GPUMETER_WEB_LISTEN_ADRESS=:1", "GPUMETER_NOSUCH=1", "GPUMETER_HELP=1", "GPUMETERX=1",
		"GPUMETER_PORT=tcp://10.0.0.1:9450", "GPUMETER_SERVICE_HOST=10.0.0.1", "GPUMETER_SERVICE_PORT=9450", "GPUMETER_SERVICE_PORT_METRICS=9450",
		"GPUMETER_PORT_9450_TCP_ADDR=10.0.0.1", "GPUMETER_PORT_9450_TCP=tcp://10.0.0.1:9450", "GPUMETER_METRICS_SERVICE_HOST=10.0.0.1",
	})
	want := []UnknownVariable{{"GPUMETER_WEB_LISTEN_ADRESS", "GPUMETER_WEB_LISTEN_ADDRESS"}, {"GPUMETER_NOSUCH", ""}, {"GPUMETER_HELP", ""}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
}
