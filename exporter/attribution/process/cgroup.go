package process

import "strings"

// Place is the owner that the kernel's control groups give a process. Fields that do not apply are empty.
type Place struct {
	Pod       string // UID of the pod; of a static pod 32 digits without dashes, its config.hash
	Container string // ID, 64 hexadecimal digits; in a pod that of the pod's own container
	Runtime   string // containerd, cri-o, docker or podman, if the path has it
	Job       string // Slurm's job ID; in a pod the pod's own claim, which nothing confirms yet
	SLUID     string // Slurm's unique ID of the job, which replaces the job ID in paths from 26.05 on; in a pod likewise
	Step      string // of the job: 0, batch, extern, interactive …
	Unit      string // systemd's, such as ollama.service, or lxc/NAME; below a user's slice the user's own
	User      string // UID of the user in whose slice the process is
	Helper    bool   // the process is a container runtime's or Slurm's own, which works for no owner
}

// Parse reads /proc/PID/cgroup, of either version of control groups or both at once. Lines are
// `hierarchy:controllers:path`; the first that has a pod, a container or a job is taken, since all
// controllers of such a process agree. In version 1 systemd makes its units in its own hierarchy, and
// not in each of the others: a unit anywhere says more than a user.
//
// Homes are the paths of the containers that the exporter itself runs in, of Homes: paths begin there.
func Parse(text string, homes []string) Place {
	var best Place
	for path := range paths(text) {
		var p Place
		p.path(withoutHome(path, homes))
		if p.outranksUnit() {
			return p
		}
		if best.Unit == "" && (p.Unit != "" || best.User == "") {
			best = p
		}
	}
	return best
}

// Homes returns the paths of the containers around a process, outermost first, without a pod's. They are
// the machine to a process that runs in them, as the node is that kind makes of a container.
func Homes(text string) (homes []string) {
	for path := range paths(text) {
		for at := 0; at < len(path); {
			s, _, nested := strings.Cut(path[at:], "/")
			at += len(s) + 1
			var p Place
			outside := !ofSlurm(s) && p.segment(s)
			if p.Pod != "" || !outside && p.Container == "" && !strings.HasPrefix(s, lxcPayload) {
				break
			}
			if !outside && nested {
				homes = append(homes, path[:at])
			}
		}
	}
	return homes
}

// withoutHome cuts the longest home off a path.
func withoutHome(path string, homes []string) string {
	longest := 0
	for _, home := range homes {
		if strings.HasPrefix(path, home) {
			longest = max(longest, len(home))
		}
	}
	return path[longest:]
}

// paths yields the path of each line.
func paths(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for line := range strings.Lines(text) {
			_, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ":")
			_, path, found := strings.Cut(rest, ":")
			if ok && found && !yield(strings.TrimSuffix(path, deleted)) {
				return
			}
		}
	}
}

// deleted follows the path of a group that was removed before its last process was waited for.
const deleted = " (deleted)"

// outranksUnit reports whether a pod, container or job is known: systemd's unit is then the runtime's.
func (p *Place) outranksUnit() bool {
	return p.Pod != "" || p.Container != "" || p.Job != "" || p.SLUID != ""
}

// path reads a path from the root. Only root makes groups outside of a tenant's own; below it the tenant
// may choose the names. So the outermost pod, container, job, unit or user decides, and what is nested
// in it changes nothing, except that a pod's own processes are told apart by job.
func (p *Place) path(path string) {
	for path != "" {
		var s string
		s, path, _ = strings.Cut(path, "/")
		if s == "" {
			continue
		}
		slurm := ofSlurm(s)
		if !slurm && p.segment(s) {
			continue
		}
		switch {
		case slurm && p.Pod == "":
			*p = Place{}
			p.slurm(path)
		case slurm:
			p.inPod(path)
		case p.User != "":
			p.ofUser(path)
		case p.Pod != "" && p.Container != "":
			p.ofPod(path)
		case strings.HasPrefix(s, "lxc"):
			name, _, _ := strings.Cut(path, "/")
			p.lxc(s, name)
		}
		break
	}
	if p.outranksUnit() {
		p.Unit = ""
	}
}

// segment reads a segment outside of all tenants, and reports whether the next one is outside too.
func (p *Place) segment(s string) (outside bool) {
	if len(s) >= 32 { // long enough for an ID
		if uid := podUID(s); uid != "" && p.Pod == "" {
			*p = Place{Pod: uid}
		}
		if at := containerID(s); at >= 0 {
			before := s[:at]
			p.Runtime = runtimeOf(before, p.Runtime)
			if p.Helper = strings.HasSuffix(before, "conmon-"); !p.Helper {
				p.Container = s[at : at+idLength]
			}
			return false
		}
	}
	switch {
	case userOf(s) != "":
		p.User = userOf(s)
		return false
	case strings.HasSuffix(s, ".service"):
		p.Unit = s
		return isRuntime(s)
	case strings.HasSuffix(s, ".scope"): // systemd-run's, or a machine's
		if strings.HasPrefix(s, "machine-") {
			p.Unit = s
		}
		return false
	case s == "lxc", strings.HasPrefix(s, "lxc."):
		return false
	case s == "docker":
		p.Runtime = "docker"
	case s == "libpod_parent":
		p.Runtime = "podman"
	}
	return true
}

// userOf returns the UID in the name of a user's slice, or of the service that runs the user's units.
func userOf(s string) string {
	uid, ok := strings.CutSuffix(s, ".slice")
	if ok {
		uid, ok = strings.CutPrefix(uid, "user-")
	} else if uid, ok = strings.CutSuffix(s, ".service"); ok {
		uid, ok = strings.CutPrefix(uid, "user@")
	}
	if !ok || !isNumber(uid) {
		return ""
	}
	return uid
}

// isRuntime reports whether a unit is that of a container runtime, in whose group some configurations
// have the containers.
func isRuntime(unit string) bool {
	switch unit {
	case "containerd.service", "docker.service", "crio.service", "kubelet.service", "k3s.service", "k3s-agent.service",
		"rke2-server.service", "rke2-agent.service", "k0scontroller.service", "k0sworker.service", "snap.microk8s.daemon-containerd.service":
		return true
	}
	return false
}

// ofUser reads what is below a user's slice, where users choose the names: the last unit or container is
// one of the user's own.
func (p *Place) ofUser(path string) {
	for s := range strings.SplitSeq(path, "/") {
		const short = 12 // digits of a container's ID, as its runtime's tools print it
		at := -1
		if len(s) >= idLength {
			at = containerID(s)
		}
		switch {
		case at >= 0:
			runtime := runtimeOf(s[:at], "")
			if runtime == "" {
				runtime = "container"
			}
			p.Unit = runtime + "/" + s[at:at+short]
		case strings.HasSuffix(s, ".service") && userOf(s) == "":
			p.Unit = s
		}
	}
}

// ofPod reads what is below a pod's container: the job that slurmd in the pod has started, if any.
func (p *Place) ofPod(path string) {
	for path != "" {
		var s string
		s, path, _ = strings.Cut(path, "/")
		if ofSlurm(s) {
			p.inPod(path)
			return
		}
	}
}

// inPod reads what is below the group that slurmd made in a pod.
func (p *Place) inPod(path string) {
	p.slurm(path)
	p.Helper, p.User = false, "" // the pod's own word
}

// lxcPayload begins the name of a system container's group.
const lxcPayload = "lxc.payload."

// lxc reads the group of a system container: /lxc.payload.NAME, or /lxc/NAME of old versions.
func (p *Place) lxc(s, next string) {
	name, ok := strings.CutPrefix(s, lxcPayload)
	if !ok {
		name, ok = strings.CutPrefix(s, "lxc.monitor.")
	}
	if !ok {
		name = next
	}
	if name != "" {
		p.Unit = "lxc/" + name
	}
}

// ofSlurm says whether a segment is that below which Slurm has its jobs.
func ofSlurm(s string) bool {
	return s == "slurm" || strings.HasSuffix(s, "slurmstepd.scope") ||
		strings.HasPrefix(s, "slurm_") && !strings.HasSuffix(s, ".service") && !strings.HasSuffix(s, ".slice") && !strings.HasSuffix(s, ".scope")
}

// slurm reads what is below Slurm's own group: perhaps the user, then the job, then the step. What is
// below the step is the job's own, except for the group of slurmstepd right below it.
func (p *Place) slurm(path string) {
	for path != "" {
		var s string
		s, path, _ = strings.Cut(path, "/")
		word, rest, _ := strings.Cut(s, "_")
		switch {
		case s == "":
		case word == "step":
			p.Step = rest
			next, _, _ := strings.Cut(path, "/")
			p.Helper = next == "slurm"
			return
		case p.Job != "" || p.SLUID != "":
			return
		case word == "uid" && isNumber(rest):
			p.User = rest
		case word == "job" && isNumber(rest):
			p.Job = rest
		case isSLUID(s):
			p.SLUID = s
		}
	}
}

// isNumber says whether it is a number of at most 32 bits, which Slurm's of jobs and the kernel's of
// users are.
func isNumber(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != "" && len(s) <= 10
}

// isSLUID says whether a segment is an s and 13 of Crockford's digits.
func isSLUID(s string) bool {
	if len(s) != 14 || s[0] != 's' {
		return false
	}
	for _, c := range []byte(s[1:]) {
		if !(c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' && c != 'I' && c != 'L' && c != 'O' && c != 'U') {
			return false
		}
	}
	return true
}

// runtimeOf is what the words before a container's id say of who runs it; the one around it where they
// say nothing.
func runtimeOf(before, around string) string {
	switch {
	case strings.HasSuffix(before, "cri-containerd-") || strings.HasSuffix(before, "cri-containerd:") || strings.HasSuffix(before, "nerdctl-"):
		return "containerd"
	case strings.HasSuffix(before, "docker-"):
		return "docker"
	case strings.HasPrefix(before, "libpod-"):
		return "podman"
	case strings.HasSuffix(before, "crio-"), strings.HasSuffix(before, "conmon-"), strings.HasSuffix(before, ":crio:"):
		return "cri-o"
	}
	return around
}

// podUID is the UID after a "pod" of a segment, its underscores made dashes: systemd has no dash to
// spare. A static pod's has 32 digits and no dashes.
func podUID(s string) string {
	for {
		i := strings.Index(s, "pod")
		if i < 0 {
			return ""
		}
		s = s[i+len("pod"):]
		const dashed = len("7d2f0a4c-9b1e-4a1c-8d55-0c2c0a6f3b11")
		switch {
		case len(s) < 32:
			return ""
		case len(s) >= dashed && s[8] == '-' && isUUID(s[:dashed]):
			return s[:dashed]
		case len(s) >= dashed && s[8] == '_' && isUUID(s[:dashed]):
			return strings.ReplaceAll(s[:dashed], "_", "-")
		case isHex(s[:32]) && (len(s) == 32 || !isHex(s[32:33])):
			return s[:32]
		}
	}
}

func isUUID(s string) bool {
	return s[13] == s[8] && s[18] == s[8] && s[23] == s[8] &&
		isHex(s[:8]) && isHex(s[9:13]) && isHex(s[14:18]) && isHex(s[19:23]) && isHex(s[24:])
}

// idLength is the number of digits of a container's ID.
const idLength = 64

// containerID is where the id of a segment begins, -1 when there is none: it stands at the end, or
// before what systemd appends.
func containerID(s string) int {
	for _, end := range [...]int{len(s), strings.LastIndexByte(s, '.')} {
		at := end - idLength
		if at >= 0 && isHex(s[at:end]) && (at == 0 || !isHex(s[at-1:at])) {
			return at
		}
	}
	return -1
}

// isHex says whether all are digits as ids have them, which are never upper case.
func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; c-'0' > 9 && c-'a' > 5 {
			return false
		}
	}
	return true
}
