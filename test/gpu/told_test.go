package gpu

import (
	"encoding/xml"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// told is what nvidia-smi says of one GPU: texts by the path of their element below gpu, and those
// of --query-gpu by csv: and the field's name.
type told map[string]string

// element is one of the XML, whatever its name.
type element struct {
	XMLName  xml.Name
	Text     string    `xml:",chardata"`
	Children []element `xml:",any"`
}

func (e element) child(name string) string {
	for _, c := range e.Children {
		if c.XMLName.Local == name {
			return strings.TrimSpace(c.Text)
		}
	}
	return ""
}

// readXML takes the answer of nvidia-smi -q -x apart, by UUID.
func readXML(text string) (map[string]told, error) {
	var log element
	if err := xml.Unmarshal([]byte(text), &log); err != nil {
		return nil, fmt.Errorf("nvidia-smi -q -x: %w", err)
	}
	out := map[string]told{}
	for _, e := range log.Children {
		if e.XMLName.Local != "gpu" {
			continue
		}
		t := told{}
		for _, c := range e.Children {
			t.add("", c)
		}
		for _, c := range log.Children { // the driver's version and CUDA's stand beside the GPUs
			if c.XMLName.Local != "gpu" {
				t.add("", c)
			}
		}
		out[t["uuid"]] = t
	}
	return out, nil
}

// add takes an element and those in it. Where an element comes twice, the first counts.
func (t told) add(within string, e element) {
	path := within + e.XMLName.Local
	switch e.XMLName.Local {
	case "mig_device":
		path += "[" + e.child("gpu_instance_id") + "/" + e.child("compute_instance_id") + "]"
	case "process_info":
		t.process("process["+e.child("pid")+"]", e.child("used_memory"))
		return
	}
	if len(e.Children) == 0 {
		if _, twice := t[path]; !twice {
			t[path] = strings.TrimSpace(e.Text)
		}
	}
	for _, c := range e.Children {
		t.add(path+"/", c)
	}
}

// process takes what a process holds; one that both computes and draws may be listed twice.
func (t told) process(path, text string) {
	if n, ok := number(text); ok {
		if before, twice := number(t[path]); twice && before.value >= n.value {
			return
		}
	} else if _, twice := t[path]; twice {
		return
	}
	t[path] = text
}

// csvLine keeps the answers to fields of --query-gpu.
func (t told) csvLine(fields, answers []string) {
	for i, f := range fields {
		t["csv:"+f] = withoutName(f, answers[i])
	}
}

// withoutName returns the answer to a field of --query-gpu without the name that some drivers print
// before it: nvidia-smi of R535 to R555 prints "state  Completed" for fabric.state and "status
// Success" for fabric.status, newer ones "Completed" and "Success".
func withoutName(field, answer string) string {
	group, name, _ := strings.Cut(field, ".")
	first, rest, _ := strings.Cut(strings.TrimSpace(answer), " ")
	if group != "fabric" || !strings.EqualFold(strings.TrimSuffix(first, ":"), name) {
		return answer
	}
	return strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(rest), ":"))
}

// text returns what is told of the first of several paths that has an answer, by which of them, and
// whether any is told of. An element that is told as a whole to be missing takes those in it along.
func (t told) text(paths string) (text, by string, there bool) {
	for path := range strings.SplitSeq(paths, "|") {
		for p := path; p != ""; p, _ = split(p) {
			if said, ok := t[p]; ok && (p == path || isNone(said)) {
				if !isNone(said) {
					return said, path, true
				}
				text, by, there = said, path, true
				break
			}
		}
	}
	return text, by, there
}

// split takes the last name off a path.
func split(path string) (within, name string) {
	i := strings.LastIndexByte(path, '/')
	if i < 0 {
		return "", path
	}
	return path[:i], path[i+1:]
}

// nones are the ways nvidia-smi says that there is no answer; in CSV they are in brackets.
var nones = []string{
	"", "N/A", "Not Supported", "Not Found", "Not Available", "Requested functionality has been deprecated", "Insufficient Permissions",
	"Function Not Found", "GPU is lost", "GPU requires reset", "Unknown Error", "ERR!",
}

func isNone(text string) bool {
	return slices.Contains(nones, strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
}

// quantity is a number in its base unit, and how finely nvidia-smi prints such numbers.
type quantity struct{ value, grain float64 }

var printed = regexp.MustCompile(`^(-?[0-9]+(?:\.([0-9]+))?) ?(MiB|KB/s|MHz|W|C|%|us|x|bank\(s\)|)$`)

// units are what those of nvidia-smi are in base units.
var units = map[string]float64{"MiB": 1 << 20, "KB/s": 1e3, "MHz": 1e6, "W": 1, "C": 1, "%": .01, "us": 1e-6, "x": 1, "bank(s)": 1, "": 1}

// switches are the words for 1 and 0.
var switches = map[string]float64{
	"Enabled": 1, "Yes": 1, "Active": 1, "True": 1, "Disabled": 0, "No": 0, "Not Active": 0, "False": 0,
}

// number reads a text of nvidia-smi. Memory and power are rounded, up or down.
func number(text string) (quantity, bool) {
	if n, ok := switches[text]; ok {
		return quantity{value: n}, true
	}
	if digits, ok := strings.CutPrefix(text, "P"); ok { // a performance state
		text = digits
	}
	m := printed.FindStringSubmatch(text)
	if m == nil {
		return quantity{}, false
	}
	n, err := strconv.ParseFloat(m[1], 64)
	if err != nil {
		return quantity{}, false
	}
	q := quantity{value: n * units[m[3]]}
	switch m[3] {
	case "MiB", "us":
		q.grain = units[m[3]]
	case "W":
		q.grain = .01
	}
	return q, true
}
