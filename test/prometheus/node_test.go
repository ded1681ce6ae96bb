package prometheus

import (
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
)

// node is an exporter that serves a simulated node.
type node struct {
	testing.TB
	url string
}

// simulate starts one.
func simulate(t testing.TB, what string, flags ...string) *node {
	t.Helper()
	binary := os.Getenv("GPUMETER_BINARY")
	if binary == "" {
		t.Skip("GPUMETER_BINARY does not name a gpumeter; make e2e-prometheus sets it")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	listener.Close() //nolint:errcheck // only its number was wanted
	var said strings.Builder
	command := exec.CommandContext(t.Context(), binary, append([]string{"serve", "--simulate", what, "--web.listen-address", address}, flags...)...)
	command.Stderr = &said
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		command.Process.Kill() //nolint:errcheck // Wait tells
		command.Wait()         //nolint:errcheck // it was killed
		if t.Failed() {
			t.Logf("gpumeter's log:\n%s", &said)
		}
	})
	return &node{t, "http://" + address}
}

// page fetches what there is to scrape, as soon as the exporter answers.
func (n *node) page() string {
	n.Helper()
	for limit := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		text, err := n.get()
		if err == nil {
			return text
		}
		if time.Now().After(limit) {
			n.Fatal(err)
		}
	}
}

func (n *node) get() (text string, err error) {
	request, err := http.NewRequestWithContext(n.Context(), http.MethodGet, n.url+"/metrics", nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, answer.Body.Close()) }()
	body, err := io.ReadAll(answer.Body)
	if err == nil && answer.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", n.url, answer.Status)
	}
	return string(body), err
}

// busy waits until all of them match: the jobs of a simulated node begin within a minute.
func (n *node) busy(patterns ...string) string {
	n.Helper()
	for limit := time.Now().Add(5 * time.Minute); ; time.Sleep(time.Second) {
		text := n.page()
		missing := slices.DeleteFunc(slices.Clone(patterns), func(p string) bool { return regexp.MustCompile(p).MatchString(text) })
		if len(missing) == 0 {
			return text
		}
		if time.Now().After(limit) {
			n.Fatalf("%s is not on the page of the simulated node", missing)
		}
	}
}

// pages are two that lie some seconds apart, in which all who hold a device are told of: their counts are
// told as 0 for a while when they are new.
func (n *node) pages(patterns ...string) machine {
	n.Helper()
	allocated := func(page string) (sum, devices float64) {
		for _, t := range series(n, page) {
			switch t.labels.Get(model.MetricNameLabel) {
			case "gpu_usage_allocated_time_seconds_total":
				sum += t.number
			case "gpu_up":
				devices++
			}
		}
		return sum, devices
	}
	first, at := n.busy(patterns...), time.Now()
	for limit := at.Add(5 * time.Minute); ; {
		time.Sleep(5 * time.Second)
		second, now := n.page(), time.Now()
		before, _ := allocated(first)
		after, devices := allocated(second)
		if told, gap := (after-before)/devices, now.Sub(at).Seconds(); math.Abs(told-gap) < 0.03*gap { // more is told by those that are new no longer
			return machine{first: first, second: second, apart: now.Sub(at), count: 1}
		}
		if first, at = second, now; now.After(limit) {
			n.Fatalf("not all devices are accounted for: %.1f of %v", after-before, devices)
		}
	}
}

// scrape writes the series of a page, with the labels of the target.
func (s *server) scrape(at time.Time, page string, target ...string) {
	s.Helper()
	appender := s.db.Appender(s.Context())
	builder := labels.NewBuilder(labels.EmptyLabels())
	for _, t := range series(s, page) {
		builder.Reset(t.labels)
		for i := 0; i+1 < len(target); i += 2 {
			builder.Set(target[i], target[i+1])
		}
		if _, err := appender.Append(0, builder.Labels(), at.UnixMilli(), t.number); err != nil {
			s.Fatalf("%s: %v", t.labels, err)
		}
	}
	if err := appender.Commit(); err != nil {
		s.Fatal(err)
	}
}

// line is one of a page.
type line struct {
	labels labels.Labels
	number float64
}

// series are those of a page.
func series(t testing.TB, page string) []line {
	t.Helper()
	var out []line
	reader := textparse.NewPromParser([]byte(page), labels.NewSymbolTable(), false)
	for {
		entry, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		if err != nil {
			t.Fatal(err)
		}
		if entry != textparse.EntrySeries {
			continue
		}
		var one line
		reader.Labels(&one.labels)
		_, _, one.number = reader.Series()
		out = append(out, one)
	}
}
