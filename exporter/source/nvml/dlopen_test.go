//go:build cgo

package nvml_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/gpumeter/gpumeter/exporter/metric"
	"github.com/gpumeter/gpumeter/exporter/source"
	"github.com/gpumeter/gpumeter/exporter/source/nvml"
	"github.com/gpumeter/gpumeter/exporter/telemetry"
	"github.com/gpumeter/gpumeter/test/fakenvml"
)

const aloneIn, probeOf = "NVML_TEST_ALONE_IN", "NVML_TEST_PROBE_OF"

// TestMain lets the test's binary be the process that initialises NVML to see what is there.
func TestMain(m *testing.M) {
	library := os.Getenv(probeOf)
	if library == "" {
		os.Exit(m.Run())
	}
	if err := errors.Join(os.Unsetenv("FAKENVML_STATS"), nvml.Probe(library, os.Stdin, os.Stdout)); err != nil {
		os.Exit(1)
	}
}

// driver is a fake libnvidia-ml that a test has to itself.
type driver struct {
	*testing.T
	library string
	file    string
}

// tell says what the driver does from now on.
func (d driver) tell(lines ...string) { fakenvml.Configure(d, d.file, lines...) }

func (d driver) open() source.Reader {
	d.Helper()
	return d.openAs(nvml.Config{})
}

// openAs opens the driver with everything but the library as given.
func (d driver) openAs(cfg nvml.Config) source.Reader {
	d.Helper()
	cfg.Library = d.library
	cfg.Probe = []string{"env", probeOf + "=" + d.library, os.Args[0]}
	r, err := nvml.New(cfg).Open(d.Context())
	if err != nil {
		d.Fatal(err)
	}
	return r
}

func (d driver) close(r source.Reader) {
	d.Helper()
	if err := r.Close(); err != nil {
		d.Error(err)
	}
}

func (d driver) list(r source.Reader) []source.Device {
	d.Helper()
	devices, err := r.Devices(d.Context())
	if err != nil {
		d.Fatal(err)
	}
	return devices
}

func (d driver) read(from source.Device) *telemetry.Device {
	d.Helper()
	out := new(telemetry.Device)
	if why := from.Read(d.Context(), out); why != nil {
		d.Fatalf("%s: %v", from.Identity().UUID, why)
	}
	return out
}

func (d driver) want(what string, got metric.Value, want float64) {
	d.Helper()
	if n, ok := got.Get(); !ok || n != want {
		d.Errorf("%s = %v (%v), want %v", what, n, got.Why(), want)
	}
}

// alone runs a test in a process of its own with a library built for it: a process that has once
// called a library stays with it, and a symbol that is missing ends it.
func alone(t *testing.T, flag string, test func(driver)) {
	if dir := os.Getenv(aloneIn); dir != "" {
		test(driver{t, filepath.Join(dir, fakenvml.Library), os.Getenv("FAKENVML_CONFIG")})
		return
	}
	if testing.Short() {
		t.Skip("starts a process with a driver of its own")
	}
	t.Parallel()
	dir := fakenvml.Build(t, strings.Fields(flag)...)
	config := filepath.Join(dir, "config")
	fakenvml.Configure(t, config, "gpus 2")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	child := exec.CommandContext(ctx, os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v")
	child.Env = append(os.Environ(), aloneIn+"="+dir, "FAKENVML_CONFIG="+config, "FAKENVML_STATS="+filepath.Join(dir, "stats"), "LD_LIBRARY_PATH="+dir)
	said, err := child.CombinedOutput()
	if err != nil || !strings.Contains(string(said), "--- PASS: "+t.Name()) {
		t.Errorf("%v\n%s", err, said)
	}
}

func TestDriver(t *testing.T) {
	alone(t, "", func(d driver) {
		d.tell("gpus 3", "throttle 1 0x4", "load 0 50", "xid 1 79")
		r := d.open()
		devices := d.list(r)
		if len(devices) != 3 {
			d.Fatalf("%d devices, want 3", len(devices))
		}
		want := telemetry.Identity{
			UUID: "GPU-00000000-0000-4000-8000-000000000001", Index: 1, Vendor: "nvidia", Model: "Fake H100",
			PCI: "0000:1b:00.0", Serial: "1650123000001", PartNumber: "000-00000-0000-000", Architecture: "hopper",
			ComputeCapability: "9.0", DriverVersion: "580.65.06", CUDAVersion: "13.0", FirmwareVersion: "96.00.00.00.01", Minor: "1",
		}
		if got := *devices[1].Identity(); got != want {
			d.Errorf("got  %+v\nwant %+v", got, want)
		}

		out := d.read(devices[1])
		d.want("draw", out.Power.Draw, 310)
		d.want("limit", out.Power.Limit[telemetry.PowerLimitTypeEnforced], 650)
		d.want("chip", out.Thermal.Temperature[telemetry.TemperatureSensorCore], 51)
		d.want("memory", out.Thermal.Temperature[telemetry.TemperatureSensorMemory], 61)
		d.want("slowdown", out.Thermal.TemperatureLimit[telemetry.TemperatureLimitTypeSlowdown], 89)
		d.want("margin", out.Thermal.TemperatureMargin, 36)
		d.want("used", out.Memory.Usage, 10<<30)
		d.want("free", out.Memory.Free, 69<<30)
		d.want("reserved", out.Memory.Reserved, 1<<30)
		d.want("SM clock", out.Clock.Frequency[telemetry.ClockTypeSM], 1100e6)
		d.want("utilization", out.Utilization.Utilization, 0.4)
		d.want("OFA", out.Utilization.MediaUtilization[telemetry.MediaEngineOFA], 0.4)
		d.want("corrected", out.ECC.Errors[telemetry.ECCErrorTypeCorrected], 3)
		d.want("power cap", out.Throttle.Reason[telemetry.ThrottleCauseSWPowerCap], 1)
		d.want("throttled by heat", out.Throttle.Time[telemetry.ThrottleCauseSWThermal], 3)

		// Until the listener's first event, each metric but that one has been read.
		for deadline := time.Now().Add(10 * time.Second); len(out.XID.Errors) == 0; out = d.read(devices[1]) {
			if time.Now().After(deadline) {
				d.Fatal("the XID never came")
			}
		}
		if x := out.XID.Errors[0]; x.Labels.Text() != `gpu_xid="79"` {
			d.Errorf("XID %s, want 79", x.Labels.Text())
		}
		if x := d.read(devices[0]).XID.Errors; x == nil || len(x) != 0 {
			d.Errorf("XIDs of a healthy device: %#v, want none", x)
		}

		start := time.Now()
		if err := r.Close(); err != nil || time.Since(start) > 2*time.Second {
			d.Errorf("closed with %v after %v", err, time.Since(start))
		}
		r = d.open()
		if devices := d.list(r); len(devices) != 3 {
			d.Errorf("opened again: %d devices", len(devices))
		}
		d.close(r)
	})
}

// go-nvml allocates a result a call, and we no more than that; no call is made twice.
func TestDriverCost(t *testing.T) {
	alone(t, "", func(d driver) {
		d.tell("gpus 1", "board everything")
		r, err := nvml.New(nvml.Config{Library: d.library, On: byDefault}).Open(d.Context())
		if err != nil {
			d.Fatal(err)
		}
		defer d.close(r)
		gpu := d.list(r)[0]
		for range 4 { // what it can not answer is asked no more
			d.read(gpu)
		}
		stats := os.Getenv("FAKENVML_STATS")
		before := fakenvml.Stats(d, stats)
		d.read(gpu)
		calls := 0
		for name, n := range fakenvml.Stats(d, stats) {
			if n -= before[name]; strings.HasSuffix(name, " 0") {
				calls += n
			}
		}
		into := new(telemetry.Device)
		if n := testing.AllocsPerRun(100, func() { _ = gpu.Read(d.Context(), into) }); n > float64(calls) || calls < 30 {
			d.Errorf("%v allocations a read of %d calls", n, calls)
		}
	})
}

// The counters agree with the gauges they integrate.
func TestDriverIntegrals(t *testing.T) {
	alone(t, "", func(d driver) {
		d.tell("load 0 50")
		r := d.open()
		defer d.close(r)
		gpu := d.list(r)[0]
		number := func(v metric.Value) float64 {
			n, ok := v.Get()
			if !ok {
				d.Fatal(v.Why())
			}
			return n
		}
		start, before := time.Now(), d.read(gpu)
		d.want("busy before anything was seen", before.Utilization.BusyTime, 0)
		time.Sleep(time.Second)
		gpu.(source.Sampled).Sample(d.Context())
		time.Sleep(time.Second)
		after, took := d.read(gpu), time.Since(start).Seconds()
		if busy := number(after.Utilization.BusyTime); busy < 0.5*(took-0.3) || busy > 0.5*(took+0.3) {
			d.Errorf("%v s busy of %v s at 50 percent", busy, took)
		}
		if used := number(after.Power.Energy) - number(before.Power.Energy); used < 300*(took-0.3) || used > 300*(took+0.3) {
			d.Errorf("%v J in %v s at 300 W", used, took)
		}
	})
}

func TestDriverLosesDevice(t *testing.T) {
	alone(t, "", func(d driver) {
		r := d.open()
		defer d.close(r)
		devices := d.list(r)
		d.tell("lost 0", "xid 0 79", "xid 1 31")
		var out telemetry.Device
		if why := devices[0].Read(d.Context(), &out); why != metric.Lost {
			d.Errorf("read of the lost device: %v, want %v", why, metric.Lost)
		}
		d.want("draw of the other", d.read(devices[1]).Power.Draw, 310)
		again := d.list(r)
		if len(again) != 2 || again[0] != devices[0] || again[1] != devices[1] {
			d.Error("listed again, the devices are not the same")
		}
		for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
			_ = devices[0].Read(d.Context(), &out) // lost, and still with its XIDs
			if len(out.XID.Errors) == 1 && len(d.read(devices[1]).XID.Errors) == 1 {
				break
			}
			if time.Now().After(deadline) {
				d.Fatal("one of the XIDs never came")
			}
		}
		// While one is lost, the waits fail; the other is heard all the same.
		d.tell("lost 0", "xid 0 79", "xid 1 31", "xid 1 43")
		for deadline := time.Now().Add(10 * time.Second); len(d.read(devices[1]).XID.Errors) < 2; time.Sleep(5 * time.Millisecond) {
			if time.Now().After(deadline) {
				d.Fatal("the XID of the other never came")
			}
		}
	})
}

func TestDriverHangs(t *testing.T) {
	alone(t, "", func(d driver) {
		r := d.open()
		defer d.close(r)
		devices := d.list(r)
		d.tell("hang nvmlDeviceGetPowerUsage 0")
		done := make(chan *metric.Reason, 1)
		go func() { done <- devices[0].Read(context.Background(), new(telemetry.Device)) }()
		d.want("draw of the other", d.read(devices[1]).Power.Draw, 310)
		if len(d.list(r)) != 2 {
			d.Error("not listed while one hangs")
		}
		select {
		case why := <-done:
			d.Errorf("the hanging device answered: %v", why)
		case <-time.After(50 * time.Millisecond):
		}
		d.tell("gpus 2")
		if why := <-done; why != nil {
			d.Errorf("after hanging: %v", why)
		}
	})
}

// With what a driver lacks never called, the process lives.
func TestDriverOld(t *testing.T) {
	alone(t, fakenvml.OldDriver, func(d driver) {
		d.tell("gpus 1", "driver 450.248.02", "cuda 11000", "throttle 0 0x40")
		r := d.open()
		defer d.close(r)
		gpu := d.list(r)[0]
		out := d.read(gpu)
		if id := gpu.Identity(); id.CUDAVersion != "11.0" || id.DriverVersion != "450.248.02" {
			d.Errorf("%+v", id)
		}
		d.want("memory", out.Memory.Limit, 80<<30)
		d.want("too hot", out.Throttle.Active[telemetry.ThrottleBucketThermal], 1)
		for name, v := range map[string]metric.Value{
			"usage": out.Memory.Usage, "reserved": out.Memory.Reserved, "margin": out.Thermal.TemperatureMargin,
			"jpeg": out.Utilization.MediaUtilization[telemetry.MediaEngineJPEG],
			"time": out.Throttle.Time[telemetry.ThrottleCauseHWThermal],
		} {
			if v.Why() != metric.Unsupported {
				n, _ := v.Get()
				d.Errorf("%s = %v (%v), want %v", name, n, v.Why(), metric.Unsupported)
			}
		}
	})
}

// The numbers of the throttle times are those of the driver that runs.
func TestDriverFields(t *testing.T) {
	for name, c := range map[string]struct {
		driver string
		times  bool
	}{"570": {"570.124.06", false}, "580": {"580.65.06", true}, "590": {"590.44.01", true}} {
		t.Run(name, func(t *testing.T) {
			alone(t, "", func(d driver) {
				d.tell("driver " + c.driver)
				r := d.open()
				defer d.close(r)
				out := d.read(d.list(r)[0])
				d.want("power cap", out.Throttle.Time[telemetry.ThrottleCauseSWPowerCap], 1)
				for i, cause := range []telemetry.ThrottleCause{
					telemetry.ThrottleCauseSWThermal, telemetry.ThrottleCauseHWThermal, telemetry.ThrottleCauseHWPowerBrake,
				} {
					if v := out.Throttle.Time[cause]; c.times {
						d.want(cause.String(), v, float64(3+i))
					} else if v.Why() != metric.Unsupported {
						d.Errorf("%s: %v, want %v", cause, v.Why(), metric.Unsupported)
					}
				}
			})
		})
	}
}

func TestDriverAbsent(t *testing.T) {
	alone(t, "", func(d driver) {
		nowhere := filepath.Join(d.TempDir(), fakenvml.Library)
		if _, err := nvml.New(nvml.Config{Library: nowhere}).Open(d.Context()); !errors.Is(err, source.ErrAbsent) {
			d.Errorf("no library: %v, want %v", err, source.ErrAbsent)
		}
		d.tell("fail nvmlInit_v2 9")
		src := nvml.New(nvml.Config{Library: d.library})
		_, err := src.Open(d.Context())
		if !errors.Is(err, source.ErrAbsent) || !strings.Contains(err.Error(), "Driver Not Loaded") {
			d.Errorf("no driver: %v", err)
		}
		d.tell("fail nvmlInit_v2 999")
		if _, err = src.Open(d.Context()); err == nil || errors.Is(err, source.ErrAbsent) {
			d.Errorf("a broken driver: %v", err)
		}
		d.tell("gpus 1")
		r, err := src.Open(d.Context())
		if err != nil {
			d.Fatal(err)
		}
		defer d.close(r)
		if len(d.list(r)) != 1 {
			d.Error("the driver came, and is not found")
		}
	})
}
