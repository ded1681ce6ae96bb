package slurm

import (
	"fmt"
	"io/fs"
	"os"
)

// shared returns how users other than root and the exporter's own can write a file or directory, empty when
// they cannot.
func shared(info fs.FileInfo) string {
	owner, _ := owned(info)
	switch {
	case owner != 0 && owner != uint32(os.Geteuid()):
		return fmt.Sprintf("owned by UID %d", owner)
	case info.Mode()&0o022 != 0:
		return fmt.Sprintf("writable by its group or by all (mode %04o)", info.Mode().Perm())
	}
	return ""
}

// untrusted returns why a file of a directory that others can write is not read, empty when it is: they can
// put there what they own, a hard link to any file, and a file that they can write.
func untrusted(info fs.FileInfo) string {
	if why := shared(info); why != "" {
		return why
	}
	if _, links := owned(info); links > 1 {
		return fmt.Sprintf("has %d hard links", links)
	}
	return ""
}
