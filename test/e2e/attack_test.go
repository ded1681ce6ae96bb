package e2e

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	attackTime   = 4 * time.Second
	attackMemory = 64 // MiB, as in the systemd unit and in the chart
)

const acceptProtobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"

// prometheusAccept is what Prometheus 3 sends.
const prometheusAccept = acceptProtobuf + ";q=0.6,application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.3,*/*;q=0.1"

// attack is what hostile clients do, until the context ends.
type attack struct {
	tls bool
	do  func(ctx context.Context, t *testing.T, address string)
}

// Whatever clients do, within the memory that the unit and the chart give: scrapes and probes of others get
// 200, the process goes on, and it gives back the memory.
func TestAttacks(t *testing.T) {
	for name, a := range map[string]attack{
		"200 protobuf pages not read":         {do: crowd(200, unread("Accept: "+acceptProtobuf))},
		"200 text pages not read":             {do: crowd(200, unread("Accept: text/plain"))},
		"150 gzip pages not read":             {do: crowd(150, unread("Accept: text/plain\r\nAccept-Encoding: gzip"))},
		"60 zstd pages not read":              {do: crowd(60, unread("Accept: text/plain\r\nAccept-Encoding: zstd"))},
		"200 landing pages not read":          {do: crowd(200, unreadPath("/", "Accept: text/html"))},
		"5000 headers a byte at a time":       {do: crowd(5000, slowloris)},
		"400 headers of 1 MB":                 {do: crowd(400, bigHeader)},
		"10000 idle connections":              {do: crowd(10_000, idle)},
		"60 streams on one HTTP/2 connection": {tls: true, do: crowd(1, streams(60))},
		"600 TLS handshakes not finished":     {tls: true, do: crowd(600, idle)},
	} {
		t.Run(name, func(t *testing.T) { survive(t, a) })
	}
}

// serveWithin starts gpumeter within a memory cgroup, and returns what is sent when it ends.
func serveWithin(t *testing.T, group memoryGroup, a attack) (e *exporter, address string, ended chan error) {
	t.Helper()
	address = freeAddress(t)
	scheme := "http"
	args := []string{"serve", "--web.listen-address", address, "--simulate", "h100x8", "--metrics.include", "*"}
	if a.tls {
		scheme, args = "https", append(args, "--web.config.file", tlsConfig(t))
	}
	line := group.command(binary, args...)
	e = &exporter{url: scheme + "://" + address, logs: new(strings.Builder), cmd: exec.Command(line[0], line[1:]...)}
	e.cmd.Env, e.cmd.Stderr = append(os.Environ(), "STATE_DIRECTORY="), e.logs
	if err := e.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended = make(chan error, 1)
	go func() { ended <- e.cmd.Wait() }()
	t.Cleanup(func() {
		e.cmd.Process.Kill() //nolint:errcheck // it may have ended
		<-ended              //nolint:errcheck // it was killed
	})
	return e, address, ended
}

// Go's memory limit is below that of the cgroup, unless it is set.
func TestMemoryLimitFollowsCgroup(t *testing.T) {
	for limit, want := range map[string]string{"": "5.7042534e+07", "32MiB": "3.3554432e+07"} {
		t.Setenv("GOMEMLIMIT", limit)
		e, _, _ := serveWithin(t, newMemoryGroup(t, attackMemory), attack{})
		page, err := fetch(e.url+"/metrics?name[]=go_gc_gomemlimit_bytes", nil)
		if err != nil || !strings.Contains(page, "\ngo_gc_gomemlimit_bytes "+want+"\n") {
			t.Errorf("GOMEMLIMIT=%s: %v\n%s, want %s", limit, err, page, want)
		}
	}
}

func survive(t *testing.T, a attack) {
	group := newMemoryGroup(t, attackMemory)
	e, address, ended := serveWithin(t, group, a)
	honest := newHonest()
	for range 100 { // until it serves, and for a level of memory
		honest.scrape(t.Context(), e.url) //nolint:errcheck // it is starting
		time.Sleep(20 * time.Millisecond)
	}
	if err := honest.scrape(t.Context(), e.url); err != nil {
		t.Fatalf("before the attack: %v\n%s", err, e.logs)
	}
	before := anonymous(t, e.cmd.Process.Pid)

	ctx, stop := context.WithTimeout(t.Context(), attackTime)
	var attackers sync.WaitGroup
	attackers.Go(func() { a.do(ctx, t, address) })
	scrapes := 0
	for ; ctx.Err() == nil; scrapes++ {
		if err := honest.scrape(t.Context(), e.url); err != nil {
			t.Errorf("scrape %d: %v", scrapes, err)
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	stop()
	attackers.Wait()
	select {
	case err := <-ended:
		ended <- err
		t.Fatalf("the process ended: %v\n%s", err, last(e.logs.String()))
	case <-time.After(time.Second): // it still serves
	}
	t.Logf("%d scrapes; most memory of the cgroup %d MiB", scrapes, group.peak())
	if scrapes == 0 {
		t.Error("no scrape during the attack")
	}
	const slack = 10 << 10 // KiB
	after := 0
	for range 600 {
		if after = anonymous(t, e.cmd.Process.Pid); after <= before+slack {
			t.Logf("resident, without files: %d KiB before, %d after", before, after)
			return
		}
		if err := honest.scrape(t.Context(), e.url); err != nil {
			t.Fatalf("after the attack: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("resident, without files: %d KiB before, %d a minute after", before, after)
}

// last returns the end of a log.
func last(log string) string { return log[max(0, len(log)-2000):] }

// honest is a Prometheus server at another address than the attackers.
type honest struct{ client *http.Client }

func newHonest() honest {
	return honest{&http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DialContext:       (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).DialContext,
		TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, // a certificate of the test
		ForceAttemptHTTP2: true,
	}}}
}

// scrape fetches the metrics and the health, and returns what is wrong with either.
func (h honest) scrape(ctx context.Context, url string) error {
	for path, want := range map[string]string{"/metrics": "gpu_up", "/healthz": "ok"} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
		if err != nil {
			return err
		}
		r.Header.Set("Accept", prometheusAccept)
		response, err := h.client.Do(r)
		if err != nil {
			return err
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close() //nolint:errcheck // read
		if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(body), want) {
			return fmt.Errorf("%s: %d, %d bytes: %w", path, response.StatusCode, len(body), err)
		}
	}
	return nil
}

// crowd has n clients do the same, again and again, from 127.0.0.1. Where there are too few file descriptors
// for them, there are fewer.
func crowd(n int, do func(ctx context.Context, address string)) func(context.Context, *testing.T, string) {
	return func(ctx context.Context, t *testing.T, address string) {
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Error(err)
		}
		n := n
		if most := int(min(limit.Cur, 1<<20)) - 500; n > most {
			t.Logf("only %d clients instead of %d: this process may have %d open files", most, n, limit.Cur)
			n = most
		}
		var all sync.WaitGroup
		for range n {
			all.Go(func() {
				for ctx.Err() == nil {
					do(ctx, address)
				}
			})
		}
		all.Wait()
	}
}

// dial connects; nil: it did not go, and a while has passed.
func dial(ctx context.Context, address string) net.Conn {
	small := func(_, _ string, c syscall.RawConn) error {
		return c.Control(func(fd uintptr) { syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) }) //nolint:errcheck // it is larger then
	}
	c, err := (&net.Dialer{Control: small, Timeout: time.Second}).DialContext(ctx, "tcp4", address)
	if err != nil {
		pause(ctx, 50*time.Millisecond)
		return nil
	}
	return c
}

// pause waits.
func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// unread asks for a page and does not read it.
func unread(headers string) func(context.Context, string) { return unreadPath("/metrics", headers) }

func unreadPath(path, headers string) func(context.Context, string) {
	return func(ctx context.Context, address string) {
		if c := dial(ctx, address); c != nil {
			defer c.Close() //nolint:errcheck // it is an attack
			fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n\r\n", path, headers)
			pause(ctx, 2*time.Second)
		}
	}
}

// slowloris sends a header byte by byte.
func slowloris(ctx context.Context, address string) {
	c := dial(ctx, address)
	if c == nil {
		return
	}
	defer c.Close() //nolint:errcheck // it is an attack
	_, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ")
	for ; err == nil && ctx.Err() == nil; _, err = io.WriteString(c, "a") {
		pause(ctx, time.Second)
	}
	pause(ctx, 100*time.Millisecond)
}

// bigHeader sends a header of 1 MB that does not end.
func bigHeader(ctx context.Context, address string) {
	c := dial(ctx, address)
	if c == nil {
		return
	}
	defer c.Close()                           //nolint:errcheck // it is an attack
	c.SetDeadline(time.Now().Add(attackTime)) //nolint:errcheck // it is an attack
	_, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\n")
	line := "X-Big: " + strings.Repeat("a", 10<<10) + "\r\n"
	for i := 0; i < 100 && err == nil && ctx.Err() == nil; i++ {
		_, err = io.WriteString(c, line)
	}
	pause(ctx, 2*time.Second)
}

// idle connects, and says nothing.
func idle(ctx context.Context, address string) {
	if c := dial(ctx, address); c != nil {
		defer c.Close() //nolint:errcheck // it is an attack
		pause(ctx, 3*time.Second)
	}
}

// streams asks for n pages on one HTTP/2 connection, and reads none.
func streams(n int) func(context.Context, string) {
	return func(ctx context.Context, address string) {
		raw := dial(ctx, address)
		if raw == nil {
			return
		}
		c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}) // a certificate of the test
		defer c.Close()                                                                         //nolint:errcheck // it is an attack
		frame := func(kind, flags byte, stream uint32, payload []byte) {
			size := len(payload)
			head := []byte{byte(size >> 16), byte(size >> 8), byte(size), kind, flags, byte(stream >> 24), byte(stream >> 16), byte(stream >> 8), byte(stream)}
			c.Write(append(head, payload...)) //nolint:errcheck // it is an attack
		}
		literal := func(index byte, value string) []byte { // a header of HPACK's static table with another value
			name := []byte{index}
			if index > 14 {
				name = []byte{15, index - 15}
			}
			return append(append(name, byte(len(value))), value...)
		}
		io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")        //nolint:errcheck // it is an attack
		frame(4, 0, 0, []byte{0, 4, 0x7f, 0xff, 0xff, 0xff})         // SETTINGS: each stream may send 2 GB
		frame(8, 0, 0, []byte{0x7f, 0, 0, 0})                        // WINDOW_UPDATE: the connection as well
		get := append([]byte{0x82, 0x87}, literal(4, "/metrics")...) // :method GET, :scheme https, :path
		get = append(append(get, literal(1, "x")...), literal(19, acceptProtobuf)...)
		for i := range n {
			frame(1, 4|1, uint32(2*i+1), get) // HEADERS, which end header and stream
		}
		pause(ctx, 2*time.Second)
	}
}
