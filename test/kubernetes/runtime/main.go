// Command runtime gives containers the fake driver as NVIDIA's container runtime gives them the real one: who asks
// for all devices by the variable finds the driver's library mounted, and all else is runc's work.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "runtime:", err)
		os.Exit(1)
	}
}

// run becomes runc, which reads the bundle only then. Beside this program lies the driver's directory.
func run(args []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if at := slices.Index(args, "--bundle"); at >= 0 && at+1 < len(args) && slices.Contains(args, "create") {
		if err := inject(filepath.Join(args[at+1], "config.json"), filepath.Join(filepath.Dir(self), "driver")); err != nil {
			return err
		}
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		return err
	}
	return syscall.Exec(runc, append([]string{"runc"}, args...), os.Environ())
}

// inject mounts the driver where the variable asks for it.
func inject(config, driver string) error {
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	var spec map[string]any
	if err := json.Unmarshal(text, &spec); err != nil {
		return fmt.Errorf("%s: %w", config, err)
	}
	process, is := spec["process"].(map[string]any)
	if !is {
		return fmt.Errorf("%s: no process", config)
	}
	env, _ := process["env"].([]any)
	if !slices.Contains(env, any("NVIDIA_VISIBLE_DEVICES=all")) {
		return nil
	}
	process["env"] = append(env, "FAKENVML_CONFIG=/driver/config")
	mounts, _ := spec["mounts"].([]any)
	for from, to := range map[string]string{driver: "/driver", filepath.Join(driver, "libnvidia-ml.so.1"): "/usr/lib/libnvidia-ml.so.1"} {
		mounts = append(mounts, map[string]any{"source": from, "destination": to, "type": "bind", "options": []string{"rbind", "ro", "nosuid", "nodev"}})
	}
	spec["mounts"] = mounts
	if text, err = json.Marshal(spec); err != nil {
		return err
	}
	return os.WriteFile(config, text, 0o600)
}
