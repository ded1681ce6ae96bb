package kubernetes

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// thief is a server that keeps the headers of the requests that arrive.
func thief(t *testing.T, start func(http.Handler) *httptest.Server) (s *httptest.Server, arrived chan http.Header) {
	arrived = make(chan http.Header, 100)
	s = start(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case arrived <- r.Header:
		default: // one is enough
		}
		w.Header().Set("Content-Type", "application/json")
		w.Write([]byte(`{"kind":"PodList","apiVersion":"v1","items":[]}`)) //nolint:errcheck // the client may have gone
	}))
	t.Cleanup(s.Close)
	return s, arrived
}

// A kubelet or an API server that redirects gets an error; the token goes nowhere else, neither to another
// host nor to http.
func TestRedirect_TokenStaysWithServer(t *testing.T) {
	for name, start := range map[string]func(http.Handler) *httptest.Server{"http": httptest.NewServer, "https": httptest.NewTLSServer} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			other, arrived := thief(t, start)
			target := strings.Replace(other.URL, "127.0.0.1", "localhost", 1)
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				http.Redirect(w, r, target+r.URL.Path, status)
			}))
			t.Cleanup(server.Close)
			dir := t.TempDir()
			e := Endpoint{URL: server.URL, TokenFile: filepath.Join(dir, "token"), CAFile: filepath.Join(dir, "ca.crt")}
			ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}) // httptest's own, also of the other server
			must(t, os.WriteFile(e.TokenFile, []byte("the-token"), 0o600))
			must(t, os.WriteFile(e.CAFile, ca, 0o600))

			client, base, err := e.httpClient(func() {})
			must(t, err)
			_, err = get(t.Context(), client, base+"/pods")
			if err == nil || !strings.Contains(err.Error(), "redirects") || !strings.Contains(err.Error(), target) || why(err) != Broken {
				t.Errorf("%s %d: kubelet: %v", name, status, err)
			}
			c, err := New(Config{Socket: filepath.Join(dir, "absent"), Poll: time.Hour, Jitter: -1, Timeout: 2 * time.Second, Metadata: MetadataAPI, API: e, Node: "node-1"})
			must(t, err)
			runs(t, quick(c))
			until(t, "the API server's redirect is reported", func() bool { return strings.Contains(c.Sources()[APIServer].Err, "redirects") })
			select {
			case h := <-arrived:
				t.Errorf("%s %d: a request arrived elsewhere, Authorization %q", name, status, h.Get("Authorization"))
			default:
			}
		}
	}
}
