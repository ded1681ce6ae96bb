//go:build cgo

package nvml

import (
	"fmt"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// One failed count of the devices is passing; the devices stay as they are.
func TestDevices_FailedCountIsRetried(t *testing.T) {
	for _, c := range []struct {
		ret   nvml.Return
		fails int
		calls int
		err   bool
	}{
		{nvml.ERROR_UNKNOWN, 1, 2, false},
		{nvml.ERROR_UNKNOWN, 2, 3, false},
		{nvml.ERROR_UNKNOWN, 3, 3, true},
		{nvml.ERROR_DRIVER_NOT_LOADED, 1, 1, true},
	} {
		t.Run(fmt.Sprintf("%v %d times", c.ret, c.fails), func(t *testing.T) {
			l := &miscounting{fakeLibrary: newFakeLibrary(answering("GPU-0"))}
			r, err := open(l, config(), newArchive(), everything())
			if err != nil {
				t.Fatal(err)
			}
			defer closed(t, r)
			n := &node{TB: t, reader: r}
			h := n.list()[0]
			l.fails, l.ret, l.calls = c.fails, c.ret, 0
			devices, err := r.Devices(t.Context())
			if (err != nil) != c.err || l.calls != c.calls {
				t.Errorf("%d devices and error %v after %d calls, want error: %v after %d", len(devices), err, l.calls, c.err, c.calls)
			}
			n.read(h)
		})
	}
}

// miscounting is a driver that fails to count its devices some times.
type miscounting struct {
	*fakeLibrary
	fails, calls int
	ret          nvml.Return
}

func (l *miscounting) DeviceGetCount() (int, nvml.Return) {
	if l.calls++; l.calls <= l.fails {
		return 0, l.ret
	}
	return l.fakeLibrary.DeviceGetCount()
}
