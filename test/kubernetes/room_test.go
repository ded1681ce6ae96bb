package kubernetes

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The tests run in a room of their own: new namespaces of mounts, processes and the network, made by
// this very program when it starts itself again. Whatever happens in it, the kernel ends all its
// processes with the first, and its mounts, /run, /var/lib and /var/log among them, go with it.
const (
	stage  = "GPUMETER_ROOM" // the variable that says where in that we are
	first  = "first"         // the first process of the room, which prepares it
	inside = "inside"        // the tests
)

// address is the node's and the API server's, which has to be none of loopback. Pods look for the API server at the
// first address of services, which is the node's too here: then nothing need lead there.
const address, services, apiAddress = "10.77.0.1", "10.78.0.0/24", "10.78.0.1"

func TestMain(m *testing.M) {
	var code int
	var err error
	switch os.Getenv(stage) {
	case "":
		if missing() != "" {
			os.Exit(m.Run()) // the tests say so
		}
		code, err = enter()
	case first:
		if err = furnish(); err == nil {
			code, err = attend()
		}
	default:
		code = m.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes:", err)
		code = 1
	}
	os.Exit(code)
}

// programs are what is not built here, and what make e2e-kubernetes builds.
var (
	programs = []string{"etcd", "containerd", "runc", "ctr", "/usr/lib/cni/bridge", "busybox"}
	built    = []string{
		"GPUMETER_BINARY", "GPUMETER_KUBE_APISERVER", "GPUMETER_KUBE_CONTROLLER_MANAGER", "GPUMETER_KUBE_SCHEDULER", "GPUMETER_KUBELET",
		"GPUMETER_KUBECTL", "GPUMETER_HELM", "GPUMETER_HELM4", "GPUMETER_KUBECONFORM", "GPUMETER_OPERATOR_CRDS", "GPUMETER_OPERATOR",
		"GPUMETER_PROMETHEUS",
	}
)

// missing says what this machine lacks to run a kubelet; empty: nothing.
func missing() string {
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		return "a kubelet runs on Linux, as root: this is " + runtime.GOOS + ", and the user is " + fmt.Sprint(os.Geteuid())
	}
	for _, name := range programs {
		if _, err := exec.LookPath(name); err != nil {
			return err.Error()
		}
	}
	for _, name := range built {
		if _, err := os.Stat(os.Getenv(name)); err != nil {
			return name + ", which make e2e-kubernetes sets: " + err.Error()
		}
	}
	groups, err := podGroups()
	if _, is := os.Stat("/var/lib/kubelet"); is == nil && (len(groups) > 0 || err != nil) {
		return fmt.Sprint("this is a node, of another kubelet: ", groups, err)
	}
	try := exec.Command("mount", "-t", "tmpfs", "none", "/run")
	try.SysProcAttr = apart()
	if said, err := try.CombinedOutput(); err != nil {
		return fmt.Sprintf("no right to namespaces and mounts of our own: %v: %v %s", try.Args, err, said)
	}
	return ""
}

// apart are the namespaces of the room. The first process ends with us.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{
		Cloneflags:   unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		Unshareflags: unix.CLONE_NEWNS, // which makes all mounts private
		Pdeathsig:    unix.SIGKILL,
	}
}

// again is this program, at another stage.
func again(at string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), stage+"="+at)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	return cmd
}

// enter runs the tests in the room, and leaves nothing of it behind.
func enter() (code int, err error) {
	runtime.LockOSThread() // Pdeathsig means the thread
	alone, err := lock()
	if err != nil {
		return 1, err
	}
	defer alone.Close()             //nolint:errcheck // the kernel does
	if err := sweep(); err != nil { // one before us may have been killed
		return 1, err
	}
	asked := make(chan os.Signal, 4)
	signal.Notify(asked, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT)
	room := again(first)
	room.SysProcAttr = apart()
	if err := room.Start(); err != nil {
		return 1, fmt.Errorf("enter the room: %w", err)
	}
	go func() {
		for range asked {
			room.Process.Kill() //nolint:errcheck // it may have ended
		}
	}()
	err = room.Wait()
	return room.ProcessState.ExitCode(), errors.Join(notExit(err), sweep())
}

// notExit is nil for a program that ran and said how it went.
func notExit(err error) error {
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		return nil
	}
	return err
}

// lock waits until no other room is open: control groups of pods belong to no namespace.
func lock() (net.Listener, error) {
	for begun := time.Now(); ; time.Sleep(time.Second) {
		l, err := net.Listen("unix", "@gpumeter/test/kubernetes")
		if !errors.Is(err, unix.EADDRINUSE) || time.Since(begun) > 15*time.Minute {
			return l, err
		}
	}
}

// podGroups are the control groups of pods, those above first.
func podGroups() (groups []string, err error) {
	for _, pattern := range []string{"/sys/fs/cgroup/kubepods", "/sys/fs/cgroup/*/kubepods"} {
		roots, err := filepath.Glob(pattern)
		if err != nil {
			return nil, err
		}
		for _, root := range roots {
			err := filepath.WalkDir(root, func(path string, e os.DirEntry, err error) error {
				if err == nil && e.IsDir() {
					groups = append(groups, path)
				}
				return err
			})
			if err != nil {
				return nil, fmt.Errorf("control groups of pods: %w", err)
			}
		}
	}
	return groups, nil
}

// sweep removes the control groups of pods.
func sweep() error {
	groups, failed := podGroups()
	for _, group := range slices.Backward(groups) {
		failed = errors.Join(failed, os.Remove(group))
	}
	return failed
}

// settings are what a kubelet changes of the kernel's, for the whole machine. In the room they are files.
var settings = []string{
	"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops",
	"kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes",
}

// furnish prepares the room.
func furnish() error {
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for _, dir := range []string{"/run", "/var/lib", "/var/log"} {
		if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "mode=755"); err != nil {
			return fmt.Errorf("mount %s: %w", dir, err)
		}
	}
	for _, name := range settings {
		real, ours := filepath.Join("/proc/sys", name), filepath.Join("/run", strings.ReplaceAll(name, "/", "."))
		text, err := os.ReadFile(real)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = os.WriteFile(ours, text, 0o644)
		}
		if err == nil {
			err = unix.Mount(ours, real, "", unix.MS_BIND, "")
		}
		if err != nil {
			return fmt.Errorf("a copy of %s: %w", real, err)
		}
	}
	hosts := filepath.Join("/run", "hosts")
	if err := os.WriteFile(hosts, []byte("127.0.0.1 localhost\n"+address+" "+nodeName+"\n"), 0o644); err != nil {
		return err
	}
	if err := unix.Mount(hosts, "/etc/hosts", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("names of hosts: %w", err)
	}
	return network()
}

// network brings up loopback, with the node's addresses beside its own.
func network() error {
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(s) //nolint:errcheck // nothing was written
	up, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	up.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	err = unix.IoctlIfreq(s, unix.SIOCSIFFLAGS, up)
	for i, address := range []string{address, apiAddress} {
		var more *unix.Ifreq
		if err == nil {
			more, err = unix.NewIfreq(fmt.Sprint("lo:", i+1))
		}
		if err == nil {
			err = more.SetInet4Addr(net.ParseIP(address).To4())
		}
		if err == nil {
			err = unix.IoctlIfreq(s, unix.SIOCSIFADDR, more)
		}
	}
	if err != nil {
		return fmt.Errorf("the room's network: %w", err)
	}
	return nil
}

// attend starts the tests, and buries the orphans of the room until they end.
func attend() (code int, err error) {
	tests := again(inside)
	if err := tests.Start(); err != nil {
		return 1, err
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 1, fmt.Errorf("wait for the tests: %w", err)
		case pid == tests.Process.Pid && status.Signaled():
			return 1, fmt.Errorf("the tests: %v", status.Signal())
		case pid == tests.Process.Pid:
			return status.ExitStatus(), nil
		}
	}
}
