package diagnosis

import (
	"bufio"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gpumeter/gpumeter/exporter/telemetry"
)

// NVIDIA is what the files say about NVIDIA's driver.
type NVIDIA struct {
	Loaded  bool   // the kernel module is loaded
	Kernel  string // its version; empty: not known
	Library string // the version of libnvidia-ml in this process; empty: not known
	NoFile  string // the path of libnvidia-ml that the user gave, where there is no file; empty: there is one, or none was given
	GPUs    []GPU  // those the kernel module has
	Nodes   []Node // the device nodes that are needed and cannot be used
}

// GPU is one that the kernel module has.
type GPU struct {
	PCI      string
	Minor    int // of its device node; -1: not known
	Excluded bool
}

// Node is a device node that cannot be used.
type Node struct {
	Path string
	PCI  string // the GPU it belongs to; empty: all of them
	Err  error  // fs.ErrNotExist where it is missing
}

// Missing reports whether the node does not exist.
func (n Node) Missing() bool { return errors.Is(n.Err, fs.ErrNotExist) }

// nvidia reads the files. What cannot be read is left empty.
func (c *Config) nvidia() NVIDIA {
	var n NVIDIA
	dir := filepath.Join(c.Proc, "driver", "nvidia")
	banner, err := read(filepath.Join(dir, "version"), mostFile)
	n.Loaded, n.Kernel = err == nil, kernelVersion(banner)
	if text, err := read(c.Maps, mostFile); err == nil {
		n.Library = libraryVersion(text)
	}
	if c.Library != "" {
		if _, err := os.Stat(c.Library); errors.Is(err, fs.ErrNotExist) {
			n.NoFile = c.Library
		}
	}
	if !n.Loaded {
		return n
	}
	n.GPUs = gpus(filepath.Join(dir, "gpus"))
	n.node(c, "nvidiactl", "")
	for _, g := range n.GPUs {
		if g.Minor >= 0 && !g.Excluded {
			n.node(c, "nvidia"+strconv.Itoa(g.Minor), g.PCI)
		}
	}
	return n
}

// node notes a device node that cannot be used.
func (n *NVIDIA) node(c *Config, name, pci string) {
	path := filepath.Join(c.Dev, name)
	if err := c.access(path); err != nil {
		n.Nodes = append(n.Nodes, Node{Path: path, PCI: pci, Err: err})
	}
}

// nodes returns the unusable nodes, those that are missing or those that are not.
func (n *NVIDIA) nodes(missing bool) (out []Node) {
	for _, x := range n.Nodes {
		if x.Missing() == missing {
			out = append(out, x)
		}
	}
	return out
}

// mostFile bounds what is read of a file, bytes. The maps of this process are the largest.
const mostFile = 4 << 20

// read returns the beginning of a file.
func read(path string, most int64) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(io.LimitReader(f, most))
	return string(text), err
}

var version = regexp.MustCompile(`^[0-9]{3,4}\.[0-9]{1,4}(\.[0-9]{1,4})?$`)

// kernelVersion returns the version in /proc/driver/nvidia/version, whose first line is one of
//
//	NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.129.03  Thu Oct 19 18:56:32 UTC 2023
//	NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  550.54.15  Release Build  (dvs-builder@U16)
func kernelVersion(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	if !strings.HasPrefix(line, "NVRM version:") {
		return ""
	}
	for word := range strings.FieldsSeq(line) {
		if version.MatchString(word) {
			return word
		}
	}
	return ""
}

// libraryVersion returns the version in the name of the mapped libnvidia-ml.so.VERSION, which
// libnvidia-ml.so.1 is a link to.
func libraryVersion(maps string) string {
	const name = "/libnvidia-ml.so."
	for lines := bufio.NewScanner(strings.NewReader(maps)); lines.Scan(); {
		_, after, found := strings.Cut(lines.Text(), name)
		if after = strings.TrimSuffix(after, " (deleted)"); found && version.MatchString(after) {
			return after
		}
	}
	return ""
}

// mostGPUs is far above what a machine has.
const mostGPUs = 1024

// gpus lists the GPUs of the kernel module, by PCI address.
func gpus(dir string) (out []GPU) {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer d.Close() //nolint:errcheck // it was only read
	names, _ := d.Readdirnames(mostGPUs)
	slices.Sort(names)
	for _, name := range names {
		if text, err := read(filepath.Join(dir, name, "information"), mostFile); err == nil {
			g := information(text)
			g.PCI = telemetry.NormalizePCI(name)
			out = append(out, g)
		}
	}
	return out
}

// information reads the lines of a GPU's information file that matter here, such as "Device Minor: 	 0".
func information(text string) GPU {
	g := GPU{Minor: -1}
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch key {
		case "Device Minor":
			if n, err := strconv.ParseUint(value, 10, 16); err == nil {
				g.Minor = int(n)
			}
		case "GPU Excluded":
			g.Excluded = value == "Yes"
		}
	}
	return g
}
