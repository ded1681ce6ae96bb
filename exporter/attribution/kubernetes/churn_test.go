package kubernetes

import (
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// A thousand pods, each of which lives five minutes, for half an hour: memory stays as it was after the
// first minutes, on one connection and one watch, and at the end all that runs is known and nothing else.
// The clock is not the machine's: a poll is five of its seconds.
func TestChurn(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds of waiting")
	}
	const life, polls, settled = 60, 360, 120 // in polls of 5 s
	pods := 1000
	if raced {
		pods = 120
	}
	k, a := newFakeKubelet(t), newFakeAPI(t)
	var now atomic.Int64
	cfg := Config{
		Socket: k.socket, Checkpoint: filepath.Join(filepath.Dir(k.socket), "checkpoint"), Poll: time.Hour, Timeout: 10 * time.Second,
		Jitter: -1, Now: func() time.Time { return time.Unix(now.Load(), 0) },
	}
	apiTells(a)(&cfg)
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	birth := make([]int, pods) // of the pod at each place
	list := make([]*podresources.PodResources, pods)
	name := func(i int) string { return fmt.Sprintf("pod-%d-%d", i, birth[i]) }
	step := func(n int) {
		a.mu.Lock()
		a.history, a.first = nil, a.version // as etcd is compacted; nobody is behind
		a.mu.Unlock()
		for i := range pods {
			if n > 0 && (n+i)%life != 0 {
				continue
			}
			if n > 0 {
				a.tell("DELETED", metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "ml", Name: name(i), UID: types.UID("uid-" + name(i))}})
			}
			birth[i] = n
			a.tell("ADDED", meta(name(i)))
			list[i] = held("ml", name(i), "main", gpu, fmt.Sprintf("nvidia%d/vgpu%d", i%8, i/8))
		}
		k.holds(append([]*podresources.PodResources{}, list...)...)
	}
	step(0)
	k.start()
	runs(t, quick(c))
	until(t, "it is watched", func() bool { return a.open.Load() == 1 })
	first := uint64(0)
	for n := range polls {
		step(n + 1)
		now.Add(5)
		last := name((life - (n+1)%life) % life)
		until(t, "the newest pod is known", func() bool { return known(c, last) })
		before := c.Holdings()
		nudge(c.poller.hint)
		until(t, "it is polled", func() bool { return c.Holdings() != before })
		if n == settled {
			first = heap()
		}
	}
	if grown := int64(heap()) - int64(first); grown > 1<<20 {
		t.Errorf("%d KiB more after half an hour than after ten minutes, of %d KiB", grown>>10, first>>10)
	} else {
		t.Logf("%d KiB, %d KiB more than after ten minutes", heap()>>10, grown>>10)
	}
	counts := c.Counts()
	if counts.Connections != 1 || k.connections.Load() != 1 || a.watches.Load() != 1 || a.lists.Load() != 1 || k.most.Load() != 1 {
		t.Errorf("%d connections, %d watches, %d lists of pods, %d questions at once", k.connections.Load(), a.watches.Load(), a.lists.Load(), k.most.Load())
	}
	h := c.Holdings()
	if _, n, _ := c.Pods(); n != pods || len(h.All()) != pods || h.Ended != 0 || counts.Rejected != 0 {
		t.Errorf("%d pods known, %d holdings, %+v", n, len(h.All()), counts)
	}
	for _, x := range h.All() {
		if p, ok := c.Holder(&x); !ok || p.Name != x.Pod || p.Workload.Name != "web" {
			t.Fatalf("who holds %s is not known: %+v, %v", x.ID, p, ok)
		}
	}
}

// heap is how much is kept: the least of some looks, since an answer may be read at that moment.
func heap() uint64 {
	least := uint64(math.MaxUint64)
	for range 5 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		least = min(least, m.HeapAlloc)
		time.Sleep(20 * time.Millisecond)
	}
	return least
}
