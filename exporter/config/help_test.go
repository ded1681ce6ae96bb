package config

import (
	"errors"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func helpOf(t *testing.T, args ...string) string {
	t.Helper()
	var out strings.Builder
	if _, _, err := Parse(args, &out); !errors.Is(err, ErrHelp) {
		t.Fatalf("%v: error %v", args, err)
	}
	return out.String()
}

// Help is the same by flag and by command.
func TestParse_Help(t *testing.T) {
	for args, same := range map[string]string{"help": "--help", "-h": "--help", "help serve": "serve --help", "help doctor": "doctor -h", "help help": "help --help", "serve --help --max-age=1s": "serve --help"} {
		if a, b := helpOf(t, strings.Fields(args)...), helpOf(t, strings.Fields(same)...); a != b {
			t.Errorf("%s and %s differ:\n%s\n%s", args, same, a, b)
		}
	}
}

// A command's own flags come first, then those of the node by topic, then those of all commands.
func TestHelp_GroupsFlags(t *testing.T) {
	for command, want := range map[string][]string{
		"serve":  {"Examples:", "HTTP server:", "--max-age", "Metrics and devices:", "--devices", "Attribution:", "--labels", "Kubernetes:", "--kubernetes.node", "Slurm:", "--slurm.gpu", "Drivers and the host:", "--read-timeout", "Simulation:", "--simulate=", "General:", "--help", "--log.level", "--version"},
		"once":   {"Examples:", "Flags:", "--format", "Metrics and devices:", "General:", "--config.file"},
		"doctor": {"Examples:", "Flags:", "--url", "--wait", "Metrics and devices:", "General:"},
	} {
		text, at := helpOf(t, command, "--help"), 0
		for _, w := range want {
			i := strings.Index(text[at:], w)
			if i < 0 {
				t.Fatalf("%s: no %q after %.40q", command, w, text[at:])
			}
			at += i + len(w)
		}
	}
	if text := helpOf(t, "serve", "--help"); !strings.Contains(text, "$GPUMETER_WEB_LISTEN_ADDRESS") || strings.Contains(text, "Flags:") || strings.Contains(text, "$-") {
		t.Errorf("serve:\n%s", text)
	}
}

// Each example in a command's help is a command line that is accepted.
func TestHelp_ExamplesAreValid(t *testing.T) {
	k, err := parser(new(Config), io.Discard, environment())
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, text := range append(slices.Collect(func(yield func(string) bool) {
		for _, c := range k.Model.Leaves(true) {
			if c.Detail == "" && c.Name != "version" {
				t.Errorf("%s has no example", c.Name)
			}
			if !yield(c.Detail) {
				return
			}
		}
	}), k.Model.Detail) {
		for _, line := range regexp.MustCompile(`(?m)^\tgpumeter([^|>#\n]*)`).FindAllStringSubmatch(text, -1) {
			seen++
			if _, _, err := Parse(strings.Fields(line[1]), io.Discard); err != nil && !errors.Is(err, ErrHelp) {
				t.Errorf("%s: %v", line[0], err)
			}
		}
	}
	if seen < 15 {
		t.Errorf("%d examples", seen)
	}
}

func TestParse_Version(t *testing.T) {
	for _, args := range []string{"version", "--version", "serve --version", "once --version"} {
		if _, command, err := Parse(strings.Fields(args), io.Discard); err != nil || command != "version" {
			t.Errorf("%s: command %q, %v", args, command, err)
		}
	}
}
