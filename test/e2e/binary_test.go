// Package e2e runs the built binary as a user would.
package e2e

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// binary is the gpumeter that TestMain built.
var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	if p := flag.Lookup("test.parallel"); p.Value.String() == p.DefValue && runtime.GOMAXPROCS(0) < 8 {
		p.Value.Set("8") //nolint:errcheck // it is a number; stories wait far more than they work
	}
	os.Exit(func() int {
		dir, err := os.MkdirTemp("", "gpumeter")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir) //nolint:errcheck // a temporary directory
		binary = filepath.Join(dir, "gpumeter")
		build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w -X main.version=1.2.3-test", "-o", binary, "../../exporter/cmd/gpumeter")
		if out, err := build.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
			return 1
		}
		return m.Run()
	}())
}

// exporter is a running gpumeter.
type exporter struct {
	url  string
	cmd  *exec.Cmd
	logs *strings.Builder

	stopping bool // the test has told it to stop
}

// serve starts gpumeter serve on a free port with these arguments and waits until it answers.
func serve(t testing.TB, env []string, args ...string) *exporter {
	t.Helper()
	address := freeAddress(t)
	e := &exporter{url: "http://" + address, logs: new(strings.Builder)}
	e.cmd = exec.Command(binary, append([]string{"serve", "--web.listen-address", address}, args...)...)
	e.cmd.Env = append(append(os.Environ(), "GPUMETER_HOST_SYS="+t.TempDir(), "STATE_DIRECTORY="), env...) // nothing of this machine is expected
	e.cmd.Stderr = e.logs
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !e.stopping { // a second signal would end it at once
			e.cmd.Process.Signal(os.Interrupt) //nolint:errcheck // Wait tells
		}
		kill := time.AfterFunc(10*time.Second, func() { e.cmd.Process.Kill() }) //nolint:errcheck // Wait tells
		defer kill.Stop()
		if err := e.cmd.Wait(); err != nil {
			t.Errorf("gpumeter: %v\n%s", err, e.logs)
		}
		if t.Failed() {
			t.Logf("gpumeter's log:\n%s", e.logs)
		}
	})
	if _, err := fetch(e.url+"/readyz", nil); err != nil {
		t.Fatalf("%v\n%s", err, e.logs)
	}
	return e
}

// get fetches a path, with headers as name, value pairs.
func (e *exporter) get(t testing.TB, path string, headers ...string) string {
	t.Helper()
	body, err := fetch(e.url+path, headers)
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// fetch tries until the server is up and answers 200.
func fetch(url string, headers []string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for {
		body, code, err := request(ctx, http.MethodGet, url, headers)
		if err == nil && code == http.StatusOK {
			return body, nil
		}
		select {
		case <-ctx.Done():
			return "", fmt.Errorf("%s: status %d: %w\n%s", url, code, errors.Join(err, ctx.Err()), body)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func request(ctx context.Context, method, url string, headers []string) (string, int, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return "", 0, err
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return "", 0, err
	}
	defer response.Body.Close() //nolint:errcheck // read to its end
	body, err := io.ReadAll(response.Body)
	return string(body), response.StatusCode, err
}

// freeAddress is a loopback address nobody listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // only its address was wanted
	return l.Addr().String()
}
