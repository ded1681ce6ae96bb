package kubernetes

import (
	"fmt"
	"testing"

	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// podsOf is a node whose pods hold a share each of eight devices.
func podsOf(n int) (out []*podresources.PodResources) {
	for i := range n {
		out = append(out, held("ml", fmt.Sprintf("pod-%d", i), "main", gpu, fmt.Sprintf("GPU-5b3c1a9e-7d3b-4c58-9f5f-0a1b2c3d4e%02d::%d", i%8, i/8)))
	}
	return out
}

func assemble(pods []*podresources.PodResources) *Holdings {
	a := assembly{uid: func(string, string, string) string { return "" }, valid: map[string]bool{}}
	for _, p := range pods {
		a.pod(p)
	}
	return &Holdings{list: a.list, of: arrange(a.list)}
}

// The budget is 100 ns and no allocation.
func BenchmarkHoldingsOf(b *testing.B) {
	for _, n := range []int{8, 110, 1000} {
		h := assemble(podsOf(n))
		b.Run(fmt.Sprint(n, " pods"), func(b *testing.B) {
			b.ReportAllocs()
			found := 0
			for b.Loop() {
				found = len(h.Of(Key{By: ByUUID, Name: "GPU-5b3c1a9e-7d3b-4c58-9f5f-0a1b2c3d4e03"}))
			}
			if found == 0 {
				b.Errorf("%d found", found)
			}
		})
	}
}

// BenchmarkAssemble is what each poll costs beside the call.
func BenchmarkAssemble(b *testing.B) {
	for _, n := range []int{8, 110, 1000} {
		pods := podsOf(n)
		b.Run(fmt.Sprint(n, " pods"), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				assemble(pods)
			}
		})
	}
}

// The budget is 100 ns and no allocation.
func BenchmarkPod(b *testing.B) {
	tab := newTable(&counts{})
	for i := range 1000 {
		tab.set(pod(fmt.Sprintf("pod-%d", i), fmt.Sprintf("uid-%d", i), "Running"))
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := tab.withUID("uid-777"); !ok {
			b.Fatal("not found")
		}
	}
}

func BenchmarkDecodePod(b *testing.B) {
	raw, err := corePod("web").Marshal()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := decodePod(raw); err != nil {
			b.Fatal(err)
		}
	}
}
