package process

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
)

// runs adds a process with its user, parent and program; without a program the kernel has none to name.
func (p tree) runs(pid int, command, cgroup, uid string, parent int, program string) {
	p.Helper()
	p.put(pid, 100, command, cgroup)
	p.add(strconv.Itoa(pid)+"/status", "Name:\tx\nPPid:\t"+strconv.Itoa(parent)+"\nUid:\t"+uid+"\t"+uid+"\t"+uid+"\t"+uid+"\n")
	if program == "" {
		return
	}
	link := filepath.Join(p.dir, strconv.Itoa(pid), "exe")
	if err := os.Symlink(program, link); err != nil {
		p.Fatal(err)
	}
}

// MPS' server is recognized by what a tenant cannot choose.
func TestLocator_RecognizesMPSServer(t *testing.T) {
	const (
		command = "nvidia-cuda-mps"
		server  = "/usr/bin/nvidia-cuda-mps-server"
		daemon  = "/usr/bin/nvidia-cuda-mps-control"
		unit    = "0::/system.slice/nvidia-mps.service\n"
		hub     = "0::/system.slice/jupyterhub.service\n"
		session = "0::/user.slice/user-1002.slice/session-4.scope\n"
		job     = "0::/system.slice/slurmstepd.scope/job_6/step_0/user/task_0\n"
	)
	pod := "0::/kubepods.slice/" + s + "/cri-containerd-" + cid + ".scope\n"
	docker := "0::/system.slice/docker-" + cid + ".scope\n"
	for name, c := range map[string]struct {
		command, cgroup, uid string
		parent               int
		program              string
		want                 bool
	}{
		"root's server":                               {command, unit, "0", 1, server, true},
		"root's control daemon":                       {command, unit, "0", 1, daemon, true},
		"root's, without a unit":                      {command, "0::/\n", "0", 1, server, false},
		"root's in a system container":                {command, "0::/lxc.payload.eve/system.slice/nvidia-mps.service\n", "0", 1, server, false},
		"root's in a machine":                         {command, "0::/machine.slice/systemd-nspawn@eve.service/payload\n", "0", 1, server, false},
		"root's in a machine of another kind":         {command, "0::/machine.slice/machine-eve.scope\n", "0", 1, server, false},
		"root's in a scope":                           {command, "0::/nomad.slice/share.slice/eve.scope\n", "0", 1, server, false},
		"root's, started in its session":              {command, "0::/user.slice/user-0.slice/session-1.scope\n", "0", 1, server, true},
		"root's, replaced by an upgrade":              {command, unit, "0", 1, server + " (deleted)", true},
		"a user's server of root's daemon":            {command, unit, "1002", 10, server, true},
		"a tenant's process in a job":                 {command, job, "1002", 1, server, false},
		"root's in a job":                             {command, job, "0", 1, server, false},
		"in a pod":                                    {command, pod, "0", 1, server, false},
		"in a container":                              {command, docker, "0", 1, server, false},
		"in a session":                                {command, session, "1002", 1, server, false},
		"root's in a user's session":                  {command, session, "0", 1, server, false},
		"a user's, without a session":                 {command, "0::/\n", "1002", 1, server, false},
		"a user's in a unit of many":                  {command, hub, "1002", 1, server, false},
		"a user's in a unit of many, no parent known": {command, hub, "1002", 99, server, false},
		"a child of root's daemon, in another group":  {command, hub, "1002", 10, server, false},
		"a child of a user's daemon":                  {command, hub, "1002", 11, server, false},
		"a child of root's process of that name":      {command, unit, "1002", 12, server, false},
		"another program by its command":              {command, unit, "0", 1, "/usr/bin/python3", false},
		"another program of a user":                   {command, unit, "1002", 10, "/usr/bin/python3", false},
		"another command":                             {"python3", unit, "0", 1, server, false},
	} {
		p := tree{t, t.TempDir()}
		p.put(1, 0, "init", "")
		p.runs(10, command, unit, "0", 1, daemon)
		p.runs(11, command, hub, "1002", 1, daemon)
		p.runs(12, command, unit, "0", 1, "/usr/bin/python3")
		p.runs(7, c.command, c.cgroup, c.uid, c.parent, c.program)
		if got, err := (&Locator{Proc: p.dir}).Locate(7); err != nil || got.MPS != c.want {
			t.Errorf("%s: %+v, %v; want MPS %v", name, got, err, c.want)
		}
	}
}

// Where the kernel does not let the exporter know the program, root's command is believed, and no other's.
func TestLocator_MPSServerWithoutRights(t *testing.T) {
	for uid, want := range map[string]bool{"0": true, "1002": false} {
		p := tree{t, t.TempDir()}
		p.put(1, 0, "init", "")
		p.runs(7, "nvidia-cuda-mps", "0::/system.slice/nvidia-mps.service\n", uid, 1, "")
		l := &Locator{Proc: p.dir, readlink: func(string) (string, error) { return "", os.ErrPermission }}
		if got, err := l.Locate(7); err != nil || got.MPS != want {
			t.Errorf("user %s: %+v, %v; want MPS %v", uid, got, err, want)
		}
	}
}

// The containers around the exporter are its machine, which decide nothing.
func TestHomes(t *testing.T) {
	for text, want := range map[string][]string{
		"0::/":                               nil,
		"0::/system.slice/gpumeter.service":  nil,
		"0::/docker/" + cid:                  nil,
		"0::/user.slice/user-1.slice/" + cid: nil,
		"0::/kubepods/burstable/pod" + uid + "/" + cid + "/docker/" + victim + "/x":                                 nil,
		"0::/docker/" + node + "/system.slice/gpumeter.service":                                                     {"/docker/" + node + "/"},
		"9:pids:/docker/" + node + "/kubelet/kubepods/pod" + uid + "/" + cid + "\n0::/":                             {"/docker/" + node + "/"},
		"0::/system.slice/docker-" + node + ".scope/kubelet.slice/kubelet-" + s + "/cri-containerd-" + cid + ".s/x": {"/system.slice/docker-" + node + ".scope/"},
		"0::/docker/" + node + "/docker/" + victim + "/init.scope":                                                  {"/docker/" + node + "/", "/docker/" + node + "/docker/" + victim + "/"},
		"0::/lxc.payload.node/system.slice/gpumeter.service":                                                        {"/lxc.payload.node/"},
	} {
		if got := Homes(text); !slices.Equal(got, want) {
			t.Errorf("%s\ngot  %q\nwant %q", text, got, want)
		}
	}
}

// A pod of a node that is a container is that pod's to an exporter in the node, and the container's to one
// outside: who runs it could have chosen the pod's name.
func TestLocator_PathsBeginAtHome(t *testing.T) {
	inside := "0::/docker/" + node + "/kubelet.slice/kubelet-" + s + "/cri-containerd-" + cid + ".scope\n"
	for own, want := range map[string]Place{
		"0::/docker/" + node + "/kubelet.slice/kubelet.service\n": {Pod: uid, Container: cid, Runtime: "containerd"},
		"0::/docker/" + victim + "/init.scope\n":                  {Container: node, Runtime: "docker"},
		"0::/system.slice/gpumeter.service\n":                     {Container: node, Runtime: "docker"},
		"":                                                        {Container: node, Runtime: "docker"},
	} {
		p := tree{t, t.TempDir()}
		p.put(1, 0, "init", "")
		p.put(7, 100, "python3", inside)
		if own != "" {
			p.add("self/cgroup", own)
		}
		if got, err := (&Locator{Proc: p.dir}).Locate(7); err != nil || got.Place != want {
			t.Errorf("exporter in %s\ngot  %+v, %v\nwant %+v", own, got, err, want)
		}
	}
}
