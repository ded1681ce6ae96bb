package kubernetes

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/wait"
)

func known(c *Client, name string) bool {
	_, ok := c.Pod("ml", name)
	return ok
}

func TestPodWatch(t *testing.T) {
	a := newFakeAPI(t)
	a.tell("ADDED", meta("web"))
	c := apiClient(t, a)
	until(t, "the pod is known", func() bool { return known(c, "web") })
	p, _ := c.Pod("ml", "web")
	if p.UID != "uid-web" || p.Labels["team"] != "a" || len(p.Labels) != 1 || p.Workload != (Owner{"Deployment", "web", "apps"}) || p.Queue != "gold" || !p.Created.Equal(time.Unix(1795219200, 0)) {
		t.Errorf("%+v", p)
	}
	until(t, "it is watched", func() bool { return a.open.Load() == 1 })
	a.tell("ADDED", meta("new"))
	until(t, "a new pod is known", func() bool { return known(c, "new") })
	changed := meta("new")
	changed.Labels = map[string]string{"team": "b"}
	a.tell("MODIFIED", changed)
	until(t, "its new label is known", func() bool { p, _ := c.Pod("ml", "new"); return p.Labels["team"] == "b" })
	before := c.Sources()[APIServer].Read
	time.Sleep(time.Millisecond)
	a.tell("BOOKMARK", metav1.PartialObjectMetadata{})
	until(t, "a bookmark says that all is as before", func() bool { return c.Sources()[APIServer].Read.After(before) })
	a.tell("DELETED", meta("new"))
	until(t, "a pod that is gone is not known", func() bool { return !known(c, "new") })
	if by, n, h := c.Pods(); by != APIServer || n != 1 || h.Reason != "" {
		t.Errorf("%s, %d, %+v", by, n, h)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	const selector = "spec.nodeName=node-1,status.phase!=Succeeded,status.phase!=Failed"
	for i, q := range a.asked {
		if q.Get("fieldSelector") != selector {
			t.Errorf("asked for %q", q.Get("fieldSelector"))
		}
		if rv := q.Get("resourceVersion"); i == 0 && rv != "0" || i == 1 && (rv != "101" || q.Get("allowWatchBookmarks") != "true") || q.Has("sendInitialEvents") {
			t.Errorf("question %d: %v", i, q)
		}
	}
	if a.connections.Load() > 2 || a.lists.Load() != 1 || a.watches.Load() != 1 { // one for pods, one for the node
		t.Errorf("%d connections, %d lists, %d watches", a.connections.Load(), a.lists.Load(), a.watches.Load())
	}
}

// A watch that ends is begun again where it was; one that is too late lists again.
func TestPodWatchDisconnects(t *testing.T) {
	a := newFakeAPI(t)
	a.tell("ADDED", meta("web"))
	c := apiClient(t, a)
	for i := range 3 {
		until(t, "it is watched", func() bool { return a.open.Load() == 1 })
		name := fmt.Sprintf("new-%d", i)
		a.tell("ADDED", meta(name))
		until(t, "a new pod is known", func() bool { return known(c, name) })
		a.disconnect()
		until(t, "it is watched again", func() bool { return a.watches.Load() == int64(i+2) })
	}
	if a.lists.Load() != 1 {
		t.Errorf("%d lists", a.lists.Load())
	}
	until(t, "it is watched", func() bool { return a.open.Load() == 1 })
	before := c.Counts().Events
	a.tell("BOOKMARK", metav1.PartialObjectMetadata{}) // client-go lists anew after a short watch without events
	until(t, "the event is there", func() bool { return c.Counts().Events > before })
	a.gone.Store(true)
	a.disconnect()
	a.mu.Lock()
	delete(a.pods, "web") // nobody is told
	a.mu.Unlock()
	until(t, "the list shows that web is gone", func() bool { return !known(c, "web") })
	until(t, "it is watched again", func() bool { return a.open.Load() == 1 })
	n := c.Counts()
	if n.Failures[APIServer][Expired] != 1 || a.lists.Load() != 2 || !known(c, "new-0") {
		t.Errorf("%d lists, %+v", a.lists.Load(), n)
	}
}

// The API server may be away for an hour: what was known stays, and its age shows.
func TestPodWatchAway(t *testing.T) {
	a := newFakeAPI(t)
	a.tell("ADDED", meta("web"))
	c := apiClient(t, a)
	until(t, "it is watched", func() bool { return a.open.Load() == 1 })
	read := c.Sources()[APIServer].Read
	url := a.server.Listener.Addr().String()
	a.disconnect()
	a.server.CloseClientConnections()
	must(t, a.server.Listener.Close())
	until(t, "the server is away", func() bool { return c.Sources()[APIServer].Reason == Refused })
	until(t, "it is tried again and again", func() bool { return c.Counts().Failures[APIServer][Refused] > 5 })
	by, n, h := c.Pods()
	if !known(c, "web") || by != APIServer || n != 1 || h.Read.Sub(read) > time.Second || h.Since.IsZero() || h.Err == "" {
		t.Errorf("%s, %d, %+v", by, n, h)
	}
	again := newFakeAPIAt(t, a, url)
	again.tell("ADDED", meta("later"))
	until(t, "it is back", func() bool { return known(c, "later") })
	if h := c.Sources()[APIServer]; h.Reason != "" {
		t.Errorf("%+v", h)
	}
}

// A server that was away for long may have forgotten where the watch was. Then it is listed anew. How soon
// that is shows beside a real API server, in test/kubernetes: the pauses of the reflector are its own.
func TestPodWatchExpiredWhileAway(t *testing.T) {
	a := newFakeAPI(t)
	cfg := Config{Socket: filepath.Join(t.TempDir(), "absent"), Poll: time.Hour, Jitter: -1, Timeout: 2 * time.Second}
	apiTells(a)(&cfg)
	c, err := New(cfg)
	must(t, err)
	for _, p := range quick(c).providers.providers {
		if w, ok := p.(*podWatch); ok {
			w.backoff = wait.Backoff{Duration: time.Millisecond, Factor: 2, Steps: 20, Cap: time.Hour}
		}
	}
	runs(t, c)
	until(t, "it is watched", func() bool { return a.open.Load() == 1 })
	a.disconnect()
	a.server.CloseClientConnections()
	must(t, a.server.Listener.Close())
	until(t, "it was tried often", func() bool { return c.Counts().Failures[APIServer][Refused] > 10 }) // 2 s
	again := newFakeAPIAt(t, a, a.server.Listener.Addr().String())
	again.gone.Store(true)
	again.tell("ADDED", meta("later"))
	until(t, "the watch has expired", func() bool { return c.Counts().Failures[APIServer][Expired] == 1 })
	until(t, "it is listed", func() bool { return known(c, "later") })
}

// Without the right, or without a cluster, nobody is asked for long, and the reason says why.
// A balancer that takes connections and drops them is no API server, though client-go takes its silence for
// the end of a watch: what it does not tell of has not ended, and it is asked ever more rarely.
func TestPodWatchHangsUp(t *testing.T) {
	for name, x := range map[string]struct {
		serve func(net.Conn)
	}{
		"at once":    {func(c net.Conn) { _ = c.Close() }},
		"by a reset": {func(c net.Conn) { _ = c.(*net.TCPConn).SetLinger(0); _ = c.Close() }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newFakeAPI(t)
			a.tell("ADDED", meta("web"))
			c := apiClient(t, a)
			until(t, "the pod is known and watched", func() bool { return known(c, "web") && a.open.Load() == 1 })
			address := a.server.Listener.Addr().String()
			must(t, a.server.Listener.Close())
			l, err := net.Listen("tcp", address)
			must(t, err)
			defer l.Close() //nolint:errcheck // the test is over
			var taken atomic.Int64
			go func() {
				for {
					conn, err := l.Accept()
					if err != nil {
						return
					}
					taken.Add(1)
					x.serve(conn)
				}
			}()
			a.server.CloseClientConnections()
			until(t, "the server is away", func() bool { return c.Sources()[APIServer].Reason == Unavailable })
			if !known(c, "web") {
				t.Error("the pod was forgotten")
			}
			before := c.Counts().Asked[APIServer]
			time.Sleep(200 * time.Millisecond)
			if h, asked := c.Sources()[APIServer], c.Counts().Asked[APIServer]-before; h.Reason != Unavailable || asked > 30 || taken.Load() > int64(2*c.Counts().Asked[APIServer]) {
				t.Errorf("%+v; asked %d times in 200 ms at pauses of 20 ms and more, %d connections", h, asked, taken.Load())
			}
		})
	}
}

// Nothing that client-go takes for the end of a watch is left of a connection that fails.
func TestLostConnections(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED}
	for name, c := range map[string]struct {
		err  error
		want Reason
	}{
		"ended":           {io.EOF, Unavailable},
		"ended within":    {fmt.Errorf("read: %w", io.ErrUnexpectedEOF), Unavailable},
		"reset":           {&net.OpError{Op: "read", Err: syscall.ECONNRESET}, Unavailable},
		"late":            {&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded}, Hanging},
		"refused":         {refused, Refused},
		"something other": {errors.New("x509: signed by nobody"), Unavailable},
	} {
		fails := roundTripper(func(*http.Request) (*http.Response, error) { return nil, c.err })
		client := http.Client{Transport: limited{fails, nil}}
		_, err := client.Get("https://10.0.0.1") //nolint:noctx,bodyclose // there is no answer
		if got := why(err); got != c.want || utilnet.IsProbableEOF(err) || utilnet.IsTimeout(err) {
			t.Errorf("%s: %v is %s, want %s", name, err, got, c.want)
		}
		if utilnet.IsConnectionRefused(err) != errors.Is(c.err, refused) {
			t.Errorf("%s: refused, by which the reflector knows that it may watch on: %v", name, err)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestPodWatchDenied(t *testing.T) {
	a := newFakeAPI(t)
	a.denied.Store(true)
	c := apiClient(t, a)
	until(t, "it is denied", func() bool { return c.Sources()[APIServer].Reason == Denied })
	until(t, "the node is denied", func() bool { return c.Sources()[NodeFacts].Reason == Denied })
	a.denied.Store(false)
	a.tell("ADDED", meta("web"))
	until(t, "the right was given", func() bool { return known(c, "web") && a.open.Load() == 1 })

	a.denied.Store(true)
	a.disconnect()
	until(t, "the right was taken", func() bool { return c.Sources()[APIServer].Reason == Denied })
	if !known(c, "web") {
		t.Error("what was known is lost with the right")
	}
	for name, change := range map[string]func(*Config){
		"no name of the node": func(c *Config) { c.Node = "" },
		"not in a cluster":    func(c *Config) { c.API = Endpoint{} },
	} {
		c := apiClient(t, a, change)
		until(t, name+" is the reason", func() bool { return c.Sources()[APIServer].Reason == Unset })
	}
	c = apiClient(t, a, func(c *Config) { c.API.CAFile = "/absent" })
	until(t, "there is no authority", func() bool { return c.Sources()[APIServer].Reason == Missing })
	if err := os.WriteFile(a.token, []byte("wrong"), 0o600); err != nil {
		t.Fatal(err)
	}
	a.denied.Store(false)
	c = apiClient(t, a)
	until(t, "the token is wrong", func() bool { return c.Sources()[APIServer].Reason == Denied })
}

func TestNode(t *testing.T) {
	a := newFakeAPI(t)
	a.node = map[string]string{
		"topology.kubernetes.io/region": "eu-1", "failure-domain.beta.kubernetes.io/region": "old", "topology.kubernetes.io/zone": "eu-1a",
		"beta.kubernetes.io/instance-type": "p5.48xlarge", "other": "x",
	}
	c := apiClient(t, a)
	until(t, "the node is known", func() bool { return c.Node().Zone != "" })
	if got, want := c.Node(), (Node{Name: "node-1", Region: "eu-1", Zone: "eu-1a", InstanceType: "p5.48xlarge"}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if n := c.Counts().Asked[NodeFacts]; n != 1 {
		t.Errorf("asked %d times", n)
	}
	c = apiClient(t, a, func(c *Config) { c.Node = "node-2" })
	until(t, "there is no such node", func() bool { return c.Sources()[NodeFacts].Reason == Missing })
	if got := c.Node(); got != (Node{Name: "node-2"}) {
		t.Errorf("%+v", got)
	}
}

func TestReasons(t *testing.T) {
	for want, err := range map[Reason]error{
		Denied:      fmt.Errorf("x: %w", os.ErrPermission),
		Missing:     fmt.Errorf("x: %w", os.ErrNotExist),
		TooLarge:    fmt.Errorf("x: %w", errTooLarge),
		Hanging:     fmt.Errorf("x: %w", os.ErrDeadlineExceeded),
		RateLimited: &refusal{url: "u", status: http.StatusTooManyRequests},
		Unsupported: &refusal{url: "u", status: http.StatusNotFound},
		Expired:     &refusal{url: "u", status: http.StatusGone},
		Starting:    &Error{PodResources, Starting, errors.New("x")},
		Unavailable: errors.New("anything"),
	} {
		if got := why(err); got != want {
			t.Errorf("%v: got %s, want %s", err, got, want)
		}
	}
	for status, want := range map[int]Reason{401: Denied, 403: Denied, 405: Unsupported, 406: Unsupported, 504: Hanging, 500: Unavailable, 503: Unavailable} {
		if got := why(&refusal{url: "u", status: status}); got != want {
			t.Errorf("%d: got %s, want %s", status, got, want)
		}
	}
	failed := func(code int32, reason metav1.StatusReason) error { s := failure(code, reason); return statusError(&s) }
	for want, err := range map[Reason]error{
		Expired: failed(410, metav1.StatusReasonGone), RateLimited: failed(429, metav1.StatusReasonTooManyRequests),
		Denied: failed(401, metav1.StatusReasonUnauthorized), Missing: failed(404, metav1.StatusReasonNotFound),
		Hanging: failed(504, metav1.StatusReasonTimeout), Unavailable: failed(500, metav1.StatusReasonInternalError),
	} {
		if got := why(err); got != want {
			t.Errorf("%v: got %s, want %s", err, got, want)
		}
	}
	if err := statusError(nil); err == nil {
		t.Error("an event of no sense is no failure")
	}
}

// Each request is counted, and a server that sends Retry-After is not asked again at once.
func TestPodWatch_HonoursRetryAfter(t *testing.T) {
	var requests atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/pods" {
			requests.Add(1)
		}
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusTooManyRequests)
	}))
	defer s.Close()
	a := newFakeAPI(t)
	c := apiClient(t, a, func(c *Config) { c.API = Endpoint{URL: s.URL} })
	until(t, "three requests were sent", func() bool { return requests.Load() >= 3 })
	if tries := c.Counts().Failures[APIServer][RateLimited]; uint64(requests.Load()) > tries+1 {
		t.Errorf("%d requests for %d tries; want one for each", requests.Load(), tries)
	}
	until(t, "each request is counted", func() bool { return c.Counts().Asked[APIServer] == uint64(requests.Load()) })
}

func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"0": 0, "7": 7 * time.Second, "99999999": longestAfter, "-1": 0, "soon": 0, "": 0, "99999999999999999999": 0,
		"Mon, 02 Jan 2006 15:04:05 GMT": 0, "Fri, 31 Dec 9999 23:59:59 GMT": longestAfter,
	} {
		if got := pauseOf(header); got != want {
			t.Errorf("%q: %v, want %v", header, got, want)
		}
		if got := retryAfter(fmt.Errorf("list: %w", &refusal{"u", 429, want})); got != want {
			t.Errorf("%q: %v of the error, want %v", header, got, want)
		}
	}
}
