package process

import "strings"

// Place is where the kernel's control groups say a process belongs. What does not apply is empty.
type Place struct {
	Pod       string // UID of the pod, also of one with a job in it; of a static pod 32 digits without dashes, its config.hash
	Container string // id, 64 hexadecimal digits
	Runtime   string // containerd, cri-o, docker or podman, where the path tells
	Job       string // Slurm's number
	SLUID     string // Slurm's own id of the job, where from 26.05 on the path has no number
	Step      string // of the job: 0, batch, extern, interactive …
	Unit      string // systemd's, such as ollama.service
	User      string // number of the user whose slice it is in
	Helper    bool   // it is the runtime's or Slurm's own process, which works for nobody
}

// Parse reads /proc/PID/cgroup, of either version of control groups or both at once. Lines are
// `hierarchy:controllers:path`; the first that tells anything is taken, since all controllers of a
// process that matters here agree.
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
		p := parsePath(path)
		if p.Pod != "" || p.Container != "" || p.Job != "" || p.SLUID != "" {
			return p
		}
		if best == (Place{}) {
			best = p
		}
	}
	return best
}

// parsePath goes through the path from the root: what is nested deeper is closer to the process,
// so the last pod and the last container count.
func parsePath(path string) Place {
	var p Place
	slurm := false
	for path != "" {
		var s string
		s, path, _ = strings.Cut(path, "/")
		switch {
		case s == "":
		case slurm:
			p.slurm(s)
		case strings.HasSuffix(s, "slurmstepd.scope") || s == "slurm" || strings.HasPrefix(s, "slurm_"):
			slurm = true
			// A pod around it is where the job runs; any other runtime is the node's, not the job's.
			if p = (Place{Pod: p.Pod, Container: p.Container, Runtime: p.Runtime}); p.Pod == "" {
				p = Place{}
			}
		default:
			p.segment(s)
		}
	}
	if p.Job != "" || p.SLUID != "" || p.Pod != "" || p.Container != "" {
		p.Unit = "" // that of the runtime, which is not the process'
	}
	return p
}

// slurm reads a segment below Slurm's own.
func (p *Place) slurm(s string) {
	switch {
	case strings.HasPrefix(s, "job_"):
		p.Job = s[len("job_"):]
	case strings.HasPrefix(s, "step_"):
		p.Step = s[len("step_"):]
	case strings.HasPrefix(s, "uid_"):
		p.User = s[len("uid_"):]
	case s == "slurm" && p.Step != "":
		p.Helper = true
	case p.Job == "" && p.SLUID == "" && isSLUID(s):
		p.SLUID = s
	}
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

// segment reads one outside Slurm.
func (p *Place) segment(s string) {
	if len(s) < 32 { // too short for any id
		p.unit(s)
		return
	}
	if uid := podUID(s); uid != "" {
		*p = Place{Pod: uid, User: p.User} // a container around it is that of the node, as kind has it
	}
	if at := lastHex(s, idLength); at >= 0 {
		before := s[:at]
		p.Runtime = p.runtime(before)
		p.Container, p.Helper = s[at:at+idLength], strings.HasSuffix(before, "conmon-")
		if p.Helper {
			p.Container = ""
		}
		return
	}
	p.unit(s)
}

// idLength is how many digits a container's id has.
const idLength = 64

// unit reads a segment of systemd's, or one that names a runtime.
func (p *Place) unit(s string) {
	switch {
	case strings.HasSuffix(s, ".service") && !strings.HasPrefix(s, "user@"):
		p.Unit = s
	case strings.HasPrefix(s, "user-") && strings.HasSuffix(s, ".slice"):
		p.User = s[len("user-") : len(s)-len(".slice")]
	case s == "docker" || s == "libpod_parent":
		p.Runtime = map[bool]string{true: "docker", false: "podman"}[s == "docker"]
	}
}

// runtime is what the words before a container's id say of who runs it.
func (p *Place) runtime(before string) string {
	switch {
	case strings.HasSuffix(before, "cri-containerd-") || strings.HasSuffix(before, "cri-containerd:") || strings.HasSuffix(before, "nerdctl-"):
		return "containerd"
	case strings.HasSuffix(before, "crio-"), strings.HasSuffix(before, "conmon-"):
		return "cri-o"
	case strings.HasSuffix(before, "docker-"):
		return "docker"
	case strings.HasSuffix(before, "libpod-"):
		return "podman"
	}
	return p.Runtime
}

// podUID is the UID after the last "pod" of a segment, its underscores made dashes: systemd has no
// dash to spare. A static pod's has 32 digits and no dashes.
func podUID(s string) string {
	i := strings.LastIndex(s, "pod")
	if i < 0 {
		return ""
	}
	s = s[i+len("pod"):]
	const dashed = len("7d2f0a4c-9b1e-4a1c-8d55-0c2c0a6f3b11")
	if len(s) >= dashed && (s[8] == '-' || s[8] == '_') && isUUID(s[:dashed]) {
		if s[8] == '_' {
			return strings.ReplaceAll(s[:dashed], "_", "-")
		}
		return s[:dashed]
	}
	if n := hexPrefix(s); n == 32 {
		return s[:n]
	}
	return ""
}

func isUUID(s string) bool {
	for i := range len(s) {
		switch i {
		case 8, 13, 18, 23:
			if s[i] != s[8] {
				return false
			}
		default:
			if !isHex(s[i]) {
				return false
			}
		}
	}
	return true
}

// lastHex is where the last run of exactly n hexadecimal digits begins, -1 when there is none.
func lastHex(s string, n int) int {
	for end := len(s); end >= n; {
		start := end
		for start > 0 && isHex(s[start-1]) {
			start--
		}
		if end-start == n {
			return start
		}
		end = start - 1
	}
	return -1
}

func hexPrefix(s string) int {
	n := 0
	for n < len(s) && isHex(s[n]) {
		n++
	}
	return n
}

func isHex(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' }
