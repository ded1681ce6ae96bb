package kubernetes

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// checkpointOf is the file of a kubelet that gave each pod of the lines, "uid container resource id",
// one id, and offers others.
func checkpointOf(offers map[string][]string, lines ...string) string {
	type entry struct {
		PodUID, ContainerName, ResourceName string
		DeviceIDs                           map[string][]string
		AllocResp                           []byte
	}
	var file struct {
		Data struct {
			PodDeviceEntries  []entry
			RegisteredDevices map[string][]string
		}
		Checksum uint64
	}
	for _, line := range lines {
		f := strings.Fields(line)
		file.Data.PodDeviceEntries = append(file.Data.PodDeviceEntries, entry{f[0], f[1], f[2], map[string][]string{"0": f[3:]}, []byte("anything")})
	}
	file.Data.RegisteredDevices = offers
	raw, err := json.Marshal(file)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// write replaces the file in one step, as the kubelet does.
func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".next", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".next", path); err != nil {
		t.Fatal(err)
	}
}

func TestParseCheckpoint(t *testing.T) {
	for name, c := range map[string]struct {
		raw     string
		entries string
		broken  int
		fails   bool
	}{
		"as it is": {checkpointOf(map[string][]string{gpu: {"GPU-a", "GPU-b"}}, "u1 c nvidia.com/gpu GPU-a GPU-b"), "[{u1 c nvidia.com/gpu [GPU-a GPU-b]}]", 0, false},
		"before 1.20": {`{"Data":{"PodDeviceEntries":[{"PodUID":"u1","ContainerName":"c","ResourceName":"a/b","DeviceIDs":["x"],"AllocResp":""}],"RegisteredDevices":{}},"Checksum":1}`,
			"[{u1 c a/b [x]}]", 0, false},
		"entries of no sense": {`{"Data":{"PodDeviceEntries":[7,{"PodUID":7},{"PodUID":"u1","ContainerName":"C","ResourceName":"a/b","DeviceIDs":{}},
			{"PodUID":"","ContainerName":"c","ResourceName":"a/b","DeviceIDs":{}},{"PodUID":"u","ContainerName":"c","ResourceName":"a b","DeviceIDs":{}},
			{"PodUID":"u","ContainerName":"c","ResourceName":"a/b","DeviceIDs":"x"},{"PodUID":"good","ContainerName":"c","ResourceName":"a/b","DeviceIDs":{"-1":["x"]}}],
			"RegisteredDevices":{"a/b":7,"a b":[]}}}`, "[{good c a/b [x]}]", 8, false},
		"empty":      {"{}", "[]", 0, false},
		"cut short":  {`{"Data":{"PodDevi`, "[]", 0, true},
		"not a file": {"", "[]", 0, true},
	} {
		entries, _, broken, err := parseCheckpoint([]byte(c.raw))
		if got := fmt.Sprint(entries); got != c.entries || broken != c.broken || (err != nil) != c.fails {
			t.Errorf("%s: got %s, %d broken, %v; want %s, %d", name, got, broken, err, c.entries, c.broken)
		}
	}
}

// ledgerOf follows a file that is not there yet.
func ledgerOf(t *testing.T) *ledger {
	n := &counts{}
	log := Config{}
	if err := log.complete(); err != nil {
		t.Fatal(err)
	}
	return newLedger(filepath.Join(t.TempDir(), "checkpoint"), newHealth(Checkpoint, n, time.Now, log.Logger), n)
}

// A pod that came and went between two lists is counted, once.
func TestUnseen(t *testing.T) {
	l := ledgerOf(t)
	read := func(lines ...string) { write(t, l.file.path, checkpointOf(nil, lines...)); l.read(t.Context()) }
	list := func(uids ...string) {
		m := map[string]bool{}
		for _, u := range uids {
			m[u] = true
		}
		l.listed(m)
	}
	is := func(what string, want uint64) {
		t.Helper()
		if got := l.counts.unseen.Load(); got != want {
			t.Errorf("%s: %d unseen, want %d", what, got, want)
		}
	}
	read("old c a/b 1", "runs c a/b 2")
	list("runs")
	list("runs")
	is("what was there before us", 0)
	read("old c a/b 1", "runs c a/b 2", "new c a/b 3")
	list("runs")
	is("too new to be listed", 0)
	list("runs", "new")
	list("runs")
	is("a pod that was listed and is gone", 0)
	read("runs c a/b 2", "short c a/b 3")
	list("runs")
	list("runs")
	is("a pod that is in no list", 1)
	list("runs")
	is("the same pod", 1)
	read("runs c a/b 2", "shorter c a/b 4")
	read("runs c a/b 2")
	is("a pod that left the checkpoint before a list", 2)
	read("short c a/b 3")
	if len(l.known) != 0 || len(l.unseen) != 1 {
		t.Errorf("what has left is still kept: %v, %v", l.known, l.unseen)
	}
}

// The checkpoint tells which pod of a name is meant, and of an id that two claim it tells nothing.
func TestLedgerUID(t *testing.T) {
	l := ledgerOf(t)
	l.read(t.Context())
	if r := l.health.get().Reason; r != Missing {
		t.Errorf("without a file the reason is %q", r)
	}
	write(t, l.file.path, checkpointOf(nil, "u1 c a/b 1", "u1 d a/b 2", "u2 c a/b 9", "u3 c a/b 9"))
	l.read(t.Context())
	for what, c := range map[string][4]string{
		"one":               {"c", "a/b", "1", "u1"},
		"another container": {"d", "a/b", "1", ""},
		"another resource":  {"c", "x/y", "1", ""},
		"claimed by two":    {"c", "a/b", "9", ""},
		"unknown":           {"c", "a/b", "7", ""},
	} {
		if got := l.uid(c[0], c[1], c[2]); got != c[3] {
			t.Errorf("%s: got %q, want %q", what, got, c[3])
		}
	}
	if r := l.health.get(); r.Reason != "" || r.Read.IsZero() {
		t.Errorf("%+v", r)
	}
	write(t, l.file.path, "{")
	l.read(t.Context())
	if l.health.get().Reason != Broken || l.uid("c", "a/b", "1") != "u1" {
		t.Errorf("after a file that makes no sense: %+v, %q", l.health.get(), l.uid("c", "a/b", "1"))
	}
	write(t, l.file.path, strings.Repeat(" ", mostCheckpoint+1))
	l.read(t.Context())
	if l.health.get().Reason != TooLarge {
		t.Errorf("after a huge file: %+v", l.health.get())
	}
}

func TestWatchedFile(t *testing.T) {
	w := watched{path: filepath.Join(t.TempDir(), "f")}
	is := func(what string, want bool) {
		t.Helper()
		if got := w.changed(); got != want {
			t.Errorf("%s: changed %v", what, got)
		}
	}
	is("not there", false)
	write(t, w.path, "a")
	is("there", true)
	is("the same", false)
	write(t, w.path, "a")
	is("replaced by the same", true)
	if err := os.WriteFile(w.path, []byte("ab"), 0o600); err != nil {
		t.Fatal(err)
	}
	is("longer", true)
	if err := os.Chtimes(w.path, time.Now(), time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	is("touched", true)
	must(t, os.Remove(w.path))
	is("gone", true)
	is("still gone", false)
}

// A change of the checkpoint, or of the socket, is a reason to ask at once.
func TestHints(t *testing.T) {
	k := newFakeKubelet(t)
	k.holds(held("dev", "a", "c", gpu, "GPU-"+id1))
	c := clientOf(t, k, func(c *Config) { c.Poll = time.Hour })
	until(t, "the socket is missing", func() bool { return c.Holdings().Reason == Missing })
	k.start()
	until(t, "it is read without waiting for the next poll", func() bool { return len(c.Holdings().All()) == 1 })
	if uid := c.Holdings().All()[0].UID; uid != "" {
		t.Errorf("UID %q without a checkpoint", uid)
	}
	k.holds(held("dev", "b", "c", gpu, "GPU-"+id1))
	write(t, c.cfg.Checkpoint, checkpointOf(nil, "u-b c nvidia.com/gpu GPU-"+id1))
	until(t, "the checkpoint leads to the next list", func() bool { return c.Holdings().All()[0].Pod == "b" })
	if uid := c.Holdings().All()[0].UID; uid != "u-b" {
		t.Errorf("UID %q", uid)
	}
}

// A kubelet that does not say which devices there are has them in its checkpoint.
func TestOffersOfAnOldKubelet(t *testing.T) {
	k := newFakeKubelet(t)
	k.holds(held("dev", "a", "c", gpu, "GPU-"+id1+"::1"))
	path := filepath.Join(filepath.Dir(k.socket), "checkpoint")
	write(t, path, checkpointOf(map[string][]string{gpu: {"GPU-" + id1 + "::0", "GPU-" + id1 + "::1"}}))
	c := clientOf(t, k.start())
	until(t, "it is read", func() bool { return len(c.Holdings().All()) == 1 })
	if n := c.Holdings().All()[0].Replicas; n != 2 {
		t.Errorf("%d replicas", n)
	}
	if f := c.Counts().Failures[PodResources]; f[Unsupported] == 0 || c.Holdings().Reason != "" {
		t.Errorf("%v; an old kubelet is no trouble: %+v", f, c.Holdings().Health)
	}
}

func FuzzCheckpoint(f *testing.F) {
	f.Add(checkpointOf(map[string][]string{gpu: {"a"}}, "u1 c nvidia.com/gpu a"))
	f.Add(`{"Data":{"PodDeviceEntries":[{"DeviceIDs":["x"]}]}}`)
	f.Fuzz(func(t *testing.T, raw string) {
		entries, offers, _, _ := parseCheckpoint([]byte(raw))
		for _, e := range entries {
			if !isUID(e.UID) || !isContainerName(e.Container) || !isResource(e.Resource) {
				t.Errorf("%+v", e)
			}
		}
		for r := range offers {
			if !isResource(r) {
				t.Errorf("%q", r)
			}
		}
	})
}

// A checkpoint that is no regular file is a failure with a reason, and not waited for.
func TestLedger_PipeInPlaceOfTheCheckpoint(t *testing.T) {
	l := ledgerOf(t)
	if err := syscall.Mkfifo(l.file.path, 0o600); err != nil {
		t.Fatal(err)
	}
	l.read(t.Context())
	if h := l.health.get(); h.Reason != Broken || !strings.Contains(h.Err, "named pipe") {
		t.Errorf("%s: %s, want that it is a named pipe", h.Reason, h.Err)
	}
}
