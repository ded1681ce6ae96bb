package packaging

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gpumeter/gpumeter/test/fakenvml"
)

// probe tries from inside the unit's sandbox what it lets, and what it does not.
const probe = `#!/bin/sh
try() { name=$1; shift; if said=$("$@" 2>&1); then echo "$name: yes"; else echo "$name: ${said##*: }"; fi; }
{
	try nvidia0 sh -c ': </dev/nvidia0'
	try other sh -c ': </dev/other'
	try kmsg sh -c ': </dev/kmsg'
	try users cat /proc/1/root/etc/passwd
	try usr touch /usr/x
	try etc touch /etc/x
	try state touch "$STATE_DIRECTORY/x"
	try owner chown 1 "$STATE_DIRECTORY/x"
} >"$STATE_DIRECTORY/probe"
`

// allowed is what it is to say: NVIDIA's device has no driver here, and another's is not to be opened.
var allowed = []string{
	"nvidia0: No such device or address", "other: Operation not permitted", "kmsg: yes", "users: yes",
	"usr: Read-only file system", "etc: Read-only file system", "state: yes", "owner: Operation not permitted",
}

// newer is the package once more, as a later version with other default settings.
func newer(t *testing.T, deb, version string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "package")
	output(t, "dpkg-deb", "-R", deb, dir)
	control := filepath.Join(dir, "DEBIAN/control")
	text, err := os.ReadFile(control)
	if err != nil {
		t.Fatal(err)
	}
	was := strings.TrimSpace(output(t, "dpkg-deb", "-f", deb, "Version"))
	changed := strings.Replace(string(text), "Version: "+was, "Version: "+version, 1)
	settings := filepath.Join(dir, "etc/default/gpumeter")
	for file, text := range map[string]string{control: changed, settings: "# new default settings\n"} {
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(t.TempDir(), "newer.deb")
	output(t, "dpkg-deb", "--root-owner-group", "-Znone", "-b", dir, file)
	return file
}

// write puts a file onto the machine.
func (m *machine) write(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	file := filepath.Join("/proc", m.init, "root", name)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// driver puts the fake driver onto the machine, made for its older C library as the binary is.
func (m *machine) driver(t *testing.T) {
	t.Helper()
	libc := os.Getenv("GLIBC")
	if libc == "" {
		t.Skip("GLIBC does not say where an old C library is; make e2e-packages does")
	}
	libc = filepath.Join(libc, "amd64")
	t.Chdir(root) // where go-nvml's headers are found
	built := fakenvml.Build(t, "--sysroot="+libc, "-B"+libc+"/usr/lib/x86_64-linux-gnu", "-isystem", libc+"/usr/include/x86_64-linux-gnu", "-isystem", libc+"/usr/include")
	library, err := os.ReadFile(filepath.Join(built, fakenvml.Library))
	if err != nil {
		t.Fatal(err)
	}
	m.write(t, "opt/"+fakenvml.Library, string(library), 0o755)
	m.write(t, "opt/fakenvml", "gpus 2\nmodel Fake H200\nload 1 75\n", 0o644)
}

// A package is installed on a machine that runs, is set up, dies, is upgraded, disabled, removed and purged.
func TestLife(t *testing.T) {
	deb := made(t, "gpumeter_*_amd64.deb")
	needs(t, "curl")
	m := boot(t, unpacked(t, deb))
	before := left(t, m.root)
	if libc := m.run(t, "ldd", "--version"); !strings.Contains(libc, "2.31") {
		t.Errorf("an older C library is meant: %s", libc)
	}

	// Without a device or a setting it runs, and says that it has none.
	m.run(t, "apt-get", "install", "-y", "/srv/"+filepath.Base(deb))
	m.until(t, "active", "systemctl", "is-active", "gpumeter")
	m.until(t, "enabled", "systemctl", "is-enabled", "gpumeter")
	m.shows(t, `gpumeter_source_state{gpumeter_source="nvml",gpumeter_source_state="absent"} 1$`)

	// Set up, it reads a driver through the loader, within its sandbox.
	m.driver(t)
	const settings = "GPUMETER_NVML_LIBRARY=/opt/" + fakenvml.Library + "\nFAKENVML_CONFIG=/opt/fakenvml\nGPUMETER_EXPECTED_DEVICES=3\n" +
		"GPUMETER_SLURM_JOB_MAPPING_DIR=/run/gpumeter/jobs\n"
	m.write(t, "etc/default/gpumeter", settings, 0o644)
	m.write(t, "opt/probe", probe, 0o755)
	m.write(t, "etc/systemd/system/gpumeter.service.d/probe.conf", "[Service]\nExecStartPost=/opt/probe\n", 0o644)
	m.run(t, "systemctl", "daemon-reload")
	m.run(t, "systemctl", "restart", "gpumeter")
	m.shows(t, `gpu_up{gpu_uuid="GPU-00000000-0000-4000-8000-000000000001",gpu_index="1",gpu_vendor="nvidia",gpu_model="Fake H200"} 1$`, "gpumeter_devices_expected 3$")
	same(t, "the sandbox", strings.Split(m.run(t, "cat", "/var/lib/gpumeter/probe"), "\n"), allowed)

	// Slurm's prolog says whose a device is, and its epilog that it is nobody's any more.
	job := []string{"env", "SLURM_JOB_ID=7", "SLURM_JOB_GPUS=1", "SLURM_JOB_USER=ada", "SLURM_JOB_ACCOUNT=physics"}
	m.run(t, append(job, "/usr/share/gpumeter/slurm/prolog.sh")...)
	m.shows(t, `gpu_owner_info{gpu_uuid="GPU-.*-000000000001",.*slurm_job_id="7".*slurm_account="physics".*} 1$`)
	m.run(t, append(job, "/usr/share/gpumeter/slurm/epilog.sh")...)
	m.shows(t, `gpu_owner_info{gpu_uuid="GPU-.*-000000000001",gpu_sharing="none"} 1$`)

	// It is started again when it fails.
	m.run(t, "systemctl", "kill", "--signal=KILL", "gpumeter")
	m.until(t, "1", "systemctl", "show", "-p", "NRestarts", "--value", "gpumeter")
	m.until(t, "active", "systemctl", "is-active", "gpumeter")

	// A newer one takes over, and the settings stay.
	pid := m.run(t, "systemctl", "show", "-p", "MainPID", "--value", "gpumeter")
	upgrade := func(version string) {
		t.Helper()
		next := newer(t, deb, version)
		output(t, "cp", next, filepath.Join("/proc", m.init, "root/srv/newer.deb"))
		m.run(t, "apt-get", "install", "-y", "-o", "Dpkg::Options::=--force-confold", "/srv/newer.deb")
	}
	upgrade("900")
	m.until(t, "active", "systemctl", "is-active", "gpumeter")
	if now := m.run(t, "systemctl", "show", "-p", "MainPID", "--value", "gpumeter"); now == pid {
		t.Error("the old program runs on")
	}
	if got := m.run(t, "cat", "/etc/default/gpumeter"); got != strings.TrimSpace(settings) {
		t.Errorf("the settings became %q", got)
	}

	// Who disables it finds it disabled after the next upgrade.
	m.run(t, "systemctl", "disable", "--now", "gpumeter")
	upgrade("901")
	if got := fmt.Sprint(m.says("systemctl", "is-enabled", "gpumeter"), m.says("systemctl", "is-active", "gpumeter")); got != "disabledinactive" {
		t.Errorf("disabled before an upgrade, it is %s", got)
	}
	m.run(t, "systemctl", "enable", "--now", "gpumeter")
	m.shows(t, "gpu_up{")

	m.run(t, "dpkg", "-r", "gpumeter")
	if got := m.says("systemctl", "is-active", "gpumeter"); got != "inactive" {
		t.Errorf("removed, it is %s", got)
	}
	if got := m.run(t, "ls", "/etc/default/gpumeter", "/var/lib/gpumeter/inventory.json"); strings.Count(got, "\n") != 1 {
		t.Errorf("removed, its settings and what it knew are %q", got)
	}
	m.run(t, "rm", "-r", "/etc/systemd/system/gpumeter.service.d") // ours, not the package's
	m.run(t, "dpkg", "-P", "gpumeter")
	same(t, "purged", left(t, m.root), before)
	if got := m.run(t, "find", "/var/lib/systemd/deb-systemd-helper-enabled", "-name", "*gpumeter*"); got != "" {
		t.Errorf("purged, but %s", got)
	}
}

// A package is installed where no systemd runs, as for an image, and taken out again.
func TestImageOfAMachine(t *testing.T) {
	const wants = "etc/systemd/system/multi-user.target.wants/gpumeter.service"
	enabled := func(t *testing.T, root string) {
		t.Helper()
		if to, err := os.Readlink(filepath.Join(root, wants)); err != nil || to != "/usr/lib/systemd/system/gpumeter.service" && to != "/lib/systemd/system/gpumeter.service" {
			t.Errorf("it does not start with the machine: %s, %v", to, err)
		}
		if said := output(t, "chroot", root, "gpumeter", "version"); !strings.HasPrefix(said, "gpumeter v") {
			t.Errorf("version: %s", said)
		}
	}
	t.Run("deb", func(t *testing.T) {
		deb := made(t, "gpumeter_*_amd64.deb")
		root := unpacked(t, deb)
		before := left(t, root)
		output(t, "chroot", root, "dpkg", "-i", "/srv/"+filepath.Base(deb))
		enabled(t, root)
		output(t, "chroot", root, "dpkg", "-P", "gpumeter")
		same(t, "purged", left(t, root), before)
	})
	t.Run("rpm", func(t *testing.T) {
		needs(t, "rpm")
		rpm := made(t, "gpumeter-*.x86_64.rpm")
		root := unpacked(t, rpm)
		args := func(more ...string) []string { return append([]string{"--root", root, "--nodeps"}, more...) } // Debian's glibc is no rpm
		output(t, "rpm", "--root", root, "--initdb")
		for _, dir := range []string{"usr/lib/systemd/system", "usr/share/fish/vendor_completions.d", "usr/share/zsh/site-functions"} {
			if err := os.MkdirAll(filepath.Join(root, dir), 0o755); err != nil { // they belong to other packages
				t.Fatal(err)
			}
		}
		before := left(t, root)
		output(t, "rpm", args("-i", rpm)...)
		enabled(t, root)
		settings := filepath.Join(root, "etc/default/gpumeter")
		if err := os.WriteFile(settings, []byte("GPUMETER_LOG_LEVEL=warn\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		output(t, "rpm", args("-U", "--replacepkgs", rpm)...)
		if text, err := os.ReadFile(settings); err != nil || string(text) != "GPUMETER_LOG_LEVEL=warn\n" {
			t.Errorf("the settings became %q, %v", text, err)
		}
		enabled(t, root)
		output(t, "rpm", args("-e", "gpumeter")...)
		if err := os.Remove(settings + ".rpmsave"); err != nil {
			t.Error("the settings are not kept: ", err)
		}
		same(t, "erased", left(t, root), before)
	})
}
