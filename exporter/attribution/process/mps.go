package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// The programs of MPS: the control daemon, and the server that it starts for a user and that runs as
// that user.
const (
	mpsControl = "nvidia-cuda-mps-control"
	mpsServer  = "nvidia-cuda-mps-server"
	mpsCommand = "nvidia-cuda-mps" // of both, as much as the kernel keeps of it
)

// isMPS reports whether a process is MPS' server or control daemon. Some drivers charge the work of MPS'
// clients to its server, so no owner pays for what a server does: nobody must be able to pose as one.
//
//   - It must be in a service of the system or in a session of root. A process of a pod, a
//     container, a virtual machine, a job, or a user's session or unit is never one: its work is that owner's.
//   - The executable must be MPS', as the kernel has it (/proc/PID/exe). The command counts only where the
//     kernel refuses to name the executable of a process of root.
//   - It must run as root, or be a child of root's control daemon in the same control group.
//
// The driver's list of MPS processes is of no help: it has the clients.
func (l *Locator) isMPS(pid int64, p *Process) bool {
	if !strings.HasPrefix(p.Command, mpsCommand) || !p.ofMachine() {
		return false
	}
	if l.ofRoot(pid) {
		program, err := l.executable(pid)
		return errors.Is(err, fs.ErrPermission) || program == mpsServer || program == mpsControl
	}
	if program, err := l.executable(pid); err != nil || program != mpsServer {
		return false
	}
	parent := l.parent(pid)
	if parent <= 1 || !l.ofRoot(parent) {
		return false
	}
	text, err := l.read(parent, "cgroup")
	if err != nil || Parse(string(text), l.homes()) != p.Place {
		return false
	}
	program, err := l.executable(parent)
	return err == nil && program == mpsControl
}

// ofMachine reports whether a process belongs to the machine itself and to none of its tenants.
func (p *Place) ofMachine() bool {
	switch {
	case p.outranksUnit():
		return false
	case p.User != "":
		return p.User == "0"
	}
	return strings.HasSuffix(p.Unit, ".service") && !strings.HasPrefix(p.Unit, "systemd-nspawn@")
}

// ofRoot reports whether a process runs as root with all of its user IDs.
func (l *Locator) ofRoot(pid int64) bool {
	text, err := l.read(pid, "status")
	if err != nil {
		return false
	}
	for _, uid := range uids(string(text)) {
		if uid != "0" {
			return false
		}
	}
	return parseUID(string(text)) == "0"
}

// parent returns the PID of a process' parent, 0 when it is not known.
func (l *Locator) parent(pid int64) int64 {
	text, err := l.read(pid, "status")
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut("\n"+string(text), "\nPPid:")
	line, _, _ := strings.Cut(rest, "\n")
	parent, err := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
	if err != nil {
		return 0
	}
	return parent
}

// executable returns the file name of the program that a process runs.
func (l *Locator) executable(pid int64) (string, error) {
	readlink := os.Readlink
	if l.readlink != nil {
		readlink = l.readlink
	}
	path, err := readlink(filepath.Join(l.Proc, strconv.FormatInt(pid, 10), "exe"))
	if err != nil {
		return "", err
	}
	return filepath.Base(strings.TrimSuffix(path, deleted)), nil
}
