package gpu

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// bench is what the tests of the comparison share: programs that are made once.
type bench struct{ gpumeter, smi string }

// newBench builds gpumeter, and the stand-in for nvidia-smi.
func newBench(t *testing.T) bench {
	t.Helper()
	b := bench{smi: filepath.Join(t.TempDir(), "nvidia-smi")}
	files, err := filepath.Glob(filepath.Join("testdata", "smi", "*.c"))
	if err != nil || len(files) == 0 {
		t.Fatal("no sources of the fake nvidia-smi: ", err)
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		t.Skip("no gcc to build the fake nvidia-smi with")
	}
	args := []string{"-std=gnu11", "-O1", "-Wall", "-Werror", "-Wno-deprecated-declarations", "-DNVML_NO_UNVERSIONED_FUNC_DEFS", "-I", fakenvml.Headers(t), "-o", b.smi}
	build := exec.Command(gcc, append(append(args, files...), "-ldl")...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", build.Args, err, out)
	}
	b.gpumeter = builtBinary(t)
	return b
}

// fake is a machine whose driver is our own.
type fake struct {
	*machine
	library, config string
}

// machine has a driver of a generation that does as it is told.
func (b bench) machine(t *testing.T, driver string, lines ...string) fake {
	t.Helper()
	dir := fakenvml.Build(t, fakenvml.Driver(driver))
	f := fake{library: filepath.Join(dir, fakenvml.Library), config: filepath.Join(dir, "config")}
	fakenvml.Configure(t, f.config, lines...)
	env, err := driverEnv(f.library)
	if err != nil {
		t.Fatal(err)
	}
	f.machine = newMachine(b.gpumeter, b.smi, append(env, "FAKENVML_CONFIG="+f.config)...)
	return f
}

// cuda builds the libcuda that runs nothing.
func cuda(t *testing.T) (library string) {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("testdata", "cuda", "cuda.c"))
	if err != nil {
		t.Fatal(err)
	}
	return compiled(t, "libcuda.so.1", string(source), "-shared", "-fPIC")
}
