//go:build !linux

package kernellog

import (
	"errors"
	"io/fs"
	"time"
)

// isDevice is never so: there is no such device here.
func isDevice(fs.FileInfo) bool { return false }

// running is not known here.
func running() time.Duration { return 0 }

func openDevice(string) (*file, error) { return nil, errors.ErrUnsupported }
