package kubernetes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	core "k8s.io/api/core/v1"
)

// kubeletHTTPS configures the kubelet's port, and nothing else.
func kubeletHTTPS(t *testing.T, e Endpoint) *Client {
	t.Helper()
	c, err := New(Config{
		Socket: filepath.Join(t.TempDir(), "absent"), KubeletPods: []string{"/absent"}, Poll: time.Hour, Timeout: time.Second, Jitter: -1,
		Metadata: MetadataKubelet, Kubelet: e, PodLabels: []string{"team"},
	})
	if err != nil {
		t.Fatal(err)
	}
	c.providers.pause = func(int) time.Duration { return time.Millisecond }
	for _, p := range c.providers.providers {
		if k, ok := p.(*kubeletPods); ok {
			k.every, k.apart = 2*time.Millisecond, time.Millisecond
		}
	}
	runs(t, c)
	return c
}

func TestKubeletHTTPS(t *testing.T) {
	var answer atomic.Pointer[string]
	var status atomic.Int64
	status.Store(200)
	say := func(s string) { answer.Store(&s) }
	raw, err := json.Marshal(core.PodList{Items: []core.Pod{*corePod("web")}})
	if err != nil {
		t.Fatal(err)
	}
	say(string(raw))
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/pods" || r.Header.Get("Authorization") != "Bearer right" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.WriteHeader(int(status.Load()))
		fmt.Fprint(w, *answer.Load())
	}))
	t.Cleanup(s.Close)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("right"), 0o600); err != nil {
		t.Fatal(err)
	}
	c := kubeletHTTPS(t, Endpoint{URL: s.URL, TokenFile: token, Insecure: true})
	until(t, "the pod is known", func() bool { return known(c, "web") })
	if p, x, ok := c.PodByContainer(cid); !ok || p.Labels["team"] != "a" || p.Workload.Name != "web" || x.Name != "main" || p.Phase != "Running" {
		t.Errorf("%v, %+v, %+v", ok, p, x)
	}
	is := func(r Reason) {
		t.Helper()
		until(t, "the reason is "+string(r), func() bool { return c.Sources()[KubeletHTTPS].Reason == r })
		if !known(c, "web") {
			t.Errorf("%s: what was known is lost", r)
		}
	}
	say(`{"items":[7,{"metadata":{"name":"Bad"}},` + strings.TrimPrefix(string(raw), `{"metadata":{},"items":[`))
	until(t, "items of no sense are counted", func() bool { return c.Counts().Rejected >= 2 })
	is("")
	for code, want := range map[int64]Reason{500: Unavailable, 429: RateLimited, 403: Denied, 404: Unsupported} {
		status.Store(code)
		is(want)
		status.Store(200)
		is("")
	}
	say(string(raw[:len(raw)/2]))
	is(Broken)
	say(string(raw))
	is("")

	c = kubeletHTTPS(t, Endpoint{URL: s.URL, TokenFile: token, CAFile: token})
	until(t, "a certificate nobody vouches for is refused", func() bool { return c.Sources()[KubeletHTTPS].Reason == Unavailable })
	c = kubeletHTTPS(t, Endpoint{URL: s.URL, TokenFile: "/absent", Insecure: true})
	until(t, "there is no token", func() bool { r := c.Sources()[KubeletHTTPS].Reason; return r != Waiting && r != "" })
}

// The token of the pod does not go over the wire in the clear unless somebody says that it may.
func TestNoTokenInTheClear(t *testing.T) {
	var said atomic.Pointer[string]
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got := r.Header.Get("Authorization")
		said.Store(&got)
		fmt.Fprint(w, `{"items":[]}`)
	}))
	t.Cleanup(s.Close)
	cfg, err := Endpoint{URL: s.URL}.config(nil)
	if err != nil || cfg.BearerTokenFile != "" || cfg.CAFile != "" {
		t.Errorf("%+v, %v", cfg, err)
	}
	c := kubeletHTTPS(t, Endpoint{URL: s.URL})
	until(t, "it is read", func() bool { by, _, _ := c.Pods(); return by == KubeletHTTPS })
	if *said.Load() != "" {
		t.Errorf("sent %q", *said.Load())
	}
}

// No more of an answer is read than is sensible, and a watch is not cut off.
func TestLimitedBody(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, strings.Repeat(strings.Repeat(" ", 1023)+"\n", mostBody/1024+1))
	}))
	t.Cleanup(s.Close)
	client := &http.Client{Transport: limited{http.DefaultTransport, nil}}
	for url, fails := range map[string]bool{s.URL: true, s.URL + "/?watch=1": false} {
		answer, err := client.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		_, err = readAll(answer.Body, "answer", 2*mostBody)
		if err := answer.Body.Close(); err != nil {
			t.Error(err)
		}
		if (err != nil) != fails || fails && why(err) != TooLarge {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// A token or certificate file that client-go would wait for is refused before it is used.
func TestEndpoint_RefusesFilesThatAreWaitedFor(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, e := range map[string]Endpoint{
		"token":        {URL: "https://127.0.0.1:1", TokenFile: pipe, CAFile: "/nope"},
		"certificates": {URL: "https://127.0.0.1:1", TokenFile: "/nope", CAFile: pipe},
	} {
		if _, err := e.config(nil); err == nil || !strings.Contains(err.Error(), pipe) || why(err) != Broken {
			t.Errorf("%s: %v", name, err)
		}
	}
}
