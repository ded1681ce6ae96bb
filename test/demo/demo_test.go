package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// gpumeter is the program that TestMain built.
var gpumeter string

func TestMain(m *testing.M) {
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "gpumeter")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
		gpumeter = filepath.Join(dir, "gpumeter")
		if out, err := exec.Command("go", "build", "-o", gpumeter, "../../exporter/cmd/gpumeter").CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

func TestParseRequest(t *testing.T) {
	for text, want := range map[string]string{
		"node-1 gpu-xid":                 "node-1 [gpu-xid]",
		"node-2=gpu-hot,engine-slow":     "node-2 [gpu-hot engine-slow]",
		"  node-3\tnone ":                "node-3 []",
		"node-1":                         `"node-1" is not NODE FAULT, such as node-1 gpu-xid, or NODE none`,
		"node-9 gpu-xid":                 `no node "node-9"; nodes are node-1, node-2`,
		"node-1 gpu-xid gpu-cold":        `no fault "gpu-cold"; faults are gpu-xid, gpu-ecc`,
		"node-1=engine-slow,node-2=none": `no fault "node-2"`,
	} {
		node, names, err := parseRequest(text)
		got := fmt.Sprintf("%s %v", node, names)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s; want %s", text, got, want)
		}
	}
}

// The faults that the demo tells of are those that gpumeter knows.
func TestFaultsAreGpumeters(t *testing.T) {
	out, err := exec.Command(gpumeter, "once", "--simulate", "h100x1,gpu-x").CombinedOutput()
	_, list, found := strings.Cut(strings.TrimSpace(string(out)), "faults are ")
	if err == nil || !found {
		t.Fatalf("%v, and no list of faults in %s", err, out)
	}
	got := strings.FieldsFunc(list, func(r rune) bool { return strings.ContainsRune(", \"\n", r) })
	var want []string
	for _, f := range faults {
		want = append(want, f.name)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("gpumeter knows %q, the demo %q", got, want)
	}
}

// A port that is taken is told of, and another is found; no two are the same.
func TestFindPorts(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the test is over
	taken := l.Addr().(*net.TCPAddr).Port
	said := new(bytes.Buffer)
	ports, err := findPorts(settings{prometheusAt: taken}, said)
	if err != nil || len(ports) != len(nodes)+2 || slices.Contains(ports, taken) || !strings.Contains(said.String(), "Prometheus can not have its port") {
		t.Errorf("%v, %v, said %q", ports, err, said)
	}
	if slices.Sort(ports); len(slices.Compact(ports)) != len(nodes)+2 {
		t.Errorf("a port twice in %v", ports)
	}
}

// What fails at the start is told with the program's last words, and nothing is left.
func TestStartFails(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	dies := filepath.Join(t.TempDir(), "dies")
	if err := os.WriteFile(dies, []byte("#!/bin/sh\necho I can not\nexit 3\n"), 0o700); err != nil { //nolint:gosec // it is run
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		s    settings
		want string
	}{
		"rules":   {settings{rules: t.TempDir()}, "no rules in "},
		"fault":   {settings{rules: "../../rules/plain", faults: []string{"node-1 x"}}, `no fault "x"`},
		"program": {settings{rules: "../../rules/plain", gpumeter: filepath.Join(dir, "nothing")}, "node-1: "},
		"dies": {settings{rules: "../../rules/plain", gpumeter: gpumeter, alertmanager: dies, prometheus: dies},
			" is gone: exit status 3; the end of its log:\n  I can not"},
	} {
		d, err := start(t.Context(), c.s, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want %s", name, err, c.want)
		}
		for _, one := range d.children() {
			select {
			case <-one.ended:
			default:
				t.Errorf("%s: %s still runs", name, one.name)
			}
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// Whatever ends is told with its name, and who is told to end ends all.
func TestChildDies(t *testing.T) {
	d := &demo{dir: t.TempDir()}
	for _, name := range []string{"one", "other"} {
		c, err := launch(d.dir, name, 1, "/", "sh", "-c", "echo here is "+name+"; exec sleep 600")
		if err != nil {
			t.Fatal(err)
		}
		d.exporters = append(d.exporters, c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan error)
	go func() { gone <- d.wait(ctx) }()
	cancel()
	if err := <-gone; err != nil {
		t.Errorf("told to end: %v", err)
	}
	for deadline := time.Now().Add(30 * time.Second); !strings.Contains(d.exporters[1].lastLines(), "here is other"); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it says nothing")
		}
	}
	if err := d.exporters[1].cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := d.wait(t.Context()); err == nil || !strings.Contains(err.Error(), "other is gone: signal: killed; the end of its log:\n  here is other") {
		t.Errorf("%v; want that the other was killed", err)
	}
	if err := d.stop(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(d.dir); !os.IsNotExist(err) {
		t.Errorf("its files: %v", err)
	}
}
