package e2e

import (
	"context"
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/gpumeter/gpumeter/test/expect"
	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// patience is for what comes in well under a second on a machine with nothing else to do.
const patience = time.Minute

// teller lets a command of a story call what takes a test: a failure ends the story alone.
type teller struct {
	testing.TB
	ts *testscript.TestScript
}

func (t teller) Helper()                      {}
func (t teller) Fatal(said ...any)            { t.ts.Fatalf("%s", fmt.Sprint(said...)) }
func (t teller) Fatalf(f string, said ...any) { t.ts.Fatalf(f, said...) }

// buildDriver is the command driver.
func buildDriver(t *testing.T) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		var flags []string
		if len(args) > 0 {
			flags = []string{fakenvml.Driver(args[0])}
		}
		dir := fakenvml.Build(teller{t, ts}, flags...)
		for name, value := range map[string]string{
			"LIBRARY":                  filepath.Join(dir, fakenvml.Library),
			"FAKENVML_CONFIG":          filepath.Join(dir, "config"),
			"FAKENVML_STATS":           filepath.Join(dir, "stats"),
			"GPUMETER_RELIST_INTERVAL": "200ms",
			"GPUMETER_RETRY_INTERVAL":  "200ms",
			"GPUMETER_READ_TIMEOUT":    "1s", // time enough for a GPU that does not hang
			"GPUMETER_MAX_AGE":         "1ms",
		} {
			ts.Setenv(name, value)
		}
	}
}

// tell is the command tell.
func tell(t *testing.T) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		var lines []string
		for _, a := range args {
			if file, is := strings.CutPrefix(a, "@"); is {
				a = strings.TrimSuffix(ts.ReadFile(file), "\n")
			}
			lines = append(lines, a)
		}
		fakenvml.Configure(teller{t, ts}, ts.Getenv("FAKENVML_CONFIG"), lines...)
	}
}

// await is the command await.
func await(ts *testscript.TestScript, _ bool, args []string) {
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		page, err := fetch(args[0], nil)
		ts.Check(err)
		lacks := lacking(ts, page, args[1:])
		if len(lacks) == 0 {
			_, err = ts.Stdout().Write([]byte(page))
			ts.Check(err)
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("%s never has all that is expected:\n%s", args[0], strings.Join(lacks, "\n"))
		}
	}
}

// holds is the command holds.
func holds(ts *testscript.TestScript, _ bool, args []string) {
	if lacks := lacking(ts, ts.ReadFile("stdout"), args); len(lacks) > 0 {
		ts.Fatalf("the page is not as expected:\n%s", strings.Join(lacks, "\n"))
	}
}

func lacking(ts *testscript.TestScript, page string, expected []string) []string {
	lacks, err := expect.Lacking(page, expected...)
	ts.Check(err)
	return lacks
}

// keep is the command keep.
func keep(ts *testscript.TestScript, _ bool, args []string) {
	value, err := expect.Value(ts.ReadFile("stdout"), args[1])
	ts.Check(err)
	ts.Setenv(args[0], strconv.FormatFloat(value, 'f', -1, 64))
}

// scrapes is the command scrapes.
func scrapes(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	timeout, err := time.ParseDuration(args[1])
	ts.Check(err)
	headers := []string{"X-Prometheus-Scrape-Timeout-Seconds", strconv.FormatFloat(timeout.Seconds(), 'f', -1, 64)}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	var all sync.WaitGroup
	faults := make(chan error, n)
	for range n {
		all.Go(func() {
			page, code, err := request(ctx, http.MethodGet, args[2], headers)
			if err == nil && (code != http.StatusOK || !strings.Contains(page, "\ngpu_up{")) {
				err = fmt.Errorf("status %d\n%s", code, page)
			}
			if err != nil {
				faults <- err
			}
		})
	}
	all.Wait()
	close(faults)
	if len(faults) > 0 {
		ts.Fatalf("%d of %d scrapes were not answered within %v; one of them: %v", len(faults), n, timeout, <-faults)
	}
}

// scraper scrapes on and on.
type scraper struct {
	stop  func()
	ended chan error
}

// scraping is the command scraping.
func scraping(ts *testscript.TestScript, _ bool, args []string) {
	ctx, stop := context.WithCancel(context.Background())
	ts.Defer(stop)
	s := ts.Value("scraper").(*scraper)
	s.stop, s.ended = stop, make(chan error, 1)
	go func() {
		for ; ; time.Sleep(5 * time.Millisecond) { // not to take the machine from the other stories
			_, code, err := request(ctx, http.MethodGet, args[0], nil)
			switch {
			case ctx.Err() != nil:
				s.ended <- nil
				return
			case err != nil || code != http.StatusOK:
				s.ended <- fmt.Errorf("%s: status %d: %w", args[0], code, err)
				return
			}
		}
	}()
}

// scraped is the command scraped.
func scraped(ts *testscript.TestScript, _ bool, _ []string) {
	s := ts.Value("scraper").(*scraper)
	s.stop()
	ts.Check(<-s.ended)
}

var statForm = regexp.MustCompile(`^(\S.*\S)\s*(==|!=|>=|<=|>|<)\s*([0-9]+)$`)

// stats is the command stats.
func stats(t *testing.T) func(*testscript.TestScript, bool, []string) {
	return func(ts *testscript.TestScript, _ bool, args []string) {
		waits := args[0] == "-wait"
		if waits {
			args = args[1:]
		}
		for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
			counts := fakenvml.Stats(teller{t, ts}, ts.Getenv("FAKENVML_STATS"))
			var lacks []string
			for _, text := range args {
				parts := statForm.FindStringSubmatch(text)
				if parts == nil {
					ts.Fatalf("%s: not a name of fakenvml.Stats, and a comparison behind it", text)
				}
				wanted, err := strconv.Atoi(parts[3])
				ts.Check(err)
				if got := counts[strings.TrimSpace(parts[1])]; !expect.Holds(float64(got), parts[2], float64(wanted)) {
					lacks = append(lacks, fmt.Sprintf("%s: it is %d", text, got))
				}
			}
			if len(lacks) == 0 {
				return
			}
			if !waits || time.Now().After(deadline) {
				ts.Fatalf("the driver was called otherwise: %s", strings.Join(lacks, ", "))
			}
		}
	}
}
