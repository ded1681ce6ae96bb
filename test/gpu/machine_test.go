package gpu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// machine is one with GPUs, or one that looks like it.
type machine struct {
	binary string   // gpumeter
	smi    string   // nvidia-smi
	env    []string // of all programs that are run
	load   string   // a command line that makes all GPUs busy; empty: a loader of our own does
	fields []string // of --query-gpu, as far as this nvidia-smi knows them
}

// flags add what is off by default and nvidia-smi can tell.
var flags = []string{
	"--metrics.include", "processes", "--metrics.include", "gpu.clock.application", "--metrics.include", "gpu.capture.*",
	"--process-limit", "1000",
}

// newMachine asks for every field that a row wants.
func newMachine(binary, smi string, env ...string) *machine {
	m := &machine{binary: binary, smi: smi, env: env, fields: []string{"uuid"}}
	for _, w := range rows() {
		if w.csv != "" {
			m.fields = append(m.fields, w.csv)
		}
	}
	return m
}

// driverEnv is the environment in which programs find a driver that the loader does not: gpumeter
// opens the library by its path, nvidia-smi and the programs in C find it and libcuda in its
// directory.
func driverEnv(library string) ([]string, error) {
	if library == "" {
		return nil, nil
	}
	if !strings.ContainsRune(library, filepath.Separator) { // a name, for the loader to find
		return []string{"GPUMETER_NVML_LIBRARY=" + library}, nil
	}
	path, err := filepath.Abs(library)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		return nil, fmt.Errorf("GPUMETER_NVML_LIBRARY: %w", err)
	}
	dirs := filepath.Dir(path)
	if before := os.Getenv("LD_LIBRARY_PATH"); before != "" {
		dirs += string(filepath.ListSeparator) + before
	}
	return []string{"GPUMETER_NVML_LIBRARY=" + path, "LD_LIBRARY_PATH=" + dirs}, nil
}

// builtBinary is the gpumeter to test: the one GPUMETER_BINARY names, else a new one.
func builtBinary(t testing.TB) string {
	t.Helper()
	if path := os.Getenv("GPUMETER_BINARY"); path != "" {
		absolute, err := filepath.Abs(path)
		if err != nil {
			t.Fatal(err)
		}
		return absolute
	}
	binary := filepath.Join(t.TempDir(), "gpumeter")
	build := exec.Command("go", "build", "-o", binary, "./exporter/cmd/gpumeter")
	build.Dir = root(t)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return binary
}

// root is the repository's, from wherever in it the test is run.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("not run inside the repository")
		}
	}
}

// patience is more than a program takes on a machine with many GPUs and no persistence mode.
const patience = 2 * time.Minute

// output runs a program and returns what it prints.
func (m *machine) output(program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env = append(append(os.Environ(), "LC_ALL=C"), m.env...)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return string(out), fmt.Errorf("%s %s: %w\n%s%s", filepath.Base(program), strings.Join(args, " "), err, out, said.String())
	}
	return string(out), nil
}

var refused = regexp.MustCompile(`Field "([^"]+)" is not a valid field to query`)

// told is all that nvidia-smi says now, by UUID.
func (m *machine) told() (map[string]told, error) {
	text, err := m.output(m.smi, "-q", "-x")
	if err != nil {
		return nil, err
	}
	all, err := readXML(text)
	if err != nil {
		return nil, err
	}
	lines, err := m.query()
	if err != nil {
		return nil, err
	}
	for _, answers := range lines {
		if len(answers) != len(m.fields) || all[answers[0]] == nil {
			return nil, fmt.Errorf("nvidia-smi --query-gpu: %d answers for %d fields, of a GPU %q: %q", len(answers), len(m.fields), answers[0], answers)
		}
		all[answers[0]].csvLine(m.fields, answers)
	}
	text, err = m.output(m.smi, "--query-compute-apps=gpu_uuid,pid,used_gpu_memory", "--format=csv,noheader")
	if err != nil {
		return nil, err
	}
	for _, app := range csvLines(text) {
		if len(app) == 3 && all[app[0]] != nil {
			all[app[0]].process("csv:app["+app[1]+"]", app[2])
		}
	}
	return all, nil
}

// query asks --query-gpu, without the fields that this nvidia-smi refuses.
func (m *machine) query() ([][]string, error) {
	for {
		text, err := m.output(m.smi, "--query-gpu="+strings.Join(m.fields, ","), "--format=csv,noheader")
		if err == nil {
			return csvLines(text), nil
		}
		unknown := refused.FindStringSubmatch(err.Error())
		if unknown == nil {
			return nil, err
		}
		var kept []string
		for _, f := range m.fields {
			if f != unknown[1] {
				kept = append(kept, f)
			}
		}
		if len(kept) == len(m.fields) {
			return nil, err
		}
		m.fields = kept
	}
}

// csvLines takes nvidia-smi's CSV apart, which quotes nothing.
func csvLines(text string) (out [][]string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out = append(out, strings.Split(line, ", "))
		}
	}
	return out
}

// once is what gpumeter once says. A driver may take many seconds to initialise.
func (m *machine) once() (page, error) {
	text, err := m.output(m.binary, append([]string{"once", "--format", "prometheus", "--read-timeout", "30s"}, flags...)...)
	if err != nil {
		return nil, err
	}
	return readPage(text)
}

// attempts is how often what moves is looked at again, before it counts as wrong.
const attempts = 3

// compare reads nvidia-smi, a page and nvidia-smi, and again while anything differs.
func (m *machine) compare(t testing.TB, read func() (page, error)) (reading, []finding) {
	t.Helper()
	for try := 1; ; try++ {
		var r reading
		var err error
		if r.before, err = m.told(); err != nil {
			t.Fatal(err)
		}
		if r.page, err = read(); err != nil {
			t.Fatal(err)
		}
		if r.after, err = m.told(); err != nil {
			t.Fatal(err)
		}
		found := r.judge()
		if try == attempts || len(those(found, differs)) == 0 {
			return r, found
		}
	}
}

// those are the findings of a verdict.
func those(all []finding, v verdict) (out []finding) {
	for _, f := range all {
		if f.verdict == v {
			out = append(out, f)
		}
	}
	return out
}

// server is a gpumeter that serves.
type server struct{ url string }

// serve starts one that reads anew at each scrape, until the test is over, and waits until its
// source nvml serves: a driver may take many seconds to initialise.
func (m *machine) serve(t testing.TB) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var logs bytes.Buffer
	cmd := exec.Command(m.binary, append([]string{"serve", "--web.listen-address", address, "--max-age", "1ms"}, flags...)...)
	cmd.Env = append(os.Environ(), m.env...)
	cmd.Stderr = &logs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("gpumeter serve: %v\n%s", err, logs.String())
		}
	})
	s := &server{"http://" + address}
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		text, err := s.get("/readyz")
		if err == nil && nvmlServes(text) {
			return s
		}
		if time.Now().After(deadline) {
			t.Fatalf("source nvml does not serve after %v: %v\n%s", patience, err, text)
		}
	}
}

// nvmlServes reports whether an answer of /readyz has the source nvml serving.
func nvmlServes(readyz string) bool {
	var answer struct {
		Sources []struct{ Name, State string }
	}
	if err := json.Unmarshal([]byte(readyz), &answer); err != nil {
		return false
	}
	for _, source := range answer.Sources {
		if source.Name == "nvml" {
			return source.State == "serving"
		}
	}
	return false
}

// page is what it serves now.
func (s *server) page() (page, error) {
	text, err := s.get("/metrics")
	if err != nil {
		return nil, err
	}
	return readPage(text)
}

func (s *server) get(path string) (text string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		return "", err
	}
	r.Header.Set("Accept", "text/plain")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s: %s", path, response.Status, body)
	}
	return string(body), err
}
