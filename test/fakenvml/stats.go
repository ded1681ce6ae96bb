package fakenvml

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"testing"
)

// As library/stats.c lays them out.
const (
	maxGPUs = 64
	tallies = 8
)

// row is how often one function was called, of each GPU, of its MIG devices, and of neither.
type row struct {
	Name  [64]byte
	Calls [2*maxGPUs + 1]uint64
}

// Stats reads what a library counts in the file that the environment variable FAKENVML_STATS of its
// process names; it may be read at any time, and is empty before the first call. The keys are
//
//	nvmlDeviceGetUUID          all calls of it
//	nvmlDeviceGetUUID 3        those of GPU 3
//	nvmlDeviceGetUUID 3/mig    those of the MIG devices of GPU 3
//	users                      Init without Shutdown
//	samples                    GPM samples not freed
//	sets                       event sets not freed
func Stats(t testing.TB, file string) map[string]int {
	t.Helper()
	out := map[string]int{}
	raw, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if len(raw) == 0 { // the first call may be about to lay it out
		return out
	}
	var head [tallies]int64
	from := bytes.NewReader(raw)
	if err := binary.Read(from, binary.NativeEndian, &head); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	out["users"], out["samples"], out["sets"] = int(head[0]), int(head[1]), int(head[2])
	for from.Len() > 0 {
		var r row
		if err := binary.Read(from, binary.NativeEndian, &r); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		name := string(bytes.TrimRight(r.Name[:], "\x00"))
		for i, n := range r.Calls {
			if n == 0 {
				continue
			}
			out[name] += int(n)
			switch {
			case i < maxGPUs:
				out[fmt.Sprintf("%s %d", name, i)] += int(n)
			case i < 2*maxGPUs:
				out[fmt.Sprintf("%s %d/mig", name, i-maxGPUs)] += int(n)
			}
		}
	}
	return out
}
