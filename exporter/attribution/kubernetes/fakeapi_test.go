package kubernetes

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// fakeAPI is an API server that speaks list and watch of the pods of one node, over TLS, to a bearer.
type fakeAPI struct {
	t      *testing.T
	server *httptest.Server
	token  string // path of the file
	ca     string

	connections, lists, watches, open atomic.Int64
	denied                            atomic.Bool
	gone                              atomic.Bool // the next watch is told that it is too late

	mu      sync.Mutex
	pods    map[string]*metav1.PartialObjectMetadata
	version int
	history []string             // all events, each of one version more than the last
	first   int                  // the version before the history
	changed map[chan string]bool // of each watch
	asked   []url.Values         // of each question for pods
	node    map[string]string
	ending  chan struct{}     // closed at the end
	other   map[string]string // what other paths answer
	seen    []string          // other paths that were asked for
}

func newFakeAPI(t *testing.T) *fakeAPI { return newFakeAPIAt(t, nil, "127.0.0.1:0") }

// newFakeAPIAt is one at an address, with the certificate and the token of another.
func newFakeAPIAt(t *testing.T, like *fakeAPI, address string) *fakeAPI {
	a := &fakeAPI{t: t, pods: map[string]*metav1.PartialObjectMetadata{}, changed: map[chan string]bool{}, version: 100, other: map[string]string{}, ending: make(chan struct{})}
	if like != nil {
		a.version = like.version + 100
	}
	a.first = a.version
	a.server = httptest.NewUnstartedServer(a)
	must(t, a.server.Listener.Close())
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	a.server.Listener = l
	a.server.EnableHTTP2 = true
	a.server.Config.ErrorLog = log.New(io.Discard, "", 0) // clients that go away are what is tested
	a.server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			a.connections.Add(1)
		}
	}
	a.server.StartTLS()
	t.Cleanup(func() { close(a.ending); a.server.Close() })
	if like != nil {
		a.token, a.ca = like.token, like.ca
		return a
	}
	dir := t.TempDir()
	a.token, a.ca = filepath.Join(dir, "token"), filepath.Join(dir, "ca.crt")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.server.Certificate().Raw})
	for path, raw := range map[string][]byte{a.token: []byte("right"), a.ca: cert} {
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return a
}

func (a *fakeAPI) endpoint() Endpoint {
	return Endpoint{URL: a.server.URL, TokenFile: a.token, CAFile: a.ca}
}

func (a *fakeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if a.denied.Load() || r.Header.Get("Authorization") != "Bearer right" {
		a.status(w, http.StatusForbidden, metav1.StatusReasonForbidden)
		return
	}
	switch {
	case r.URL.Path == "/api/v1/pods" && r.URL.Query().Has("watch"):
		a.note(r)
		a.watch(w, r)
	case r.URL.Path == "/api/v1/pods":
		a.note(r)
		a.list(w, r)
	case r.URL.Path == "/api/v1/nodes/node-1":
		a.mu.Lock()
		defer a.mu.Unlock()
		a.write(w, metav1.PartialObjectMetadata{TypeMeta: partial(""), ObjectMeta: metav1.ObjectMeta{Name: "node-1", Labels: a.node}})
	default:
		a.mu.Lock()
		defer a.mu.Unlock()
		a.seen = append(a.seen, r.URL.Path)
		if body, ok := a.other[r.URL.Path]; ok {
			fmt.Fprint(w, body)
			return
		}
		a.status(w, http.StatusNotFound, metav1.StatusReasonNotFound)
	}
}

func partial(list string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: "meta.k8s.io/v1", Kind: "PartialObjectMetadata" + list}
}

func (a *fakeAPI) note(r *http.Request) {
	if !strings.Contains(r.Header.Get("Accept"), "as=PartialObjectMetadata") {
		a.t.Errorf("whole pods were asked for: %s", r.Header.Get("Accept"))
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.asked = append(a.asked, r.URL.Query())
}

func (a *fakeAPI) write(w http.ResponseWriter, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		a.t.Log(err)
	}
}

func (a *fakeAPI) status(w http.ResponseWriter, code int32, reason metav1.StatusReason) {
	w.WriteHeader(int(code))
	a.write(w, failure(code, reason))
}

func failure(code int32, reason metav1.StatusReason) metav1.Status {
	return metav1.Status{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Code: code, Reason: reason, Message: string(reason)}
}

func (a *fakeAPI) list(w http.ResponseWriter, _ *http.Request) {
	a.lists.Add(1)
	a.mu.Lock()
	defer a.mu.Unlock()
	l := metav1.PartialObjectMetadataList{TypeMeta: partial("List"), ListMeta: metav1.ListMeta{ResourceVersion: fmt.Sprint(a.version)}}
	for _, p := range a.pods {
		l.Items = append(l.Items, *p)
	}
	a.write(w, l)
}

func (a *fakeAPI) watch(w http.ResponseWriter, r *http.Request) {
	if a.gone.Swap(false) {
		a.write(w, map[string]any{"type": "ERROR", "object": failure(http.StatusGone, metav1.StatusReasonExpired)})
		return
	}
	events := make(chan string, 100_000)
	a.mu.Lock()
	var since int
	if _, err := fmt.Sscan(r.URL.Query().Get("resourceVersion"), &since); err != nil {
		a.t.Errorf("a watch from nowhere: %v", r.URL.Query())
	}
	for _, e := range a.history[max(0, since-a.first):] {
		events <- e
	}
	a.changed[events] = true
	a.mu.Unlock()
	a.watches.Add(1)
	a.open.Add(1)
	defer a.open.Add(-1)
	w.WriteHeader(http.StatusOK)
	w.(http.Flusher).Flush()
	for {
		select {
		case e, ok := <-events:
			if !ok {
				return
			}
			fmt.Fprintln(w, e)
			w.(http.Flusher).Flush()
		case <-a.ending:
			return
		case <-r.Context().Done():
			a.mu.Lock()
			delete(a.changed, events)
			a.mu.Unlock()
			return
		}
	}
}

// disconnect ends all watches.
func (a *fakeAPI) disconnect() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.changed {
		close(c)
		delete(a.changed, c)
	}
}

// tell sends an event to all watches, and takes it in.
func (a *fakeAPI) tell(kind string, p metav1.PartialObjectMetadata) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.version++
	p.TypeMeta, p.ResourceVersion = partial(""), fmt.Sprint(a.version)
	switch kind {
	case "ADDED", "MODIFIED":
		a.pods[p.Name] = &p
	case "DELETED":
		delete(a.pods, p.Name)
	}
	raw, err := json.Marshal(map[string]any{"type": kind, "object": p})
	if err != nil {
		a.t.Error(err)
	}
	a.history = append(a.history, string(raw))
	for c := range a.changed {
		c <- string(raw)
	}
}

// meta is the metadata of a pod of a Deployment.
func meta(name string) metav1.PartialObjectMetadata {
	p := corePod(name)
	return metav1.PartialObjectMetadata{ObjectMeta: p.ObjectMeta}
}

// apiTells configures the API server of the fake, and labels.
func apiTells(a *fakeAPI) func(*Config) {
	return func(c *Config) {
		c.Metadata, c.API, c.Node, c.PodLabels = MetadataAPI, a.endpoint(), "node-1", []string{"team"}
	}
}

// quick shortens the pauses of what has not begun to run.
func quick(c *Client) *Client {
	c.providers.pause, c.providers.look = func(int) time.Duration { return time.Millisecond }, time.Millisecond
	for _, p := range c.providers.providers {
		if w, ok := p.(*podWatch); ok {
			w.backoff.Duration, w.backoff.Cap = time.Millisecond, 20*time.Millisecond
		}
	}
	return c
}

// apiClient runs a client that asks the fake alone.
func apiClient(t *testing.T, a *fakeAPI, change ...func(*Config)) *Client {
	t.Helper()
	cfg := Config{Socket: filepath.Join(t.TempDir(), "absent"), Poll: time.Hour, Jitter: -1, Timeout: 2 * time.Second}
	for _, f := range append([]func(*Config){apiTells(a)}, change...) {
		f(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	runs(t, quick(c))
	return c
}
