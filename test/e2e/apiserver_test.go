package e2e

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// asked counts the questions put to the kubelets and API servers of a story.
type asked struct{ kubelet, cluster atomic.Int64 }

// putAsked puts the counts into a variable: `asked NAME`.
func putAsked(ts *testscript.TestScript, _ bool, args []string) {
	n := ts.Value("asked").(*asked)
	ts.Setenv(args[0], fmt.Sprintf("kubelet %d, cluster %d", n.kubelet.Load(), n.cluster.Load()))
}

// object is the metadata of a pod or a node, as the API server tells it.
type object struct {
	Kind       string         `json:"kind"`
	APIVersion string         `json:"apiVersion"`
	Metadata   map[string]any `json:"metadata"`
	Status     map[string]any `json:"status,omitempty"` // as a kubelet tells it
}

func (o object) name() string { return fmt.Sprint(o.Metadata["name"]) }

// ended says whether a pod is one that the list we ask for leaves out.
func (o object) ended() bool {
	return o.Status["phase"] == "Succeeded" || o.Status["phase"] == "Failed"
}

// cluster is an API server that tells of a node and its pods what files say at that time.
type cluster struct {
	dir   string
	asked *asked
}

// serveCluster starts one over TLS: `cluster DIR` tells the metadata of the pods in DIR/pods.json, of
// the node in DIR/node.json and the ResourceSlices in DIR/slices.json, if any, to who shows its token, and
// puts its address, its authority and the token into CLUSTER, CLUSTER_CA and CLUSTER_TOKEN; it is the HTTPS
// port of a kubelet too, which alone tells the phase that a pod has beside its metadata. With DIR/mode
// it is denied (all is forbidden) or away.
func serveCluster(ts *testscript.TestScript, _ bool, args []string) {
	c := cluster{dir: ts.MkAbs(args[0]), asked: ts.Value("asked").(*asked)}
	server := httptest.NewUnstartedServer(c)
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // of connections that end in the middle
	server.StartTLS()
	ts.Defer(func() { server.CloseClientConnections(); server.Close() })
	ca, token := ts.MkAbs("cluster-ca.crt"), ts.MkAbs("cluster-token")
	ts.Check(os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600))
	ts.Check(os.WriteFile(token, []byte("right"), 0o600))
	ts.Setenv("CLUSTER", server.URL)
	ts.Setenv("CLUSTER_CA", ca)
	ts.Setenv("CLUSTER_TOKEN", token)
}

// is says whether the server is denied or away now.
func (c cluster) is(mode string) bool {
	text, err := os.ReadFile(filepath.Join(c.dir, "mode"))
	return err == nil && strings.TrimSpace(string(text)) == mode
}

func (c cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.asked.cluster.Add(1)
	if c.is("away") {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case c.is("denied") || r.Header.Get("Authorization") != "Bearer right":
		refuse(w, http.StatusForbidden, "Forbidden")
	case r.URL.Path == "/api/v1/nodes/node-1":
		var node map[string]any
		c.read("node.json", &node)
		reply(w, object{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1", Metadata: node})
	case r.URL.Path == "/pods": // a kubelet's
		pods, _ := c.pods()
		reply(w, map[string]any{"kind": "PodList", "apiVersion": "v1", "items": pods})
	case r.URL.Path == "/apis/resource.k8s.io/v1/resourceslices" && r.URL.Query().Get("fieldSelector") == "spec.nodeName=node-1":
		var all []any
		if c.read("slices.json", &all) == nil {
			refuse(w, http.StatusNotFound, "NotFound")
			return
		}
		reply(w, map[string]any{"kind": "ResourceSliceList", "apiVersion": "resource.k8s.io/v1", "items": all})
	case r.URL.Path != "/api/v1/pods" || !strings.HasPrefix(r.URL.Query().Get("fieldSelector"), "spec.nodeName=node-1,"):
		refuse(w, http.StatusNotFound, "NotFound")
	case r.URL.Query().Has("watch") && r.URL.Query().Get("resourceVersion") != listed:
		refuse(w, http.StatusGone, "Expired") // it may have missed something
	case r.URL.Query().Has("watch"):
		c.watch(w, r)
	default:
		pods, _ := c.pods()
		pods = slices.DeleteFunc(pods, object.ended)
		list := map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": map[string]string{"resourceVersion": listed}, "items": pods}
		reply(w, list)
	}
}

// listed is the version of every list; a watch begins after one.
const listed = "1"

// watch tells what changes; at first all pods there are come again.
func (c cluster) watch(w http.ResponseWriter, r *http.Request) {
	said, known := []byte(nil), map[string]object{}
	for version := 1; r.Context().Err() == nil; time.Sleep(20 * time.Millisecond) {
		if c.is("away") || c.is("denied") {
			panic(http.ErrAbortHandler)
		}
		pods, text := c.pods()
		if said != nil && bytes.Equal(said, text) {
			continue
		}
		now := map[string]object{}
		for _, p := range slices.DeleteFunc(pods, object.ended) {
			now[p.name()] = p
			version++
			p.Metadata["resourceVersion"] = fmt.Sprint(version)
			reply(w, map[string]any{"type": "MODIFIED", "object": p})
		}
		for name, p := range known {
			if _, there := now[name]; !there {
				reply(w, map[string]any{"type": "DELETED", "object": p})
			}
		}
		said, known = text, now
		w.(http.Flusher).Flush()
	}
}

func (c cluster) pods() (out []object, text []byte) {
	var all []map[string]any
	text = c.read("pods.json", &all)
	for _, m := range all {
		p := object{Kind: "PartialObjectMetadata", APIVersion: "meta.k8s.io/v1", Metadata: m}
		if phase, told := m["phase"]; told {
			p.Status = map[string]any{"phase": phase}
			delete(m, "phase")
		}
		out = append(out, p)
	}
	return out, text
}

// read reads a file; one that is just being written is read again.
func (c cluster) read(name string, into any) []byte {
	for {
		text, err := os.ReadFile(filepath.Join(c.dir, name))
		if errors.Is(err, fs.ErrNotExist) || json.Unmarshal(text, into) == nil {
			return text
		}
		time.Sleep(time.Millisecond)
	}
}

func reply(w io.Writer, v any) {
	if json.NewEncoder(w).Encode(v) != nil {
		panic(http.ErrAbortHandler) // whoever asked has gone
	}
}

func refuse(w http.ResponseWriter, code int, reason string) {
	w.WriteHeader(code)
	reply(w, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason})
}

// The server tells of itself what stories lean on.
func TestCluster(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "pods.json"), []byte(`[{"name": "p"}]`), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewTLSServer(cluster{dir, new(asked)})
	defer server.Close()
	get := func(token string) string {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/v1/pods?fieldSelector=spec.nodeName=node-1,x", nil)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := server.Client().Do(request)
		if err != nil {
			return "away"
		}
		defer answer.Body.Close() //nolint:errcheck // it was only read
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Status + " " + string(body)
	}
	for _, c := range []struct{ mode, token, want string }{
		{"", "right", `200 OK.*"name":"p"`}, {"", "wrong", "403"}, {"denied\n", "right", "403"}, {"away\n", "right", "away"},
	} {
		if err := os.WriteFile(filepath.Join(dir, "mode"), []byte(c.mode), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := get(c.token); !regexp.MustCompile(c.want).MatchString(got) {
			t.Errorf("%q, %s: got %s, want %s", c.mode, c.token, got, c.want)
		}
	}
}
