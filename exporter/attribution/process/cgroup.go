package process

import "strings"

// Place is where the kernel's control groups say a process belongs. What does not apply is empty.
type Place struct {
	Pod       string // UID of the pod, also of one with a job in it; of a static pod 32 digits without dashes, its config.hash
	Container string // id, 64 hexadecimal digits; in a pod that of the pod's own container
	Runtime   string // containerd, cri-o, docker or podman, where the path tells
	Job       string // Slurm's number
	SLUID     string // Slurm's own id of the job, where from 26.05 on the path has no number
	Step      string // of the job: 0, batch, extern, interactive …
	Unit      string // systemd's, such as ollama.service
	User      string // number of the user whose slice it is in
	Helper    bool   // it is the runtime's or Slurm's own process, which works for nobody
}

// Parse reads /proc/PID/cgroup, of either version of control groups or both at once. Lines are
// `hierarchy:controllers:path`; the first that tells of a pod, a container or a job is taken, since all
// controllers of such a process agree. In version 1 systemd makes its units in its own hierarchy, and
// not in each of the others: a unit anywhere says more than a user.
func Parse(text string) Place {
	var best Place
	for text != "" {
		var line string
		line, text, _ = strings.Cut(text, "\n")
		_, rest, ok := strings.Cut(line, ":")
		_, path, found := strings.Cut(rest, ":")
		if !ok || !found {
			continue
		}
		var p Place
		p.path(strings.TrimSuffix(path, deleted))
		if p.outranksUnit() {
			return p
		}
		if best.Unit == "" && (p.Unit != "" || best.User == "") {
			best = p
		}
	}
	return best
}

// deleted stands behind the path of a group that was removed before the last of its processes was
// waited for.
const deleted = " (deleted)"

// outranksUnit says whether more is known than systemd's unit, which then is that of a runtime.
func (p *Place) outranksUnit() bool {
	return p.Pod != "" || p.Container != "" || p.Job != "" || p.SLUID != ""
}

// path goes through a path from the root: what is nested deeper is closer to the process, so the last
// pod counts, and the last container outside pods. Below his own slice a user makes what groups he likes:
// what is called a job or a pod there is none.
func (p *Place) path(path string) {
	slurm := false
	for path != "" {
		var s string
		s, path, _ = strings.Cut(path, "/")
		switch {
		case s == "":
		case slurm:
			p.slurm(s)
		case p.User == "" && ofSlurm(s):
			slurm = true
			// A pod around it is where the job runs; any other runtime is the node's, not the job's.
			if *p = (Place{Pod: p.Pod, Container: p.Container, Runtime: p.Runtime}); p.Pod == "" {
				*p = Place{}
			}
		case len(s) < 32: // too short for any id
			p.unit(s)
		default:
			p.id(s)
		}
	}
	if p.outranksUnit() {
		p.Unit = ""
	}
}

// ofSlurm says whether a segment is that below which Slurm has its jobs.
func ofSlurm(s string) bool {
	return s == "slurm" || strings.HasSuffix(s, "slurmstepd.scope") ||
		strings.HasPrefix(s, "slurm_") && !strings.HasSuffix(s, ".service") && !strings.HasSuffix(s, ".slice")
}

// slurm reads a segment below Slurm's own. What the job makes below its own group is its own.
func (p *Place) slurm(s string) {
	word, rest, _ := strings.Cut(s, "_")
	switch {
	case word == "job" && isNumber(rest):
		if p.Job == "" && p.SLUID == "" {
			p.Job = rest
		}
	case word == "step":
		if p.Step == "" {
			p.Step = rest
		}
	case word == "uid" && isNumber(rest):
		p.User = rest
	case s == "slurm" && p.Step != "":
		p.Helper = true
	case p.Job == "" && p.SLUID == "" && isSLUID(s):
		p.SLUID = s
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

// id reads a segment that is long enough to hold a pod's or a container's id, or both.
func (p *Place) id(s string) {
	if uid := podUID(s); uid != "" && p.User == "" {
		*p = Place{Pod: uid, User: p.User} // a container around it is that of the node, as kind has it
	}
	at := containerID(s)
	if at < 0 {
		p.unit(s)
		return
	}
	if p.Pod != "" && p.Container != "" {
		return // started inside the pod's container: its work is the pod's
	}
	before := s[:at]
	p.Runtime = runtimeOf(before, p.Runtime)
	if p.Helper = strings.HasSuffix(before, "conmon-"); p.Helper {
		p.Container = ""
	} else {
		p.Container = s[at : at+idLength]
	}
}

// unit reads a segment of systemd's, or one that names a runtime.
func (p *Place) unit(s string) {
	switch {
	case strings.HasSuffix(s, ".service"):
		if !strings.HasPrefix(s, "user@") {
			p.Unit = s
		}
	case strings.HasSuffix(s, ".slice"):
		if uid, ok := strings.CutPrefix(s[:len(s)-len(".slice")], "user-"); ok && isNumber(uid) {
			p.User = uid
		}
	case p.Container != "":
	case s == "docker":
		p.Runtime = "docker"
	case s == "libpod_parent":
		p.Runtime = "podman"
	}
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

// idLength is how many digits a container's id has.
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
