//go:build gpu

package gpu

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestGPU is what make test-gpu runs, on a machine with an NVIDIA GPU: no other test reads one.
//
//	GPUMETER_BINARY         the gpumeter to test, else it is built
//	GPUMETER_NVML_LIBRARY   the path of libnvidia-ml.so.1 where the loader does not find it; libcuda.so.1
//	                        is then looked for in the same directory too
//	GPUMETER_CUDA_LIBRARY   the path of libcuda.so.1 where it is in another
//	GPUMETER_GPU_LOAD       a command line that makes all GPUs busy, instead of the loader in load/
//	GPUMETER_GPU_WINDOW     how long counters are watched, twice; 20s where it is not set
func TestGPU(t *testing.T) {
	smi, err := exec.LookPath("nvidia-smi")
	if err == nil {
		_, err = os.Stat("/dev/nvidiactl")
	}
	if err != nil {
		t.Skip("this machine has no NVIDIA GPU that can be read: ", err)
	}
	length := 20 * time.Second
	if text := os.Getenv("GPUMETER_GPU_WINDOW"); text != "" {
		if length, err = time.ParseDuration(text); err != nil {
			t.Fatal(err)
		}
	}
	library := os.Getenv("GPUMETER_NVML_LIBRARY")
	env, err := driverEnv(library)
	if err != nil {
		t.Fatal(err)
	}
	if library == "" {
		library = "libnvidia-ml.so.1"
	}
	m := newMachine(builtBinary(t), smi, env...)
	m.load = os.Getenv("GPUMETER_GPU_LOAD")
	m.examine(t, os.Stdout, library, length)
}
