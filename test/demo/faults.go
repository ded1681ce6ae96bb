package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// fault is one that the simulated nodes know, and what is to be seen of it.
type fault struct{ name, what, alerts string }

// faults are those of gpumeter's --simulate-faults; a test asks it.
var faults = []fault{
	{"gpu-xid", "XID 109: the driver wants a reset", "GPUXIDErrors, GPURecoveryNeeded"},
	{"gpu-ecc", "memory errors that can not be corrected", "GPUECCUncorrectableErrors, GPUXIDErrors, GPURecoveryNeeded"},
	{"gpu-hot", "its cooling fails", "GPUTemperatureCritical after 2 minutes, GPUThrottling after 10"},
	{"gpu-idle", "its job does nothing", "GPUIdleWaste after 30 minutes"},
	{"engine-slow", "engines answer slowly", "InferenceHighTTFT, InferenceHighLatency, InferenceQueueSaturation after 5 minutes"},
	{"engine-saturated", "more requests than engines can answer", "InferenceHighTTFT, InferenceQueueSaturation after 5 minutes"},
	{"engine-long", "long prompts and answers", "InferenceKVCachePressure after 5 minutes"},
	{"engine-errors", "requests fail", "InferenceHighErrorRate after 5 minutes"},
	{"engine-outage", "engines do not answer", "InferenceThroughputDrop, where they did an hour ago"},
}

// faultHelp lists them.
func faultHelp() string {
	var b strings.Builder
	fmt.Fprintln(&b, "Faults, and what fires:")
	for _, f := range faults {
		fmt.Fprintf(&b, "  %-17s %-40s %s\n", f.name, f.what, f.alerts)
	}
	return b.String()
}

// none ends all faults of a node.
const none = "none"

// parseRequest reads what a person asks for: a node, and the faults it is to have from now on, all of
// them, or none. NODE=FAULT and NODE FAULT are the same.
func parseRequest(text string) (node string, names []string, err error) {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \t=,", r) })
	if len(words) < 2 {
		return "", nil, fmt.Errorf("%q is not NODE FAULT, such as %s %s, or NODE %s", text, nodes[0].name, faults[0].name, none)
	}
	if !slices.ContainsFunc(nodes, func(n machine) bool { return n.name == words[0] }) {
		return "", nil, fmt.Errorf("no node %q; nodes are %s", words[0], listed(nodes, func(n machine) string { return n.name }))
	}
	for _, name := range words[1:] {
		if name == none {
			continue
		}
		if !slices.ContainsFunc(faults, func(f fault) bool { return f.name == name }) {
			return "", nil, fmt.Errorf("no fault %q; faults are %s", name, listed(faults, func(f fault) string { return f.name }))
		}
		names = append(names, name)
	}
	return words[0], names, nil
}

// listed are the names of some things, for people.
func listed[T any](all []T, name func(T) string) string {
	var names []string
	for _, one := range all {
		names = append(names, name(one))
	}
	return strings.Join(names, ", ")
}

// ask gives a node the faults that a request names.
func (d *demo) ask(request string) (said string, err error) {
	node, names, err := parseRequest(request)
	if err != nil {
		return "", err
	}
	// Renamed, so that the exporter never reads half of it.
	file := d.faultFile(node)
	if err := os.WriteFile(file+".new", []byte(strings.Join(names, "\n")+"\n"), 0o600); err != nil {
		return "", fmt.Errorf("faults of %s: %w", node, err)
	}
	if err := os.Rename(file+".new", file); err != nil {
		return "", fmt.Errorf("faults of %s: %w", node, err)
	}
	if len(names) == 0 {
		return node + " is well", nil
	}
	return node + " has " + strings.Join(names, ", "), nil
}

// listen does what is asked for line by line, until there is no more.
func (d *demo) listen(in io.Reader, out io.Writer) {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		said, err := d.ask(lines.Text())
		if err != nil {
			said = err.Error()
		}
		fmt.Fprintln(out, said)
	}
}
