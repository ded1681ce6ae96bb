package kubernetes

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// endless repeats a text.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		k := copy(p[n:], e.text[e.at:])
		n, e.at = n+k, (e.at+k)%len(e.text)
	}
	return n, nil
}

// allocated returns how many bytes a function allocates, garbage included.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// An answer of the kubelet that is small on the wire and large in memory is refused before it is decoded; one ten
// times as large as that of a large node is not.
func TestCountedCodec(t *testing.T) {
	large := &podresources.ListPodResourcesResponse{}
	for i := range 2500 {
		c := &podresources.ContainerResources{Name: "c", CpuIds: make([]int64, 64), Devices: []*podresources.ContainerDevices{
			{ResourceName: "nvidia.com/gpu", DeviceIds: []string{"GPU-7d2f0a4c-9b1e-4a1c-8d55-0c2c0a6f3b11"}, Topology: &podresources.TopologyInfo{Nodes: []*podresources.NUMANode{{ID: 1}}}},
		}}
		large.PodResources = append(large.PodResources, &podresources.PodResources{Name: fmt.Sprint("pod-", i), Namespace: "ml", Containers: []*podresources.ContainerResources{c, c}})
	}
	raw, err := proto.Marshal(large)
	if err != nil {
		t.Fatal(err)
	}
	codec := newCountedCodec()
	decode := func(raw string) (n int, err error) {
		got := &podresources.ListPodResourcesResponse{}
		err = codec.Unmarshal(mem.BufferSlice{mem.SliceBuffer(raw)}, got)
		return len(got.GetPodResources()), err
	}
	if n, err := decode(string(raw)); n != 2500 || err != nil || len(raw) > mostReceived {
		t.Errorf("ten times a large node: %d pods of %d bytes, %v", n, len(raw), err)
	}
	for name, raw := range map[string]string{
		"2 million empty pods": strings.Repeat("\x0a\x00", mostReceived/2),
		"empty containers":     "\x0a\x80\x80\x80\x01" + strings.Repeat("\x1a\x00", 1<<20),
		"4 million CPUs":       "\x0a\x8a\x80\x80\x02\x1a\x85\x80\x80\x02\x1a\x80\x80\x80\x02" + strings.Repeat("\x01", mostReceived),
	} {
		var err error
		grown := allocated(func() { _, err = decode(raw) })
		if !errors.Is(err, errTooLarge) || !strings.Contains(err.Error(), fmt.Sprint(mostFields)) || grown > 2*mostReceived {
			t.Errorf("%s: %v, with %d bytes allocated", name, err, grown)
		}
		if got := whyCall(err, nil); got != TooLarge {
			t.Errorf("%s: the reason is %s", name, got)
		}
	}
}

// Of a list over HTTP neither one item nor all of them cost more memory than there is.
func TestItems_AreLimited(t *testing.T) {
	head := strings.NewReader(`{"kind":"PodList","items":[`)
	for name, body := range map[string]io.Reader{
		"an item of no end":  io.MultiReader(head, strings.NewReader(`{"metadata":{"name":"`), &endless{text: "x"}),
		"another field":      io.MultiReader(strings.NewReader(`{"metadata":"`), &endless{text: "x"}),
		"a list of no end":   io.MultiReader(strings.NewReader(`{"items":[`), &endless{text: `{"metadata":{}},`}),
		"nothing but spaces": &endless{text: " "},
	} {
		var err error
		n := 0
		grown := allocated(func() {
			err = items(&limitedBody{io.NopCloser(body), mostBody}, func(json.RawMessage) { n++ })
		})
		if why(err) != TooLarge || !strings.Contains(err.Error(), "bytes") {
			t.Errorf("%s: %v", name, err)
		}
		if grown > 6*mostBody { // of which nearly all is garbage at once
			t.Errorf("%s: %d bytes are allocated for %d items", name, grown, n)
		}
	}
}

// A checkpoint that is small in the file and large in memory is refused, or costs its entries.
func TestParseCheckpoint_IsLimited(t *testing.T) {
	entry := func(ids string) string {
		return `{"PodUID":"u","ContainerName":"c","ResourceName":"a/b","DeviceIDs":{"-1":[` + ids + `]}}`
	}
	many := func(text string, bytes int) string {
		return strings.TrimSuffix(strings.Repeat(text+",", bytes/(len(text)+1)), ",")
	}
	for name, c := range map[string]struct {
		raw   string
		fails bool
	}{
		"entries of no sense": {`{"Data":{"PodDeviceEntries":[` + many("0", 1<<20) + `]}}`, false},
		"many IDs":            {`{"Data":{"PodDeviceEntries":[` + entry(many(`""`, mostCheckpoint-200)) + `]}}`, false},
		"many entries":        {`{"Data":{"PodDeviceEntries":[` + many(entry(`"x"`), mostCheckpoint-200) + `]}}`, true},
		"many offers":         {`{"Data":{"RegisteredDevices":{"a/b":[` + many(`""`, mostCheckpoint-200) + `]}}}`, false},
		"another field":       {`{"Data":{"Other":[` + many(`{}`, mostCheckpoint-200) + `]}}`, false},
	} {
		entries, _, broken, err := parseCheckpoint([]byte(c.raw))
		if (err != nil) != c.fails || c.fails && !errors.Is(err, errTooLarge) {
			t.Errorf("%s: %d entries, %d broken, %v", name, len(entries), broken, err)
		}
	}
	l := ledgerOf(t)
	write(t, l.file.path, `{"Data":{"PodDeviceEntries":[`+many(entry(`"x"`), mostCheckpoint-200)+`]}}`)
	l.read(t.Context())
	if got := l.health.get(); got.Reason != TooLarge || !strings.Contains(got.Err, fmt.Sprint(mostHoldings)) {
		t.Errorf("%+v", got)
	}
}

// A watch goes on for ever with events of a usual size, and ends with one that is too large, in either encoding.
func TestWatchBody(t *testing.T) {
	frame := func(n int) string {
		head := binary.BigEndian.AppendUint32(nil, uint32(n)) //nolint:gosec // it is small
		return string(head) + strings.Repeat("\n", n)
	}
	for name, c := range map[string]struct {
		framed bool
		event  string
		large  bool
	}{
		"lines":             {false, strings.Repeat("x", 100_000) + "\n", false},
		"a line of no end":  {false, "x", true},
		"frames":            {true, frame(100_000), false},
		"a frame too large": {true, frame(1) + "\x7f\xff\xff\xff", true},
		"a frame of 3 MiB":  {true, frame(3 << 20), true},
	} {
		b := &watchBody{ReadCloser: io.NopCloser(&endless{text: c.event}), framed: c.framed}
		n, err := io.CopyN(io.Discard, b, 20<<20)
		if (err != nil) != c.large || c.large && (why(err) != TooLarge || n > mostEvent+1<<20) {
			t.Errorf("%s: %d bytes, %v", name, n, err)
		}
	}
}

// Metadata, which client-go decodes at once, are limited in bytes and in objects.
func TestLimitBody_Metadata(t *testing.T) {
	inner := func(n int) string { return strings.Repeat("\x12\x00", n) } // empty items
	list := inner(mostObjects + 1)
	wire := "k8s\x00\x12" + string(binary.AppendUvarint(nil, uint64(len(list)))) + list
	for name, c := range map[string]struct {
		body io.Reader
		want Reason
	}{
		"JSON":             {strings.NewReader(`{"items":[{"metadata":{"name":"a"}}]}`), ""},
		"protobuf":         {strings.NewReader("k8s\x00\x12\x04" + inner(2)), ""},
		"objects in JSON":  {strings.NewReader(`{"items":[` + strings.Repeat("{},", mostObjects) + `{}]}`), TooLarge},
		"empty items":      {strings.NewReader(wire), TooLarge},
		"one of no end":    {&endless{text: "x"}, TooLarge},
		"opens and closes": {&endless{text: "{}"}, TooLarge},
	} {
		r := &http.Request{URL: &url.URL{Path: "/api/v1/pods"}, Header: http.Header{"Accept": {"application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"}}}
		answer := &http.Response{Body: io.NopCloser(c.body), Header: http.Header{}}
		err := limitBody(r, answer)
		if (err != nil) != (c.want != "") || err != nil && why(err) != c.want {
			t.Errorf("%s: %v, want reason %q", name, err, c.want)
		}
	}
}
