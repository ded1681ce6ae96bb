package fakenvml_test

import (
	"debug/elf"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// A library has the calls its generation of drivers had, and shows no other name to the process.
func TestSymbols(t *testing.T) {
	table, err := os.ReadFile(filepath.Join("testdata", "symbols.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	for _, generation := range fakenvml.Drivers {
		t.Run(generation, func(t *testing.T) {
			t.Parallel()
			driver, err := strconv.Atoi(generation)
			if err != nil {
				t.Fatal(err)
			}
			var want []string
			for line := range strings.Lines(string(table)) {
				name, since, ok := strings.Cut(strings.TrimSpace(line), "\t")
				if !ok {
					continue // a comment
				}
				if first, err := strconv.Atoi(since); err != nil {
					t.Fatal(err)
				} else if first <= driver {
					want = append(want, name)
				}
			}
			got := exported(t, filepath.Join(fakenvml.Build(t, fakenvml.Driver(generation)), fakenvml.Library))
			slices.Sort(want)
			if !slices.Equal(got, want) {
				t.Errorf("only in the library: %v\nonly in the table: %v", without(got, want), without(want, got))
			}
		})
	}
}

// exported are the names a library defines.
func exported(t *testing.T, library string) []string {
	t.Helper()
	f, err := elf.Open(library)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF && elf.ST_BIND(s.Info) == elf.STB_GLOBAL {
			out = append(out, s.Name)
		}
	}
	slices.Sort(out)
	return out
}

func without(all, some []string) []string {
	return slices.DeleteFunc(slices.Clone(all), func(s string) bool { return slices.Contains(some, s) })
}

// probe is the program of testdata/probe, which calls whatever library its environment names.
type probe struct{ program, newest string }

func newProbe(t *testing.T) probe {
	t.Helper()
	newest := fakenvml.Build(t, fakenvml.Driver("610"))
	program := filepath.Join(t.TempDir(), "probe")
	files, err := filepath.Glob(filepath.Join("testdata", "probe", "*.c"))
	if err != nil || len(files) == 0 {
		t.Fatal("no sources of the probe: ", err)
	}
	args := []string{"-O1", "-std=gnu11", "-Wall", "-Werror", "-DNVML_NO_UNVERSIONED_FUNC_DEFS", "-Wno-deprecated-declarations", "-I", fakenvml.Headers(t), "-o", program}
	build := exec.Command("gcc", append(append(args, files...), filepath.Join(newest, fakenvml.Library), "-lm", "-Wl,-z,lazy")...)
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, said)
	}
	return probe{program, newest}
}

// run plays a scenario with the library in dir, and returns what it printed and the file of statistics.
func (p probe) run(t *testing.T, dir, scenario string) (said, stats string, err error) {
	t.Helper()
	own := t.TempDir()
	stats = filepath.Join(own, "stats")
	child := exec.CommandContext(t.Context(), p.program, scenario)
	child.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir, "FAKENVML_CONFIG="+filepath.Join(own, "config"), "FAKENVML_STATS="+stats)
	out, err := child.CombinedOutput()
	return string(out), stats, err
}

func TestScenarios(t *testing.T) {
	p := newProbe(t)
	for _, scenario := range []string{
		"fallen", "enumerated", "unloaded", "partitioned", "repartitioned", "averages", "counters", "overrides", "processes", "events",
		"identities", "delays",
	} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			if said, _, err := p.run(t, p.newest, scenario); err != nil || said != "" {
				t.Errorf("%v\n%s", err, said)
			}
		})
	}
}

// A call costs next to nothing but what the file asks for.
func TestSpeed(t *testing.T) {
	p := newProbe(t)
	said, _, err := p.run(t, p.newest, "speed")
	if err != nil {
		t.Errorf("%v\n%s", err, said)
	}
	t.Log(said)
}

// The ids are those of the driver: what moved has moved, and what came later is refused.
func TestFields(t *testing.T) {
	p := newProbe(t)
	for generation, want := range map[string]string{
		"450": "74=time 147:2 186:2 197:2 230:2 251:2 253:2 256:2 269:2 271:2 274:2 297:2 301:2 400:2",
		"535": "74=time 147=uint 186=uint 197:2 230:2 251:2 253:2 256:2 269:2 271:2 274:2 297:2 301:2 400:2",
		"550": "74=time 147=uint 186=uint 197:3 230:2 251:2 253:2 256:2 269:2 271:2 274:2 297:2 301:2 400:2",
		"570": "74=time 147=uint 186=uint 197=count 230=uint 251=uint 253=uint 256=uint 269:2 271:2 274:2 297:2 301:2 400:2",
		"580": "74=time 147=uint 186=uint 197=count 230=uint 251=time 253=time 256=uint 269=uint 271=uint 274:2 297:2 301:2 400:2",
		"590": "74=time 147=uint 186=uint 197=count 230=uint 251=uint 253=uint 256=uint 269=time 271=time 274=uint 297:2 301:2 400:2",
		"595": "74=time 147=uint 186=uint 197=count 230=uint 251=uint 253=uint 256=uint 269=time 271=time 274=uint 297:3 301=uint 400:2",
		"610": "74=time 147=uint 186=uint 197=count 230=uint 251=uint 253=uint 256=uint 269=time 271=time 274=uint 297:3 301=uint 400:2",
	} {
		t.Run(generation, func(t *testing.T) {
			t.Parallel()
			said, _, err := p.run(t, fakenvml.Build(t, fakenvml.Driver(generation)), "fields")
			if got := strings.TrimSpace(said); err != nil || got != want {
				t.Errorf("%v\ngot  %s\nwant %s", err, got, want)
			}
		})
	}
}

// What boards do not support, of what the captures and the data sheets tell apart.
func TestBoards(t *testing.T) {
	const want = `NVIDIA H200: threshold fan retired
NVIDIA H100 80GB HBM3: threshold fan retired
NVIDIA A100-SXM4-80GB: margin fabric fan gpm average-power tlimit edpp retired
NVIDIA L40S: threshold fabric mig fan gpm memory-temperature edpp nvlink retired
NVIDIA GeForce RTX 4080 SUPER: serial ecc margin fabric mig remapped-rows gpm memory-temperature tlimit remap edpp nvlink retired
NVIDIA GeForce RTX 2080 SUPER: serial ecc sram margin fabric mig remapped-rows gpm memory-temperature average-power tlimit remap edpp nvlink retired
NVIDIA B200: threshold fan retired
NVIDIA GB200: threshold fan retired
Tesla V100-SXM2-32GB: sram margin fabric mig fan remapped-rows gpm average-power tlimit remap edpp
Fake Everything:
`
	p := newProbe(t)
	said, _, err := p.run(t, p.newest, "boards")
	if err != nil || said != want {
		t.Errorf("%v\ngot:\n%s\nwant:\n%s", err, said, want)
	}
}

func TestStats(t *testing.T) {
	p := newProbe(t)
	said, file, err := p.run(t, p.newest, "leaks")
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	got := fakenvml.Stats(t, file)
	for key, want := range map[string]int{
		"users": 2, "samples": 2, "sets": 1, "nvmlInit_v2": 1, "nvmlGpmSampleAlloc": 3, "nvmlDeviceGetUUID": 6, "nvmlDeviceGetUUID 1": 5,
		"nvmlDeviceGetUUID 1/mig": 1, "nvmlDeviceGetUUID 0": 0, "nvmlDeviceGetPowerUsage": 0, "nvmlDeviceGetHandleByIndex_v2": 6,
	} {
		if got[key] != want {
			t.Errorf("%s = %d, want %d", key, got[key], want)
		}
	}
	if never := fakenvml.Stats(t, file+".none"); len(never) != 0 {
		t.Errorf("statistics of no library: %v", never)
	}
}

// A line nobody knows is a mistake in a test, and ends it.
func TestNonsense(t *testing.T) {
	p := newProbe(t)
	said, _, err := p.run(t, p.newest, "nonsense")
	if err == nil || !strings.Contains(said, "what is frobnicate 7?") {
		t.Errorf("%v\n%s", err, said)
	}
}
